/* SPDX-License-Identifier: Apache-2.0 */
/* warp_test: each primitive of warp.cuh on the SIMT layer, in all three lane orders. */
#include <criterion/criterion.h>
#include <signal.h>

#include "kernels/warp.cuh"

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

struct words {
    uint32_t w[64];
};

/* Runs f(words) in every order; f writes results that the lanes check themselves. */
template <typename F>
void in_all_orders(const F &f)
{
    for (simt::lane_order order : ORDERS)
        for (uint64_t seed = 0; seed < 3; seed++)
            simt::run_warp<words>({order, seed}, f);
}

} // namespace

#define expect_eq(got, want)                                                                       \
    do {                                                                                           \
        uint64_t got_ = (uint64_t)(got), want_ = (uint64_t)(want);                                 \
        cr_assert(got_ == want_, "lane %u: %s is %llx, expected %llx", lane_id(), #got,            \
                  (unsigned long long)got_, (unsigned long long)want_);                            \
    } while (0)

Test(warp, shuffles_bring_the_named_lanes_value)
{
    in_all_orders([](words &) {
        unsigned lane = lane_id();
        uint32_t v = lane * 3 + 7;
        expect_eq(shfl(v, 5), 22);
        expect_eq(shfl(v, lane ^ 9), (lane ^ 9) * 3 + 7);
        expect_eq(shfl(v, 33), 10); /* the lane number wraps, as on the hardware */
        expect_eq(shfl((uint64_t)v << 33, 2), 13ull << 33);
        expect_eq(from_lane<31>(v), 100);
        expect_eq(from_lane<2>((uint64_t)v << 33), 13ull << 33);
        expect_eq(shfl_up(v, 4), lane < 4 ? v : v - 12);
        expect_eq(shfl_in<8>(v, lane + 11), 3 * (lane / 8 * 8 + (lane + 3) % 8) + v - 3 * lane);
        expect_eq(shfl_down(v, 31), lane == 0 ? 31 * 3 + 7 : v);
    });
}

Test(warp, votes_hold_every_lanes_bit)
{
    in_all_orders([](words &) {
        unsigned lane = lane_id();
        expect_eq(ballot(lane % 3 == 0), 0x49249249);
        expect_eq(any_lane(lane == 31), 1);
        expect_eq(any_lane(false), 0);
        expect_eq(match_any(lane / 8), 0xffu << lane / 8 * 8);
        expect_eq(lanemask_lt(), (1ull << lane) - 1);
    });
}

Test(warp, reductions_cover_all_lanes)
{
    in_all_orders([](words &) {
        unsigned lane = lane_id();
        expect_eq(reduce_add(lane), 496);
        expect_eq(reduce_min(lane ^ 21), 0);
        expect_eq(reduce_min(lane + 100), 100);
        expect_eq(reduce_max(lane), 31);
        expect_eq(reduce_or(1u << lane), ~0u);
        expect_eq(reduce_xor(1u << lane), ~0u);
        expect_eq(reduce_xor(lane < 3 ? lane + 4 : 8), 4 ^ 5 ^ 6 ^ 8);
    });
}

Test(warp, scans_stop_at_the_lane)
{
    in_all_orders([](words &) {
        unsigned lane = lane_id();
        expect_eq(inclusive_add(lane), lane * (lane + 1) / 2);
        expect_eq(exclusive_add(lane + 1), lane * (lane + 1) / 2);
        uint32_t v = lane == 3 ? 90 : lane;
        expect_eq(inclusive_max(v), lane < 3 ? lane : 90);
    });
}

Test(warp, bit_operations_match_their_definitions)
{
    in_all_orders([](words &) {
        expect_eq(popc(0xf0f01), 9);
        expect_eq(clz(0), 32);
        expect_eq(clz(1), 31);
        expect_eq(ffs(0), 0);
        expect_eq(ffs(0x8000), 16);
        expect_eq(brev(0x80000001u), 0x80000001u);
        expect_eq(brev(0x12345678u), 0x1e6a2c48u);
        expect_eq(funnel_right(0x11223344, 0x55667788, 8), 0x88112233u);
        expect_eq(funnel_right(0x11223344, 0x55667788, 32), 0x11223344u);
        expect_eq(funnel_left(0x11223344, 0x55667788, 8), 0x66778811u);
        expect_eq(byte_perm(0x33221100, 0x77665544, 0x7530), 0x77553300u);
        expect_eq(mul_high(0xffffffffu, 0xffffffffu), 0xfffffffeu);
        expect_eq(dot4(0xff020304, 0x02030405, 9), 510 + 6 + 12 + 20 + 9);
    });
}

