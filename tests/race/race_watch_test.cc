/* SPDX-License-Identifier: Apache-2.0 */
/* race_watch_test: what kernels/simt/race calls a race, and what not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "kernels/warp.cuh"

using namespace wharf;

namespace
{

struct words {
    uint32_t w[64];
};

/* What a process says on standard error that runs this; nothing if it ends well. */
template <typename F>
std::string said_by(const F &f)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        dup2(fileno(file), STDERR_FILENO);
        f();
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    char text[4096] = "";
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (WIFSIGNALED(status))
        cr_assert_eq(WTERMSIG(status), SIGABRT, "signal %d: %s", WTERMSIG(status), text);
    else
        cr_assert_eq(WEXITSTATUS(status) + n, 0, "exit status %d: %s", WEXITSTATUS(status), text);
    return text;
}

template <typename F>
std::string said_by_warp(const F &f)
{
    return said_by([&] { simt::run_warp<words>({simt::lane_order::descending, 1}, f); });
}

template <typename F>
std::string said_by_block(const F &f)
{
    return said_by([&] { simt::run_block<words>({simt::lane_order::ascending, 1}, 2, f); });
}

bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

#define expect_race(text, did, before)                                                             \
    do {                                                                                           \
        std::string text_ = (text);                                                                \
        cr_assert(has(text_, "a race") && has(text_, did " it\n") && has(text_, before " it\n") && \
                      has(text_, "race_watch_test.cc:"),                                           \
                  "said: %s", text_.c_str());                                                      \
    } while (0)

#define expect_none(text)                                                                          \
    do {                                                                                           \
        std::string text_ = (text);                                                                \
        cr_assert(text_.empty(), "said: %s", text_.c_str());                                       \
    } while (0)

Test(race_watch, finds_a_read_of_what_another_lane_wrote)
{
    expect_race(said_by_warp([](words &s) {
                    if (lane_id() == 0)
                        store(&s.w[3], 1u);
                    uint32_t sum = reduce_add(lane_id());
                    store(&s.w[32 + lane_id()], load(&s.w[3]) + sum);
                }),
                "reads", "wrote");
}

Test(race_watch, finds_a_write_over_what_other_lanes_read)
{
    auto overwrite = [](words &s, bool ordered) {
        uint32_t v = load(&s.w[0]);
        v = shfl(v, 5);
        if (ordered)
            syncwarp();
        if (lane_id() == 7)
            store(&s.w[0], v + 1);
    };
    expect_race(said_by_warp([&](words &s) { overwrite(s, false); }), "writes", "read");
    expect_none(said_by_warp([&](words &s) { overwrite(s, true); }));
}

Test(race_watch, finds_two_writes)
{
    expect_race(said_by_warp([](words &s) { store(&s.w[lane_id() / 2], lane_id()); }), "writes",
                "wrote");
}

/* A read by another lane is not forgotten for a later one by the writer. */
Test(race_watch, remembers_every_lane_that_read)
{
    expect_race(said_by_warp([](words &s) {
                    uint32_t v = lane_id() == 4 ? load(&s.w[0]) : 0;
                    v = reduce_add(v);
                    if (lane_id() == 5)
                        store(&s.w[0], load(&s.w[0]) + v);
                }),
                "writes", "read");
}

Test(race_watch, a_syncwarp_orders_all_lanes)
{
    expect_none(said_by_warp([](words &s) {
        for (unsigned turn = 0; turn < 3; turn++) {
            store(&s.w[lane_id()], turn + lane_id());
            syncwarp();
            uint32_t v = load(&s.w[31 - lane_id()]);
            syncwarp();
            store(&s.w[lane_id()], v);
        }
    }));
}

Test(race_watch, bytes_of_one_word_are_apart)
{
    expect_none(said_by_warp([](words &s) {
        uint8_t *bytes = reinterpret_cast<uint8_t *>(s.w);
        store(bytes + lane_id(), (uint8_t)lane_id());
    }));
}

Test(race_watch, bytes_that_do_not_count_may_be_written)
{
    expect_none(said_by_warp([](words &s) {
        uint8_t *bytes = reinterpret_cast<uint8_t *>(s.w);
        uint32_t v = load_part(&s.w[0], 0, 2);
        if (lane_id() == 9)
            store(bytes + 2, (uint8_t)1);
        store(&s.w[1 + lane_id()], v & 0xffff);
    }));
    expect_race(said_by_warp([](words &s) {
                    uint8_t *bytes = reinterpret_cast<uint8_t *>(s.w);
                    uint32_t v = load_part(&s.w[0], 0, 3);
                    if (lane_id() == 9)
                        store(bytes + 2, (uint8_t)v);
                }),
                "writes", "read");
}

Test(race_watch, atomic_additions_race_with_nothing)
{
    expect_none(said_by_warp([](words &s) { atomic_add(&s.w[0], lane_id()); }));
}

Test(race_watch, lanes_stacks_are_their_own)
{
    expect_none(said_by_warp([](words &s) {
        uint32_t own[8];
        for (unsigned i = 0; i < 8; i++)
            store(&own[i], i * lane_id());
        store(&s.w[lane_id()], load(&own[shfl(lane_id(), 3) & 7]));
    }));
    std::string said = said_by_warp([](words &s) {
        uint32_t own = lane_id();
        uint32_t *theirs = reinterpret_cast<uint32_t *>(
            shfl((uint64_t) reinterpret_cast<uintptr_t>(&own), lane_id() + 1));
        store(&s.w[lane_id()], load(theirs));
    });
    cr_assert(has(said, "on the stack of another lane"), "said: %s", said.c_str());
}

Test(race_watch, warps_of_a_block_are_ordered_by_syncblock_alone)
{
    auto hand_over = [](words &s, unsigned warp, bool ordered) {
        if (warp == 0)
            store(&s.w[lane_id()], lane_id());
        syncwarp();
        if (ordered)
            syncblock();
        if (warp == 1)
            store(&s.w[32 + lane_id()], load(&s.w[lane_id()]));
    };
    expect_race(said_by_block([&](words &s, unsigned warp) { hand_over(s, warp, false); }), "reads",
                "wrote");
    expect_none(said_by_block([&](words &s, unsigned warp) { hand_over(s, warp, true); }));
}

/* Also where the writer's own warp has read it since. */
Test(race_watch, finds_a_write_over_what_another_warp_read)
{
    expect_race(said_by_block([](words &s, unsigned warp) {
                    uint32_t v = load(&s.w[0]);
                    syncwarp();
                    if (warp == 1 && lane_id() == 0)
                        store(&s.w[0], v + 1);
                }),
                "writes", "read");
}

Test(race_watch, runs_follow_each_other)
{
    expect_none(said_by([] {
        static uint32_t word;
        for (unsigned i = 0; i < 3; i++)
            simt::run_warp<words>({simt::lane_order::random, i}, [&](words &) {
                if (lane_id() == i)
                    store(&word, load(&word) + 1);
            });
    }));
}
