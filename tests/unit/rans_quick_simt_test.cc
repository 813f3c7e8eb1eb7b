/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_quick_simt_test: what the quick decoder of chunks does not leave is good, and has the bytes
 * that the CPU engine gives; chunks as encoders make them it does not leave.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <vector>

#include "kernels/rans/rans_decode.cuh"
#include "kernels/rans/rans_quick.cuh"
extern "C" {
#include "encoders/rans/rans_stream.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

/* Decodes quickly and by all rules; whether the quick decoder left it.  `skew` is where the source
 * and the destination begin after a multiple of 16. */
bool check(const uint8_t *stream, size_t in_nbytes, size_t out_avail, unsigned skew,
           simt::lane_order order, const char *what)
{
    struct test_guard source =
        test_guard_new(in_nbytes + (16 - (in_nbytes + skew) % 16) % 16, TEST_GUARD_END);
    uint8_t *in = source.data;
    memcpy(in, stream, in_nbytes);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    std::vector<uint8_t> want_out(out_avail + 1), scratch(RANS_SCRATCH_NBYTES + 256);
    wharf_outcome want, got = {};
    cr_assert_null(
        test_rans_decode_either(in, in_nbytes, 0, nullptr, want_out.data(), out_avail, &want));
    chunk_job job = {in,
                     (uint32_t)in_nbytes,
                     out.data,
                     (uint32_t)out_avail,
                     0,
                     nullptr,
                     scratch.data() + 256 - reinterpret_cast<uintptr_t>(scratch.data()) % 256,
                     step_budget((uint32_t)in_nbytes, (uint32_t)out_avail),
                     {}};
    uint32_t quick = rans::LEFT;
    simt::run_warp<rans_quick_shared>({order, 1}, [&](rans_quick_shared &s) {
        verdict v;
        bool is_left = !rans_quick_decode(s, job, v);
        if (lane_id() == 0 && !is_left)
            quick = v.out_nbytes;
    });
    if (quick != rans::LEFT) {
        cr_assert_eq(want.result, WHARF_OK, "%s: %s", what, test_outcome_text(&want).text);
        cr_assert_eq(quick, want.out_nbytes, "%s", what);
        cr_assert(memcmp(out.data, want_out.data(), quick) == 0, "%s", what);
    }
    simt::run_warp<rans_shared>({order, 2}, [&](rans_shared &s) {
        verdict v = rans_decode(s, job);
        if (lane_id() == 0)
            got = {v.result, v.reason, v.bit_offset, v.in_nbytes, v.out_nbytes};
    });
    cr_assert(test_outcome_same(&got, &want), "%s: %s; not %s", what, test_outcome_text(&got).text,
              test_outcome_text(&want).text);
    cr_assert(want.result != WHARF_OK || memcmp(out.data, want_out.data(), want.out_nbytes) == 0,
              "%s", what);
    test_guard_free(&source);
    test_guard_free(&out);
    return quick == rans::LEFT;
}

/* Whether the stream is of those that are decoded quickly, into a destination of whole symbols. */
bool is_quick(const struct test_rans &rans)
{
    struct wharf_rans_stream parts;
    wharf_outcome outcome;
    cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
    return parts.body.n_splits == rans::QUICK_NSPLITS &&
           rans.stream_nbytes >= rans::FRONT_NBYTES + 2 * sizeof(u32x4) &&
           rans.plain_nbytes % 2 == 0;
}

struct test_rans_plan plan_of(unsigned i)
{
    return {8 + i % 4, 1, 1, 9600 + 13 * i, 4, 10 + 55 * (i % 5), i};
}

} // namespace

Test(rans_quick, chunks_with_four_splits_are_not_left)
{
    unsigned n_quick = 0;
    for (unsigned i = 0; i < 64; i++) {
        struct test_rans_plan plan = plan_of(i);
        struct test_rans rans = test_rans_new(&plan);
        bool is_left = check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, i % 16,
                             ORDERS[i % 3], "good");
        cr_assert(is_left != is_quick(rans), "%u: %zu bytes", i, rans.stream_nbytes);
        n_quick += is_left ? 0 : 1;
        test_rans_free(&rans);
    }
    cr_assert_geq(n_quick, 16);
}

