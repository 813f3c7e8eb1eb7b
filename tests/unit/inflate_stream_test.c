/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming decodes are the one-shot decode in pieces: the same bytes and the same verdict, however
 * the source is cut up, and on good and bad sources alike.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/deflate/deflate.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/gzip/gzip.h"
#include "encoders/zlib/zlib.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_stream.h"

static const struct {
    enum wharf_inflate_format format;
    wharf_decode_fn *decode;
    int window_bits;
} formats[] = {
    {WHARF_INFLATE_RAW, wharf_deflate_decode, -15},
    {WHARF_INFLATE_ZLIB, wharf_zlib_decode, 15},
    {WHARF_INFLATE_GZIP, wharf_gzip_decode, 15 + 16},
};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

static size_t pack(int window_bits, int level, const uint8_t *raw, size_t raw_nbytes, uint8_t *out,
                   size_t out_avail)
{
    z_stream stream = {0};

    cr_assert_eq(deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, 0), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)raw;
    stream.avail_in = (uInt)raw_nbytes;
    stream.next_out = out;
    stream.avail_out = (uInt)out_avail;
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

/* The stream says what the one-shot decode with ample output says. */
static void expect_same(unsigned f, const uint8_t *in, size_t in_nbytes, size_t out_avail,
                        size_t max_piece_nbytes, uint64_t seed)
{
    uint8_t *out = malloc(out_avail);
    struct wharf_outcome one_shot;
    struct test_stream stream = test_stream_decode(wharf_inflate_stream_new(formats[f].format), in,
                                                   in_nbytes, max_piece_nbytes, seed);

    cr_assert(out);
    formats[f].decode(in, in_nbytes, out, out_avail, NULL, &one_shot);
    cr_assert_neq(one_shot.reason, WHARF_REASON_OUTPUT_FULL, "the test gives too little room");
    cr_assert_eq(stream.outcome.result, one_shot.result);
    cr_assert_eq(stream.outcome.reason, one_shot.reason, "%s, not %s",
                 wharf_reason_name(stream.outcome.reason), wharf_reason_name(one_shot.reason));
    cr_assert_eq(stream.outcome.bit_offset, one_shot.bit_offset);
    cr_assert(stream.out_nbytes <= out_avail);
    cr_assert(stream.out_nbytes == 0 || memcmp(stream.out, out, stream.out_nbytes) == 0);
    if (one_shot.result == WHARF_OK) {
        cr_assert_eq(stream.outcome.in_nbytes, one_shot.in_nbytes);
        cr_assert_eq(stream.outcome.out_nbytes, one_shot.out_nbytes);
        cr_assert_eq(stream.verified, one_shot.out_nbytes);
    } else {
        cr_assert_eq(stream.outcome.in_nbytes, one_shot.bit_offset / 8);
        cr_assert(stream.verified <= stream.out_nbytes);
    }
    test_stream_free(&stream);
    free(out);
}

/* Sizes around the internal window and buffers, so that the window slides at all phases. */
Test(inflate_stream, gives_all_bytes_of_long_streams)
{
    static const size_t sizes[] = {0, 1, 32767, 32768, 32769, 262143, 294912, 294913, 1000000};

    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t *raw = test_data_new(&test_data_kinds[kind], i, sizes[i]);
            size_t packed_avail = sizes[i] + sizes[i] / 8 + 1000;
            uint8_t *packed = malloc(packed_avail);
            unsigned f = (unsigned)(kind + i) % N_FORMATS;
            int level = (int)((kind + 2 * i) % 10);
            size_t nbytes =
                pack(formats[f].window_bits, level, raw, sizes[i], packed, packed_avail);
            expect_same(f, packed, nbytes, sizes[i] + 1, 1 << 20, 0);
            expect_same(f, packed, nbytes, sizes[i] + 1, 70000, i + 1);
            free(packed);
            free(raw);
        }
    }
}

/* Every header, symbol, stored byte and trailer is cut at every byte, and goes on. */
Test(inflate_stream, does_not_care_where_the_source_is_cut)
{
    enum { RAW = 3000, AVAIL = 2 * RAW };
    uint8_t packed[AVAIL];

    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        uint8_t *raw = test_data_new(&test_data_kinds[kind], kind, RAW);
        for (unsigned f = 0; f < N_FORMATS; f++) {
            for (int level = 0; level < 10; level += 3) {
                size_t nbytes = pack(formats[f].window_bits, level, raw, RAW, packed, AVAIL);
                expect_same(f, packed, nbytes, RAW + 1, 1, 0);
                for (uint64_t seed = 1; seed < 5; seed++)
                    expect_same(f, packed, nbytes, RAW + 1, 1 + 7 * seed, seed);
            }
        }
        free(raw);
    }
}

Test(inflate_stream, verifies_truncated_sources_as_one_shot_does)
{
    enum { RAW = 700, AVAIL = 2 * RAW };
    uint8_t packed[AVAIL];
    uint8_t *raw = test_data_new(test_data_find("text"), 1, RAW);

    for (unsigned f = 0; f < N_FORMATS; f++) {
        for (int level = 0; level < 10; level += 3) {
            size_t nbytes = pack(formats[f].window_bits, level, raw, RAW, packed, AVAIL);
            for (size_t n = 0; n < nbytes; n++)
                expect_same(f, packed, n, RAW + 1, 64, n);
        }
    }
    free(raw);
}

