/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ORC's run-length codecs: the CPU engine against the reference, in every member of the outcome and
 * every byte of the output.
 *
 * The first byte chooses codec and parameter, the second the room for the output; the rest is the
 * source.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { HEAD_NBYTES = 2, MAX_OUT_NBYTES = 1 << 16 };

static const uint32_t codecs[] = {WHARF_CODEC_RLE1, WHARF_CODEC_RLE2, WHARF_CODEC_BYTERLE,
                                  WHARF_CODEC_BOOLRLE};
static const size_t rooms[] = {0, 1, 7, 100, 1000, 4099, 20000, MAX_OUT_NBYTES};

static void check(int good)
{
    if (!good)
        abort();
}

static void compare(const struct wharf_codec_ops *ops, uint32_t parameter,
                    const struct test_guard *in, size_t out_avail)
{
    static uint8_t want_out[MAX_OUT_NBYTES];
    const struct wharf_codec_setting setting = {.parameter = parameter};
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    struct wharf_outcome got, want;

    ops->decode_reference(in->data, in->nbytes, want_out, out_avail, &setting, &want);
    ops->decode(in->data, in->nbytes, out.data, out_avail, &setting, &got);
    check(test_outcome_same(&got, &want));
    if (want.result == WHARF_OK && want.out_nbytes)
        check(memcmp(out.data, want_out, want.out_nbytes) == 0);
    test_guard_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < HEAD_NBYTES)
        return 0;
    const struct wharf_codec_ops *ops = wharf_codec_find(codecs[data[0] & 3])->ops;
    uint32_t parameter = data[0] >> 2 & 7;
    if (!wharf_codec_unit_nbytes(ops, parameter))
        parameter = 0;
    struct test_guard in =
        test_guard_copy(data + HEAD_NBYTES, nbytes - HEAD_NBYTES, TEST_GUARD_END);
    compare(ops, parameter, &in, rooms[data[1] & 7]);
    test_guard_free(&in);
    return 0;
}
