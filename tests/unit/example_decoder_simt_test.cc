/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_decoder_simt_test: the device decoder that KERNELS.md offers to copy from, against a
 * decoder of five lines, in all lane orders and between pages that cannot be touched.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/example_decode.cuh"
extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};
constexpr uint32_t MOST_IN = 400, MOST_OUT = MOST_IN / 2 * 255;

/* Of good streams n bytes are in want_out. */
verdict decode_plainly(const uint8_t *in, uint32_t in_nbytes, uint8_t *want_out, uint32_t out_avail)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < in_nbytes; i += 2) {
        if (in_nbytes - i < 2)
            return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 8 * i);
        if (in[i] > out_avail - n)
            return bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * i);
        memset(want_out + n, in[i + 1], in[i]);
        n += in[i];
    }
    return good(in_nbytes, n);
}

/* Decodes in each order.  `stop` ends it at the first look. */
void expect_same(const struct test_guard *in, uint32_t out_avail, verdict want,
                 const uint8_t *want_out, stop_word stop)
{
    for (unsigned i = 0; i < 3; i++) {
        struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
        uint32_t in_nbytes = (uint32_t)in->nbytes, budget = step_budget(in_nbytes, out_avail);
        chunk_job job = {in->data, in_nbytes, out.data, out_avail, 0,
                         nullptr,  nullptr,   budget,   stop};
        verdict got[32];
        simt::run_warp<example_shared>({ORDERS[i], in->nbytes}, [&](example_shared &s) {
            got[lane_id()] = example_decode(s, job);
        });
        for (const verdict &v : got)
            cr_assert_arr_eq(&v, &want, sizeof(want), "%u bytes into %u, order %u", in_nbytes,
                             out_avail, i);
        if (want.result == WHARF_OK && want.out_nbytes)
            cr_assert_arr_eq(out.data, want_out, want.out_nbytes);
        test_guard_free(&out);
    }
}

/* Counts of pairs: short ones, any, and mostly none. */
uint8_t next_count(struct test_random *random, unsigned kind)
{
    if (kind == 0)
        return (uint8_t)test_random_below(random, 4);
    return kind == 1 || test_random_one_in(random, 10) ? (uint8_t)test_random_below(random, 256)
                                                       : 0;
}

} // namespace

Test(example_decoder, decodes_and_verifies_as_the_plain_decoder)
{
    static uint8_t bytes[MOST_IN], want_out[MOST_OUT];
    struct test_random random = {1};
    unsigned n_good = 0, n_bad = 0;

    for (unsigned trial = 0; trial < 300; trial++) {
        uint32_t in_nbytes = (uint32_t)test_random_below(&random, MOST_IN);
        uint32_t full = trial % 2 ? MOST_OUT : 3000;
        uint32_t out_avail = (uint32_t)test_random_below(&random, full + 1);
        in_nbytes -= test_random_one_in(&random, 4) ? 0 : in_nbytes % 2;
        test_random_fill(&random, bytes, in_nbytes);
        for (uint32_t i = 0; i < in_nbytes; i += 2)
            bytes[i] = next_count(&random, trial % 3);
        struct test_guard in = test_guard_copy(bytes, in_nbytes, TEST_GUARD_END);
        verdict want = decode_plainly(bytes, in_nbytes, want_out, out_avail);
        expect_same(&in, out_avail, want, want_out, {nullptr, 0});
        test_guard_free(&in);
        n_good += want.result == WHARF_OK;
        n_bad += want.result != WHARF_OK;
    }
    cr_expect(n_good >= 50 && n_bad >= 50, "%u good, %u bad", n_good, n_bad);
}

Test(example_decoder, stops_when_it_is_cancelled)
{
    static const uint64_t word = 7;
    struct test_guard in = test_guard_new(200, TEST_GUARD_END);

    expect_same(&in, MOST_OUT, stopped(), NULL, {&word, 7});
    test_guard_free(&in);
}
