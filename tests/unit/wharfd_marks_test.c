/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon that dies leaves in D: which submission it was looking at, and which jobs it had
 * begun; nothing of jobs that it had only taken.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/place.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)
#define MARKS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MARKS)

enum { N_ENTRIES = 16, PLAIN = 4096, OUTPUTS = 65536 };

static struct test_core_client client;
static size_t packed_nbytes;

static void set_up(void)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);

    test_core_set_up();
    test_core_client_init(&client, 1, "uid:1", N_ENTRIES, MiB);
    packed_nbytes = test_core_put_chunk(&client, 0, plain, PLAIN);
    free(plain);
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_stop();
}

static void put_jobs(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s =
            test_core_decode_of(i, 0, packed_nbytes, OUTPUTS + i * PLAIN, PLAIN);
        wharf_ring_submit(&client.ring, &s);
    }
    wharf_ring_publish_submissions(&client.ring);
}

static void reap_good(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        cr_assert_eq(test_core_reap(&client).result, WHARF_OK);
}

static unsigned n_marked(uint32_t index)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_ENTRIES; i++)
        n += wharf_ring_load_mark(&client.marks[i]) == wharf_ring_mark_of(index);
    return n;
}

static unsigned n_marks(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_ENTRIES; i++)
        n += wharf_ring_load_mark(&client.marks[i]) != 0;
    return n;
}

/* The core lock is this thread's.  Takes what is in the ring, whether it is watched or not. */
static void take_all(void)
{
    if (!wharf_core_doorbell(&test_core, client.session, 1))
        wharf_core_poll_rings(&test_core);
}

/* With the core lock held by the test, so that nobody else begins or completes anything. */
Test(wharfd_marks, job_is_marked_from_when_it_is_begun_and_not_while_it_waits)
{
    struct wharf_core *core = &test_core;
    struct wharf_piece pieces[2];

    set_up();
    put_jobs(4);
    wharf_core_enter(core);
    cr_assert(wharf_core_doorbell(core, client.session, 1));
    cr_assert_eq(client.session->n_in_flight, 4);
    cr_expect_eq(wharf_ring_load_sq_head(&client.ring.d->sq_head), 4);
    cr_expect_eq(wharf_ring_load_mark(&client.ring.d->sq_looked), 0, "nothing is looked at");
    cr_expect_eq(n_marks(), 0, "taken, and no more");
    for (uint32_t i = 0; i < 2; i++) {
        wharf_core_take(core, wharf_core_first(core, UINT64_MAX), &pieces[i]);
        cr_expect_eq(pieces[i].job->submission.user_data, i);
        cr_expect_eq(n_marked(i), 1);
    }
    cr_expect_eq(n_marks(), 2);
    wharf_core_put_back(core, &pieces[1]);
    cr_expect_eq(n_marked(0), 1);
    cr_expect_eq(n_marks(), 1, "what waits again is not begun");
    wharf_core_put_back(core, &pieces[0]);
    cr_expect_eq(n_marks(), 0);
    wharf_core_leave(core);
    reap_good(4);
    /* Stale ones are those of completed jobs alone. */
    cr_expect_gt(n_marks(), 0);
    tear_down();
}

/* One that any worker takes, or one that has the session to itself. */
Test(wharfd_marks, every_job_that_was_run_was_marked)
{
    set_up();
    for (unsigned round = 0; round < 200; round++) {
        uint32_t index = client.ring.sq_tail;
        put_jobs(1);
        wharf_core_enter(&test_core);
        take_all();
        wharf_core_leave(&test_core);
        reap_good(1);
        cr_assert_eq(n_marked(index), 1);
    }
    for (unsigned round = 0; round < 200; round++) {
        uint32_t index = client.ring.sq_tail, n = 0;
        put_jobs(N_ENTRIES);
        wharf_core_enter(&test_core);
        take_all();
        wharf_core_leave(&test_core);
        reap_good(N_ENTRIES);
        for (unsigned i = 0; i < N_ENTRIES; i++)
            n += n_marked(index + i);
        /* Places are used again, by later ones. */
        cr_assert_gt(n, 0);
        cr_assert_eq(n_marked(index + N_ENTRIES), 0);
    }
    tear_down();
}