/* Longer chunks, where chains go freely for long. */
Test(rans_quick, long_chunks_are_not_left)
{
    for (unsigned i = 0; i < 8; i++) {
        struct test_rans_plan plan = plan_of(i);
        plan.n_symbols = 65536 + 62 * i;
        struct test_rans rans = test_rans_new(&plan);
        cr_assert(!check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, 3 * i, ORDERS[i % 3],
                         "long"));
        test_rans_free(&rans);
    }
}

/* Slots that are nobody's, many or one: the quick decoder leaves such streams, in which damaged
 * words come to these slots. */
Test(rans_quick, slots_of_nobody_are_left)
{
    struct test_random random = {7};
    for (unsigned i = 0; i < 16; i++) {
        std::vector<uint8_t> bytes(20000 + 2 * i);
        for (uint8_t &byte : bytes)
            byte = (uint8_t)(test_random_below(&random, 4) ? test_random_below(&random, 8)
                                                           : 255 - test_random_below(&random, 90));
        size_t nbytes;
        uint32_t n_free = i / 4 % 2 == 0 ? i / 8 : 20;
        uint8_t *stream = test_rans_encode_with_free_slots(bytes.data(), (uint32_t)bytes.size(),
                                                           8 + i % 4, 4, n_free, &nbytes);
        bool is_left = check(stream, nbytes, bytes.size(), i, ORDERS[i % 3], "free slots");
        cr_assert_eq(is_left, n_free > 0, "%u", i);
        for (unsigned k = 0; k < 12; k++) {
            size_t at = nbytes - 1 - test_random_below(&random, nbytes / 2);
            stream[at] ^= 0x55;
            check(stream, nbytes, bytes.size(), k, ORDERS[k % 3], "damaged, free slots");
            stream[at] ^= 0x55;
        }
        free(stream);
    }
}

/* Words are rare, so that windows are long. */
Test(rans_quick, long_windows_are_not_left)
{
    struct test_random random = {3};
    for (unsigned i = 0; i < 8; i++) {
        std::vector<uint8_t> bytes(49152 + 10 * i);
        for (uint8_t &byte : bytes)
            byte =
                test_random_below(&random, 16) == 0 ? (uint8_t)test_random_below(&random, 20) : 0;
        size_t nbytes;
        uint8_t *stream =
            test_rans_encode(bytes.data(), (uint32_t)bytes.size(), 8 + i % 4, 4, &nbytes);
        cr_assert(!check(stream, nbytes, bytes.size(), 5 * i % 16, ORDERS[i % 3], "long windows"));
        for (unsigned k = 0; k < 16; k++) {
            uint64_t bit = test_random_below(&random, 8 * nbytes);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check(stream, nbytes, bytes.size(), k, ORDERS[k % 3], "damaged windows");
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(stream);
    }
}

/* All that stands in front of the words, bit by bit. */
Test(rans_quick, a_changed_front_has_the_outcome_of_one_decoder)
{
    for (unsigned i = 0; i < 4; i++) {
        struct test_rans_plan plan = plan_of(1 + i);
        struct test_rans rans = test_rans_new(&plan);
        struct wharf_rans_stream parts;
        wharf_outcome outcome;
        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
        uint64_t end = 8 * (uint64_t)(parts.body.words - rans.stream);
        for (uint64_t bit = i; bit < end; bit += 11) {
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, (unsigned)bit % 16,
                  ORDERS[bit % 3], "front");
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        test_rans_free(&rans);
    }
}

Test(rans_quick, damage_has_the_outcome_of_one_decoder)
{
    struct test_random random = {12};
    for (unsigned i = 0; i < 300; i++) {
        struct test_rans_plan plan = plan_of(i);
        plan.n_symbols = 6000 + i;
        struct test_rans rans = test_rans_new(&plan);
        size_t nbytes = rans.stream_nbytes;
        for (unsigned k = 0; k <= i % 3; k++) {
            uint64_t bit = test_random_below(&random, 8 * nbytes);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        if (i % 7 == 0)
            nbytes -= test_random_below(&random, nbytes / 2);
        check(rans.stream, nbytes, rans.plain_nbytes - i % 2, i % 16, ORDERS[i % 3], "damaged");
        test_rans_free(&rans);
    }
}
