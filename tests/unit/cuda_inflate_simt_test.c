/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_inflate_simt_test: one large stream by the whole GPU, over the SIMT layer in its place:
 * bytes and outcomes are the CPU engine's, on good, cut, damaged and forged streams.
 *
 * Parts are made tiny, so that a short stream has many and each kind of place comes to lie on a
 * border.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "tests/gpu/cuda_batch_simt.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
enum { N_CODECS = 3 };

struct source {
    uint8_t *bytes;
    size_t nbytes;
};

static const int window_bits[] = {
    [WHARF_CODEC_DEFLATE] = -15, [WHARF_CODEC_ZLIB] = 15, [WHARF_CODEC_GZIP] = 15 + 16};

/* Appends what zlib makes of `raw`, with a flush of a kind behind each flush_nbytes. */
static void pack(struct source *source, uint32_t codec, int level, int strategy, const uint8_t *raw,
                 size_t raw_nbytes, size_t flush_nbytes, int flush)
{
    size_t avail = raw_nbytes + raw_nbytes / 4 + 4000;
    z_stream stream = {0};

    if (flush_nbytes)
        avail += 64 * (raw_nbytes / flush_nbytes + 1);
    source->bytes = realloc(source->bytes, source->nbytes + avail);
    cr_assert(source->bytes);
    /* The least memory, so that blocks are short. */
    cr_assert_eq(deflateInit2(&stream, level, Z_DEFLATED, window_bits[codec], 1, strategy), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)raw;
    stream.next_out = source->bytes + source->nbytes;
    stream.avail_out = (uInt)avail;
    for (size_t done = 0; flush_nbytes && done + flush_nbytes < raw_nbytes; done += flush_nbytes) {
        stream.avail_in = (uInt)flush_nbytes;
        cr_assert_eq(deflate(&stream, flush), Z_OK);
    }
    stream.avail_in = (uInt)(raw_nbytes - stream.total_in);
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    source->nbytes += stream.total_out;
    deflateEnd(&stream);
}

static void *lend(size_t nbytes)
{
    void *p;

    cr_assert_eq(posix_memalign(&p, WHARF_CUDA_SCRATCH_ALIGN, nbytes), 0);
    memset(p, 0x5a, nbytes);
    return p;
}

/* A handle whose streams are cut into parts of so many bytes. */
static struct wharf_cuda *open_with(unsigned part_nbytes, unsigned most_nbytes)
{
    struct wharf_cuda *cuda;

    cuda_batch_simt.part_nbytes = part_nbytes;
    cuda_batch_simt.most_nbytes = most_nbytes;
    cr_assert_eq(wharf_cuda_open(&cuda), 0, "%s", wharf_cuda_error_message());
    return cuda;
}

/* Decodes, and compares with the CPU engine.  Returns its outcome. */
static struct wharf_outcome expect_same(struct wharf_cuda *cuda, uint32_t codec, const uint8_t *in,
                                        size_t in_nbytes, size_t out_avail, const char *what,
                                        size_t number)
{
    struct test_guard source = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    struct test_guard out =
        test_guard_new(out_avail, number % 2 ? TEST_GUARD_END : TEST_GUARD_START);
    struct test_guard want_out = test_guard_new(out_avail, TEST_GUARD_END);
    struct wharf_cuda_deflate_stream stream = WHARF_CUDA_DEFLATE_STREAM_INIT;
    struct wharf_outcome want, got;
    struct wharf_decode_job job = {.codec = codec,
                                   .in = source.data,
                                   .in_nbytes = in_nbytes,
                                   .out = want_out.data,
                                   .out_avail = out_avail};

    wharf_decode_job_run(&job, 0, &want);
    stream.codec = codec;
    stream.in = source.data;
    stream.in_nbytes = in_nbytes;
    stream.out = out.data;
    stream.out_avail = out_avail;
    stream.outcome = &got;
    cr_assert_eq(wharf_cuda_inflate_scratch(cuda, &stream, &stream.scratch_nbytes), 0, "%s",
                 wharf_cuda_error_message());
    stream.scratch = lend(stream.scratch_nbytes);
    memset(&got, 0xa5, sizeof(got));
    cr_assert_eq(wharf_cuda_inflate(cuda, &stream, NULL), 0, "%s", wharf_cuda_error_message());
    cr_assert(test_outcome_same(&want, &got), "%s, codec %u, number %zu: %s, not %s", what, codec,
              number, test_outcome_text(&got).text, test_outcome_text(&want).text);
    if (want.result == WHARF_OK && want.out_nbytes > 0)
        cr_assert_eq(memcmp(want_out.data, out.data, want.out_nbytes), 0,
                     "%s, codec %u, number %zu: other bytes", what, codec, number);
    free(stream.scratch);
    test_guard_free(&source);
    test_guard_free(&out);
    test_guard_free(&want_out);
    return want;
}

