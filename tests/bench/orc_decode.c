/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_decode.c: one core decoding ORC's run lengths.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clientlib/wharf.h"
#include "encoders/codec.h"
#include "encoders/rle_values.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: orc_decode rle1|rle2 u8|i8|...|i64 FILE\n"
    "\n"
    "Times one core decoding ORC's run lengths.\n"
    "\n"
    "Packs a file of values of a type, as one chunk, and decodes it 40 times, of which the\n"
    "first is compared with the file.  Prints 10^9 bytes of values a second, of the quickest\n"
    "one, by the thread's own processor time; and those of a memset of as much memory, by\n"
    "turns with it, which is the most that there can be.\n";

enum { REPETITIONS = 40 };

static double processor_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct chunk {
    const struct wharf_codec_ops *ops;
    uint32_t parameter;
    uint8_t *raw;
    size_t raw_nbytes;
    uint8_t *packed;
    size_t packed_nbytes;
    uint8_t *out;
};

static void pack(struct chunk *chunk)
{
    struct wharf_encoder_options options = {.parameter = chunk->parameter};
    const struct wharf_encoder_row *row;
    struct wharf_encoder *encoder;
    size_t bound;

    if (wharf_encoder_choose(chunk->ops, &options, &row, &options.level) < 0 ||
        chunk->ops->encoder->new (&options, &encoder) < 0)
        bench_die("no such encoder");
    bound = chunk->ops->encoder->bound(encoder, chunk->raw_nbytes);
    chunk->packed = bench_check(malloc(bound));
    if (chunk->ops->encoder->encode(encoder, chunk->raw, chunk->raw_nbytes, chunk->packed, bound,
                                    &chunk->packed_nbytes) < 0)
        bench_die("cannot pack this file as values of this type");
    chunk->ops->encoder->free(encoder);
}

static double decode_s(const struct chunk *chunk)
{
    struct wharf_codec_setting setting = {.parameter = chunk->parameter};
    struct wharf_outcome outcome;
    double begin = processor_s();

    chunk->ops->decode(chunk->packed, chunk->packed_nbytes, chunk->out, chunk->raw_nbytes, &setting,
                       &outcome);
    begin = processor_s() - begin;
    if (outcome.out_nbytes != chunk->raw_nbytes)
        bench_die("wrong size");
    return begin;
}

static double fill_s(const struct chunk *chunk, unsigned i)
{
    double begin = processor_s();

    memset(chunk->out, (int)i, chunk->raw_nbytes);
    return processor_s() - begin;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    struct chunk chunk = {0};
    double best_s = 1e9;
    double fill_best_s = 1e9;
    int codec = argc == 4 ? wharf_codec_from_name(argv[1]) : -1;
    int type = argc == 4 ? wharf_rle_type_from_name(argv[2]) : -1;

    if (codec < 0 || type < 0)
        return test_usage(help);
    chunk.ops = wharf_codec_find((uint32_t)codec)->ops;
    chunk.parameter = (uint32_t)type;
    chunk.raw = test_file_read(argv[3], &chunk.raw_nbytes);
    if (!chunk.raw)
        bench_die("cannot read the file");
    chunk.out = bench_check(malloc(chunk.raw_nbytes + 1));
    pack(&chunk);
    decode_s(&chunk);
    if (memcmp(chunk.out, chunk.raw, chunk.raw_nbytes) != 0)
        bench_die("wrong values");
    for (unsigned i = 0; i < REPETITIONS; i++) {
        double s = decode_s(&chunk);
        double other_s = fill_s(&chunk, i);

        best_s = s < best_s ? s : best_s;
        fill_best_s = other_s < fill_best_s ? other_s : fill_best_s;
    }
    printf("{\"gb_s\": %.3f, \"memset_gb_s\": %.3f}\n", 1e-9 * (double)chunk.raw_nbytes / best_s,
           1e-9 * (double)chunk.raw_nbytes / fill_best_s);
    free(chunk.packed);
    free(chunk.out);
    free(chunk.raw);
    return 0;
}
