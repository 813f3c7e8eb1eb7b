/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4 and snappy: the CPU engine against the reference, in every member of the outcome and every
 * byte of the output, and both against liblz4 and libsnappy.
 *
 * The first byte chooses the codec, the second the room for the output; the rest is the source.
 */
#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { HEAD_NBYTES = 2, MAX_OUT_NBYTES = 1 << 16 };

static const size_t rooms[] = {0, 1, 7, 100, 1000, 4099, 20000, MAX_OUT_NBYTES};

static void check(int good)
{
    if (!good)
        abort();
}

/*
 * liblz4 wants the right size to look at all rules.  Too much room hides LZ4_END, it takes offsets
 * of 0, and of blocks of nothing only one.
 */
static void compare_with_liblz4(const struct test_guard *in, const struct wharf_outcome *outcome,
                                const uint8_t *out)
{
    static char expected[MAX_OUT_NBYTES];
    int n_in = (int)in->nbytes;

    int n_out = (int)outcome->out_nbytes;

    if (outcome->result == WHARF_OK && n_out > 0) {
        check(LZ4_decompress_safe((const char *)in->data, expected, n_in, n_out) == n_out);
        check(memcmp(expected, out, (size_t)n_out) == 0);
    } else if (outcome->reason == WHARF_REASON_INPUT_TRUNCATED) {
        check(LZ4_decompress_safe((const char *)in->data, expected, n_in, sizeof(expected)) < 0);
    }
}

/*
 * libsnappy wants to take all of the source.  It counts literals with 32 bits, so that 2^32 of them
 * are none: what is past the end for us may be good there, and what is behind the end.
 */
static void compare_with_libsnappy(const struct test_guard *in, const struct wharf_outcome *outcome,
                                   const uint8_t *out)
{
    static char expected[MAX_OUT_NBYTES];
    const char *source = (const char *)in->data;
    size_t nbytes = sizeof(expected);
    int is_good = snappy_uncompress(source, in->nbytes, expected, &nbytes) == SNAPPY_OK;

    if (outcome->result == WHARF_OK && outcome->in_nbytes == in->nbytes) {
        check(is_good && nbytes == outcome->out_nbytes);
        check(nbytes == 0 || memcmp(expected, out, nbytes) == 0);
    } else if (outcome->result == WHARF_BAD_DATA &&
               outcome->reason != WHARF_REASON_SNAPPY_PAST_END) {
        check(!is_good);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t want_out[MAX_OUT_NBYTES];
    struct wharf_outcome got, want;

    if (nbytes < HEAD_NBYTES)
        return 0;
    int is_lz4 = data[0] & 1;
    const struct wharf_codec_ops *ops =
        wharf_codec_find(is_lz4 ? WHARF_CODEC_LZ4 : WHARF_CODEC_SNAPPY)->ops;
    struct test_guard in =
        test_guard_copy(data + HEAD_NBYTES, nbytes - HEAD_NBYTES, TEST_GUARD_END);
    struct test_guard out = test_guard_new(rooms[data[1] & 7], TEST_GUARD_END);
    ops->decode_reference(in.data, in.nbytes, want_out, out.nbytes, NULL, &want);
    ops->decode(in.data, in.nbytes, out.data, out.nbytes, NULL, &got);
    check(test_outcome_same(&got, &want));
    if (want.result == WHARF_OK && want.out_nbytes)
        check(memcmp(out.data, want_out, want.out_nbytes) == 0);
    (is_lz4 ? compare_with_liblz4 : compare_with_libsnappy)(&in, &want, want_out);
    test_guard_free(&out);
    test_guard_free(&in);
    return 0;
}
