/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of the rings in threads of their own, sleeping by futex and waking each other as a
 * session does, alone and with a third thread that writes anything into the client's segment.
 * Under the thread sanitizer too: it knows the release and acquire pairs, so a job's bytes that
 * are read without one are reported.
 */
#include <criterion/criterion.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/ring_ops.h"
#include "tests/lib/test_random.h"

enum { N_ENTRIES = 16, MOST_JOBS = 30000 };

/* Each sleep is as long as it takes the other side to get a processor, which is milliseconds where
 * others want it too.  So a test does no more rounds than pass in this time, and never fewer than
 * it needs. */
enum { MOST_S = 10, LEAST_SLEEPS = 10 };

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

struct session {
    void *c;
    void *d;
    /* Stands for the control socket: counts packets to the daemon. */
    uint32_t doorbell;
    /* The job's source and destination: plain memory, as an arena is. */
    uint64_t source[N_ENTRIES];
    uint64_t destination[N_ENTRIES];
    uint32_t stop; /* before the last doorbell, or for the scribbler */
    uint32_t n_daemon_sleeps;
    uint32_t n_client_sleeps;
    uint32_t n_ended;
};

static void session_init(struct session *session)
{
    size_t nbytes = wharf_ring_segment_nbytes(N_ENTRIES);

    memset(session, 0, sizeof(*session));
    session->c = aligned_alloc(4096, nbytes);
    session->d = aligned_alloc(4096, nbytes);
    cr_assert(session->c && session->d);
    memset(session->c, 0, nbytes);
    memset(session->d, 0, nbytes);
}

static void session_deinit(struct session *session)
{
    free(session->c);
    free(session->d);
}

/* A lost wake-up ends here: nothing in these tests takes minutes.  Returns whether it was woken. */
static int sleep_on(const uint32_t *word, uint32_t expected)
{
    struct timespec limit = {100, 0};
    long r = syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0);

    return r == 0 || errno == EAGAIN || errno == EINTR;
}

static void wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void ring_doorbell(struct session *session)
{
    __atomic_add_fetch(&session->doorbell, 1, __ATOMIC_RELEASE);
    wake(&session->doorbell);
}

/* ---- the daemon ---------------------------------------------------------------------------- */

static void finish(struct session *session, struct wharf_ring_daemon *ring,
                   const struct wharf_submission *submission)
{
    struct wharf_completion completion = {.user_data = submission->user_data};

    session->destination[submission->dst_offset] = session->source[submission->src_offset] + 1;
    wharf_ring_complete(ring, &completion);
}

static int daemon_sleep(struct session *session, struct wharf_ring_daemon *ring)
{
    uint32_t doorbell = __atomic_load_n(&session->doorbell, __ATOMIC_ACQUIRE);
    int r = wharf_ring_daemon_arm(ring);

    /* No doorbell comes after the one that says stop. */
    if (r == 0 && !__atomic_load_n(&session->stop, __ATOMIC_RELAXED)) {
        __atomic_add_fetch(&session->n_daemon_sleeps, 1, __ATOMIC_RELAXED);
        cr_assert(sleep_on(&session->doorbell, doorbell), "the daemon's wake-up was lost");
    }
    wharf_ring_daemon_disarm(ring);
    return r;
}

/* Until the client has all its completions and says so.  Publishes by threes at most, so that
 * wake-ups come for several completions at once too. */
static void *run_daemon(void *argument)
{
    struct session *session = argument;
    struct wharf_ring_daemon ring;
    struct wharf_submission submission;

    wharf_ring_daemon_init(&ring, session->c, session->d, N_ENTRIES);
    while (!__atomic_load_n(&session->stop, __ATOMIC_ACQUIRE)) {
        int r = 0;
        for (unsigned i = 0; i < 3 && (r = wharf_ring_take(&ring, &submission)) == 1; i++)
            finish(session, &ring, &submission);
        if (wharf_ring_publish_completions(&ring) & WHARF_WAIT_FUTEX)
            wake(&((struct wharf_ring_d *)session->d)->cq_tail);
        if (r == 0)
            r = daemon_sleep(session, &ring);
        cr_assert_geq(r, 0);
    }
    return NULL;
}

