/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is in the loop thread: the queue by itself, with costs that the test makes up, and
 * the loop with it.
 */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"

/* ---- the queue ----------------------------------------------------------------------------- */

enum { N_PARTIES = 8, N_WORKS = 64 };

static struct wharf_fair_queue queue;
static struct wharf_fair_party *parties[N_PARTIES];
static struct wharf_list works[N_PARTIES][N_WORKS];

static void set_up(void)
{
    for (unsigned p = 0; p < N_PARTIES; p++) {
        parties[p] = wharf_fair_party_new();
        for (unsigned i = 0; i < N_WORKS; i++)
            wharf_list_init(&works[p][i]);
    }
}

static void tear_down(void)
{
    for (unsigned p = 0; p < N_PARTIES; p++)
        wharf_fair_party_unref(parties[p]);
}

static void add(unsigned p, unsigned i)
{
    wharf_fair_queue_add(&queue, parties[p], &works[p][i]);
}

static void add_all(unsigned p)
{
    for (unsigned i = 0; i < N_WORKS; i++)
        add(p, i);
}

/* Whose work is next; N_PARTIES: nobody's. */
static unsigned next(unsigned *ret_number)
{
    struct wharf_list *work = wharf_fair_queue_next(&queue);

    for (unsigned p = 0; p < N_PARTIES; p++)
        for (unsigned i = 0; i < N_WORKS; i++)
            if (work == &works[p][i]) {
                *ret_number = i;
                return p;
            }
    cr_assert_null(work);
    return N_PARTIES;
}

static unsigned do_next(uint64_t cost)
{
    unsigned i, p = next(&i);

    if (p < N_PARTIES)
        wharf_fair_queue_done(&queue, cost);
    return p;
}

Test(wharfd_fair_queue, work_of_one_party_is_done_in_order, .init = set_up, .fini = tear_down)
{
    unsigned number;

    add_all(0);
    for (unsigned i = 0; i < N_WORKS; i++) {
        cr_assert_eq(next(&number), 0);
        cr_assert_eq(number, i);
        wharf_fair_queue_done(&queue, 5);
    }
    cr_assert_eq(next(&number), N_PARTIES);
}

Test(wharfd_fair_queue, parties_get_equal_time_whatever_their_work_costs, .init = set_up,
     .fini = tear_down)
{
    uint64_t used[2] = {0};

    for (unsigned k = 0; k < 6000; k++) {
        unsigned number;
        for (unsigned i = 0; i < 4; i++) {
            add(0, i);
            add(1, i);
        }
        unsigned p = next(&number);
        uint64_t cost = p == 0 ? 1000 : 10;
        used[p] += cost;
        wharf_fair_queue_done(&queue, cost);
    }
    cr_assert_leq(used[0], used[1] + 1000);
    cr_assert_leq(used[1], used[0] + 1000);
}

Test(wharfd_fair_queue, who_asks_for_little_is_next, .init = set_up, .fini = tear_down)
{
    for (unsigned k = 0; k < 1000; k++) {
        add_all(0);
        for (unsigned i = 0; i < k % 7; i++)
            cr_assert_eq(do_next(100), 0);
        add(1, 0);
        /* What starts at the same time may be first. */
        if (do_next(100) != 1)
            cr_assert_eq(do_next(1), 1);
    }
}

Test(wharfd_fair_queue, who_asks_for_little_waits_for_one_of_each_other_at_most, .init = set_up,
     .fini = tear_down)
{
    for (unsigned k = 0; k < 1000; k++) {
        unsigned n_before = 0;
        for (unsigned p = 1; p < N_PARTIES; p++)
            add_all(p);
        for (unsigned i = 0; i < k % 11; i++)
            do_next(50 + 10 * i);
        add(0, 0);
        while (do_next(100) != 0)
            n_before++;
        cr_assert_lt(n_before, (unsigned)N_PARTIES);
    }
}

Test(wharfd_fair_queue, dear_work_is_paid_for_while_others_wait, .init = set_up, .fini = tear_down)
{
    add(0, 0);
    add(0, 1);
    add_all(1);
    cr_assert_eq(do_next(30), 0);
    for (unsigned i = 0; i < 30; i++)
        cr_assert_eq(do_next(1), 1);
    /* It may come and go meanwhile: its debt stays. */
    wharf_fair_queue_remove(&queue, parties[0], &works[0][1]);
    add(0, 1);
    if (do_next(1) != 0)
        cr_assert_eq(do_next(1), 0);
}

