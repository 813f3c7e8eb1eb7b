/* SPDX-License-Identifier: Apache-2.0 */
/* damage: damaged chunks, what libraries say of them, and whether that is right. */
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/bench/damage.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: damage make CODEC N CHUNK SEED CORPUS\n"
    "       damage here|library CORPUS RESULTS FIRST BATCH\n"
    "       damage daemon CORPUS RESULTS FIRST BATCH SOCKET ENGINE\n"
    "       damage verify CORPUS RESULTS...\n"
    "\n"
    "make writes N streams of up to CHUNK bytes of output, each damaged in its own way.\n"
    "here, library and daemon give them to libwharf, libwharf-cuda, or libwharf through a\n"
    "daemon, in batches from chunk FIRST on, and write what was said of each to RESULTS,\n"
    "which is there and as long as it has to be.  Exit status 3: the GPU's context is gone.\n"
    "verify counts results, and compares them with the codec's own library on the CPU.\n"
    "tests/bench/damage-run uses all of them.\n";

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (!*text || *end)
        exit(test_usage(help));
    return value;
}

static int make(char **argv)
{
    int codec = wharf_codec_from_name(argv[2]);

    if (codec < 0)
        return test_usage(help);
    damage_make(argv[6], (uint32_t)codec, number(argv[3]), number(argv[4]), number(argv[5]));
    return 0;
}

static int run(int argc, char **argv)
{
    struct damage_run run = {
        .corpus = damage_map(argv[2], 0),
        .results = damage_map(argv[3], 1),
        .first = number(argv[4]),
        .batch = number(argv[5]),
    };

    if (run.batch == 0)
        return test_usage(help);
    if (strcmp(argv[1], "here") == 0)
        return damage_run_here(&run);
    if (strcmp(argv[1], "library") == 0)
        return damage_run_library(&run);
    int engine = argc == 8 ? wharf_engine_from_name(argv[7]) : -1;
    if (strcmp(argv[1], "daemon") != 0 || engine < 0)
        return test_usage(help);
    run.socket = argv[6];
    run.engine = (uint32_t)engine;
    return damage_run_daemon(&run);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc == 7 && strcmp(argv[1], "make") == 0)
        return make(argv);
    if (argc >= 4 && strcmp(argv[1], "verify") == 0) {
        damage_verify(damage_map(argv[2], 0), argv + 3, argc - 3);
        return 0;
    }
    return argc == 6 || argc == 8 ? run(argc, argv) : test_usage(help);
}