/* ---- the client ---------------------------------------------------------------------------- */

struct client {
    struct session *session;
    struct wharf_ring_client ring;
    uint64_t free_slots[N_ENTRIES]; /* numbers of source and destination words */
    unsigned n_free;
    uint64_t expected[N_ENTRIES];
};

static void client_submit(struct client *client, uint64_t value)
{
    uint64_t slot = client->free_slots[--client->n_free];
    struct wharf_submission submission = {
        .opcode = WHARF_OP_DECODE, .user_data = slot, .src_offset = slot, .dst_offset = slot};

    client->session->source[slot] = value;
    client->expected[slot] = value + 1;
    wharf_ring_submit(&client->ring, &submission);
}

static void client_reap(struct client *client, const struct wharf_completion *completion)
{
    uint64_t slot = completion->user_data;

    cr_assert_eq(client->session->destination[slot], client->expected[slot]);
    client->free_slots[client->n_free++] = slot;
}

static void client_sleep(struct client *client, uint32_t n_wanted)
{
    struct session *session = client->session;
    int n = wharf_ring_client_arm(&client->ring, WHARF_WAIT_FUTEX, n_wanted);

    cr_assert_geq(n, 0);
    if ((uint32_t)n < n_wanted) {
        session->n_client_sleeps++;
        cr_assert(sleep_on(&client->ring.d->cq_tail, client->ring.cq_tail),
                  "the client's wake-up was lost");
    }
    wharf_ring_client_disarm(&client->ring);
}

/* Whether there are to be more jobs; both sides have to have slept some times. */
static int wants_more(const struct session *session, uint64_t n_submitted, time_t since_s)
{
    uint32_t n_daemon_sleeps = __atomic_load_n(&session->n_daemon_sleeps, __ATOMIC_RELAXED);

    return n_submitted < MOST_JOBS &&
           (now_s() < since_s + MOST_S || n_daemon_sleeps <= LEAST_SLEEPS ||
            session->n_client_sleeps <= LEAST_SLEEPS);
}

static void run_client(struct session *session)
{
    struct client client = {.session = session};
    struct test_random random = {1};
    struct wharf_completion completion;
    uint64_t n_submitted = 0, n_reaped = 0;
    time_t since_s = now_s();

    wharf_ring_client_init(&client.ring, session->c, session->d, N_ENTRIES);
    while (client.n_free < N_ENTRIES) {
        client.free_slots[client.n_free] = client.n_free;
        client.n_free++;
    }
    for (int more = 1; more || n_reaped < n_submitted;) {
        uint64_t n = 1 + test_random_below(&random, N_ENTRIES);
        more = more && wants_more(session, n_submitted, since_s);
        for (; more && n && client.n_free && n_submitted < MOST_JOBS; n--)
            client_submit(&client, n_submitted++);
        if (wharf_ring_publish_submissions(&client.ring) & WHARF_WAIT_PACKET)
            ring_doorbell(session);
        if (n_submitted > n_reaped && test_random_one_in(&random, 2))
            client_sleep(&client, 1 + (uint32_t)test_random_below(&random, n_submitted - n_reaped));
        while (wharf_ring_reap(&client.ring, &completion) == 1) {
            client_reap(&client, &completion);
            n_reaped++;
        }
    }
    __atomic_store_n(&session->stop, 1, __ATOMIC_RELEASE);
    ring_doorbell(session);
}