Test(cuda_inflate_simt, decodes_every_kind_of_data)
{
    enum { NBYTES = 60000 };
    struct wharf_cuda *cuda = open_with(512, 64 << 10);
    unsigned n_links = 0;

    for (size_t k = 0; k < test_data_n_kinds; k++) {
        uint8_t *raw = test_data_new(&test_data_kinds[k], k, NBYTES);
        struct source source = {0};
        pack(&source, codecs[k % N_CODECS], 1 + (int)(k % 9), Z_DEFAULT_STRATEGY, raw, NBYTES, 0,
             0);
        struct wharf_outcome want =
            expect_same(cuda, codecs[k % N_CODECS], source.bytes, source.nbytes, NBYTES + k % 3,
                        test_data_kinds[k].name, k);
        cr_assert_eq(want.result, WHARF_OK);
        n_links += cuda_batch_simt.n_links;
        free(source.bytes);
        free(raw);
    }
    /* Not all by the block that takes what others leave. */
    cr_assert_gt(n_links, 100);
    wharf_cuda_close(cuda);
}

/* Several sizes of parts, down to less than a block has. */
static const unsigned part_sizes[] = {300, 1000, 3000};
enum { N_SIZES = sizeof(part_sizes) / sizeof(part_sizes[0]) };

/* What zlib makes of text in these ways. */
static const struct shape {
    const char *name;
    int level, strategy;
    size_t flush_nbytes;
    int flush;
    bool is_found; /* there are places to begin at */
} shapes[] = {
    {"fixed codes", 6, Z_FIXED, 0, 0, false},
    {"stored", 0, Z_DEFAULT_STRATEGY, 3000, Z_BLOCK, true},
    {"no matches", 6, Z_HUFFMAN_ONLY, 0, 0, true},
    {"tiny blocks", 6, Z_DEFAULT_STRATEGY, 200, Z_BLOCK, false},
    {"fixed codes and empty blocks", 6, Z_FIXED, 200, Z_SYNC_FLUSH, false},
    {"empty blocks", 6, Z_DEFAULT_STRATEGY, 3000, Z_SYNC_FLUSH, true},
    {"no matches over flushes", 6, Z_DEFAULT_STRATEGY, 3000, Z_FULL_FLUSH, true},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

Test(cuda_inflate_simt, bears_blocks_of_every_kind)
{
    enum { RAW = 20000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 2, RAW);

    for (unsigned size = 0; size < N_SIZES; size++) {
        struct wharf_cuda *cuda = open_with(part_sizes[size], 4000 + 2 * part_sizes[size]);
        for (unsigned i = 0; i < N_SHAPES; i++) {
            uint32_t codec = codecs[(i + size) % N_CODECS];
            struct source source = {0};
            pack(&source, codec, shapes[i].level, shapes[i].strategy, raw, RAW,
                 shapes[i].flush_nbytes, shapes[i].flush);
            expect_same(cuda, codec, source.bytes, source.nbytes, RAW, shapes[i].name, size);
            cr_assert(cuda_batch_simt.n_links > 1 || !shapes[i].is_found, "%s: %u links",
                      shapes[i].name, cuda_batch_simt.n_links);
            /* Less room than it takes: the error is where the processor has it. */
            expect_same(cuda, codec, source.bytes, source.nbytes, RAW * 2 / 3, shapes[i].name,
                        size);
            free(source.bytes);
        }
        wharf_cuda_close(cuda);
    }
    free(raw);
}

/* A block that is longer than a part may be measured over. */
Test(cuda_inflate_simt, leaves_a_giant_block_to_one_block_of_warps)
{
    struct wharf_cuda *cuda = open_with(300, 2000);
    struct test_forge forge;

    test_forge_init(&forge, 5);
    test_forge_block(&forge, 15000, 1);
    expect_same(cuda, WHARF_CODEC_DEFLATE, forge.data, test_forge_nbytes(&forge), forge.out_nbytes,
                "a giant block", 0);
    cr_assert_eq(cuda_batch_simt.n_links, 0);
    test_forge_deinit(&forge);
    wharf_cuda_close(cuda);
}

Test(cuda_inflate_simt, decodes_forged_streams)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct wharf_cuda *cuda = open_with(part_sizes[seed % N_SIZES] / 4, 3000);
        struct test_forge forge;
        test_forge_init(&forge, seed);
        test_forge_stream(&forge, 1 + (unsigned)seed % 40, 300);
        size_t nbytes = test_forge_nbytes(&forge);
        expect_same(cuda, WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes, "forged",
                    seed);
        if (seed % 3 == 0) {
            forge.data[seed * 7919 % nbytes] ^= 1 << seed % 8;
            expect_same(cuda, WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes,
                        "forged and damaged", seed);
        }
        test_forge_deinit(&forge);
        wharf_cuda_close(cuda);
    }
}

