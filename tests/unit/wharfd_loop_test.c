/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's loop, each test by io_uring and by epoll; and the heap behind its timers. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

static struct wharf_loop *loop;

/* Runs a test by both, with a new loop for each. */
static void both_ways(void (*test)(void))
{
    static const enum wharf_loop_kind kinds[] = {WHARF_LOOP_URING, WHARF_LOOP_EPOLL};

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(wharf_loop_new(kinds[i], &loop), 0);
        cr_assert_eq(wharf_loop_kind(loop), kinds[i]);
        test();
        wharf_loop_free(loop);
    }
}

/* ---- heap ---------------------------------------------------------------------------------- */

Test(wharfd_loop, heap_gives_the_least_whatever_is_removed)
{
    enum { N = 200 };
    static struct wharf_heap_node nodes[N];
    struct wharf_heap heap = {NULL};
    struct test_random random = {1};

    for (unsigned round = 0; round < 20000; round++) {
        struct wharf_heap_node *node = &nodes[test_random_below(&random, N)];
        if (node->is_linked)
            wharf_heap_remove(&heap, node);
        else
            wharf_heap_insert(&heap, node, test_random_below(&random, 50));
        uint64_t least = UINT64_MAX;
        for (unsigned i = 0; i < N; i++)
            if (nodes[i].is_linked && nodes[i].key < least)
                least = nodes[i].key;
        cr_assert_eq(heap.root ? heap.root->key : UINT64_MAX, least);
    }
    for (uint64_t last = 0; heap.root; wharf_heap_remove(&heap, heap.root)) {
        cr_assert_geq(heap.root->key, last);
        last = heap.root->key;
    }
}

/* Whatever the order of the keys is.  Of a pairing heap, which this once was, a client could make
 * one long list: the first removal of 65536 took 360 us, with everybody waiting. */
Test(wharfd_loop, no_single_step_of_a_heap_is_long)
{
    enum { N = 100000 };
    struct wharf_heap_node *nodes = calloc(N, sizeof(*nodes));
    struct wharf_heap heap = {NULL};
    struct test_random random = {2};
    uint32_t most = 0;

    for (unsigned order = 0; order < 4; order++) {
        for (uint64_t i = 0; i < N; i++) {
            uint64_t keys[] = {i, N - i, 7, test_random_next(&random)};
            wharf_heap_insert(&heap, &nodes[i], keys[order]);
        }
        for (unsigned i = 0; i < N; i += 3)
            wharf_heap_remove(&heap, &nodes[(i * 7) % N]);
        while (heap.root) {
            uint32_t n = 0;
            for (struct wharf_heap_node *at = heap.root; at; at = at->right)
                n++;
            cr_assert_eq(n, heap.root->rank);
            most = n > most ? n : most;
            wharf_heap_remove(&heap, heap.root);
        }
    }
    /* The logarithm of N. */
    cr_assert_leq(most, 17);
    free(nodes);
}

/* ---- sources ------------------------------------------------------------------------------- */

struct end {
    struct wharf_source source;
    unsigned n_calls;
    uint32_t ready;
};

static void note(struct wharf_source *source, uint32_t ready)
{
    struct end *end = WHARF_LIST_ENTRY(source, struct end, source);

    end->n_calls++;
    end->ready = ready;
}

