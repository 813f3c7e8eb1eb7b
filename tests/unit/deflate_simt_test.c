/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_simt_test: the device decoders of deflate, zlib and gzip against the CPU engine: streams
 * of every kind, cut at every byte, with flipped bits, into outputs of every size.  Whatever the
 * CPU engine says of a source, the device must say, in all lane orders, within guard pages.
 *
 * A stream is long enough here for the parallel path, which begins right behind the first block
 * header, to be the one that decodes nearly all of it.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rounds.h"
#include "tests/unit/device_compare.h"

enum { MAX_NBYTES = 200000 };

/* ---- data ----------------------------------------------------------------------------------- */

/* Words of a small vocabulary: short matches at all distances, as in text. */
static void fill_text(struct test_random *random, uint8_t *data, size_t nbytes)
{
    uint8_t words[200][8];
    test_random_fill(random, &words[0][0], sizeof(words));
    for (size_t i = 0; i < nbytes;) {
        const uint8_t *word = words[test_random_below(random, 20) * test_random_below(random, 10)];
        for (unsigned k = 0; k < 2u + word[0] % 6 && i < nbytes; k++)
            data[i++] = 'a' + word[k] % 26;
        if (i < nbytes)
            data[i++] = test_random_below(random, 9) ? ' ' : '\n';
    }
}

/* Runs of values of 1 to 9 bytes: long matches that overlap themselves, at small distances. */
static void fill_runs(struct test_random *random, uint8_t *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes;) {
        uint8_t value[9];
        unsigned width = 1 + test_random_below(random, sizeof(value));
        unsigned n = width * (1 + test_random_below(random, 90));
        test_random_fill(random, value, sizeof(value));
        for (unsigned k = 0; k < n && i < nbytes; k++)
            data[i++] = value[k % width];
    }
}

/* Long stretches again, from far back, with random bytes between them. */
static void fill_far(struct test_random *random, uint8_t *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes;) {
        unsigned n = 1 + test_random_below(random, 300);
        size_t back = 1 + test_random_below(random, 32768);
        if (back > i || test_random_below(random, 4) == 0)
            for (; n && i < nbytes; n--)
                data[i++] = test_random_below(random, 256);
        else
            for (; n && i < nbytes; n--, i++)
                data[i] = data[i - back];
    }
}

/* Skewed bytes without repeats: literals with codes of all lengths. */
static void fill_skewed(struct test_random *random, uint8_t *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        data[i] = (uint8_t)(1u << test_random_below(random, 9)) - 1 +
                  test_random_below(random, 1 + test_random_below(random, 16));
}

/* Runs of 8-byte values that change in a byte or two, as in sorted columns, and now and then other
 * bytes, so that values stand at all alignments. */
static void fill_values(struct test_random *random, uint8_t *data, size_t nbytes)
{
    uint8_t value[8];
    test_random_fill(random, value, sizeof(value));
    for (size_t i = 0; i < nbytes;) {
        for (unsigned k = 1 + test_random_below(random, 3); k; k--)
            value[test_random_below(random, 8)] = test_random_below(random, 256);
        unsigned n = 8 * (1 + test_random_below(random, test_random_below(random, 5) ? 30 : 200));
        for (unsigned k = 0; k < n && i < nbytes; k++)
            data[i++] = value[k % 8];
        if (test_random_below(random, 20) == 0)
            for (n = test_random_below(random, 20); n && i < nbytes; n--)
                data[i++] = test_random_below(random, 4);
    }
}

/* Runs of values of 1, 2 or 4 bytes that change in a byte, and sequences of such runs that were
 * there before: matches that repeat a word among ones that bring the word they repeat. */
static void fill_column(struct test_random *random, uint8_t *data, size_t nbytes)
{
    uint8_t value[4] = {0};
    unsigned width = 1u << test_random_below(random, 3);
    for (size_t i = 0; i < nbytes;) {
        unsigned n = width * (1 + test_random_below(random, 80));
        size_t back = width * (1 + test_random_below(random, 2000));
        bool again = back <= i && test_random_below(random, 2);
        value[test_random_below(random, width)] = test_random_below(random, 256);
        for (unsigned k = 0; k < n && i < nbytes; k++, i++)
            data[i] = again ? data[i - back] : value[k % width];
        if (test_random_below(random, 40) == 0 && i < nbytes)
            data[i++] = 7;
    }
}

