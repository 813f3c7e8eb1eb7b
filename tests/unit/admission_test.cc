/* SPDX-License-Identifier: Apache-2.0 */
/* admission_test: warps that take turns, each on a thread of its own, on the SIMT layer. */
#include <criterion/criterion.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/epoch_admission.cuh"

using namespace wharf;

namespace
{

constexpr unsigned N_WARPS = 6, N_TURNS = 40;
constexpr stop_word NEVER = {nullptr, 0};

struct nothing {
    uint32_t unused;
};

template <typename F>
void run_warps(unsigned n, const F &f)
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < n; i++)
        threads.emplace_back([i, &f] {
            simt::run_warp<nothing>({simt::lane_order::random, i}, [i, &f](nothing &) { f(i); });
        });
    for (std::thread &thread : threads)
        thread.join();
}

/* The most that were on the way at a time. */
unsigned most_seen(uint32_t most)
{
    ordered_admission way = {};
    std::atomic<unsigned> n_there{0}, n_most{0};
    run_warps(N_WARPS, [&](unsigned) {
        for (unsigned turn = 0; turn < N_TURNS; turn++) {
            enter_in_order(&way, most, NEVER);
            if (lane_id() == 0) {
                unsigned n = ++n_there;
                if (n > n_most)
                    n_most = n;
                std::this_thread::yield();
                n_there--;
            }
            leave_in_order(&way, most);
        }
    });
    cr_expect_eq(way.n_come, most ? N_WARPS * N_TURNS : 0);
    cr_expect_eq(way.n_gone, way.n_come);
    return n_most;
}

} // namespace

Test(ordered_admission, lets_no_more_through_at_a_time)
{
    for (uint32_t most = 1; most < 4; most++) {
        unsigned n = most_seen(most);
        cr_expect(n >= 1 && n <= most, "%u at a time, of %u", n, most);
    }
}

Test(ordered_admission, lets_all_through_that_do_not_count)
{
    cr_expect_leq(most_seen(0), N_WARPS);
}

/* The counters are of 32 bits, and go round in an hour of small items. */
Test(ordered_admission, goes_on_when_its_numbers_wrap)
{
    ordered_admission way = {};
    way.n_come = way.n_gone = UINT32_MAX - 5;
    run_warps(3, [&](unsigned) {
        for (unsigned turn = 0; turn < 10; turn++) {
            enter_in_order(&way, 1, NEVER);
            leave_in_order(&way, 1);
        }
    });
    cr_expect_eq(way.n_come, 24);
    cr_expect_eq(way.n_gone, 24);
}

/* One is on the way for good; who is stopped waits no longer, and is not in the way of others. */
Test(ordered_admission, keeps_nobody_who_is_stopped)
{
    ordered_admission way = {};
    uint64_t cancelled = 7;
    way.n_come = 1;
    run_warps(2, [&](unsigned) {
        enter_in_order(&way, 1, {&cancelled, 7});
        leave_in_order(&way, 1);
    });
    cr_expect_eq(way.n_come, 3);
    cr_expect_eq(way.n_gone, 2);
    way.n_gone++;
    run_warps(2, [&](unsigned) {
        enter_in_order(&way, 1, NEVER);
        leave_in_order(&way, 1);
    });
    cr_expect_eq(way.n_gone, 5);
}
