/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt.cc: 32 lanes as coroutines, switched at each collective.
 *
 * A lane that comes to a collective leaves what it brings, and switches to the next lane of the
 * round.  The last one of a round finds all values there; then all go on, in the next round's
 * order.  A lane that comes to another collective than the round's first one is a fault, which
 * ends the program and names both.
 */
#include "kernels/simt/simt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <memory>

#include <boost/context/detail/fcontext.hpp>

#include "kernels/simt/sanitizer_fiber.h"

namespace wharf
{
namespace simt
{

__thread unsigned lane_now;

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace
{

constexpr unsigned LANES = 32;
constexpr size_t PAGE = 4096;
/* Device code keeps its large things in shared memory; asan's red zones triple the rest. */
constexpr size_t STACK_NBYTES = 256 * 1024;
/*
 * Lanes do the same at the same depth, so stacks that start alike would put the same variable of
 * all lanes in one set of the first-level cache, which holds 8 or 12 lines.  Starting each stack
 * five lines further down spreads them.
 */
constexpr size_t STACK_STAGGER = 5 * 64;

struct warp {
    fcontext_t lanes[LANES];
    fcontext_t home; /* the caller of run_warp */
    fiber_notes lane_notes, home_notes;
    char *stacks;
    unsigned n_arrived;
    uint8_t order[LANES];
    lane_order order_kind;
    uint64_t random;

    const char *what; /* the collective that this round's first lane came to */
    call_site at;
    uint64_t n_steps;
    uint32_t since; /* the time of its last syncwarp(), or of its start */
    /* Two, by turns: a lane that reads one may find others already writing the next. */
    meeting meetings[2];

    routine_fn *routine; /* or */
    block_routine_fn *block_routine;
    void *shared, *argument;

    /* Of a block: which warp this is, what it wants to know of all, and what that came to; where it
     * waits, if it does. */
    unsigned number;
    bool block_given, block_any;
    bool waits;
    bool polls, has_ended_phase; /* it asked a barrier, and what it learnt */

    char *shared_arena;
    size_t shared_arena_nbytes;
    bool running;

    warp();
    ~warp();
};

/* initial-exec: an access is one instruction, also in position-independent code. */
__attribute__((tls_model("initial-exec"))) thread_local warp *self;

/* simt.h has what time is.  The block's last syncblock(), or the start. */
thread_local uint32_t memory_time, block_since;

[[noreturn]] void fail(const char *message)
{
    fprintf(stderr, "simt: %s\n", message);
    abort();
}

[[noreturn]] void fail_apart(const warp &w, const char *what, call_site at)
{
    const char *file = w.at.file ? w.at.file : "the routine's end";
    const char *other = at.file ? at.file : "the routine's end";
    fprintf(stderr,
            "simt: the warp has come apart at step %llu: lane %u is in %s (%s:%d), "
            "lane %u in %s (%s:%d)\n",
            (unsigned long long)w.n_steps, w.order[0], w.what, file, w.at.line, lane_now, what,
            other, at.line);
    abort();
}

char *map_pages(size_t nbytes)
{
    void *p = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        fail("no memory for stacks or shared memory");
    return static_cast<char *>(p);
}

void guard_page(char *page)
{
    if (mprotect(page, PAGE, PROT_NONE))
        fail("mprotect failed");
}

/* What copy_later() has still to do. */
struct copy {
    void *to;
    const void *from;
    uint32_t nbytes;
    barrier *done;
};
constexpr unsigned MAX_COPIES = 64;
/* A copy ends in each round with odds of at least a half. */
constexpr unsigned MAX_IDLE_ROUNDS = 1000;
thread_local copy copies[MAX_COPIES];
thread_local unsigned n_copies;
/* Of all barriers. */
thread_local uint64_t n_phases_ended;

uint64_t next_random(uint64_t &state) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
}

void choose_order(warp &w)
{
    if (w.order_kind != lane_order::random)
        return;
    uint64_t r = 0;
    for (unsigned i = LANES - 1; i > 0; i--) {
        /* Four draws of 16 bits from a word; a product's high half picks from 0 to i. */
        r = i % 4 == 3 ? next_random(w.random) : r >> 16;
        unsigned j = (unsigned)((r & 0xffff) * (i + 1) >> 16);
        uint8_t t = w.order[i];
        w.order[i] = w.order[j];
        w.order[j] = t;
    }
}

void start_order(warp &w)
{
    for (unsigned i = 0; i < LANES; i++)
        w.order[i] = (uint8_t)(w.order_kind == lane_order::descending ? LANES - 1 - i : i);
    choose_order(w);
}

/*
 * What a lane that starts or goes on does first: note where the one before it stopped.  For asan
 * the lanes' stacks are one, between whose parts it is told of no switch: that would cost more than
 * the switch itself.
 */
WHARF_NO_ASAN void take_over(warp &w, transfer_t t)
{
    *static_cast<fcontext_t *>(t.data) = t.fctx;
    if (t.data == &w.home)
        fiber_arrive(w.lane_notes, &w.home_notes);
}

WHARF_NO_ASAN void switch_to_lane(warp &w, unsigned from, unsigned to)
{
    lane_now = to;
    take_over(w, jump_fcontext(w.lanes[to], &w.lanes[from]));
}

WHARF_NO_ASAN void go_home(warp &w)
{
    fiber_leave(w.lane_notes, w.home_notes);
    take_over(w, jump_fcontext(w.home, &w.lanes[lane_now]));
}

/* All lanes of a round have come.  Each waits here, the last goes home. */
WHARF_NO_ASAN void wait_for_home(warp &w, unsigned id)
{
    if (++w.n_arrived < LANES)
        switch_to_lane(w, id, w.order[w.n_arrived]);
    else
        go_home(w);
}

/*
 * A lane lives as long as its thread and runs one routine after the other: with asan's fake
 * stacks, ending 32 coroutines and starting others costs most of a millisecond.
 */
[[noreturn]] void lane_main(transfer_t t)
{
    warp &w = *self;
    unsigned id = lane_now;
    take_over(w, t);
    for (;;) {
        if (w.block_routine)
            w.block_routine(w.shared, w.number, w.argument);
        else
            w.routine(w.shared, w.argument);
        meet("return", call_site(nullptr, 0), 0);
        wait_for_home(w, id);
    }
}

warp::warp()
{
    memset(static_cast<void *>(this), 0, sizeof *this);
    constexpr size_t EACH = STACK_NBYTES + PAGE;
    stacks = map_pages(LANES * EACH);
    for (unsigned i = 0; i < LANES; i++) {
        char *bottom = stacks + i * EACH;
        guard_page(bottom);
        size_t stagger = i * STACK_STAGGER;
        lanes[i] = make_fcontext(bottom + EACH - stagger, STACK_NBYTES - stagger, lane_main);
    }
    lane_notes.bottom = stacks;
    lane_notes.nbytes = LANES * EACH;
}

/* Who gets the addresses next gets them without poison. */
void unmap_shared(warp &w)
{
    if (!w.shared_arena)
        return;
    unpoison(w.shared_arena, w.shared_arena_nbytes);
    munmap(w.shared_arena, w.shared_arena_nbytes);
}

warp::~warp()
{
    munmap(stacks, LANES * (STACK_NBYTES + PAGE));
    unmap_shared(*this);
    self = nullptr;
}

warp &this_threads_warp()
{
    static thread_local warp w;
    self = &w;
    return w;
}

void *lay_out_shared(warp &w, size_t nbytes, uint64_t seed)
{
    constexpr size_t LEAD = 256; /* poisoned, before */
    size_t need = (LEAD + nbytes + 128 + PAGE - 1) / PAGE * PAGE + PAGE;
    if (need > w.shared_arena_nbytes) {
        unmap_shared(w);
        w.shared_arena = map_pages(need);
        w.shared_arena_nbytes = need;
        guard_page(w.shared_arena + need - PAGE);
    }
    char *end = w.shared_arena + w.shared_arena_nbytes - PAGE;
    char *shared = end - (nbytes + 127) / 128 * 128;
    unpoison(w.shared_arena, (size_t)(end - w.shared_arena));
    /* Odd steps through all 64-bit values: no two words alike, and another row on each run. */
    uint64_t value = seed * 0x9e3779b97f4a7c15u + 0xd1b54a32d192ed03u;
    for (char *p = shared; p < end; p += 8, value += 0x9e3779b97f4a7c15u)
        memcpy(p, &value, 8);
    poison(w.shared_arena, (size_t)(shared - w.shared_arena));
    poison(shared + nbytes, (size_t)(end - shared) - nbytes);
    return shared;
}

} // namespace

WHARF_NO_ASAN meeting &meet(const char *what, call_site at, uint64_t given)
{
    warp &w = *self;
    unsigned id = lane_now;
    meeting &m = w.meetings[w.n_steps & 1];
    m.given[id] = given;
    if (w.n_arrived == 0) {
        w.what = what;
        w.at = at;
        m.worked_out = false;
    } else if (what != w.what || at.line != w.at.line || at.file != w.at.file) {
        if (strcmp(what, w.what) || at.line != w.at.line || !at.file != !w.at.file ||
            (at.file && strcmp(at.file, w.at.file)))
            fail_apart(w, what, at);
    }
    if (++w.n_arrived == LANES) {
        w.n_arrived = 0;
        w.n_steps++;
        if (w.what == SYNCWARP)
            w.since = ++memory_time;
        choose_order(w);
    }
    unsigned next = w.order[w.n_arrived];
    if (next != id)
        switch_to_lane(w, id, next);
    return m;
}

void arrive(barrier &b)
{
    if (b.n == 0)
        fail("somebody arrives at a barrier that is none");
    if (--b.left != 0)
        return;
    b.left = b.n;
    b.parity ^= 1;
    n_phases_ended++;
}

namespace
{

/* Ends none, some or all of the copies. */
void end_copies(uint64_t &random)
{
    for (unsigned i = n_copies; i-- > 0;) {
        if (next_random(random) >> 63)
            continue;
        copy c = copies[i];
        copies[i] = copies[--n_copies];
        memcpy(c.to, c.from, c.nbytes);
        arrive(*c.done);
    }
}

} // namespace

WHARF_NO_ASAN bool try_barrier(call_site at, barrier &b, uint32_t parity)
{
    warp &w = *self;
    unsigned id = lane_now;
    meet("barrier_try", at, parity);
    if (id == w.order[0]) {
        end_copies(w.random);
        w.has_ended_phase = b.parity != parity;
        if (w.has_ended_phase)
            block_since = ++memory_time;
    }
    if (w.has_ended_phase)
        return true;
    w.polls = true;
    wait_for_home(w, id);
    return false;
}

WHARF_NO_ASAN bool try_own_barrier(call_site at, barrier *b, uint32_t parity)
{
    warp &w = *self;
    unsigned id = lane_now;
    bool has_ended = b && b->parity != parity;
    const meeting &m = meet("barrier_try_own", at, has_ended);
    if (id == w.order[0]) {
        w.has_ended_phase = false;
        for (unsigned i = 0; i < LANES; i++)
            w.has_ended_phase |= m.given[i];
        if (w.has_ended_phase)
            block_since = ++memory_time;
    }
    if (w.has_ended_phase)
        return has_ended;
    w.polls = true;
    wait_for_home(w, id);
    return false;
}

/* Until it ends there is nothing to be read. */
void copy_later(call_site at, void *to, const void *from, uint32_t nbytes, barrier &b)
{
    meet("copy_ahead", at, nbytes);
    if (lane_now != 0)
        return;
    if (n_copies == MAX_COPIES)
        fail("too many copies are under way");
    memset(to, 0xc7, nbytes);
    copies[n_copies++] = {to, from, nbytes, &b};
}

owner look_at_access(const void *p, moment &ret_moment)
{
    warp *w = self;
    if (!w || !w->running || p == &lane_now)
        return owner::nobody;
    ret_moment = {w->number, lane_now, memory_time, w->since > block_since ? w->since : block_since,
                  block_since};
    size_t in_stacks = (size_t)(static_cast<const char *>(p) - w->stacks);
    if (in_stacks < LANES * (STACK_NBYTES + PAGE))
        return in_stacks / (STACK_NBYTES + PAGE) == lane_now ? owner::layer : owner::other_lane;
    size_t in_warp = (size_t)(static_cast<const char *>(p) - reinterpret_cast<char *>(w));
    return in_warp < sizeof *w ? owner::layer : owner::shared;
}

uint64_t steps_so_far()
{
    return self->n_steps;
}

uint64_t monotonic_ns()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_thread(unsigned ns)
{
    struct timespec span = {0, (long)ns};
    nanosleep(&span, nullptr);
}

void misaligned(const void *p, size_t nbytes)
{
    fprintf(stderr, "simt: lane %u accesses %zu bytes at %p, which is not aligned\n", lane_now,
            nbytes, p);
    abort();
}

void not_uniform(call_site at, uint64_t first, uint64_t own)
{
    fprintf(stderr,
            "simt: lane %u has %llu and lane 0 has %llu for what is to be uniform (%s:%d)\n",
            lane_now, (unsigned long long)own, (unsigned long long)first, at.file, at.line);
    abort();
}

namespace
{

/* Ready to run from the start. */
void begin(warp &w, const options &opt, void *shared, void *argument)
{
    w.order_kind = opt.order;
    w.random = (opt.seed ^ 0x5851f42d4c957f2du) | 1;
    w.shared = shared;
    w.argument = argument;
    w.n_steps = 0;
    block_since = ++memory_time;
    start_order(w);
}

/* Runs the warp until all its lanes are at a syncblock() or at the end. */
WHARF_NO_ASAN void go_on(warp &w)
{
    self = &w;
    w.waits = w.polls = false;
    w.n_arrived = 0;
    lane_now = w.order[0];
    fiber_leave(w.home_notes, w.lane_notes);
    transfer_t t = jump_fcontext(w.lanes[lane_now], &w.home);
    *static_cast<fcontext_t *>(t.data) = t.fctx;
    fiber_arrive(w.home_notes, nullptr);
}

uint64_t next_run()
{
    static thread_local uint64_t n_runs;
    return n_runs++;
}

/* The thread's warps for blocks, made when they are first wanted. */
warp &block_warp(unsigned number)
{
    static thread_local std::unique_ptr<warp> warps[MAX_BLOCK_WARPS];
    if (!warps[number])
        warps[number] = std::make_unique<warp>();
    return *warps[number];
}

/* The warps that have met go on with what their votes came to; false: they have all ended. */
bool pass_block(unsigned n_warps)
{
    const warp &first = block_warp(0);
    bool any = false;
    for (unsigned i = 0; i < n_warps; i++) {
        const warp &w = block_warp(i);
        if (w.waits != first.waits ||
            (w.waits && (w.at.line != first.at.line || strcmp(w.at.file, first.at.file) != 0))) {
            const warp *named = w.waits ? &w : &first;
            fprintf(stderr, "simt: the block has come apart: of warps 0 and %u %s waits at %s:%d\n",
                    i, w.waits && first.waits ? "one" : "one alone", named->at.file,
                    named->at.line);
            abort();
        }
        any |= w.block_given;
    }
    for (unsigned i = 0; i < n_warps; i++)
        block_warp(i).block_any = any;
    block_since = ++memory_time;
    return first.waits;
}

} // namespace

uint64_t run_warp(const options &opt, routine_fn *routine, void *argument, size_t shared_nbytes)
{
    warp &w = this_threads_warp();
    if (w.running)
        fail("run_warp was called from inside a warp");
    w.running = true;
    w.routine = routine;
    begin(w, opt, lay_out_shared(w, shared_nbytes, opt.seed + next_run()), argument);
    go_on(w);
    w.running = false;
    return w.n_steps;
}

WHARF_NO_ASAN bool meet_block(call_site at, bool p)
{
    warp &w = *self;
    unsigned id = lane_now;
    const meeting &m = meet("syncblock", at, p);
    if (id == w.order[0]) {
        w.block_given = false;
        for (uint64_t given : m.given)
            w.block_given |= given != 0;
    }
    w.at = at;
    w.waits = true;
    wait_for_home(w, id);
    /* The lanes before in this round have gone on to their next meeting. */
    return w.block_any;
}

uint64_t run_block(const options &opt, unsigned n_warps, block_routine_fn *routine, void *argument,
                   size_t shared_nbytes)
{
    if (n_warps == 0 || n_warps > MAX_BLOCK_WARPS)
        fail("run_block was called for none or too many warps");
    if (block_warp(0).running)
        fail("run_block was called from inside a block");
    void *shared = lay_out_shared(block_warp(0), shared_nbytes, opt.seed + next_run());
    for (unsigned i = 0; i < n_warps; i++) {
        warp &w = block_warp(i);
        w.running = true;
        w.block_routine = routine;
        w.number = i;
        begin(w, opt, shared, argument);
    }
    uint64_t random = opt.seed;
    unsigned n_idle = 0; /* rounds in which all warps asked barriers and none went on */
    bool all = true;
    n_copies = 0;
    for (;;) {
        /* Any rotation, forwards or backwards. */
        uint64_t r = next_random(random |= 1);
        unsigned from = opt.order == lane_order::random ? (unsigned)(r >> 32) % n_warps : 0;
        bool back = opt.order == lane_order::random ? r >> 63 : opt.order == lane_order::descending;
        unsigned n_polling = 0, n_others = 0;
        uint64_t n_ended_before = n_phases_ended;
        for (unsigned k = 0; k < n_warps; k++) {
            unsigned i = (from + k) % n_warps;
            warp &w = block_warp(back ? n_warps - 1 - i : i);
            if (!all && !w.polls)
                continue;
            go_on(w);
            n_polling += w.polls;
            n_others += !w.polls;
        }
        n_idle = n_others || n_phases_ended != n_ended_before ? 0 : n_idle + 1;
        if (n_idle == MAX_IDLE_ROUNDS)
            fail("all warps of a block wait at barriers");
        all = n_polling == 0;
        if (all && !pass_block(n_warps))
            break;
    }
    if (n_copies)
        fail("a block has ended, and copies into its memory have not");
    for (unsigned i = 0; i < n_warps; i++)
        block_warp(i).running = false;
    return block_warp(0).n_steps;
}

} // namespace simt
} // namespace wharf