typedef void fill_fn(struct test_random *random, uint8_t *data, size_t nbytes);
static fill_fn *const fills[] = {fill_text,   fill_runs,   fill_far,
                                 fill_skewed, fill_values, fill_column};
enum { N_FILLS = sizeof(fills) / sizeof(fills[0]) };

/* ---- streams -------------------------------------------------------------------------------- */

/* As in a batch: codecs, the serial decoders, and that of a block's warps together. */
static const uint32_t kernels[] = {
    WHARF_CODEC_DEFLATE,
    WHARF_CODEC_ZLIB,
    WHARF_CODEC_GZIP,
    WHARF_DEVICE_SERIAL | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_SERIAL_REGISTERS | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_SERIAL_PREFETCH | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_BLOCK | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_BLOCK | WHARF_CODEC_ZLIB,
    WHARF_DEVICE_BLOCK | WHARF_CODEC_GZIP,
};
enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static uint32_t codec_of(uint32_t kernel)
{
    return kernel & ~WHARF_DEVICE_KERNEL_BITS;
}

/* One stream by zlib; several blocks with a small mem_level or flushes. */
static size_t pack(uint32_t kernel, int level, int strategy, int mem_level, int flush,
                   const uint8_t *data, size_t nbytes, uint8_t *out, size_t out_avail)
{
    uint32_t codec = codec_of(kernel);
    z_stream z = {0};
    int window = codec == WHARF_CODEC_DEFLATE ? -15 : codec == WHARF_CODEC_ZLIB ? 15 : 31;
    cr_assert_eq(deflateInit2(&z, level, Z_DEFLATED, window, mem_level, strategy), Z_OK);
    z.next_in = (Bytef *)data;
    z.next_out = out;
    z.avail_out = (uInt)out_avail;
    for (size_t at = 0; flush && at + 3000 < nbytes; at += 3000) {
        z.avail_in = 3000;
        cr_assert_eq(deflate(&z, flush), Z_OK);
    }
    z.avail_in = (uInt)(nbytes - z.total_in);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = z.total_out;
    deflateEnd(&z);
    return n;
}

/* ---- comparison ----------------------------------------------------------------------------- */

/* Decodes on both, with `lanes` for order. */
static struct wharf_outcome compare(uint32_t kernel, const uint8_t *in, size_t in_nbytes,
                                    size_t out_avail, int lanes, const char *what, size_t number)
{
    const struct wharf_device_chunk chunk = {
        .in = in, .in_nbytes = in_nbytes, .out_avail = out_avail, .codec = codec_of(kernel)};

    return compare_on_device(kernel, chunk, 0, 3 * number + (unsigned)lanes, what);
}

static uint8_t data[MAX_NBYTES];
static uint8_t packed[MAX_NBYTES + MAX_NBYTES / 2];

static void compare_good(uint32_t kernel, size_t packed_nbytes, size_t nbytes, int lanes,
                         const char *what, size_t number)
{
    struct wharf_outcome want = compare(kernel, packed, packed_nbytes, nbytes, lanes, what, number);
    cr_assert_eq(want.result, WHARF_OK);
    cr_assert_eq(want.out_nbytes, nbytes);
}

Test(deflate_simt, decodes_streams_of_all_levels_and_strategies)
{
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE,
                                     Z_FIXED};
    static const int flushes[] = {0, 0, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    struct test_random random = {1};

    for (unsigned i = 0; i < 120; i++) {
        uint32_t kernel = kernels[i % N_KERNELS];
        size_t nbytes = i % 11 == 10 ? 60000 : test_random_below(&random, 20000);
        fills[i / N_KERNELS % N_FILLS](&random, data, nbytes);
        size_t n = pack(kernel, (int)(i / 4 % 10), strategies[i / 3 % 5], 1 + (int)i % 9,
                        flushes[i / 7 % 5], data, nbytes, packed, sizeof(packed));
        compare_good(kernel, n, nbytes, (int)(i % 3), "stream", i);
    }
}