Test(warp, memory_is_shared_after_syncwarp)
{
    in_all_orders([](words &s) {
        unsigned lane = lane_id();
        store(&s.w[lane], lane * lane);
        syncwarp();
        unsigned other = (lane * 7 + 3) % 32;
        expect_eq(load(&s.w[other]), other * other);
        syncwarp();
        if (lane == 0)
            s.w[32] = 0;
        syncwarp();
        atomic_add(&s.w[32], lane);
        syncwarp();
        expect_eq(s.w[32], 496);
    });
}

Test(warp, wide_loads_and_stores_move_16_bytes)
{
    in_all_orders([](words &s) {
        unsigned lane = lane_id();
        u32x4 *v = reinterpret_cast<u32x4 *>(s.w);
        if (lane < 16)
            store(&v[lane], u32x4{lane, lane + 1, lane + 2, lane + 3});
        syncwarp();
        u32x4 got = load_nc(&v[lane & 15]);
        expect_eq(got.w, (lane & 15) + 3);
        expect_eq(load_nc(&s.w[lane * 2]), lane * 2 / 4 + lane * 2 % 4);
    });
}

/* One order alone hides a missing syncwarp(); the layer exists to show it. */
/* Runs f(words, warp) as blocks of 1 to 5 warps in every order; f gets the number of warps too. */
template <typename F>
static void in_all_blocks(const F &f)
{
    for (simt::lane_order order : ORDERS)
        for (unsigned n_warps = 1; n_warps <= 5; n_warps++)
            simt::run_block<words>({order, n_warps}, n_warps,
                                   [&](words &s, unsigned warp) { f(s, warp, n_warps); });
}

Test(warp, memory_is_shared_by_a_block_after_syncblock)
{
    in_all_blocks([](words &s, unsigned warp, unsigned n_warps) {
        for (unsigned round = 0; round < 4; round++) {
            if (lane_id() == warp)
                store(&s.w[warp], 10 * round + warp);
            syncblock();
            uint32_t sum = reduce_add(lane_id() < n_warps ? load(&s.w[lane_id()]) : 0);
            expect_eq(sum, 10 * round * n_warps + n_warps * (n_warps - 1) / 2);
            syncblock();
        }
    });
}

Test(warp, syncblock_or_holds_what_any_lane_of_the_block_says)
{
    in_all_blocks([](words &, unsigned warp, unsigned n_warps) {
        expect_eq(syncblock_or(false), 0);
        expect_eq(syncblock_or(warp + 1 == n_warps && lane_id() == 17), 1);
        expect_eq(syncblock_or(lane_id() == 32), 0);
        expect_eq(syncblock_or(warp == 0), 1);
    });
}

Test(warp, missing_syncblock_shows_in_some_order)
{
    bool wrong = false;
    for (simt::lane_order order : ORDERS)
        simt::run_block<words>({order, 1}, 2, [&](words &s, unsigned warp) {
            store(&s.w[32 * warp + lane_id()], warp);
            wrong |= load(&s.w[32 * (1 - warp) + lane_id()]) != 1 - warp;
            syncblock();
        });
    cr_assert(wrong);
}

Test(warp, warp_that_leaves_its_block_early_stops_the_program, .signal = SIGABRT)
{
    simt::run_block<words>({}, 3, [](words &, unsigned warp) {
        if (warp != 1)
            syncblock();
    });
}

Test(warp, warps_at_different_syncblocks_stop_the_program, .signal = SIGABRT)
{
    simt::run_block<words>({}, 2, [](words &, unsigned warp) {
        if (warp == 0)
            syncblock();
        else
            syncblock();
    });
}

