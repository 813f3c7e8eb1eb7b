/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_bench.c: decoding LZ4 blocks and raw Snappy on one core, beside liblz4 and libsnappy.
 */
#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: lz_bench [--repetitions N] FILE...\n"
    "\n"
    "Times decoding LZ4 blocks and raw Snappy on one core beside liblz4 and libsnappy, N\n"
    "times each (15).\n"
    "\n"
    "Each file is cut into chunks of 64 KiB that the libraries pack one by one; one run\n"
    "decodes all of them.  Every output is compared with the data before the clock starts.\n"
    "Prints one JSON object for each measurement.\n";

enum { CHUNK_NBYTES = 64 << 10, DEFAULT_REPETITIONS = 15 };

struct chunk {
    const uint8_t *raw;
    size_t raw_nbytes;
    uint8_t *packed;
    size_t packed_nbytes;
};

/* ---- decoders: whether they gave as many bytes as they should -------------------------------- */

static int by_wharf(uint32_t codec, const struct chunk *chunk, uint8_t *out)
{
    struct wharf_outcome outcome;

    wharf_codec_find(codec)->ops->decode(chunk->packed, chunk->packed_nbytes, out,
                                         chunk->raw_nbytes, NULL, &outcome);
    return outcome.out_nbytes == chunk->raw_nbytes;
}

static int by_library(uint32_t codec, const struct chunk *chunk, uint8_t *out)
{
    size_t nbytes = chunk->raw_nbytes;

    if (codec == WHARF_CODEC_LZ4)
        return LZ4_decompress_safe((const char *)chunk->packed, (char *)out,
                                   (int)chunk->packed_nbytes, (int)nbytes) == (int)nbytes;
    return snappy_uncompress((const char *)chunk->packed, chunk->packed_nbytes, (char *)out,
                             &nbytes) == SNAPPY_OK &&
           nbytes == chunk->raw_nbytes;
}

struct side {
    uint32_t codec;
    int (*decode)(uint32_t codec, const struct chunk *chunk, uint8_t *out);
    const struct chunk *chunks;
    size_t n_chunks;
    int compares;
};

static void run_side(void *context)
{
    static uint8_t out[CHUNK_NBYTES];
    const struct side *side = context;

    for (size_t i = 0; i < side->n_chunks; i++) {
        const struct chunk *chunk = &side->chunks[i];
        if (!side->decode(side->codec, chunk, out) ||
            (side->compares && memcmp(out, chunk->raw, chunk->raw_nbytes) != 0))
            bench_die("wrong output");
    }
}

/* ---- one file in one packing ----------------------------------------------------------------- */

static struct chunk *pack(uint32_t codec, int level, const uint8_t *raw, size_t nbytes, size_t n,
                          uint64_t *ret_packed_nbytes)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(codec)->ops->encoder;
    const struct wharf_encoder_options options = {.level = level};
    struct chunk *chunks = calloc(n, sizeof(*chunks));
    struct wharf_encoder *encoder;

    if (!chunks || ops->new (&options, &encoder) < 0)
        bench_die("out of memory");
    size_t bound = ops->bound(encoder, CHUNK_NBYTES);
    *ret_packed_nbytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = i * CHUNK_NBYTES, rest = nbytes - at;
        chunks[i].raw = raw + at;
        chunks[i].raw_nbytes = rest < CHUNK_NBYTES ? rest : CHUNK_NBYTES;
        chunks[i].packed = malloc(bound);
        if (!chunks[i].packed || ops->encode(encoder, raw + at, chunks[i].raw_nbytes,
                                             chunks[i].packed, bound, &chunks[i].packed_nbytes) < 0)
            bench_die("cannot pack");
        *ret_packed_nbytes += chunks[i].packed_nbytes;
    }
    ops->free(encoder);
    return chunks;
}

static void measure(const char *name, const uint8_t *raw, size_t nbytes, uint32_t codec, int level,
                    const char *peer, unsigned repetitions)
{
    size_t n = (nbytes + CHUNK_NBYTES - 1) / CHUNK_NBYTES;
    uint64_t packed_nbytes;
    struct chunk *chunks = pack(codec, level, raw, nbytes, n, &packed_nbytes);
    struct side ours = {codec, by_wharf, chunks, n, 1}, theirs = {codec, by_library, chunks, n, 1};
    struct bench_side sides[] = {{run_side, &ours}, {run_side, &theirs}};
    struct bench_times times[2];

    run_side(&ours);
    run_side(&theirs);
    ours.compares = theirs.compares = 0;
    bench_compare(sides, 2, repetitions, times);
    bench_print_row(stdout, &(struct bench_row){
                                .what = "decode",
                                .codec = wharf_codec_find(codec)->name,
                                .data = name,
                                .level = level,
                                .threads = 1,
                                .repetitions = repetitions,
                                .chunk_nbytes = CHUNK_NBYTES,
                                .in_nbytes = packed_nbytes,
                                .out_nbytes = nbytes,
                                .peer = peer,
                                .times = times[0],
                                .peer_times = times[1],
                            });
    for (size_t i = 0; i < n; i++)
        free(chunks[i].packed);
    free(chunks);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    unsigned repetitions = DEFAULT_REPETITIONS;
    int first = 1;

    if (argc > 2 && strcmp(argv[1], "--repetitions") == 0) {
        repetitions = (unsigned)strtoul(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || repetitions < 1) {
        return test_usage(help);
    }
    for (int i = first; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        size_t nbytes;
        uint8_t *raw = test_file_read(argv[i], &nbytes);
        if (!raw || nbytes == 0)
            bench_die(argv[i]);
        measure(name, raw, nbytes, WHARF_CODEC_LZ4, 1, "liblz4 " LZ4_VERSION_STRING, repetitions);
        measure(name, raw, nbytes, WHARF_CODEC_LZ4, 9, "liblz4 " LZ4_VERSION_STRING, repetitions);
        measure(name, raw, nbytes, WHARF_CODEC_SNAPPY, 0, "libsnappy", repetitions);
        free(raw);
    }
    return 0;
}
