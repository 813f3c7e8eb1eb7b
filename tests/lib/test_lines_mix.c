/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_lines_mix.h"

#include <stdbool.h>
#include <string.h>

#include "encoders/wharf_codec.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_random.h"

/* Of lines: values near a base of 8, 4 or 2 bytes or near zero; and zeros, one of 51. */
enum { N_KINDS = 5, LINE_NBYTES = 128, UNIT_NBYTES = 4 << 20, PIECE_NBYTES = 4096, RUN = 16384 };

static void fill_line(struct test_random *random, uint32_t codec, unsigned kind, uint8_t *out)
{
    static const unsigned bases[] = {8, 8, 4, 4, 2}, deltas[] = {2, 4, 1, 2, 1};
    if (kind == N_KINDS) {
        memset(out, 0, LINE_NBYTES);
        return;
    }
    if (codec == WHARF_CODEC_BEST && kind % 2 == 1) {
        test_lines_fill(kind == 1 ? TEST_LINES_WORDS : TEST_LINES_NEAR, test_random_next(random),
                        out, LINE_NBYTES);
        return;
    }
    unsigned b = bases[kind], d = deltas[kind];
    uint64_t base = test_random_next(random);
    for (unsigned i = 0; i < LINE_NBYTES; i += b) {
        /* The first value becomes the base: half of the range, so that all others fit. */
        uint64_t half = UINT64_C(1) << (8 * d - 1);
        uint64_t delta = test_random_below(random, half) - half / 2;
        uint64_t value = (test_random_below(random, 5) == 0 ? 0 : base) + delta;
        memcpy(out + i, &value, b);
    }
}

static void fill_lines(uint32_t codec, bool has_runs, uint8_t *out, size_t nbytes)
{
    struct test_random random = {codec * 77 + 5};
    unsigned kind = 0;
    for (size_t at = 0; at < nbytes; at += LINE_NBYTES) {
        if (!has_runs || at % RUN == 0)
            kind = (unsigned)test_random_below(&random, 10 * N_KINDS + 1) / 10;
        if (nbytes - at >= LINE_NBYTES)
            fill_line(&random, codec, kind, out + at);
        else
            memset(out + at, 0, nbytes - at);
    }
}

static void fill_pieces(enum test_lines_kind kind, uint8_t *out, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += PIECE_NBYTES)
        test_lines_fill(kind, at, out + at,
                        nbytes - at < PIECE_NBYTES ? nbytes - at : PIECE_NBYTES);
}

void test_lines_mix_fill(uint32_t codec, enum test_lines_mix mix, uint8_t *out, size_t nbytes)
{
    size_t n = nbytes < UNIT_NBYTES ? nbytes : UNIT_NBYTES;
    if (mix == TEST_LINES_MIX_RANDOM)
        test_lines_fill(TEST_LINES_RANDOM, codec, out, n);
    else if (codec == WHARF_CODEC_PALETTE)
        test_lines_fill(TEST_LINES_WEIGHTS, codec, out, n);
    else if (codec == WHARF_CODEC_FPC || codec == WHARF_CODEC_CPACK)
        fill_pieces(codec == WHARF_CODEC_FPC ? TEST_LINES_WORDS : TEST_LINES_NEAR, out, n);
    else
        fill_lines(codec, mix == TEST_LINES_MIX_RUNS, out, n);
    for (size_t at = n; at < nbytes; at++)
        out[at] = out[at - n];
}
