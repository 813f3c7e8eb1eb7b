/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blosc: the CPU engine's forms against the reference, in every member of the outcome and every
 * byte of the output.
 *
 * The input is the source.  Where it begins with 0, as no chunk does, it is bitshuffle's framing of
 * elements whose size, as the room for the output, its length chooses.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/blosc/blosc_order.h"
#include "encoders/codec.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { MAX_OUT_NBYTES = 3 << 18 };

static const size_t rooms[] = {MAX_OUT_NBYTES, 1 << 16, 1000, MAX_OUT_NBYTES, 100};
enum { N_ROOMS = sizeof(rooms) / sizeof(rooms[0]) };

static const uint32_t framings[] = {
    WHARF_BLOSC_BITSHUFFLE_LZ4 + 4,  WHARF_BLOSC_BITSHUFFLE_LZ4 + 2,
    WHARF_BLOSC_BITSHUFFLE_LZ4 + 1,  WHARF_BLOSC_BITSHUFFLE_LZ4 + 8,
    WHARF_BLOSC_BITSHUFFLE_LZ4 + 16, WHARF_BLOSC_BITSHUFFLE_LZ4 + 3,
    WHARF_BLOSC_BITSHUFFLE_ZSTD + 2, WHARF_BLOSC_BITSHUFFLE_ZSTD + 8,
};
enum { N_FRAMINGS = sizeof(framings) / sizeof(framings[0]) };

static void check(int good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const char *const forms[] = {"plain", NULL};
    static uint8_t want_out[MAX_OUT_NBYTES];
    const struct wharf_codec_ops *ops = wharf_codec_find(WHARF_CODEC_BLOSC)->ops;
    struct wharf_outcome got, want;

    struct wharf_codec_setting setting = {0};
    if (nbytes > 0 && data[0] == 0)
        setting.parameter = framings[nbytes % N_FRAMINGS];
    struct test_guard in = test_guard_copy(data, nbytes, TEST_GUARD_END);
    size_t room = rooms[nbytes % N_ROOMS];
    ops->decode_reference(in.data, in.nbytes, want_out, room, &setting, &want);
    check(want.result != WHARF_OK || (want.in_nbytes <= in.nbytes && want.out_nbytes <= room));
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct test_guard out = test_guard_new(room, TEST_GUARD_END);
        check(wharf_blosc_order_force(forms[i]) == 0);
        ops->decode(in.data, in.nbytes, out.data, out.nbytes, &setting, &got);
        check(test_outcome_same(&got, &want));
        if (want.result == WHARF_OK && want.out_nbytes)
            check(memcmp(out.data, want_out, want.out_nbytes) == 0);
        test_guard_free(&out);
    }
    test_guard_free(&in);
    return 0;
}