Test(wharfd_fair_queue, who_is_charged_beside_its_turns_waits, .init = set_up, .fini = tear_down)
{
    add(0, 0);
    add_all(1);
    wharf_fair_queue_charge(&queue, parties[0], 40);
    wharf_fair_queue_charge(&queue, NULL, 40);
    for (unsigned i = 0; i < 40; i++)
        cr_assert_eq(do_next(1), 1);
    if (do_next(1) != 0)
        cr_assert_eq(do_next(1), 0);
}

Test(wharfd_fair_queue, debts_end_when_nobody_waits, .init = set_up, .fini = tear_down)
{
    unsigned number;

    add(0, 0);
    cr_assert_eq(do_next(1000000), 0);
    cr_assert_eq(next(&number), N_PARTIES);
    add(0, 0);
    add_all(1);
    cr_assert_eq(do_next(1), 0);
}

Test(wharfd_fair_queue, work_can_be_removed_and_is_not_added_twice, .init = set_up,
     .fini = tear_down)
{
    add(0, 0);
    add(0, 0);
    add(1, 0);
    wharf_fair_queue_remove(&queue, parties[1], &works[1][0]);
    wharf_fair_queue_remove(&queue, parties[1], &works[1][0]);
    cr_assert_eq(do_next(1), 0);
    cr_assert_eq(do_next(1), N_PARTIES);
    cr_assert(wharf_fair_queue_is_empty(&queue));
}

Test(wharfd_fair_queue, party_can_end_with_its_own_work)
{
    struct wharf_fair_party *party = wharf_fair_party_new();
    struct wharf_list work;

    wharf_list_init(&work);
    wharf_fair_queue_add(&queue, party, &work);
    cr_assert_eq(wharf_fair_queue_next(&queue), &work);
    wharf_fair_party_unref(party);
    wharf_fair_queue_done(&queue, 7);
    cr_assert_null(wharf_fair_queue_next(&queue));
}

/* ---- the loop ------------------------------------------------------------------------------ */

enum { N_SOURCES = 40 };

static struct wharf_loop *loop;
static struct wharf_source stormy[N_SOURCES], calm;
static unsigned n_stormy, n_calm;

/* Takes longer than the loop goes on without looking who else is ready. */
static void work_long(struct wharf_source *source, uint32_t ready)
{
    struct timespec now, begun;

    (void)source;
    cr_assert(ready & POLLIN);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec < 200000);
    n_stormy++;
}

static void work_briefly(struct wharf_source *source, uint32_t ready)
{
    char byte;

    cr_assert(ready & POLLIN);
    cr_assert_eq(read(source->fd, &byte, 1), 1);
    n_calm++;
}

/* Sources that are always ready, of one party; and one of another that gets ready now and then. */
static void storm_and_calm(void)
{
    struct wharf_fair_party *one = wharf_fair_party_new(), *other = wharf_fair_party_new();
    int pair[N_SOURCES][2], calm_pair[2];

    for (unsigned i = 0; i < N_SOURCES; i++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
        cr_assert_eq(write(pair[i][1], "x", 1), 1);
        cr_assert_eq(wharf_loop_add_of(loop, &stormy[i], pair[i][0], POLLIN, work_long, one), 0);
    }
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, calm_pair), 0);
    cr_assert_eq(wharf_loop_add_of(loop, &calm, calm_pair[0], POLLIN, work_briefly, other), 0);
    for (unsigned k = 0; k < 20; k++) {
        n_calm = 0;
        cr_assert_eq(wharf_loop_turn(loop), 0);
        cr_assert_eq(write(calm_pair[1], "x", 1), 1);
        n_stormy = 0;
        while (n_calm == 0)
            cr_assert_eq(wharf_loop_turn(loop), 0);
        cr_assert_leq(n_stormy, 2);
    }
    /* All of the other ones have their turns too. */
    for (n_stormy = 0; n_stormy < 2 * N_SOURCES;)
        cr_assert_eq(wharf_loop_turn(loop), 0);
    for (unsigned i = 0; i < N_SOURCES; i++) {
        wharf_loop_remove(loop, &stormy[i]);
        close(pair[i][0]);
        close(pair[i][1]);
    }
    wharf_loop_remove(loop, &calm);
    close(calm_pair[0]);
    close(calm_pair[1]);
    wharf_fair_party_unref(one);
    wharf_fair_party_unref(other);
}

