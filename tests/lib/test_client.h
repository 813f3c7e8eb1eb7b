/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_client.h: a thin client of the daemon, for tests that do what libwharf never would.
 *
 * It follows the protocol (proto/PROTOCOL.md) unless a test changes its state.  Functions return 0
 * or a count, or a negative number: -errno of a call, minus the code of the daemon's Error, or
 * -EPIPE if the daemon closed the connection.
 */
#ifndef WHARF_TESTS_TEST_CLIENT_H
#define WHARF_TESTS_TEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/control.h"
#include "proto/ring_ops.h"

struct test_client {
    int fd; /* the control socket */
    uint32_t last_id;
    uint64_t optional_features; /* named in Hello; set them before it.  DONE_WORDS is agreed on */
    uint64_t generation;
    Wharf__Limits limits;
    uint32_t engines; /* bit i: enum wharf_engine i is available */
    char error[256];  /* the text of the last Error */

    struct wharf_ring_client ring;
    uint32_t n_entries;
    int c_fd, d_fd, arena_fd;
    bool leaves_c_unsealed; /* set before the queue is opened; against the protocol */
    struct wharf_ring_c *c;
    const struct wharf_ring_d *d;
    uint8_t *arena;
    size_t arena_nbytes;

    struct wharf_control_memory memory; /* of the last reply */
    struct wharf_control_receiver receiver;
};

/* A client is allocated, since it is large. */
struct test_client *test_client_new(void);
void test_client_free(struct test_client *client);

/* Connects to the socket, and sends nothing. */
int test_client_connect(struct test_client *client, const char *path);
int test_client_hello(struct test_client *client);
int test_client_open(struct test_client *client, const Wharf__OpenQueueRequest *open,
                     int brought_fd);

/* Opens a queue with these four settings and otherwise defaults. */
int test_client_open_with(struct test_client *client, uint32_t n_entries, uint64_t arena_nbytes,
                          uint32_t default_class, uint32_t engine);

/* A client that has connected; one that has also said Hello; and one that also has a queue and an
 * arena.  Failures end the program. */
struct test_client *test_client_connected(const char *path);
struct test_client *test_client_greeted(const char *path);
struct test_client *test_client_start(const char *path, uint32_t n_entries, uint64_t arena_nbytes);
/* test_client_greeted, as soon as the daemon has room after earlier clients have ended. */
struct test_client *test_client_greeted_in_time(const char *path);

/* Sends any bytes with n_fds copies of a descriptor, 253 at most. */
int test_client_send_fds(struct test_client *client, const void *data, size_t nbytes, int fd,
                         unsigned n_fds);

int test_client_register(struct test_client *client, uint32_t region, int fd, uint64_t nbytes,
                         bool read_only);
int test_client_register_gpu(struct test_client *client, uint32_t region, int fd, uint64_t nbytes);
int test_client_unregister(struct test_client *client, uint32_t region);
int test_client_ping(struct test_client *client);
int test_client_drain(struct test_client *client);
/* Asks for the page of statistics that begins at `first`.  *ret_next is the start of the next page,
 * or 0. */
int test_client_stats_page(struct test_client *client, uint64_t first, uint64_t *ret_next);
/* The value of the metric's first sample with this label (NULL: any), or -1. */
double test_client_metric(struct test_client *client, const char *name, const char *suffix,
                          const char *label_value);

/* Sends a request, whose id it sets, and waits for the reply.  Discards wake-ups before it. */
int test_client_call(struct test_client *client, Wharf__Request *request, const int *fds,
                     size_t n_fds, const Wharf__Reply **ret_reply);
int test_client_send(struct test_client *client, Wharf__Request *request, const int *fds,
                     size_t n_fds);
int test_client_receive(struct test_client *client, const Wharf__Reply **ret_reply);

/* Publishes submissions, and rings the doorbell if the daemon needs it. */
int test_client_publish(struct test_client *client);
int test_client_submit(struct test_client *client, const struct wharf_submission *submission);

/*
 * Begins a batch that takes minutes.  Its chunks are copied within an arena of
 * TEST_CLIENT_ENDLESS_NBYTES; the last one goes to the beginning of `last_region`.  Returns when
 * the first chunk is done.
 */
#define TEST_CLIENT_ENDLESS_NBYTES ((uint64_t)128 << 20)
void test_client_begin_endless(struct test_client *client, uint64_t user_data,
                               uint16_t last_region);

/* Sleeps on the futex until there is a completion, and takes it.  -EPIPE if the daemon goes away
 * before, -ETIMEDOUT after a minute. */
int test_client_reap(struct test_client *client, struct wharf_completion *ret_completion);

/* Waits until the daemon has closed the connection; -ETIMEDOUT after a minute. */
int test_client_wait_for_end(struct test_client *client);

/* The same, then frees the client.  Ends the program if the daemon does not close. */
void test_client_ended(struct test_client *client);

/* A memfd of nbytes with these seals, or -errno. */
int test_memfd(uint64_t nbytes, int seals);

#endif