static void make_pair(int pair[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

/* Turns that do not wait. */
static void turns(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        wharf_loop_wake(loop);
        cr_assert_eq(wharf_loop_turn(loop), 0);
    }
}

static void check_level(void)
{
    struct end end = {.n_calls = 0};
    int pair[2];
    char byte;

    make_pair(pair);
    cr_assert_eq(wharf_loop_add(loop, &end.source, pair[0], POLLIN, note), 0);
    turns(3);
    cr_assert_eq(end.n_calls, 0);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    turns(5);
    cr_assert_geq(end.n_calls, 2, "unread data has to be told again");
    cr_assert_eq(end.ready, POLLIN);
    cr_assert_eq(read(pair[0], &byte, 1), 1);
    turns(2);
    end.n_calls = 0;
    turns(5);
    cr_assert_eq(end.n_calls, 0, "nothing is left to read");
    close(pair[1]);
    turns(3);
    cr_assert(end.ready & POLLHUP);
    wharf_loop_remove(loop, &end.source);
    close(pair[0]);
}

Test(wharfd_loop, readiness_is_by_level)
{
    both_ways(check_level);
}

static void check_want(void)
{
    struct end end = {.n_calls = 0};
    int pair[2];

    make_pair(pair);
    cr_assert_eq(wharf_loop_add(loop, &end.source, pair[0], 0, note), 0);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    turns(3);
    cr_assert_eq(end.n_calls, 0);
    cr_assert_eq(wharf_loop_want(loop, &end.source, POLLOUT), 0);
    turns(3);
    cr_assert_eq(end.ready, POLLOUT);
    cr_assert_eq(wharf_loop_want(loop, &end.source, POLLIN), 0);
    turns(3);
    cr_assert_eq(end.ready, POLLIN);
    cr_assert_eq(wharf_loop_want(loop, &end.source, 0), 0);
    turns(1);
    end.n_calls = 0;
    close(pair[1]);
    turns(3);
    cr_assert_eq(end.n_calls, 0, "a source that wants nothing is told nothing");
    wharf_loop_remove(loop, &end.source);
    wharf_loop_remove(loop, &end.source);
    close(pair[0]);
}

Test(wharfd_loop, what_is_wanted_can_change)
{
    both_ways(check_want);
}

/* In place of liburing's, for the library under test: it fails when told to. */
static bool submit_fails;

int io_uring_submit(struct io_uring *ring)
{
    return submit_fails ? -EBUSY : io_uring_submit_and_wait(ring, 0);
}

/* More sources than the ring has room for, while the kernel takes nothing: those that had none were
 * never heard of again. */
Test(wharfd_loop, requests_that_found_no_room_are_made_later)
{
    enum { N = 600 };
    struct end *ends = calloc(N, sizeof(*ends));
    int pair[2];

    cr_assert_eq(wharf_loop_new(WHARF_LOOP_URING, &loop), 0);
    make_pair(pair);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    submit_fails = true;
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(wharf_loop_add(loop, &ends[i].source, pair[0], POLLIN, note), 0);
    submit_fails = false;
    turns(10);
    for (unsigned i = 0; i < N; i++)
        cr_assert_geq(ends[i].n_calls, 1, "source %u", i);
    submit_fails = true;
    turns(1);
    submit_fails = false;
    for (unsigned i = 0; i < N; i++)
        ends[i].n_calls = 0;
    turns(10);
    for (unsigned i = 0; i < N; i++) {
        cr_assert_geq(ends[i].n_calls, 1, "source %u", i);
        wharf_loop_remove(loop, &ends[i].source);
    }
    wharf_loop_free(loop);
    close(pair[0]);
    close(pair[1]);
    free(ends);
}

/* A poll request that the kernel still holds would keep the file open: the peer would never learn
 * that the descriptor was closed. */
static void check_close(void)
{
    struct end end = {.n_calls = 0};
    int pair[2];
    char byte;

    make_pair(pair);
    cr_assert_eq(wharf_loop_add(loop, &end.source, pair[0], POLLIN, note), 0);
    turns(2);
    wharf_loop_remove(loop, &end.source);
    close(pair[0]);
    fcntl(pair[1], F_SETFL, O_NONBLOCK);
    cr_assert(TEST_WAIT(read(pair[1], &byte, 1) == 0), "the other end is still open");
    close(pair[1]);
}

Test(wharfd_loop, removed_and_closed_is_closed_for_the_peer)
{
    both_ways(check_close);
}

/* The slot and the descriptor's number are used again at once: no call may go astray. */
static void check_reuse(void)
{
    struct end first = {.n_calls = 0}, second = {.n_calls = 0};
    int pair[2], other[2];

    make_pair(pair);
    cr_assert_eq(wharf_loop_add(loop, &first.source, pair[0], POLLIN, note), 0);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    wharf_loop_remove(loop, &first.source);
    close(pair[0]);
    close(pair[1]);
    make_pair(other);
    cr_assert_eq(wharf_loop_add(loop, &second.source, other[0], POLLIN, note), 0);
    turns(4);
    cr_assert_eq(first.n_calls + second.n_calls, 0);
    cr_assert_eq(write(other[1], "x", 1), 1);
    turns(4);
    cr_assert_eq(first.n_calls, 0);
    cr_assert_geq(second.n_calls, 1);
    wharf_loop_remove(loop, &second.source);
    close(other[0]);
    close(other[1]);
}

Test(wharfd_loop, slots_and_numbers_can_be_used_again)
{
    both_ways(check_reuse);
}

static struct end victims[2];

static void remove_other(struct wharf_source *source, uint32_t ready)
{
    note(source, ready);
    wharf_loop_remove(loop, &victims[0].source);
    wharf_loop_remove(loop, &victims[1].source);
}

static void check_remove_in_call(void)
{
    int pair[2][2];

    memset(victims, 0, sizeof(victims));
    for (unsigned i = 0; i < 2; i++) {
        make_pair(pair[i]);
        cr_assert_eq(write(pair[i][1], "x", 1), 1);
        cr_assert_eq(wharf_loop_add(loop, &victims[i].source, pair[i][0], POLLIN, remove_other), 0);
    }
    turns(4);
    cr_assert_eq(victims[0].n_calls + victims[1].n_calls, 1);
    for (unsigned i = 0; i < 4; i++)
        close(pair[i / 2][i % 2]);
}

Test(wharfd_loop, call_can_remove_itself_and_others)
{
    both_ways(check_remove_in_call);
}

/* More than either ring of io_uring holds, all ready at once. */
static void check_many(void)
{
    enum { N = 4200 };
    static struct end ends[N];
    static int pair[N][2];
    unsigned n_told = 0;

    memset(ends, 0, sizeof(ends));
    for (unsigned i = 0; i < N; i++) {
        make_pair(pair[i]);
        cr_assert_eq(wharf_loop_add(loop, &ends[i].source, pair[i][0], POLLIN, note), 0);
        cr_assert_eq(write(pair[i][1], "x", 1), 1);
    }
    turns(200);
    for (unsigned i = 0; i < N; i++) {
        n_told += ends[i].n_calls > 0;
        wharf_loop_remove(loop, &ends[i].source);
        close(pair[i][0]);
        close(pair[i][1]);
    }
    cr_assert_eq(n_told, N);
}

Test(wharfd_loop, many_sources_at_once)
{
    struct rlimit files;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    cr_assert_geq(files.rlim_max, 9000, "the limit of open files is too low for this test");
    both_ways(check_many);
}

/* ---- timers and wakes ---------------------------------------------------------------------- */

struct alarm {
    struct wharf_timer timer;
    unsigned n_calls;
    uint64_t at;
};

static void ring(struct wharf_timer *timer)
{
    struct alarm *alarm = WHARF_LIST_ENTRY(timer, struct alarm, timer);

    alarm->n_calls++;
    cr_assert_geq(wharf_now_ns(), alarm->at, "too early");
}

static void set_alarm(struct alarm *alarm, uint64_t delay_ns)
{
    alarm->at = wharf_now_ns() + delay_ns;
    wharf_timer_set(loop, &alarm->timer, alarm->at, ring);
}

static void check_timers(void)
{
    struct alarm soon = {.n_calls = 0}, moved = {.n_calls = 0}, cleared = {.n_calls = 0};

    set_alarm(&soon, 3 * WHARF_NS_PER_MS);
    set_alarm(&moved, 1 * WHARF_NS_PER_MS);
    set_alarm(&cleared, 2 * WHARF_NS_PER_MS);
    set_alarm(&moved, 5 * WHARF_NS_PER_MS);
    wharf_timer_clear(loop, &cleared.timer);
    while (!moved.n_calls)
        cr_assert_eq(wharf_loop_turn(loop), 0);
    cr_assert_eq(soon.n_calls, 1);
    cr_assert_eq(moved.n_calls, 1);
    cr_assert_eq(cleared.n_calls, 0);
}

Test(wharfd_loop, timers_ring_once_and_not_early)
{
    both_ways(check_timers);
}

static unsigned n_woken, n_told_to_wake;

static void count_woken(void *context)
{
    cr_assert_eq(context, &n_woken);
    n_woken++;
}

static void *wake_often(void *data)
{
    (void)data;
    for (unsigned i = 0; i < 20000; i++) {
        __atomic_store_n(&n_told_to_wake, i + 1, __ATOMIC_SEQ_CST);
        wharf_loop_wake(loop);
    }
    return NULL;
}

/* After the last wake there is a call that sees what was stored before it. */
static void check_wakes(void)
{
    pthread_t thread;
    unsigned n_seen = 0;

    n_woken = n_told_to_wake = 0;
    wharf_loop_on_wake(loop, count_woken, &n_woken);
    cr_assert_eq(pthread_create(&thread, NULL, wake_often, NULL), 0);
    while (n_seen < 20000) {
        cr_assert_eq(wharf_loop_turn(loop), 0);
        n_seen = __atomic_load_n(&n_told_to_wake, __ATOMIC_SEQ_CST);
    }
    pthread_join(thread, NULL);
    cr_assert_geq(n_woken, 1);
}

Test(wharfd_loop, no_wake_of_another_thread_is_lost, .timeout = 600)
{
    both_ways(check_wakes);
}
