/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings' arithmetic and steps, in one thread: ring_thread_test.c has two.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/ring_ops.h"
#include "tests/lib/test_random.h"

/* ---- index arithmetic, every value of 8 bits ----------------------------------------------- */

#define WHARF_INDEX uint8_t
#define WHARF_INDEX_NAME(verb) small_index_##verb
#include "proto/ring_index.h"

/*
 * The reference is counters that do not wrap: `old` is a byte, the others are up to 255 ahead of
 * it.  Every state of three 8-bit indices is one of these.
 */
Test(ring, index_may_advance_between_old_and_limit_only)
{
    for (unsigned old = 0; old < 256; old++) {
        for (unsigned limit = old; limit < old + 256; limit++) {
            for (unsigned now = old; now < old + 256; now++) {
                int may = small_index_may_advance((uint8_t)old, (uint8_t)now, (uint8_t)limit);
                if (may != (now <= limit))
                    cr_assert_fail("old %u now %u limit %u", old, now, limit);
            }
        }
    }
}

Test(ring, index_crossed_means_published_in_between)
{
    for (unsigned from = 0; from < 256; from++) {
        for (unsigned to = from; to < from + 256; to++) {
            cr_assert_eq(small_index_span((uint8_t)from, (uint8_t)to), to - from);
            for (unsigned at = from; at < from + 256; at++) {
                int crossed = small_index_crossed((uint8_t)from, (uint8_t)to, (uint8_t)at);
                if (crossed != (at < to))
                    cr_assert_fail("from %u to %u at %u", from, to, at);
            }
        }
    }
}

/* The 32-bit functions are the same text; this shows that no promotion spoils them. */
Test(ring, index_wraps_at_32_bits)
{
    cr_assert_eq(wharf_index_span(UINT32_MAX, 1), 2);
    cr_assert(wharf_index_may_advance(UINT32_MAX - 1, 3, 3));
    cr_assert_not(wharf_index_may_advance(UINT32_MAX - 1, 4, 3));
    cr_assert_not(wharf_index_may_advance(UINT32_MAX - 1, UINT32_MAX - 2, 3));
    cr_assert(wharf_index_crossed(UINT32_MAX, 1, 0));
    cr_assert_not(wharf_index_crossed(UINT32_MAX, 1, 1));
}

Test(ring, ranges_cannot_overflow)
{
    cr_assert(wharf_range_good(0, 0, 0));
    cr_assert(wharf_range_good(10, 0, 10));
    cr_assert(wharf_range_good(4, 6, 10));
    cr_assert_not(wharf_range_good(4, 7, 10));
    cr_assert_not(wharf_range_good(11, 0, 10));
    cr_assert_not(wharf_range_good(UINT64_MAX, 2, 10));
    cr_assert_not(wharf_range_good(2, UINT64_MAX, 10));
    cr_assert(wharf_range_good(1, UINT64_MAX - 1, UINT64_MAX));
}

Test(ring, entries_are_powers_of_two_in_range)
{
    unsigned n_good = 0;
    for (uint32_t n = 0; n <= 2 * WHARF_RING_MAX_ENTRIES; n++)
        n_good += (unsigned)wharf_ring_n_entries_good(n);
    cr_assert_eq(n_good, 15); /* 2, 4, ... 32768 */
    cr_assert_not(wharf_ring_n_entries_good(0x80000000u));
    cr_assert_eq(wharf_ring_segment_nbytes(2), 4096);
    cr_assert_eq(wharf_ring_segment_nbytes(48), 4096);
    cr_assert_eq(wharf_ring_segment_nbytes(64), 8192);
}

/* ---- both sides ---------------------------------------------------------------------------- */

struct pair {
    struct wharf_ring_client client;
    struct wharf_ring_daemon daemon;
    void *c;
    void *d;
};

/* Both sides at indices that begin at `first`, as if that many jobs had been done. */
static struct pair pair_new(uint32_t n_entries, uint32_t first)
{
    struct pair p;
    size_t nbytes = wharf_ring_segment_nbytes(n_entries);

