/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long streams of ORC's run lengths in pieces: what the pieces give together, and how they fail, is
 * what the stream gives when it is decoded as one.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "encoders/codec.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_rle.h"

enum { IN_NBYTES = 6000, OUT_NBYTES = 1 << 20, N_STREAMS = 60 };

static const uint32_t codecs[] = {WHARF_CODEC_RLE1, WHARF_CODEC_RLE2, WHARF_CODEC_BYTERLE};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static void decode(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes,
                   uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_setting setting = {.parameter = parameter};

    wharf_codec_find(codec)->ops->decode(in, in_nbytes, out, out_avail, &setting, ret_outcome);
}

/* Decodes a stream's pieces one after the other, up to the first that fails. */
static void decode_pieces(uint32_t codec, uint32_t parameter, const struct test_guard *in,
                          uint64_t max_values, uint8_t *out, struct wharf_outcome *ret_outcome)
{
    unsigned unit = wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, parameter);
    struct wharf_run_piece piece = {0};
    size_t in_nbytes = 0, out_nbytes = 0;
    int r;

    while ((r = wharf_next_runs(codec, in->data, in->nbytes, max_values, &piece)) == 1) {
        cr_assert_eq(piece.in_offset, in_nbytes);
        cr_assert_eq(piece.first_value * unit, out_nbytes);
        cr_assert(piece.in_nbytes > 0 && piece.in_nbytes <= in->nbytes - in_nbytes);
        cr_assert(piece.n_values <= (max_values > 512 ? max_values : 512));
        decode(codec, parameter, in->data + piece.in_offset, piece.in_nbytes, out + out_nbytes,
               piece.n_values * unit, ret_outcome);
        if (ret_outcome->result != WHARF_OK) {
            ret_outcome->bit_offset += 8 * (uint64_t)piece.in_offset;
            return;
        }
        cr_assert_eq(ret_outcome->out_nbytes, piece.n_values * unit, "a piece has other values");
        in_nbytes += piece.in_nbytes;
        out_nbytes += ret_outcome->out_nbytes;
    }
    cr_assert_eq(r, 0);
    *ret_outcome = (struct wharf_outcome){.in_nbytes = in_nbytes, .out_nbytes = out_nbytes};
}

static void expect_same(uint32_t codec, uint32_t parameter, const uint8_t *stream, size_t nbytes)
{
    static const uint64_t limits[] = {0, 1, 100, 3000, UINT64_MAX};
    static uint8_t want_out[OUT_NBYTES], got_out[OUT_NBYTES];
    struct test_guard in = test_guard_copy(stream, nbytes, TEST_GUARD_END);
    struct wharf_outcome want, got;

    decode(codec, parameter, in.data, in.nbytes, want_out, OUT_NBYTES, &want);
    cr_assert(want.result != WHARF_OUTPUT_TOO_SMALL);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        decode_pieces(codec, parameter, &in, limits[i], got_out, &got);
        cr_assert(test_outcome_same(&got, &want), "codec %u, type %u, %zu bytes: %s; not %s", codec,
                  parameter, nbytes, test_outcome_text(&got).text, test_outcome_text(&want).text);
        if (want.result == WHARF_OK)
            cr_assert_eq(memcmp(want_out, got_out, want.out_nbytes), 0);
    }
    test_guard_free(&in);
}

/* Each stream as it is, cut off, and with bits turned over. */
Test(run_pieces, give_what_the_stream_gives)
{
    static uint8_t stream[IN_NBYTES];
    struct test_random random = {1};

    for (unsigned i = 0; i < N_STREAMS * N_CODECS; i++) {
        uint32_t codec = codecs[i % N_CODECS];
        uint32_t type = codec == WHARF_CODEC_BYTERLE ? 0 : (uint32_t)test_random_below(&random, 8);
        /* Numbers that make up values of the type, mostly. */
        unsigned nbits = (8u << (type & 3)) - (type & 3 ? 4 : 0);
        size_t nbytes = test_rle_stream(&random, codec, nbits, stream, IN_NBYTES);

        expect_same(codec, type, stream, nbytes);
        for (unsigned k = 0; k < 20; k++)
            expect_same(codec, type, stream, test_random_below(&random, (uint32_t)nbytes + 1));
        for (unsigned k = 0; k < 20; k++) {
            stream[test_random_below(&random, (uint32_t)nbytes)] ^=
                (uint8_t)(1u << test_random_below(&random, 8));
            expect_same(codec, type, stream, nbytes);
        }
    }
}

/* Any bytes at all: headers of all kinds, most of them of bad runs. */
Test(run_pieces, fail_as_the_stream_fails)
{
    static uint8_t stream[IN_NBYTES];
    struct test_random random = {2};

    for (unsigned i = 0; i < 20 * N_STREAMS; i++) {
        uint32_t codec = codecs[i % N_CODECS];
        size_t nbytes = test_random_below(&random, 700);

        for (size_t k = 0; k < nbytes; k++)
            stream[k] = (uint8_t)test_random_below(&random, 256);
        expect_same(codec, codec == WHARF_CODEC_BYTERLE ? 0 : WHARF_RLE_I64, stream, nbytes);
    }
}

Test(run_pieces, refuses_what_has_no_runs_or_is_not_of_the_stream)
{
    const uint8_t in[4] = {0};
    struct wharf_run_piece piece = {0};

    cr_assert_eq(wharf_next_runs(WHARF_CODEC_ZLIB, in, 4, 1, &piece), -EINVAL);
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_BOOLRLE, in, 4, 1, &piece), -EINVAL);
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_RLE1, NULL, 4, 1, &piece), -EINVAL);
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_RLE1, in, 4, 1, NULL), -EINVAL);
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_RLE1, NULL, 0, 1, &piece), 0);
    piece.in_offset = 5;
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_RLE1, in, 4, 1, &piece), -EINVAL);
    piece = (struct wharf_run_piece){.in_offset = 3, .in_nbytes = 2};
    cr_assert_eq(wharf_next_runs(WHARF_CODEC_RLE1, in, 4, 1, &piece), -EINVAL);
}
