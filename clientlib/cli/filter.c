/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c: wharf without a command, as tar and other programs start compressors: `wharf` packs,
 * `wharf -d` unpacks.
 *
 * tar starts the same words for both directions and adds -d to unpack: `wharf -c lz4 -d`.  So what
 * stands before -d may be pack's, and what only pack takes is left out then.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/message.h"
#include "clientlib/wharf.h"

/* pack's options that unpack does not have; all have an argument. */
static const struct {
    const char *name;
    char letter;
} pack_options[] = {
    {"--chunk", 'b'}, {"--codec", 'c'}, {"--encoder", 0},
    {"--format", 0},  {"--level", 'l'}, {"--type", 0},
};
enum { N_PACK_OPTIONS = sizeof(pack_options) / sizeof(pack_options[0]) };

/* Whether c has an argument, as of pack: of unpack it has none, so it has to be a codec. */
static bool is_codec(const char *word)
{
    return word && wharf_codec_from_name(word) >= 0;
}

/* Whether a word of short options, such as "-dc" or "-T4", has d. */
static bool has_d(const char *word)
{
    static const char with_argument[] = "Tblor";

    for (word++; *word; word++) {
        if (*word == 'd')
            return true;
        if (strchr(with_argument, *word) || (*word == 'c' && is_codec(word + 1)))
            return false;
    }
    return false;
}

static bool is_decompress(const char *word)
{
    return strcmp(word, "--decompress") == 0 || strcmp(word, "--uncompress") == 0 ||
           (word[0] == '-' && word[1] != '-' && has_d(word));
}

/* Where the word that asks for decompression stands, or 0. */
static int find_decompress(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_decompress(argv[i]))
            return i;
    return 0;
}

/* Whether an option's argument is what only unpack's --codec takes. */
static bool is_unpacks(const char *argument, char letter)
{
    return letter == 'c' && argument && wharf_cli_cpu_format_of_name(argument);
}

/* How many words at `words` are one of pack's options with its argument: 0, 1 or 2.  There is a
 * word behind the first. */
static int pack_option_nwords(char **words)
{
    const char *word = words[0];

    for (int i = 0; i < N_PACK_OPTIONS; i++) {
        const char *name = pack_options[i].name;
        size_t nbytes = strlen(name);
        char letter = pack_options[i].letter;

        if (strncmp(word, name, nbytes) == 0 && word[nbytes] == '=')
            return is_unpacks(word + nbytes + 1, letter) ? 0 : 1;
        if (strcmp(word, name) == 0)
            return is_unpacks(words[1], letter) ? 0 : 2;
        if (!letter || word[0] != '-' || word[1] != letter)
            continue;
        if (letter == 'c' && !is_codec(word[2] ? word + 2 : words[1]))
            return 0;
        return word[2] ? 1 : 2;
    }
    return 0;
}

static int unpack(int argc, char **argv, int decompress)
{
    char **words = calloc((size_t)argc + 1, sizeof(*words));
    int n = 0;
    int status;

    if (!words) {
        wharf_cli_say("out of memory");
        return WHARF_CLI_FAILED;
    }
    words[n++] = argv[0];
    for (int i = 1, n_words; i < argc; i += n_words ? n_words : 1) {
        n_words = i < decompress ? pack_option_nwords(argv + i) : 0;
        if (n_words == 0)
            words[n++] = argv[i];
    }
    status = wharf_cli_unpack.run(n, words);
    free(words);
    return status;
}

int wharf_cli_run_filter(int argc, char **argv)
{
    int decompress = find_decompress(argc, argv);

    return decompress ? unpack(argc, argv, decompress) : wharf_cli_pack.run(argc, argv);
}