Test(ring_thread, two_threads_sleep_and_wake_and_lose_nothing)
{
    struct session session;
    pthread_t daemon;

    session_init(&session);
    cr_assert_eq(pthread_create(&daemon, NULL, run_daemon, &session), 0);
    run_client(&session);
    pthread_join(daemon, NULL);
    cr_assert_gt(session.n_daemon_sleeps, LEAST_SLEEPS);
    cr_assert_gt(session.n_client_sleeps, LEAST_SLEEPS);
    session_deinit(&session);
}

/* ---- with a scribbler ---------------------------------------------------------------------- */

/* Small steps of the indices, so that some of them are believed, and anything for the rest.  Where
 * both sides have one processor they take turns, or the other one would see nothing but large
 * steps. */
static void *run_scribbler(void *argument)
{
    struct session *session = argument;
    struct test_random random = {3};
    wharf_ring_word *words = session->c;
    struct wharf_ring_c *c = session->c;

    while (!__atomic_load_n(&session->stop, __ATOMIC_RELAXED)) {
        uint64_t value = test_random_next(&random);
        switch (test_random_below(&random, 4)) {
        case 0:
            __atomic_add_fetch(&c->sq_tail, (uint32_t)(value % 4), __ATOMIC_RELAXED);
            break;
        case 1:
            __atomic_add_fetch(&c->cq_head, (uint32_t)(value % 4), __ATOMIC_RELAXED);
            break;
        case 2:
            __atomic_store_n(&c->cq_wait, value, __ATOMIC_RELAXED);
            break;
        case 3: {
            size_t n_words =
                wharf_ring_segment_nbytes(N_ENTRIES) / 8 - WHARF_RING_ENTRIES_OFFSET / 8;
            size_t at = WHARF_RING_ENTRIES_OFFSET / 8 + value % n_words;
            __atomic_store_n(&words[at], value, __ATOMIC_RELAXED);
        }
        }
        if (test_random_one_in(&random, 4))
            sched_yield();
    }
    return NULL;
}

/* One life of a daemon's side: until the client has broken the order of indices. */
static uint64_t serve_hostile(struct session *session)
{
    struct wharf_ring_daemon ring;
    struct wharf_submission submission;
    uint64_t n_taken = 0;
    int r = 0;

    wharf_ring_daemon_init(&ring, session->c, session->d, N_ENTRIES);
    while (r >= 0 && n_taken < 10000) {
        r = wharf_ring_take(&ring, &submission);
        if (r == 1) {
            struct wharf_completion completion = {.user_data = submission.user_data};
            n_taken++;
            wharf_ring_complete(&ring, &completion);
            wharf_ring_publish_completions(&ring);
        } else {
            sched_yield();
        }
        cr_assert_leq(wharf_index_span(ring.cq_head, ring.cq_tail), N_ENTRIES);
        cr_assert_leq(wharf_index_span(ring.sq_head, ring.sq_tail), N_ENTRIES);
    }
    session->n_ended += r == -EPROTO;
    return n_taken;
}

Test(ring_thread, scribbling_client_ends_its_session_and_nothing_else)
{
    enum { ENOUGH_LIVES = 3000, MOST_LIVES = 3000000, LEAST = 100 };
    struct session session;
    pthread_t scribbler;
    uint64_t n_taken = 0;

    session_init(&session);
    cr_assert_eq(pthread_create(&scribbler, NULL, run_scribbler, &session), 0);
    time_t since_s = now_s();
    for (unsigned life = 0; (life < ENOUGH_LIVES && now_s() < since_s + MOST_S) ||
                            (life < MOST_LIVES && (n_taken <= LEAST || session.n_ended <= LEAST));
         life++) {
        struct wharf_ring_c *c = session.c;
        __atomic_store_n(&c->cq_head, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&c->sq_tail, 0, __ATOMIC_RELAXED);
        n_taken += serve_hostile(&session);
    }
    __atomic_store_n(&session.stop, 1, __ATOMIC_RELAXED);
    pthread_join(scribbler, NULL);
    cr_assert_gt(session.n_ended, LEAST);
    cr_assert_gt(n_taken, LEAST);
    session_deinit(&session);
}
