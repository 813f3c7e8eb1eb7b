/* SPDX-License-Identifier: Apache-2.0 */
/* device_compare.h: one chunk by device code on the SIMT layer, and by the CPU engine. */
#ifndef WHARF_TESTS_DEVICE_COMPARE_H
#define WHARF_TESTS_DEVICE_COMPARE_H

#include <criterion/criterion.h>
#include <string.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

/*
 * Decodes `chunk`, of which `out` is not looked at, by `kernel` in the lanes' order of the seed,
 * from and to memory that ends at untouchable pages, or `skew` bytes before.  Outcome and bytes
 * have to be the CPU engine's.  Returns its outcome.
 */
static inline struct wharf_outcome compare_on_device(uint32_t kernel,
                                                     struct wharf_device_chunk chunk, unsigned skew,
                                                     uint64_t seed, const char *what)
{
    struct test_guard in = test_guard_copy(chunk.in, chunk.in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(chunk.out_avail + skew, TEST_GUARD_END);
    struct test_guard want_out = test_guard_new(chunk.out_avail, TEST_GUARD_END);
    const struct wharf_codec_setting setting = {.parameter = chunk.parameter};
    struct wharf_outcome got, want;
    struct wharf_device_batch batch = {&chunk, &got, 1, kernel};

    chunk.in = in.data;
    chunk.out = out.data;
    memset(&got, 0xff, sizeof(got));
    wharf_codec_find(chunk.codec)
        ->ops->decode(in.data, in.nbytes, want_out.data, chunk.out_avail, &setting, &want);
    cr_assert_eq(wharf_simt_decode_batch(&batch, (enum wharf_simt_order)(seed % 3), seed, NULL), 0);
    cr_assert(test_outcome_same(&got, &want), "%s, kernel %x, seed %llu: %s, not %s", what, kernel,
              (unsigned long long)seed, test_outcome_text(&got).text,
              test_outcome_text(&want).text);
    if (want.out_nbytes > 0)
        cr_assert_eq(memcmp(out.data, want_out.data, want.out_nbytes), 0,
                     "%s, kernel %x, seed %llu: other bytes", what, kernel,
                     (unsigned long long)seed);
    test_guard_free(&want_out);
    test_guard_free(&out);
    test_guard_free(&in);
    return want;
}

#endif
