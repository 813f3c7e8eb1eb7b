/* SPDX-License-Identifier: Apache-2.0 */
/* device_checksum_test: the warp's CRC-32 and Adler-32 against zlib's. */
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "kernels/checksum.cuh"
extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

struct nothing {
};

/* The checksum of n bytes at p, brought up to date every `step` bytes. */
template <typename Sum>
uint32_t sum_of(const uint8_t *p, uint32_t n, uint32_t step, simt::lane_order order)
{
    uint32_t results[32];
    simt::run_warp<nothing>({order, n}, [&](nothing &) {
        Sum sum;
        sum.init(p);
        for (uint32_t at = step; at < n; at += step)
            sum.update(at);
        results[lane_id()] = sum.finish(n);
    });
    for (uint32_t lane = 1; lane < 32; lane++)
        cr_assert(results[lane] == results[0]);
    return results[0];
}

void check(const uint8_t *p, uint32_t n, uint32_t step, simt::lane_order order)
{
    uint32_t crc = (uint32_t)crc32(0, p, n);
    uint32_t adler = (uint32_t)adler32(1, p, n);
    uint32_t got = sum_of<crc32_sum>(p, n, step, order);
    cr_assert(got == crc, "CRC-32 of %u bytes is %08x, expected %08x", n, got, crc);
    got = sum_of<adler32_sum>(p, n, step, order);
    cr_assert(got == adler, "Adler-32 of %u bytes is %08x, expected %08x", n, got, adler);
}

} // namespace

Test(device_checksum, every_small_size_at_every_alignment)
{
    struct test_random random = {1};
    for (uint32_t n = 0; n < 300; n++)
        for (uint32_t skew = 0; skew < 4; skew++) {
            struct test_guard guard = test_guard_new(skew + n, TEST_GUARD_END);
            test_random_fill(&random, guard.data, skew + n);
            check(guard.data + skew, n, 1000, ORDERS[n % 3]);
            test_guard_free(&guard);
        }
}

Test(device_checksum, updates_may_come_at_any_size)
{
    struct test_random random = {2};
    for (uint32_t step : {1u, 100u, 128u, 129u, 1000u})
        for (uint32_t n : {127u, 128u, 1031u, 4096u}) {
            struct test_guard guard = test_guard_new(n, TEST_GUARD_END);
            test_random_fill(&random, guard.data, n);
            check(guard.data, n, step, ORDERS[step % 3]);
            test_guard_free(&guard);
        }
}

/* All ones are what brings Adler-32's sums closest to their limits. */
Test(device_checksum, largest_bytes_do_not_overflow_the_sums)
{
    for (uint32_t n : {131072u, 131072u + 77, 400000u}) {
        struct test_guard guard = test_guard_new(n, TEST_GUARD_END);
        memset(guard.data, 0xff, n);
        check(guard.data, n, 1u << 30, ORDERS[0]);
        check(guard.data, n, 70000, ORDERS[1]);
        test_guard_free(&guard);
    }
}