/* Deflate within stored blocks between others: all of its blocks are found, and none is one. */
Test(cuda_inflate_simt, passes_forged_beginnings)
{
    enum { RAW = 100000, CODED = 4000, STORED = 3000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 3, RAW);
    struct source inner = {0}, outer = {0};

    pack(&inner, WHARF_CODEC_DEFLATE, 6, Z_DEFAULT_STRATEGY, raw, RAW, 500, Z_FULL_FLUSH);
    for (size_t at = 0; at + STORED <= inner.nbytes && at < 10 * STORED; at += STORED) {
        pack(&outer, WHARF_CODEC_GZIP, 6, Z_DEFAULT_STRATEGY, raw + at, CODED, 0, 0);
        pack(&outer, WHARF_CODEC_GZIP, 0, Z_DEFAULT_STRATEGY, inner.bytes + at, STORED, 0, 0);
    }
    for (unsigned size = 0; size < N_SIZES; size++) {
        struct wharf_cuda *cuda = open_with(part_sizes[size], 20000);
        expect_same(cuda, WHARF_CODEC_GZIP, outer.bytes, outer.nbytes, RAW, "forged beginnings",
                    size);
        wharf_cuda_close(cuda);
    }
    free(outer.bytes);
    free(inner.bytes);
    free(raw);
}