/* In a process of its own, of which the core lock is this thread's. */
static void die_of_a_look(void)
{
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    client.session->regions = (struct wharf_region *)8;
    take_all();
    _exit(0);
}

Test(wharfd_marks, submission_of_whose_check_the_daemon_dies_is_marked)
{
    struct wharf_segment *segments[2];
    int status;

    set_up();
    segments[0] = &client.session->c;
    segments[1] = &client.session->d;
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(madvise(segments[i]->address, segments[i]->nbytes, MADV_DOFORK), 0);
    for (uint32_t round = 0; round < 10; round++) {
        struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};
        uint32_t index = client.ring.sq_tail + 1;
        wharf_core_enter(&test_core);
        wharf_core_recall_all(&test_core, NULL);
        wharf_ring_submit(&client.ring, &noop);
        put_jobs(3);
        pid_t pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0)
            die_of_a_look();
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect(WIFSIGNALED(status) || WEXITSTATUS(status) != 0, "it has not died");
        /* The no-op was done, the other two were not looked at. */
        cr_expect_eq(wharf_ring_load_mark(&client.ring.d->sq_looked), wharf_ring_mark_of(index));
        cr_expect_eq(n_marked(index), 0);
        /* This process has taken nothing yet, and is no worse for it. */
        take_all();
        cr_expect_eq(wharf_ring_load_mark(&client.ring.d->sq_looked), 0);
        wharf_core_leave(&test_core);
        reap_good(4);
    }
    tear_down();
}

/* ---- who gets them ------------------------------------------------------------------------- */

static size_t size_of(int fd)
{
    struct stat file;

    cr_assert_eq(fstat(fd, &file), 0);
    return (size_t)file.st_size;
}

static size_t size_of_d(const char *path, uint64_t features, uint32_t n_entries)
{
    struct test_client *own = test_client_new();

    own->optional_features = features;
    cr_assert_eq(test_client_connect(own, path), 0);
    cr_assert_eq(test_client_hello(own), 0);
    cr_assert_eq(test_client_open_with(own, n_entries, 4096, 0, 0), 0);
    cr_expect_eq(size_of(own->c_fd), wharf_ring_segment_nbytes(n_entries));
    size_t nbytes = size_of(own->d_fd);
    test_client_free(own);
    return nbytes;
}

Test(wharfd_marks, clients_that_did_not_ask_have_rings_without_them)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    for (uint32_t n = 2; n <= 1024; n *= 2) {
        cr_expect_eq(size_of_d(daemon.socket, 0, n), wharf_ring_segment_nbytes(n));
        cr_expect_eq(size_of_d(daemon.socket, MARKS, n), wharf_ring_d_nbytes(n, 1));
    }
    test_wharfd_finish(&daemon);
}

/* Once, the last index had the mark 0, none: a job that killed daemons did not count. */
Test(wharfd_marks, indices_that_are_outstanding_together_have_marks_of_their_own)
{
    static const uint32_t middles[] = {0, UINT32_MAX, (uint32_t)1 << 31, ((uint32_t)1 << 31) - 1};
    enum { N = 32768 };

    for (unsigned i = 0; i < sizeof(middles) / sizeof(middles[0]); i++) {
        uint32_t first = middles[i] - N, others = wharf_ring_mark_of(middles[i]);
        for (uint32_t k = 0; k <= 2 * N; k++) {
            uint32_t mark = wharf_ring_mark_of(first + k);
            cr_assert_neq(mark, 0, "index %u", (unsigned)(first + k));
            cr_assert_eq(mark == others, first + k == middles[i], "index %u",
                         (unsigned)(first + k));
        }
    }
}
