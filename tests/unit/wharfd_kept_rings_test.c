/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of sessions that are over.  They are the daemon's memory, and descriptors that it has in
 * flight, for as long as a client has them.  They were charged to nobody: a user who opened and
 * closed queues, and kept what came with each, took half a MiB of the machine each time.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/ring_ops.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

/* Far more sessions than there is room for the rings of. */
enum { N_ENTRIES = 1024, MOST_LEFT = 200 };
#define LITTLE_MEMORY "[quota]\nmax_memory = 4M\n"
#define FEW_DESCRIPTORS "[quota]\nmax_descriptors = 200\n"

static struct test_wharfd wharfd;
static struct test_client *left[MOST_LEFT];
static unsigned n_left;

static void leave_mapped(void)
{
    struct test_client *client = left[n_left];

    if (test_client_open_with(client, N_ENTRIES, 0, 0, 0) == 0)
        shutdown(client->fd, SHUT_WR);
}

static void leave_unread(void)
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    struct test_client *client = left[n_left];
    struct pollfd answer = {.fd = client->fd, .events = POLLIN};

    open.n_entries = N_ENTRIES;
    request.body_case = WHARF__REQUEST__BODY_OPEN_QUEUE;
    request.open_queue = &open;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
    cr_assert_eq(poll(&answer, 1, TEST_PATIENCE_MS), 1);
    shutdown(client->fd, SHUT_WR);
}

/* Whether there is room for one session more. */
static bool has_room(void)
{
    struct test_client *client = test_client_greeted(wharfd.socket);
    int r = test_client_open_with(client, N_ENTRIES, 0, 0, 0);

    cr_assert(r == 0 || r == -EDQUOT, "%d", r);
    test_client_free(client);
    return r == 0;
}

static void leave_and_expect_a_limit(void (*leave)(void), const char *limits)
{
    test_wharfd_start_by(&wharfd, "auto", limits);
    for (n_left = 0; n_left < MOST_LEFT && has_room(); n_left++) {
        left[n_left] = test_client_greeted(wharfd.socket);
        leave();
    }
    cr_assert_lt(n_left, MOST_LEFT);
    cr_assert_gt(n_left, 10);
    while (n_left > 0)
        test_client_free(left[--n_left]);
    cr_assert(TEST_WAIT(has_room()));
    test_wharfd_finish(&wharfd);
}

Test(wharfd_kept_rings, rings_that_a_client_keeps_stay_charged)
{
    leave_and_expect_a_limit(leave_mapped, LITTLE_MEMORY);
}

Test(wharfd_kept_rings, rings_in_a_reply_that_nobody_reads_stay_charged)
{
    leave_and_expect_a_limit(leave_unread, LITTLE_MEMORY);
}

/* With as many in flight as it may have files open, a daemon that is not root can send none to
 * anybody: one user kept all others out. */
Test(wharfd_kept_rings, descriptors_in_replies_that_nobody_reads_stay_charged)
{
    leave_and_expect_a_limit(leave_unread, FEW_DESCRIPTORS);
}

/* The client lets go of one ring, which is given back, and later of the other one. */
Test(wharfd_kept_rings, each_ring_is_given_back_when_it_is_let_go_of)
{
    const double c_nbytes = wharf_ring_segment_nbytes(N_ENTRIES);

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *observer = test_client_greeted(wharfd.socket);
    struct test_client *client = test_client_start(wharfd.socket, N_ENTRIES, 0);
    shutdown(client->fd, SHUT_WR);
    cr_assert(TEST_WAIT(test_client_metric(observer, "wharf_memory_bytes", "", NULL) ==
                        c_nbytes + wharf_ring_d_nbytes(N_ENTRIES, false)));
    munmap((void *)(uintptr_t)client->d, wharf_ring_d_nbytes(N_ENTRIES, false));
    close(client->d_fd);
    client->d = NULL;
    client->d_fd = -1;
    cr_assert(TEST_WAIT(test_client_metric(observer, "wharf_memory_bytes", "", NULL) == c_nbytes));
    test_client_free(client);
    cr_assert(TEST_WAIT(test_client_metric(observer, "wharf_memory_bytes", "", NULL) == 0));
    test_client_free(observer);
    test_wharfd_finish(&wharfd);
}