Test(cuda_inflate_simt, decodes_a_thousand_to_one)
{
    enum { RAW = 1 << 20 };
    struct wharf_cuda *cuda = open_with(200, 4000);
    uint8_t *raw = calloc(1, RAW);
    struct source source = {0};

    cr_assert(raw);
    pack(&source, WHARF_CODEC_GZIP, 9, Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
    expect_same(cuda, WHARF_CODEC_GZIP, source.bytes, source.nbytes, RAW, "zeros", 0);
    cr_assert_gt(cuda_batch_simt.n_links, 3);
    free(source.bytes);
    free(raw);
    wharf_cuda_close(cuda);
}

Test(cuda_inflate_simt, decodes_many_members_and_stops_behind_the_last)
{
    enum { RAW = 8000, N = 12, BEHIND = 500 };
    uint8_t *raw = test_data_new(test_data_find("text"), 4, RAW);
    struct source source = {0};
    size_t middle = 0;

    for (size_t i = 0; i < N; i++) {
        pack(&source, WHARF_CODEC_GZIP, 6, Z_DEFAULT_STRATEGY, raw, i % 5 ? i * 37 : RAW - i, 0, 0);
        middle = i < N * 3 / 5 ? source.nbytes : middle;
    }
    for (unsigned size = 0; size < N_SIZES; size++) {
        struct wharf_cuda *cuda = open_with(part_sizes[size], 20000);
        expect_same(cuda, WHARF_CODEC_GZIP, source.bytes, source.nbytes, N * RAW, "members", size);
        cr_assert_gt(cuda_batch_simt.n_links, 3);
        /* A trailer that is wrong: its checksum, its length; in the middle, at the end, at both. */
        for (unsigned i = 0; i < 6; i++) {
            size_t back = i % 2 ? 1 : 5;
            size_t places[] = {i < 4 ? middle - back : source.nbytes - back, source.nbytes - back};
            size_t n = i / 2 == 1 ? 2 : 1;
            for (size_t k = 0; k < n; k++)
                source.bytes[places[k]] ^= 1;
            struct wharf_outcome want = expect_same(cuda, WHARF_CODEC_GZIP, source.bytes,
                                                    source.nbytes, N * RAW, "bad trailers", i);
            cr_assert_eq(want.result, WHARF_BAD_CHECKSUM);
            for (size_t k = 0; k < n; k++)
                source.bytes[places[k]] ^= 1;
        }
        /* What follows is no member; and the beginning of one. */
        uint8_t *more = malloc(source.nbytes + BEHIND);
        cr_assert(more);
        memcpy(more, source.bytes, source.nbytes);
        memset(more + source.nbytes, 'x', BEHIND);
        expect_same(cuda, WHARF_CODEC_GZIP, more, source.nbytes + BEHIND, N * RAW, "more", size);
        memcpy(more + source.nbytes, "\x1f\x8b", 2);
        expect_same(cuda, WHARF_CODEC_GZIP, more, source.nbytes + BEHIND, N * RAW, "bad more", 0);
        expect_same(cuda, WHARF_CODEC_GZIP, more, source.nbytes + 1, N * RAW, "a byte more", 0);
        free(more);
        wharf_cuda_close(cuda);
    }
    free(source.bytes);
    free(raw);
}

Test(cuda_inflate_simt, verifies_truncation_everywhere)
{
    enum { RAW = 6000, CUTS = 40 };
    uint8_t *raw = test_data_new(test_data_find("text"), 5, RAW);

    for (unsigned c = 0; c < N_CODECS; c++) {
        struct wharf_cuda *cuda = open_with(part_sizes[c % 2], 20000);
        struct source source = {0};
        pack(&source, codecs[c], 6, Z_DEFAULT_STRATEGY, raw, RAW, 600, Z_BLOCK);
        for (size_t i = 0; i < CUTS; i++) {
            /* Each byte of the last ones, and some before. */
            size_t left = i < 14 ? i + 1 : i * i * 3 % source.nbytes;
            expect_same(cuda, codecs[c], source.bytes, source.nbytes - left, RAW, "cut off", left);
        }
        free(source.bytes);
        wharf_cuda_close(cuda);
    }
    free(raw);
}

Test(cuda_inflate_simt, verifies_damage_as_the_processor_does)
{
    enum { RAW = 8000, ROUNDS = 25 };
    struct test_random random = {11};
    uint8_t *raw = test_data_new(test_data_find("text"), 6, RAW);

    for (unsigned c = 0; c < N_CODECS; c++) {
        struct wharf_cuda *cuda = open_with(part_sizes[c % 2], 20000);
        struct source source = {0};
        pack(&source, codecs[c], 6, Z_DEFAULT_STRATEGY, raw, RAW, 1000, Z_BLOCK);
        for (unsigned round = 0; round < ROUNDS; round++) {
            size_t at = test_random_below(&random, source.nbytes);
            uint8_t bit = (uint8_t)(1 << test_random_below(&random, 8));
            source.bytes[at] ^= bit;
            expect_same(cuda, codecs[c], source.bytes, source.nbytes, RAW + 1000, "damaged", at);
            source.bytes[at] ^= bit;
        }
        free(source.bytes);
        wharf_cuda_close(cuda);
    }
    free(raw);
}

/* The first half of a stream is taken away between two blocks, at a byte's border: what is left
 * refers to bytes that are not there, which is seen when it is delivered. */
Test(cuda_inflate_simt, refuses_matches_before_the_members_beginning)
{
    enum { RAW = 60000, CUT = 20000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 7, RAW);
    struct source whole = {0}, half = {0};
    struct wharf_cuda *cuda = open_with(700, 20000);

    pack(&whole, WHARF_CODEC_DEFLATE, 6, Z_DEFAULT_STRATEGY, raw, RAW, 2000, Z_SYNC_FLUSH);
    pack(&half, WHARF_CODEC_DEFLATE, 6, Z_DEFAULT_STRATEGY, raw, CUT, 2000, Z_SYNC_FLUSH);
    /* Its last block is final, and has other codes than that of the whole: find the last marker. */
    size_t at = half.nbytes - 4;
    while (memcmp(whole.bytes + at, "\0\0\xff\xff", 4) != 0)
        at--;
    struct wharf_outcome want = expect_same(cuda, WHARF_CODEC_DEFLATE, whole.bytes + at + 4,
                                            whole.nbytes - at - 4, RAW, "no window", 0);
    cr_assert_eq(want.reason, WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR);
    free(whole.bytes);
    free(half.bytes);
    free(raw);
    wharf_cuda_close(cuda);
}

/* What one block of warps has to do alone, of sources and outputs that are larger than it looks at
 * at once: zeros in one block, and random bytes in stored ones. */
Test(cuda_inflate_simt, looks_at_slices_of_what_is_larger)
{
    enum { ZEROS = 9 << 18, ZEROS_SLICE = 1 << 20, RANDOM = 240000, RANDOM_SLICE = 80000 };
    uint8_t *raw = calloc(1, ZEROS);
    struct test_random generator = {1};
    struct source zeros = {0}, random = {0};

    cr_assert(raw);
    cuda_batch_simt.slice_nbytes = ZEROS_SLICE;
    struct wharf_cuda *cuda = open_with(1 << 30, 1);
    pack(&zeros, WHARF_CODEC_GZIP, 6, Z_FIXED, raw, ZEROS, 0, 0);
    expect_same(cuda, WHARF_CODEC_GZIP, zeros.bytes, zeros.nbytes, ZEROS, "zeros", 0);
    expect_same(cuda, WHARF_CODEC_GZIP, zeros.bytes, zeros.nbytes, ZEROS - 1, "zeros", 1);
    wharf_cuda_close(cuda);
    cuda_batch_simt.slice_nbytes = RANDOM_SLICE;
    cuda = open_with(1 << 30, 1);
    test_random_fill(&generator, raw, RANDOM);
    for (unsigned c = 0; c < N_CODECS; c++) {
        random.nbytes = 0;
        pack(&random, codecs[c], 1, Z_DEFAULT_STRATEGY, raw, RANDOM, 0, 0);
        cr_assert_gt(random.nbytes, 2 * RANDOM_SLICE);
        expect_same(cuda, codecs[c], random.bytes, random.nbytes, RANDOM, "random", c);
        expect_same(cuda, codecs[c], random.bytes, random.nbytes - 9, RANDOM, "random", c);
    }
    wharf_cuda_close(cuda);
    cuda_batch_simt.slice_nbytes = 0;
    free(zeros.bytes);
    free(random.bytes);
    free(raw);
}

Test(cuda_inflate_simt, ends_on_sources_of_a_few_bytes)
{
    struct wharf_cuda *cuda = open_with(1, 1);
    uint8_t bytes[40];

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct test_random random = {seed};
        test_random_fill(&random, bytes, sizeof(bytes));
        expect_same(cuda, codecs[seed % N_CODECS], bytes, seed % sizeof(bytes), seed % 7 * 10,
                    "random", seed);
    }
    wharf_cuda_close(cuda);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void expect_refused(struct wharf_cuda *cuda, const struct wharf_cuda_deflate_stream *stream,
                           int rc)
{
    unsigned n_calls = cuda_batch_simt.n_calls;

    cr_assert_eq(wharf_cuda_inflate(cuda, stream, NULL), rc, "%s", wharf_cuda_error_message());
    cr_assert_eq(cuda_batch_simt.n_calls, n_calls);
}

Test(cuda_inflate_simt, refuses_wrong_arguments)
{
    struct wharf_cuda_deflate_stream good = WHARF_CUDA_DEFLATE_STREAM_INIT, stream;
    struct wharf_cuda *cuda = open_with(0, 0);
    struct wharf_outcome outcome;
    uint8_t in[16] = {3}, out[16];

    good.codec = WHARF_CODEC_DEFLATE;
    good.in = in, good.in_nbytes = 2;
    good.out = out, good.out_avail = sizeof(out);
    good.outcome = &outcome;
    cr_assert_eq(wharf_cuda_inflate_scratch(cuda, &good, &good.scratch_nbytes), 0);
    good.scratch = lend(good.scratch_nbytes);
#define REFUSED(member, value, rc)                                                                 \
    (stream = good, stream.member = (value), expect_refused(cuda, &stream, rc))
    REFUSED(codec, WHARF_CODEC_LZ4, -EOPNOTSUPP);
    REFUSED(codec, 1000, -EOPNOTSUPP);
    REFUSED(in, NULL, -EINVAL);
    REFUSED(out, NULL, -EINVAL);
    REFUSED(outcome, NULL, -EINVAL);
    REFUSED(in_nbytes, WHARF_CUDA_MAX_STREAM_NBYTES + 1, -EINVAL);
    REFUSED(out_avail, SIZE_MAX / 2 + 1, -EINVAL);
    REFUSED(out, in + 1, -EINVAL);
    REFUSED(in, (void *)UINTPTR_MAX, -EINVAL);
    REFUSED(scratch, NULL, -EINVAL);
    REFUSED(scratch, (char *)good.scratch + 8, -EINVAL);
    REFUSED(scratch_nbytes, good.scratch_nbytes - 1, -ENOSPC);
    REFUSED(struct_nbytes, 8, -EINVAL);
    cuda_batch_simt.current = 1;
    expect_refused(cuda, &good, -EINVAL);
    cuda_batch_simt.current = 0;
    cr_assert_eq(wharf_cuda_inflate(NULL, &good, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_inflate(cuda, NULL, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_inflate_scratch(cuda, &good, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_inflate_scratch(NULL, &good, &good.scratch_nbytes), -EINVAL);
    cuda_batch_simt.failure = -EIO;
    cr_assert_eq(wharf_cuda_inflate(cuda, &good, NULL), -EIO);
    cuda_batch_simt.failure = 0;
    cr_assert_eq(wharf_cuda_inflate(cuda, &good, NULL), 0);
    cr_assert_eq(outcome.result, WHARF_OK);
    free(good.scratch);
    wharf_cuda_close(cuda);
}

Test(cuda_inflate_simt, scratch_never_shrinks_with_more_source)
{
    struct wharf_cuda_deflate_stream stream = WHARF_CUDA_DEFLATE_STREAM_INIT;
    struct wharf_cuda *cuda = open_with(0, 0);
    size_t last = 0;

    stream.codec = WHARF_CODEC_GZIP;
    for (size_t n = 0; n <= WHARF_CUDA_MAX_STREAM_NBYTES; n += 1 + n / 5) {
        size_t nbytes = 0;
        stream.in_nbytes = n;
        cr_assert_eq(wharf_cuda_inflate_scratch(cuda, &stream, &nbytes), 0);
        cr_assert_eq(nbytes % WHARF_CUDA_SCRATCH_ALIGN, 0);
        cr_assert_geq(nbytes, last, "of %zu bytes", n);
        last = nbytes;
    }
    cr_assert_gt(last, 0);
    wharf_cuda_close(cuda);
}