    p.c = aligned_alloc(4096, nbytes);
    p.d = aligned_alloc(4096, nbytes);
    cr_assert(p.c && p.d);
    memset(p.c, 0, nbytes);
    memset(p.d, 0, nbytes);
    wharf_ring_client_init(&p.client, p.c, p.d, n_entries);
    wharf_ring_daemon_init(&p.daemon, p.c, p.d, n_entries);
    p.client.cq_head = p.client.cq_tail = p.client.sq_tail = p.client.sq_woken = first;
    p.daemon.cq_head = p.daemon.cq_tail = p.daemon.cq_woken = first;
    p.daemon.sq_head = p.daemon.sq_tail = first;
    p.client.c->sq_tail = p.client.c->cq_head = first;
    p.daemon.d->sq_head = p.daemon.d->cq_tail = first;
    return p;
}

static void pair_free(struct pair *p)
{
    free(p->c);
    free(p->d);
}

static void submit(struct pair *p, uint64_t user_data)
{
    struct wharf_submission submission = {.opcode = WHARF_OP_NOOP, .user_data = user_data};

    cr_assert_gt(wharf_ring_room(&p->client), 0);
    wharf_ring_submit(&p->client, &submission);
}

static void complete(struct pair *p, uint64_t user_data)
{
    struct wharf_completion completion = {.user_data = user_data};

    wharf_ring_complete(&p->daemon, &completion);
}

/* A plain count of what each side has done; the daemon holds a few back. */
struct tally {
    uint64_t n_submitted, n_taken, n_completed, n_reaped, n_published;
    uint8_t is_in_flight[1 << 16];
    uint64_t held[1 << 16];
    uint32_t n_held;
};

static void submit_one(struct pair *p, struct tally *t, uint32_t n_entries)
{
    cr_assert_eq(wharf_ring_room(&p->client), n_entries - (t->n_submitted - t->n_reaped));
    if (wharf_ring_room(&p->client) == 0 || t->n_submitted == 1 << 16)
        return;
    t->is_in_flight[t->n_submitted] = 1;
    submit(p, t->n_submitted++);
}

static void take_one(struct pair *p, struct tally *t)
{
    struct wharf_submission submission;
    int r = wharf_ring_take(&p->daemon, &submission);

    /* The daemon may know of fewer than there are, never of more. */
    cr_assert_eq(r, t->n_taken < t->n_published);
    if (r == 0)
        return;
    cr_assert_eq(submission.user_data, t->n_taken++);
    t->held[t->n_held++] = submission.user_data;
}

static void complete_any(struct pair *p, struct tally *t, struct test_random *random)
{
    if (t->n_held == 0)
        return;
    uint32_t i = (uint32_t)test_random_below(random, t->n_held);
    complete(p, t->held[i]);
    t->n_completed++;
    t->held[i] = t->held[--t->n_held];
}

static void reap_one(struct pair *p, struct tally *t)
{
    struct wharf_completion completion;
    int r = wharf_ring_reap(&p->client, &completion);

    cr_assert_geq(r, 0);
    if (r == 0)
        return;
    t->n_reaped++;
    cr_assert_leq(t->n_reaped, t->n_completed);
    cr_assert(t->is_in_flight[completion.user_data], "twice: %lu", completion.user_data);
    t->is_in_flight[completion.user_data] = 0;
}

/* Random steps of both sides, through many turns of the ring and the wrap of the indices.  Jobs
 * complete in any order. */
static void run_random_steps(uint32_t n_entries, uint32_t first, uint64_t seed)
{
    struct pair p = pair_new(n_entries, first);
    struct test_random random = {seed};
    struct tally *t = calloc(1, sizeof(*t));

    cr_assert_not_null(t);
    for (int step = 0; step < 20000; step++) {
        switch (test_random_below(&random, 6)) {
        case 0:
            submit_one(&p, t, n_entries);
            break;
        case 1:
            wharf_ring_publish_submissions(&p.client);
            t->n_published = t->n_submitted;
            break;
        case 2:
            take_one(&p, t);
            break;
        case 3:
            complete_any(&p, t, &random);
            break;
        case 4:
            wharf_ring_publish_completions(&p.daemon);
            break;
        case 5:
            reap_one(&p, t);
            break;
        }
    }
    cr_assert_gt(t->n_reaped, 500);
    free(t);
    pair_free(&p);
}

Test(ring, random_steps_lose_and_repeat_nothing)
{
    for (uint32_t n_entries = 2; n_entries <= 64; n_entries *= 2) {
        run_random_steps(n_entries, 0, n_entries);
        run_random_steps(n_entries, UINT32_MAX - 700, n_entries + 1);
    }
}

