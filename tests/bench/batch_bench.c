/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_bench FILE CODEC OUT_NBYTES REPETITIONS: what python_bench.py's calls cost in C.  FILE
 * holds chunks, each with its size in four bytes before it, of OUT_NBYTES each.  Prints the
 * processor's seconds for all of them, one repetition a line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clientlib/wharf.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: batch_bench FILE CODEC OUT_NBYTES REPETITIONS\n"
    "\n"
    "What the calls of python_bench.py cost in C: FILE holds chunks, each with\n"
    "its size in four bytes before it, of OUT_NBYTES each.  Prints the\n"
    "processor's seconds for all of them, one repetition a line.\n";

enum { MAX_CHUNKS = 4096 };

struct chunks {
    struct wharf_job jobs[MAX_CHUNKS];
    unsigned n;
};

static void *read_file(const char *path, size_t *ret_nbytes)
{
    FILE *file = fopen(path, "rb");
    long nbytes;
    void *bytes;

    if (!file || fseek(file, 0, SEEK_END) < 0 || (nbytes = ftell(file)) < 0)
        bench_die(path);
    rewind(file);
    bytes = bench_check(malloc((size_t)nbytes + 1));
    if (fread(bytes, 1, (size_t)nbytes, file) != (size_t)nbytes)
        bench_die(path);
    fclose(file);
    *ret_nbytes = (size_t)nbytes;
    return bytes;
}

static void split(struct chunks *chunks, const uint8_t *in, size_t in_nbytes, uint32_t codec,
                  size_t out_nbytes)
{
    uint32_t nbytes;

    for (size_t at = 0; at + 4 <= in_nbytes && chunks->n < MAX_CHUNKS; at += 4 + nbytes) {
        struct wharf_job *job = &chunks->jobs[chunks->n++];

        memcpy(&nbytes, in + at, 4);
        *job = (struct wharf_job)WHARF_JOB_INIT;
        job->codec = codec;
        job->in = in + at + 4;
        job->in_nbytes = nbytes;
        job->out = bench_check(calloc(1, out_nbytes));
        job->out_avail = out_nbytes;
    }
}

static double seconds_of(struct wharf *wharf, const struct chunks *chunks)
{
    struct timespec begin, end;
    struct wharf_outcome outcome;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (unsigned i = 0; i < chunks->n; i++)
        if (wharf_decompress(wharf, &chunks->jobs[i], &outcome) < 0 || outcome.result != WHARF_OK)
            bench_die("a chunk is bad");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    static struct chunks chunks;
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;
    size_t in_nbytes;

    if (argc != 5)
        return test_usage(help);
    int codec = wharf_codec_from_name(argv[2]);
    options.flags = WHARF_OPEN_EMBEDDED;
    if (codec < 0 || wharf_open(&options, &wharf) < 0)
        bench_die(wharf_error_message());
    const uint8_t *in = read_file(argv[1], &in_nbytes);
    split(&chunks, in, in_nbytes, (uint32_t)codec, strtoul(argv[3], NULL, 10));
    for (unsigned long i = strtoul(argv[4], NULL, 10) + 1; i > 0; i--)
        printf("%.9f\n", seconds_of(wharf, &chunks));
    wharf_close(wharf);
    return 0;
}