Test(inflate_stream, verifies_damaged_sources_as_one_shot_does)
{
    enum { RAW = 2000, AVAIL = 2 * RAW, ROUNDS = 3000 };
    struct test_random random = {7};
    uint8_t packed[AVAIL];

    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct test_data_kind *kind = &test_data_kinds[round % test_data_n_kinds];
        unsigned f = round % N_FORMATS;
        uint8_t *raw = test_data_new(kind, round, RAW);
        int level = (int)test_random_below(&random, 10);
        size_t nbytes = pack(formats[f].window_bits, level, raw, RAW, packed, AVAIL);

        for (unsigned n = 1 + round % 3; n; n--)
            packed[test_random_below(&random, nbytes)] ^= 1 << test_random_below(&random, 8);
        /* A changed stream can decode to as much as its bytes can give at most. */
        expect_same(f, packed, nbytes, 1032 * nbytes + 1, 1 + test_random_below(&random, 500),
                    test_random_next(&random));
        free(raw);
    }
}

/* Members one behind the other, of all sizes, and what may stand behind the last. */
Test(inflate_stream, goes_through_all_members_and_leaves_the_rest)
{
    enum { RAW = 40000, AVAIL = 8 * RAW };
    static const struct {
        const char *bytes;
        size_t nbytes;
    } tails[] = {
        {"", 0},
        {"\x1f", 1},
        {"\x1f\x8b", 2},
        {"\x1f\x8b\x08", 3},
        {"\x1f\x9d\x90", 3},
        {"\0\0\0\0", 4},
        {"\0\x1f\x8b\x08\0", 5},
        {"text", 4},
    };
    uint8_t *packed = malloc(AVAIL);
    uint8_t *raw = test_data_new(test_data_find("mixed"), 3, RAW);

    cr_assert(packed);
    for (size_t t = 0; t < sizeof(tails) / sizeof(tails[0]); t++) {
        size_t nbytes = 0;
        for (size_t size = 0; size <= RAW; size = 3 * size + 1)
            nbytes += pack(15 + 16, 6, raw, size, packed + nbytes, AVAIL - nbytes);
        memcpy(packed + nbytes, tails[t].bytes, tails[t].nbytes);
        nbytes += tails[t].nbytes;
        expect_same(2, packed, nbytes, AVAIL, 1, 0);
        expect_same(2, packed, nbytes, AVAIL, 1 << 20, 0);
        expect_same(2, packed, nbytes, AVAIL, 300, t + 1);
    }
    free(raw);
    free(packed);
}

/* What has been read behind the end is handed back. */
Test(inflate_stream, gives_back_what_follows_the_end)
{
    uint8_t packed[100];
    uint8_t out[10];
    struct wharf_outcome outcome;
    size_t nbytes = pack(15, 6, (const uint8_t *)"abc", 3, packed, sizeof(packed));

    memcpy(packed + nbytes, "tail", 4);
    struct test_stream stream = test_stream_decode(wharf_inflate_stream_new(WHARF_INFLATE_ZLIB),
                                                   packed, nbytes + 4, sizeof(packed), 0);
    wharf_zlib_decode(packed, nbytes + 4, out, sizeof(out), NULL, &outcome);
    cr_assert_eq(stream.outcome.in_nbytes, nbytes);
    cr_assert_eq(stream.n_rest, 4);
    test_stream_free(&stream);
}

/* A gzip header may be longer than any buffer: a text of a megabyte, and a checksum over it. */
Test(inflate_stream, reads_headers_of_any_length)
{
    enum { TEXT = 1 << 20 };
    static const uint8_t start[] = {0x1f, 0x8b, 8, 0x08 | 0x10 | 0x02, 0, 0, 0, 0, 0, 3};
    static const uint8_t body[] = {0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    size_t nbytes = sizeof(start) + 2 * TEXT;
    uint8_t *in = malloc(nbytes + 2 + sizeof(body));

    cr_assert(in);
    memcpy(in, start, sizeof(start));
    memset(in + sizeof(start), 'x', 2 * TEXT);
    in[sizeof(start) + TEXT - 1] = 0;
    in[nbytes - 1] = 0;
    uint32_t crc = (uint32_t)crc32(0, in, (uInt)nbytes);
    in[nbytes] = (uint8_t)crc;
    in[nbytes + 1] = (uint8_t)(crc >> 8);
    memcpy(in + nbytes + 2, body, sizeof(body));
    expect_same(2, in, nbytes + 2 + sizeof(body), 1, 1 << 20, 0);
    expect_same(2, in, nbytes + 2 + sizeof(body), 1, 1000, 1);
    in[sizeof(start)] ^= 1;
    expect_same(2, in, nbytes + 2 + sizeof(body), 1, 1000, 1);
    free(in);
}