Test(ring, completion_has_a_place_when_everything_is_in_flight)
{
    struct pair p = pair_new(4, UINT32_MAX - 1);
    struct wharf_submission submission;
    struct wharf_completion completion;

    for (uint64_t i = 0; i < 4; i++)
        submit(&p, i);
    cr_assert_eq(wharf_ring_room(&p.client), 0);
    wharf_ring_publish_submissions(&p.client);
    for (uint64_t i = 0; i < 4; i++) {
        cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
        complete(&p, submission.user_data);
    }
    cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 0);
    wharf_ring_publish_completions(&p.daemon);
    /* Room comes back with each completion that is reaped, one by one. */
    for (uint64_t i = 0; i < 4; i++) {
        cr_assert_eq(wharf_ring_reap(&p.client, &completion), 1);
        cr_assert_eq(completion.user_data, i);
        cr_assert_eq(wharf_ring_room(&p.client), 1);
        submit(&p, 10 + i);
        wharf_ring_publish_submissions(&p.client);
        cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
        cr_assert_eq(submission.user_data, 10 + i);
    }
    pair_free(&p);
}

/* ---- wake-ups ------------------------------------------------------------------------------ */

Test(ring, sleeping_daemon_is_woken_once)
{
    struct pair p = pair_new(8, UINT32_MAX - 2);
    struct wharf_submission submission;

    submit(&p, 0);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), 0, "nobody sleeps");
    cr_assert_eq(wharf_ring_daemon_arm(&p.daemon), 1, "there is one to take");
    cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
    cr_assert_eq(wharf_ring_daemon_arm(&p.daemon), 0);
    submit(&p, 1);
    submit(&p, 2);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), WHARF_WAIT_PACKET);
    submit(&p, 3);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), 0, "woken already");
    for (int i = 0; i < 3; i++)
        cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
    cr_assert_eq(wharf_ring_daemon_arm(&p.daemon), 0);
    wharf_ring_daemon_disarm(&p.daemon);
    submit(&p, 4);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), 0, "disarmed");
    pair_free(&p);
}

Test(ring, client_is_woken_when_as_many_are_there_as_it_wants)
{
    struct pair p = pair_new(8, UINT32_MAX - 3);
    struct wharf_submission submission;
    struct wharf_completion completion;

    for (uint64_t i = 0; i < 6; i++)
        submit(&p, i);
    wharf_ring_publish_submissions(&p.client);
    while (wharf_ring_take(&p.daemon, &submission) == 1)
        ;
    cr_assert_eq(wharf_ring_client_arm(&p.client, WHARF_WAIT_FUTEX, 4), 0);
    complete(&p, 0);
    complete(&p, 1);
    cr_assert_eq(wharf_ring_publish_completions(&p.daemon), 0);
    complete(&p, 2);
    cr_assert_eq(wharf_ring_publish_completions(&p.daemon), 0);
    complete(&p, 3);
    cr_assert_eq(wharf_ring_publish_completions(&p.daemon), WHARF_WAIT_FUTEX);
    complete(&p, 4);
    cr_assert_eq(wharf_ring_publish_completions(&p.daemon), 0, "woken already");
    cr_assert_eq(wharf_ring_client_arm(&p.client, WHARF_WAIT_PACKET, 6), 5);
    for (uint64_t i = 0; i < 5; i++)
        cr_assert_eq(wharf_ring_reap(&p.client, &completion), 1);
    cr_assert_eq(wharf_ring_client_arm(&p.client, WHARF_WAIT_PACKET | WHARF_WAIT_FUTEX, 1), 0);
    complete(&p, 5);
    cr_assert_eq(wharf_ring_publish_completions(&p.daemon), WHARF_WAIT_PACKET | WHARF_WAIT_FUTEX);
    pair_free(&p);
}

Test(ring, unknown_bits_of_wait_words_are_ignored)
{
    struct pair p = pair_new(2, 0);

    p.daemon.d->sq_wait = ~(uint64_t)0 << 32 & ~WHARF_WAIT_PACKET;
    submit(&p, 0);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), 0, "the daemon has no futex");
    p.daemon.d->sq_wait = ~(uint64_t)0 << 32 | 1;
    submit(&p, 0);
    cr_assert_eq(wharf_ring_publish_submissions(&p.client), WHARF_WAIT_PACKET);
    pair_free(&p);
}

/* ---- a hostile peer ------------------------------------------------------------------------ */