Test(warp, missing_syncwarp_shows_in_some_order)
{
    int wrong = 0;
    for (simt::lane_order order : ORDERS) {
        simt::run_warp<words>({order, 1}, [&](words &s) {
            unsigned lane = lane_id();
            s.w[lane] = lane;
            wrong += s.w[lane ^ 1] != (lane ^ 1);
        });
    }
    cr_assert(wrong > 0);
}

Test(warp, shared_memory_starts_with_another_pattern_each_run)
{
    uint32_t first = 0, second = 0;
    auto read = [](uint32_t &to) { simt::run_warp<words>({}, [&](words &s) { to = s.w[7]; }); };
    read(first);
    read(second);
    cr_assert(first != second);
}

Test(warp, steps_count_collectives)
{
    /* The routine's end is a meeting of its own. */
    cr_assert_eq(simt::run_warp<words>({}, [](words &) {}), 1);
    cr_assert_eq(simt::run_warp<words>({},
                                       [](words &) {
                                           syncwarp();
                                           ballot(true);
                                           inclusive_add(1);
                                       }),
                 4);
}

Test(warp, signed_perm_repeats_signs)
{
    simt::run_warp<words>({}, [](words &) {
        cr_assert_eq(signed_perm(0x807f0201, 0xff00aa55, 0x7654), 0xff00aa55u);
        cr_assert_eq(signed_perm(0x807f0201, 0xff00aa55, 0x8880), 0x00000001u);
        cr_assert_eq(signed_perm(0x807f0201, 0xff00aa55, 0xbbb3), 0xffffff80u);
        cr_assert_eq(signed_perm(0x807f0201, 0xff00aa55, 0xf7e6), 0xffff0000u);
        cr_assert_eq(signed_perm(0x807f0201, 0xff00aa55, 0xd5c4), 0xffaa0055u);
    });
}

Test(warp, shfl_xor_exchanges_neighbours)
{
    simt::run_warp<words>({}, [](words &) {
        uint32_t lane = lane_id();
        cr_assert_eq(shfl_xor<1>(100 + lane), 100 + (lane ^ 1));
        cr_assert_eq(shfl_xor<18>(100 + lane), 100 + (lane ^ 18));
    });
}

Test(warp, what_is_conditional_leaves_other_lanes_as_they_were)
{
    simt::run_warp<words>({}, [](words &) {
        uint32_t lane = lane_id(), to = 7;
        bool is_odd = lane % 2 != 0;
        cr_assert_eq(multiply_add(0x10001, 0xffffe000, lane), 0xdfffe000u + lane);
        multiply_add_if(is_odd, to, lane, 3, 4);
        cr_assert_eq(to, is_odd ? 3 * lane + 4 : 7);
        set_if(!is_odd, to, 5);
        cr_assert_eq(to, is_odd ? 3 * lane + 4 : 5);
        to = 8;
        or_difference_if(is_odd, to, 0x16, 0x15);
        cr_assert_eq(to, is_odd ? 11u : 8u);
    });
}

Test(warp, lanes_in_different_places_stop_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &) {
        if (lane_id() < 16)
            syncwarp();
        else
            ballot(true);
    });
}

Test(warp, same_primitive_in_another_line_stops_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &) {
        if (lane_id() == 9)
            syncwarp();
        else
            syncwarp();
    });
}

Test(warp, lane_that_leaves_early_stops_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &) {
        if (lane_id() == 31)
            return;
        syncwarp();
    });
}

Test(warp, uniform_value_that_differs_stops_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &) { uniform(lane_id() == 17); });
}

Test(warp, uniform_pointer_that_differs_stops_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &s) { uniform_global(s.w + lane_id() / 31); });
}

Test(warp, misaligned_access_stops_the_program, .signal = SIGABRT)
{
    simt::run_warp<words>({}, [](words &s) {
        load(reinterpret_cast<uint32_t *>(reinterpret_cast<char *>(s.w) + 1));
    });
}

/* asan reports the fault itself, and then exits. */
#ifdef __SANITIZE_ADDRESS__
#define FAULTS .exit_code = 1
#else
#define FAULTS .signal = SIGSEGV
#endif

Test(warp, write_behind_shared_memory_stops_the_program, FAULTS)
{
    simt::run_warp<words>({}, [](words &s) {
        volatile uint32_t *past = s.w + 64;
        *past = 1;
    });
}
