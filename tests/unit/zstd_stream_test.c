/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd streamed is the one-shot decode in pieces: the same bytes and the same verdict, however the
 * source is cut up and wherever the window slides, on good and bad sources alike.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_stream.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_stream.h"

struct form {
    int level;
    int window_log; /* 0: what the level has */
    int has_size;
    int has_checksum;
};

/* Appends a frame; returns the bytes of all. */
static size_t pack(const struct form *form, const uint8_t *raw, size_t raw_nbytes, uint8_t *out,
                   size_t out_nbytes, size_t out_avail)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_inBuffer in = {raw, raw_nbytes, 0};
    ZSTD_outBuffer to = {out, out_avail, out_nbytes};

    cr_assert(context);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, form->level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, form->window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, form->has_checksum);
    if (form->has_size)
        cr_assert(!ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, raw_nbytes)));
    else /* or the end alone would tell it */
        cr_assert(!ZSTD_isError(ZSTD_compressStream2(context, &to, &in, ZSTD_e_continue)));
    cr_assert_eq(ZSTD_compressStream2(context, &to, &in, ZSTD_e_end), 0);
    ZSTD_freeCCtx(context);
    return to.pos;
}

/* The stream says what the one-shot decode with ample output says. */
static void expect_same(const uint8_t *in, size_t in_nbytes, size_t out_avail,
                        size_t max_piece_nbytes, uint64_t seed)
{
    uint8_t *out = malloc(out_avail + 1);
    struct wharf_outcome one_shot;
    struct test_stream stream = test_stream_decode(wharf_zstd_stream_new(WHARF_ZSTD_ALL_FRAMES), in,
                                                   in_nbytes, max_piece_nbytes, seed);

    cr_assert(out);
    wharf_zstd_decode(in, in_nbytes, out, out_avail, NULL, &one_shot);
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
        cr_assert(stream.verified <= stream.out_nbytes);
    }
    test_stream_free(&stream);
    free(out);
}

/* Windows that slide many times, that slide once, and that need not. */
Test(zstd_stream, gives_all_bytes_of_long_frames)
{
    enum { RAW = 9500001, AVAIL = RAW + (1 << 20) };
    static const struct form forms[] = {
        {1, 10, 0, 1}, {1, 10, 1, 0}, {1, 17, 0, 1}, {3, 21, 0, 1},
        {1, 23, 0, 1}, {1, 27, 0, 1}, {1, 0, 1, 1},
    };
    uint8_t *packed = malloc(AVAIL);
    uint8_t *raw = test_data_new(test_data_find("mixed"), 5, RAW);

    cr_assert(packed);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t nbytes = pack(&forms[i], raw, RAW, packed, 0, AVAIL);
        expect_same(packed, nbytes, RAW, 1 << 20, 0);
        /* What stands farther back than the window is another frame's. */
        nbytes = pack(&forms[0], raw, 300000, packed, nbytes, AVAIL);
        expect_same(packed, nbytes, RAW + 300000, 300000, i + 1);
    }
    free(raw);
    free(packed);
}

/* Every header, block and checksum is cut at every byte, and goes on. */
Test(zstd_stream, does_not_care_where_the_source_is_cut)
{
    enum { RAW = 3000, AVAIL = 20 * RAW };
    static const struct form forms[] = {{1, 10, 0, 1}, {19, 0, 1, 0}, {3, 0, 1, 1}};
    static const uint8_t skippable[] = {0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5};
    uint8_t packed[AVAIL];

    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        uint8_t *raw = test_data_new(&test_data_kinds[kind], kind, RAW);
        size_t nbytes = 0;
        for (size_t i = 0; i < 3; i++) {
            nbytes = pack(&forms[i], raw, RAW >> i, packed, nbytes, AVAIL);
            memcpy(packed + nbytes, skippable, sizeof(skippable));
            nbytes += sizeof(skippable);
        }
        expect_same(packed, nbytes, 2 * RAW, 1, 0);
        for (uint64_t seed = 1; seed < 5; seed++)
            expect_same(packed, nbytes, 2 * RAW, 1 + 7 * seed, seed);
        free(raw);
    }
}

Test(zstd_stream, verifies_truncated_sources_as_one_shot_does)
{
    enum { RAW = 700, AVAIL = 4 * RAW };
    static const struct form forms[] = {{3, 10, 0, 1}, {3, 0, 1, 0}};
    static const uint8_t skippable[] = {0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5};
    uint8_t packed[AVAIL];
    uint8_t *raw = test_data_new(test_data_find("text"), 1, RAW);
    size_t nbytes = pack(&forms[0], raw, RAW, packed, 0, AVAIL);

    memcpy(packed + nbytes, skippable, sizeof(skippable));
    nbytes = pack(&forms[1], raw, RAW, packed, nbytes + sizeof(skippable), AVAIL);
    for (size_t n = 0; n < nbytes; n++)
        expect_same(packed, n, 2 * RAW, 64, n);
    free(raw);
}

Test(zstd_stream, verifies_damaged_sources_as_one_shot_does)
{
    enum { RAW = 2000, AVAIL = 4 * RAW, ROUNDS = 2000, OUT = 4 << 20 };
    struct test_random random = {7};
    uint8_t packed[AVAIL];

    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct form form = {1 + (int)(round % 4), round % 3 ? 10 : 0, round % 5 == 0, 1};
        uint8_t *raw = test_data_new(&test_data_kinds[round % test_data_n_kinds], round, RAW);
        size_t nbytes = pack(&form, raw, RAW, packed, 0, AVAIL);

        for (unsigned n = 1 + round % 3; n; n--)
            packed[test_random_below(&random, nbytes)] ^= 1 << test_random_below(&random, 8);
        expect_same(packed, nbytes, OUT, 1 + test_random_below(&random, 500),
                    test_random_next(&random));
        free(raw);
    }
}

/* A frame at a time: skippable ones before it are passed over, and what follows is handed back. */
Test(zstd_stream, ends_behind_one_frame_if_asked_to)
{
    static const uint8_t source[] = {0x50, 0x2a, 0x4d, 0x18, 1,    0, 0, 0,   9,   0x28, 0xb5,
                                     0x2f, 0xfd, 0x20, 3,    0x19, 0, 0, 'a', 'b', 'c',  0x28};
    struct test_stream stream = test_stream_decode(wharf_zstd_stream_new(WHARF_ZSTD_ONE_FRAME),
                                                   source, sizeof(source), sizeof(source), 0);

    cr_assert_eq(stream.outcome.result, WHARF_OK);
    cr_assert_eq(stream.n_rest, 1);
    cr_assert_eq(stream.out_nbytes, 3);
    cr_assert_eq(stream.verified, 3);
    test_stream_free(&stream);
}