/* All values near each index that matters, and those far off. */
static uint32_t odd_value(struct test_random *random, uint32_t near)
{
    static const uint32_t far[] = {0, 1, 0x7fffffffu, 0x80000000u, UINT32_MAX};

    if (test_random_one_in(random, 4))
        return far[test_random_below(random, 5)];
    return near + (uint32_t)test_random_below(random, 12) - 4;
}

Test(ring, daemon_takes_from_a_hostile_client_only_what_has_a_place)
{
    struct test_random random = {1};
    unsigned n_taken = 0, n_ended = 0;

    for (int round = 0; round < 20000; round++) {
        struct pair p = pair_new(8, (uint32_t)test_random_next(&random));
        uint32_t n_outstanding = 0, n_unreaped = 0;
        int r = 0;
        while (r >= 0 && test_random_below(&random, 30)) {
            struct wharf_submission submission;
            if (test_random_one_in(&random, 3))
                p.client.c->sq_tail = odd_value(&random, p.daemon.sq_tail);
            if (test_random_one_in(&random, 3))
                p.client.c->cq_head = odd_value(&random, p.daemon.cq_head);
            r = wharf_ring_take(&p.daemon, &submission);
            if (r == 1) {
                n_taken++;
                n_outstanding++;
            }
            /* What the daemon owes and what the client has not given back fit into the ring. */
            n_unreaped = wharf_index_span(p.daemon.cq_head, p.daemon.cq_tail);
            cr_assert_leq(n_outstanding + n_unreaped, 8);
            if (n_outstanding && test_random_one_in(&random, 2)) {
                complete(&p, 0);
                n_outstanding--;
                wharf_ring_publish_completions(&p.daemon);
            }
        }
        n_ended += r == -EPROTO;
        pair_free(&p);
    }
    cr_assert_gt(n_taken, 10000);
    cr_assert_gt(n_ended, 10000);
}

Test(ring, client_never_reaps_more_than_it_submitted)
{
    struct test_random random = {2};
    unsigned n_reaped = 0, n_ended = 0;

    for (int round = 0; round < 20000; round++) {
        struct pair p = pair_new(8, (uint32_t)test_random_next(&random));
        uint32_t n_outstanding = 0;
        int r = 0;
        while (r >= 0 && test_random_below(&random, 30)) {
            struct wharf_completion completion;
            if (wharf_ring_room(&p.client) && test_random_one_in(&random, 2)) {
                submit(&p, 0);
                wharf_ring_publish_submissions(&p.client);
                n_outstanding++;
            }
            if (test_random_one_in(&random, 3))
                p.daemon.d->cq_tail = odd_value(&random, p.client.cq_tail);
            r = wharf_ring_reap(&p.client, &completion);
            if (r == 1) {
                cr_assert_gt(n_outstanding, 0);
                n_outstanding--;
                n_reaped++;
            }
        }
        n_ended += r == -EPROTO;
        pair_free(&p);
    }
    cr_assert_gt(n_reaped, 2000);
    cr_assert_gt(n_ended, 10000);
}

Test(ring, published_submissions_are_not_taken_back)
{
    struct pair p = pair_new(8, 100);
    struct wharf_submission submission;

    p.client.c->sq_tail = 104;
    cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
    p.client.c->sq_tail = 102;
    while (wharf_ring_take(&p.daemon, &submission) == 1)
        ;
    cr_assert_eq(wharf_ring_take(&p.daemon, &submission), -EPROTO);
    pair_free(&p);
}

/* The daemon's own words are never read: a client that could write them would change nothing. */
Test(ring, own_words_are_not_read_back)
{
    struct pair p = pair_new(4, 0);
    struct wharf_submission submission;
    struct wharf_completion completion;

    submit(&p, 7);
    wharf_ring_publish_submissions(&p.client);
    memset(p.d, 0xa5, WHARF_RING_ENTRIES_OFFSET);
    cr_assert_eq(wharf_ring_take(&p.daemon, &submission), 1);
    complete(&p, submission.user_data);
    wharf_ring_publish_completions(&p.daemon);
    memset(p.c, 0xa5, WHARF_RING_ENTRIES_OFFSET);
    cr_assert_eq(wharf_ring_reap(&p.client, &completion), 1);
    cr_assert_eq(completion.user_data, 7);
    cr_assert_eq(wharf_ring_room(&p.client), 4);
    pair_free(&p);
}