Test(deflate_simt, decodes_outputs_of_every_small_size)
{
    struct test_random random = {2};

    for (size_t nbytes = 0; nbytes < 200; nbytes++) {
        fills[nbytes % N_FILLS](&random, data, nbytes);
        uint32_t kernel = kernels[nbytes / N_FILLS % N_KERNELS];
        size_t n = pack(kernel, 9, 0, 9, 0, data, nbytes, packed, sizeof(packed));
        compare_good(kernel, n, nbytes, (int)(nbytes % 3), "size", nbytes);
    }
}

/* Sources and destinations at every alignment: the wide loads and stores meet both ends. */
Test(deflate_simt, decodes_at_every_alignment)
{
    static uint8_t shifted_out[4000 + 64];
    struct test_random random = {3};

    for (size_t shift = 0; shift < 64; shift++) {
        size_t nbytes = 3900 + shift;
        fills[shift % N_FILLS](&random, data, nbytes);
        size_t n = pack(WHARF_CODEC_DEFLATE, 9, 0, 9, 0, data, nbytes, packed + shift % 16,
                        sizeof(packed) - 16);
        struct wharf_outcome got;
        struct wharf_device_chunk chunk = {.in = packed + shift % 16,
                                           .in_nbytes = n,
                                           .out = shifted_out + shift,
                                           .out_avail = nbytes,
                                           .codec = WHARF_CODEC_DEFLATE};
        struct wharf_device_batch batch = {&chunk, &got, 1, WHARF_CODEC_DEFLATE};
        memset(shifted_out, 0xa5, sizeof(shifted_out));
        cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_RANDOM, shift, NULL), 0);
        cr_assert_eq(got.result, WHARF_OK);
        cr_assert_eq(memcmp(shifted_out + shift, data, nbytes), 0, "shift %zu", shift);
        for (size_t i = 0; i < shift; i++)
            cr_assert_eq(shifted_out[i], 0xa5);
    }
}

Test(deflate_simt, verifies_truncation_at_every_byte_alike)
{
    struct test_random random = {4};

    for (unsigned k = 0; k < N_FILLS + N_KERNELS; k++) {
        uint32_t kernel = kernels[k % N_KERNELS];
        fills[(k + k / N_KERNELS) % N_FILLS](&random, data, 2500);
        size_t n = pack(kernel, 9, 0, 9, 0, data, 2500, packed, sizeof(packed));
        /* At every few, of more bytes than rounds. */
        size_t step = 1 + n / TEST_ROUNDS(300);
        for (size_t cut = 0; cut < n; cut += step)
            compare(kernel, packed, cut, 2500, (int)(cut / step % 3), "cut at byte", cut);
    }
}

Test(deflate_simt, verifies_every_output_capacity_alike)
{
    struct test_random random = {5};

    for (unsigned k = 0; k < 2 * N_FILLS + 1; k++) {
        uint32_t kernel = kernels[k < N_FILLS ? 0 : 3 + k % 3];
        fills[k % N_FILLS](&random, data, 4000);
        size_t n = pack(kernel, 9, 0, 9, 0, data, 4000, packed, sizeof(packed));
        uint32_t most = 8000 / TEST_ROUNDS(200);
        for (size_t avail = 0; avail <= 4000; avail += 1 + test_random_below(&random, most))
            compare(kernel, packed, n, avail, (int)(avail % 3), "capacity", avail);
    }
}

