/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.c: a complete program on libwharf.  It decodes one stream from standard input to
 * standard output:
 *
 *     cc example.c $(pkg-config --cflags --libs wharf) -o example
 *     ./example gzip < file.gz > file
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wharf.h>

/* Reads all of standard input.  NULL, and errno says why, when it cannot be read or there is no
 * memory. */
static unsigned char *read_all(size_t *ret_nbytes)
{
    unsigned char *bytes = NULL;
    size_t nbytes = 0;
    size_t avail = 0;

    do {
        unsigned char *more = realloc(bytes, avail += 1 << 20);

        if (!more) {
            free(bytes);
            return NULL;
        }
        bytes = more;
        nbytes += fread(bytes + nbytes, 1, avail - nbytes, stdin);
    } while (nbytes == avail);
    if (ferror(stdin)) {
        free(bytes);
        return NULL;
    }
    *ret_nbytes = nbytes;
    return bytes;
}

/*
 * Decodes into memory that grows until the output fits: most callers know how large it is and need
 * one call.  Returns 0 with *outcome filled, or a negative errno number.
 */
static int decode_growing(struct wharf *wharf, struct wharf_job *job, struct wharf_outcome *outcome)
{
    size_t avail = 4 * job->in_nbytes + 4096;
    int err;

    for (;; avail *= 2) {
        free(job->out);
        job->out = malloc(avail);
        job->out_avail = avail;
        if (!job->out)
            return -ENOMEM;
        err = wharf_decompress(wharf, job, outcome);
        if (err < 0 || outcome->result != WHARF_OUTPUT_TOO_SMALL)
            return err;
    }
}

static int decode_stdin(struct wharf *wharf, int codec)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    size_t in_nbytes = 0;
    unsigned char *in = read_all(&in_nbytes);
    int is_good = 0;
    int err;

    job.codec = (uint32_t)codec;
    job.flags = WHARF_JOB_EXACT_INPUT; /* bytes behind the stream are an error */
    job.in = in;
    job.in_nbytes = in_nbytes;
    err = in ? decode_growing(wharf, &job, &outcome) : -errno;
    if (err < 0)
        fprintf(stderr, "cannot decode: %s\n", strerror(-err));
    else if (outcome.result != WHARF_OK)
        fprintf(stderr, "%s: %s, at byte %" PRIu64 " bit %u\n", wharf_result_string(outcome.result),
                wharf_reason_string(outcome.reason), outcome.bit_offset / 8,
                (unsigned)(outcome.bit_offset % 8));
    else
        is_good = fwrite(job.out, 1, outcome.out_nbytes, stdout) == outcome.out_nbytes &&
                  fflush(stdout) == 0;
    free(job.out);
    free(in);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int codec = argc == 2 ? wharf_codec_from_name(argv[1]) : -1;
    struct wharf *wharf;
    int status;
    int err;

    if (codec < 0) {
        fprintf(stderr, "usage: example CODEC < IN > OUT, where CODEC is one of:\n");
        for (uint32_t i = 0; wharf_codec_name(i); i++)
            fprintf(stderr, "  %-8s %s\n", wharf_codec_name(i), wharf_codec_summary(i));
        return EXIT_FAILURE;
    }
    err = wharf_open(NULL, &wharf);
    if (err < 0) {
        fprintf(stderr, "libwharf %s: %s\n", wharf_version(), strerror(-err));
        return EXIT_FAILURE;
    }
    status = decode_stdin(wharf, codec);
    wharf_close(wharf);
    return status;
}
