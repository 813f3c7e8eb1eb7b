/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_sizes.c: how much memory moves when a file's bytes are read from arrays of lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/line/line.h"
#include "encoders/line/line_shape.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: line_sizes FILE...\n"
    "\n"
    "Compresses each file by all codecs of lines, with lines of 32, 64 and 128 bytes, decodes\n"
    "and compares, and prints a row of JSON for each:\n"
    "\n"
    "  bursts      pieces of 32 bytes of memory that hold the lines' content, each line in a\n"
    "              slot of its own, and those that hold the index\n"
    "  raw_bursts  those of the file; their ratio is what the paper on CABA calls one\n"
    "  packed_nbytes, slots_nbytes  the streams, with all that they need\n"
    "  zeros, raw  lines that take nothing, and that are as they were\n"
    "\n"
    "Beside palette, of files named weights: the bytes with exponents as one stream of rans, and\n"
    "all others as they are.\n";

enum {
    BURST_NBYTES = 32,
    N_CODECS = 5,
    N_SHIFTS = WHARF_LINE_MAX_SHIFT - WHARF_LINE_MIN_SHIFT + 1
};

struct file {
    const char *name;
    uint8_t *data;
    size_t nbytes;
};

struct counts {
    uint64_t bursts;
    uint64_t n_zeros;
    uint64_t n_raw;
};

static size_t count_bursts(size_t nbytes)
{
    return (nbytes + BURST_NBYTES - 1) / BURST_NBYTES;
}

/* Code number i of a record. */
static unsigned code_of(const struct wharf_line_shape *shape, const uint8_t *record, size_t i)
{
    const uint8_t *codes = record + shape->codes_at;
    return shape->code_nbits == 8 ? codes[i] : codes[i / 2] >> 4 * (i & 1) & 15;
}

static struct counts count_lines(const struct wharf_line_shape *shape, const uint8_t *stream)
{
    struct wharf_line_code codes[2][256];
    struct counts c = {0};
    for (uint32_t width = 3; width <= 4; width++)
        wharf_line_codes_fill(shape, width, codes[width - 3]);
    for (uint64_t line = 0; line < shape->n_lines; line++) {
        uint64_t group = line / shape->group_nlines;
        const uint8_t *record = stream + WHARF_LINE_HEADER_NBYTES + group * shape->record_nbytes;
        uint32_t width = shape->head_nbytes
                             ? stream[shape->heads_at + group * WHARF_LINE_HEAD_NBYTES +
                                      WHARF_LINE_PALETTE_AT_WIDTH]
                             : 3;
        struct wharf_line_code code =
            codes[width - 3][code_of(shape, record, line % shape->group_nlines)];
        c.bursts += count_bursts(code.nbytes);
        c.n_zeros += code.scheme == WHARF_LINE_IS_ZEROS;
        c.n_raw += code.scheme == WHARF_LINE_IS_RAW;
    }
    c.bursts += count_bursts(shape->data_at);
    return c;
}

static uint8_t *encode(const struct wharf_line_choice *choice, const struct file *file,
                       size_t *ret_nbytes)
{
    size_t bound = wharf_line_bound(choice, file->nbytes);
    uint8_t *stream = bench_check(malloc(bound));
    uint8_t *out = bench_check(malloc(file->nbytes + 1));
    struct wharf_outcome outcome;
    if (wharf_line_encode(choice, file->data, file->nbytes, stream, bound, ret_nbytes) < 0)
        bench_die("cannot encode");
    wharf_line_decode(choice->codec, stream, *ret_nbytes, out, file->nbytes, NULL, &outcome);
    if (outcome.result != WHARF_OK || outcome.out_nbytes != file->nbytes ||
        memcmp(out, file->data, file->nbytes) != 0)
        bench_die("wrong output");
    free(out);
    return stream;
}