/* All that were ready were called before anybody else was looked for. */
Test(wharfd_fair_queue, storm_of_one_party_keeps_no_other_waiting)
{
    static const enum wharf_loop_kind kinds[] = {WHARF_LOOP_URING, WHARF_LOOP_EPOLL};

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(wharf_loop_new(kinds[i], &loop), 0);
        storm_and_calm();
        wharf_loop_free(loop);
    }
}

static void work_not(struct wharf_source *source, uint32_t ready)
{
    (void)source;
    (void)ready;
    n_calm++;
}

/* All are always ready: the party whose work is long has fewer turns, not as many. */
static void long_and_short(void)
{
    struct wharf_fair_party *one = wharf_fair_party_new(), *other = wharf_fair_party_new();
    int pair[N_SOURCES][2];

    for (unsigned i = 0; i < N_SOURCES; i++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
        cr_assert_eq(write(pair[i][1], "x", 1), 1);
        cr_assert_eq(wharf_loop_add_of(loop, &stormy[i], pair[i][0], POLLIN,
                                       i < N_SOURCES / 4 ? work_long : work_not,
                                       i < N_SOURCES / 4 ? one : other),
                     0);
    }
    for (n_calm = n_stormy = 0; n_stormy < 20;)
        cr_assert_eq(wharf_loop_turn(loop), 0);
    cr_assert_gt(n_calm, 4 * n_stormy);
    for (unsigned i = 0; i < N_SOURCES; i++) {
        wharf_loop_remove(loop, &stormy[i]);
        close(pair[i][0]);
        close(pair[i][1]);
    }
    wharf_fair_party_unref(one);
    wharf_fair_party_unref(other);
}

/* Without the loop's measuring all other tests hold, and turns are by number. */
Test(wharfd_fair_queue, turns_are_charged_by_the_processor_time_that_they_take)
{
    static const enum wharf_loop_kind kinds[] = {WHARF_LOOP_URING, WHARF_LOOP_EPOLL};

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(wharf_loop_new(kinds[i], &loop), 0);
        long_and_short();
        wharf_loop_free(loop);
    }
}

static unsigned n_changed;

static void change(struct wharf_source *source, uint32_t ready)
{
    (void)ready;
    n_changed++;
    /* Both wait for their turns: one is removed, one wants something else. */
    if (source == &stormy[0]) {
        wharf_loop_remove(loop, &stormy[1]);
        cr_assert_eq(wharf_loop_want(loop, &stormy[2], 0), 0);
    }
    wharf_loop_remove(loop, source);
}

static void change_what_waits(void)
{
    struct wharf_fair_party *party = wharf_fair_party_new();
    int pair[3][2];

    n_changed = 0;
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
        cr_assert_eq(wharf_loop_add_of(loop, &stormy[i], pair[i][0], POLLIN, change, party), 0);
        cr_assert_eq(write(pair[i][1], "x", 1), 1);
    }
    while (n_changed == 0)
        cr_assert_eq(wharf_loop_turn(loop), 0);
    cr_assert_eq(n_changed, 1);
    cr_assert_eq(wharf_loop_want(loop, &stormy[2], POLLIN), 0);
    while (n_changed == 1)
        cr_assert_eq(wharf_loop_turn(loop), 0);
    cr_assert_eq(n_changed, 2);
    for (unsigned i = 0; i < 3; i++) {
        close(pair[i][0]);
        close(pair[i][1]);
    }
    wharf_fair_party_unref(party);
}

Test(wharfd_fair_queue, what_waits_for_its_turn_can_change)
{
    static const enum wharf_loop_kind kinds[] = {WHARF_LOOP_URING, WHARF_LOOP_EPOLL};

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(wharf_loop_new(kinds[i], &loop), 0);
        change_what_waits();
        wharf_loop_free(loop);
    }
}
