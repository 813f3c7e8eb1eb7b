/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_core.h: the daemon's centre with real workers, driven through real rings, without sockets:
 * the test's process is the daemon, its clients and the loop thread at once.
 *
 * There is one daemon at a time.  What does not work ends the program.
 */
#ifndef WHARF_TESTS_TEST_CORE_H
#define WHARF_TESTS_TEST_CORE_H

#include "daemon/core/core.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/core_lock.h"
#include "proto/ring_ops.h"

#define TEST_CORE_CHUNK 65536

/* ---- the daemon ---------------------------------------------------------------------------- */

extern struct wharf_config test_core_config;
extern struct wharf_core test_core;
/* enum wharf_engine: that of clients from now on. */
extern uint32_t test_core_engine;

/* Starts it, by test_core_config, with so many workers of the CPU. */
void test_core_start(uint32_t n_workers);

/* The defaults, and a GPU whose worker runs the device's code on the CPU, in test_core_config; to
 * whose engine clients go from now on.  No worker is taken for hung. */
void test_core_config_simt(void);

/* Starts it with the defaults, two workers, chunks of up to 64 MiB and batches of up to 2000. */
void test_core_set_up(void);
void test_core_stop(void);

/* Waits until a worker of a GPU takes items. */
void test_core_wait_until_up(void);

/* A look at what the core lock guards. */
#define TEST_CORE_LOCKED(expression)                                                               \
    ({                                                                                             \
        wharf_core_enter(&test_core);                                                              \
        __typeof__(expression) locked_ = (expression);                                             \
        wharf_core_leave(&test_core);                                                              \
        locked_;                                                                                   \
    })

/* ---- clients ------------------------------------------------------------------------------- */

struct test_core_client {
    struct wharf_session *session;
    struct wharf_ring_client ring;
    uint8_t *arena;
    size_t arena_nbytes;
    int sockets[2]; /* the daemon's end, the client's */
    void *c;
    const void *d;
    const uint32_t *marks; /* of D */
    size_t c_nbytes, d_nbytes;
};

/* `id` is below 16, and no other client's. */
void test_core_client_init(struct test_core_client *client, uint64_t id, const char *tenant_name,
                           uint32_t n_entries, uint64_t arena_nbytes);
void test_core_client_deinit(struct test_core_client *client);

/* Waits until the worker of the first GPU has the client's arena: one that is stopped before that
 * never gets a job of the client's. */
void test_core_wait_until_registered(const struct test_core_client *client);

/* Registers a memfd as the client's own GPU memory, as region 1, and waits until the worker has it.
 */
void test_core_add_gpu_memory(struct test_core_client *client, int fd, uint64_t nbytes);

/* Registers words by which jobs begin, as region 2 of the client; so many bytes, whole pages. */
uint64_t *test_core_add_starts(struct test_core_client *client, uint64_t nbytes);

/* Waits until the loop thread has heard that of the client's session. */
void test_core_wait_until_told(const struct test_core_client *client, enum wharf_session_news news);

/* Publishes, and does what the loop thread does when the doorbell comes. */
void test_core_publish(struct test_core_client *client);
void test_core_submit(struct test_core_client *client, const struct wharf_submission *submission);

/* Sleeps on the futex until `n` completions can be reaped. */
void test_core_sleep(struct test_core_client *client, uint32_t n);
struct wharf_completion test_core_reap(struct test_core_client *client);

/* Whether one can be reaped now. */
bool test_core_has_completion(struct test_core_client *client);

/* Submits it: it has to be refused for that reason. */
void test_core_refused(struct test_core_client *client, const struct wharf_submission *submission,
                       uint32_t reason);

/* ---- jobs ---------------------------------------------------------------------------------- */

/* Compresses a chunk, as zlib, into the arena at `offset`; returns its size. */
size_t test_core_put_chunk(struct test_core_client *client, uint64_t offset, const uint8_t *plain,
                           size_t plain_nbytes);

/* Decodes a zlib chunk of the arena into the arena. */
struct wharf_submission test_core_decode_of(uint64_t user_data, uint64_t src, uint64_t src_nbytes,
                                            uint64_t dst, uint64_t dst_nbytes);

/* Work for some tens of milliseconds, in one chunk of an arena of 64 MiB. */
struct wharf_submission test_core_put_long(struct test_core_client *client, uint64_t user_data);

/* From now on this client's chunks are decoded by the reference engine: what test_core_put_slow
 * makes keeps that busy for ten times as long as the other one, longer than a thread of a test is
 * kept from its processor. */
void test_core_make_slower(struct test_core_client *client);

/*
 * What takes a decoder longest: Deflate blocks that are nothing but a header with codes of their
 * own, nbytes of them at `offset` of the arena, each with tables to be built.  Decodes to nothing.
 */
struct wharf_submission test_core_put_slow(struct test_core_client *client, uint64_t user_data,
                                           uint64_t offset, uint64_t nbytes);

#endif