static void measure(const struct file *file, uint32_t codec, uint32_t shift)
{
    struct wharf_line_choice choice = {codec, 1u << shift, WHARF_LINE_SLOTS, 0};
    struct wharf_line_shape shape;
    size_t slots_nbytes, packed_nbytes, raw_bursts = count_bursts(file->nbytes);
    uint8_t *stream = encode(&choice, file, &slots_nbytes);
    wharf_line_shape_set(&shape, codec, choice.line_nbytes, choice.layout, 0, file->nbytes);
    struct counts c = count_lines(&shape, stream);
    free(stream);
    choice.layout = WHARF_LINE_PACKED;
    free(encode(&choice, file, &packed_nbytes));
    printf("{\"what\": \"line sizes\", \"codec\": \"%s\", \"data\": \"%s\", \"line_nbytes\": %u, "
           "\"raw_nbytes\": %zu, \"raw_bursts\": %zu, \"bursts\": %llu, \"ratio_bursts\": %.4f, "
           "\"packed_nbytes\": %zu, \"ratio_packed\": %.4f, \"slots_nbytes\": %zu, \"lines\": "
           "%llu, \"zeros\": %llu, \"raw\": %llu}\n",
           wharf_codec_find(codec)->name, file->name, choice.line_nbytes, file->nbytes, raw_bursts,
           (unsigned long long)c.bursts, (double)raw_bursts / (double)c.bursts, packed_nbytes,
           (double)file->nbytes / (double)packed_nbytes, slots_nbytes,
           (unsigned long long)shape.n_lines, (unsigned long long)c.n_zeros,
           (unsigned long long)c.n_raw);
}

/* Of bf16: eight bits of exponent, rotated so that the sign is with the mantissa. */
static void measure_exponents(const struct file *file)
{
    const struct wharf_codec_ops *rans = wharf_codec_find(WHARF_CODEC_RANS)->ops;
    struct wharf_encoder *encoder;
    size_t n = file->nbytes / 2, nbytes;
    uint8_t *exponents = bench_check(malloc(n + 1));
    for (size_t i = 0; i < n; i++)
        exponents[i] = (uint8_t)(file->data[2 * i + 1] << 1 | file->data[2 * i] >> 7);
    if (rans->encoder->new (NULL, &encoder) < 0)
        bench_die("no encoder");
    size_t bound = rans->encoder->bound(encoder, n);
    uint8_t *stream = bench_check(malloc(bound)), *out = bench_check(malloc(n + 1));
    struct wharf_outcome outcome;
    if (rans->encoder->encode(encoder, exponents, n, stream, bound, &nbytes) < 0)
        bench_die("cannot encode");
    rans->decode(stream, nbytes, out, n, NULL, &outcome);
    if (outcome.result != WHARF_OK || outcome.out_nbytes != n || memcmp(out, exponents, n) != 0)
        bench_die("wrong output");
    printf("{\"what\": \"exponent sizes\", \"codec\": \"rans\", \"data\": \"%s\", \"raw_nbytes\": "
           "%zu, \"packed_nbytes\": %zu, \"ratio_packed\": %.4f}\n",
           file->name, file->nbytes, nbytes + file->nbytes - n,
           (double)file->nbytes / (double)(nbytes + file->nbytes - n));
    rans->encoder->free(encoder);
    free(exponents);
    free(stream);
    free(out);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    static const uint32_t codecs[N_CODECS] = {WHARF_CODEC_BDI, WHARF_CODEC_FPC, WHARF_CODEC_CPACK,
                                              WHARF_CODEC_BEST, WHARF_CODEC_PALETTE};
    if (argc < 2)
        return test_usage(help);
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        struct file file = {.name = slash ? slash + 1 : argv[i]};
        file.data = bench_check(test_file_read(argv[i], &file.nbytes));
        for (unsigned c = 0; c < N_CODECS; c++)
            for (uint32_t shift = 0; shift < N_SHIFTS; shift++)
                measure(&file, codecs[c], WHARF_LINE_MIN_SHIFT + shift);
        if (strcmp(file.name, "weights") == 0)
            measure_exponents(&file);
        free(file.data);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