Test(deflate_simt, verifies_flipped_bits_alike)
{
    struct test_random random = {6};
    unsigned n_bad = 0;

    for (unsigned i = 0; i < TEST_ROUNDS(1000); i++) {
        uint32_t kernel = kernels[i % N_KERNELS];
        size_t nbytes = 500 + test_random_below(&random, 8000);
        fills[i / N_KERNELS % N_FILLS](&random, data, nbytes);
        size_t n =
            pack(kernel, 9, i % 7 == 4 ? Z_FIXED : 0, 9, 0, data, nbytes, packed, sizeof(packed));
        for (unsigned flips = 1 + test_random_below(&random, 4); flips; flips--) {
            /* Every other one near the front, where headers are. */
            size_t bit = test_random_below(&random, i & 1 ? 8 * n : n < 100 ? n : 800);
            packed[bit / 8] ^= 1u << bit % 8;
        }
        /* Damage often makes more output: room for some of it. */
        struct wharf_outcome want =
            compare(kernel, packed, n, nbytes + i % 2 * 3000, (int)(i / 3 % 3), "damage", i);
        n_bad += want.result != WHARF_OK;
    }
    cr_assert_gt(n_bad, TEST_ROUNDS(550));
}

/* Garbage behind a good header: everything is wrong soon, in every way. */
Test(deflate_simt, verifies_noise_alike)
{
    struct test_random random = {7};

    for (unsigned i = 0; i < 1000; i++) {
        size_t n = test_random_below(&random, 400);
        test_random_fill(&random, packed, n);
        if (n)
            packed[0] = (uint8_t)((packed[0] & ~7u) | (i % 3 == 0 ? 3 : i % 3 == 1 ? 5 : i & 7));
        uint32_t kernel = kernels[i % 4 ? 0 : 3 + i / 4 % 3];
        compare(kernel, packed, n, test_random_below(&random, 3000), (int)(i % 3), "noise", i);
    }
}

/* Blocks of warps that have more chunks than one each leave those of long matches to a warp for
 * each: in one batch chunks of either kind, whole, damaged, and cut off. */
Test(deflate_simt, decodes_batches_in_which_some_chunks_are_for_blocks_and_some_for_warps)
{
    enum { N = 6, CHUNK = 40000 };
    static uint8_t in[N][CHUNK], want_out[CHUNK], out[N][CHUNK];
    static const uint32_t blocks[] = {WHARF_DEVICE_BLOCK | WHARF_CODEC_DEFLATE,
                                      WHARF_DEVICE_BLOCK | WHARF_CODEC_ZLIB,
                                      WHARF_DEVICE_BLOCK | WHARF_CODEC_GZIP};
    struct test_random random = {8};

    for (unsigned i = 0; i < 9; i++) {
        uint32_t kernel = blocks[i % 3];
        struct wharf_device_chunk chunks[N];
        struct wharf_outcome got[N];
        for (unsigned k = 0; k < N; k++) {
            if (k % 2)
                memset(data, 'x', CHUNK);
            else
                fills[i / 3](&random, data, CHUNK);
            size_t n = pack(kernel, 9, 0, 9, 0, data, CHUNK, in[k], CHUNK);
            cr_assert(k % 2 == 0 || n * 100 < CHUNK);
            if (k >= 2 && k < 4)
                in[k][n / 2] ^= 4;
            chunks[k] = (struct wharf_device_chunk){.in = in[k],
                                                    .in_nbytes = k < 4 ? n : n - 9,
                                                    .out = out[k],
                                                    .out_avail = CHUNK,
                                                    .codec = codec_of(kernel)};
        }
        struct wharf_device_batch batch = {chunks, got, N, kernel};
        memset(got, 0xff, sizeof(got));
        cr_assert_eq(wharf_simt_decode_batch(&batch, (enum wharf_simt_order)(i % 3), i, NULL), 0);
        for (unsigned k = 0; k < N; k++) {
            struct wharf_outcome want;
            wharf_codec_find(chunks[k].codec)
                ->ops->decode(in[k], chunks[k].in_nbytes, want_out, CHUNK, NULL, &want);
            cr_assert(k >= 2 || want.result == WHARF_OK);
            cr_assert(test_outcome_same(&got[k], &want), "batch %u, chunk %u: %s; not %s", i, k,
                      test_outcome_text(&got[k]).text, test_outcome_text(&want).text);
            cr_assert_eq(memcmp(out[k], want_out, want.out_nbytes), 0);
        }
    }
}
