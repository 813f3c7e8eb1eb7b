/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bdi, fpc, cpack, best and palette: all forms of the CPU engine against the reference, in every
 * member of the outcome and every byte of the output; and what they decode, encoded again, comes
 * back.
 *
 * The first byte chooses the codec and the room for the output; the rest is the source.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { MAX_OUT_NBYTES = 1 << 14 };

static const size_t rooms[] = {MAX_OUT_NBYTES, 0, 100, 4096};
static const char *const forms[] = {"plain", "avx2", "avx512"};

static void check(int good)
{
    if (!good)
        abort();
}

static void check_round_trip(uint8_t choice_number, const uint8_t *raw, size_t nbytes)
{
    static uint8_t out[MAX_OUT_NBYTES];
    struct wharf_line_choice choice = test_lines_choice(choice_number % TEST_LINES_N_CHOICES);
    struct wharf_outcome outcome;
    size_t stream_nbytes;
    uint8_t *stream = test_lines_encode(&choice, raw, nbytes, &stream_nbytes);

    wharf_line_decode(choice.codec, stream, stream_nbytes, out, nbytes, NULL, &outcome);
    check(outcome.result == WHARF_OK && outcome.out_nbytes == nbytes);
    check(nbytes == 0 || memcmp(out, raw, nbytes) == 0);
    free(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t want_out[MAX_OUT_NBYTES];
    struct wharf_outcome got, want;

    if (nbytes < 1)
        return 0;
    uint32_t codec = WHARF_CODEC_BDI + (data[0] & 7) % 5;
    struct test_guard in = test_guard_copy(data + 1, nbytes - 1, TEST_GUARD_END);
    struct test_guard out = test_guard_new(rooms[data[0] >> 3 & 3], TEST_GUARD_END);
    wharf_line_decode_reference(codec, in.data, in.nbytes, want_out, out.nbytes, NULL, &want);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (wharf_line_force(forms[i]) == -ENOTSUP)
            continue;
        wharf_line_decode(codec, in.data, in.nbytes, out.data, out.nbytes, NULL, &got);
        check(test_outcome_same(&got, &want));
        if (want.result == WHARF_OK && want.out_nbytes)
            check(memcmp(out.data, want_out, want.out_nbytes) == 0);
    }
    if (want.result == WHARF_OK)
        check_round_trip(data[0] >> 5, want_out, want.out_nbytes);
    test_guard_free(&out);
    test_guard_free(&in);
    return 0;
}
