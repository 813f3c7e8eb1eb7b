/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_core.h: the daemon's core with real workers and real rings, without sockets.  The test's
 * process is at once the daemon, its clients and the loop thread.
 *
 * There is one daemon at a time.  Failures end the program.
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
/* The enum wharf_engine that later clients ask for. */
extern uint32_t test_core_engine;

/* Starts the daemon with test_core_config and n_workers CPU workers. */
void test_core_start(uint32_t n_workers);

/* Sets test_core_config to the defaults, and to a GPU whose code runs on the CPU, for later
 * clients.  No worker counts as hung. */
void test_core_config_simt(void);

/* Starts the daemon with default settings, two workers, chunks of up to 64 MiB and batches of up to
 * 2000. */
void test_core_set_up(void);
void test_core_stop(void);

/* Waits until a GPU's worker accepts items. */
void test_core_wait_until_up(void);

/* Evaluates an expression under the core lock. */
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
    const uint32_t *marks; /* in D */
    size_t c_nbytes, d_nbytes;
};

/* `id` must be below 16, and differ from other clients'. */
void test_core_client_init(struct test_core_client *client, uint64_t id, const char *tenant_name,
                           uint32_t n_entries, uint64_t arena_nbytes);
void test_core_client_deinit(struct test_core_client *client);

/* Waits until the first GPU's worker has registered the client's arena.  A worker that is stopped
 * earlier never gets a job of this client. */
void test_core_wait_until_registered(const struct test_core_client *client);

/* Registers a memfd as the client's own GPU memory, as region 1, and waits until the worker has
 * registered it. */
void test_core_add_gpu_memory(struct test_core_client *client, int fd, uint64_t nbytes);

/* Registers nbytes of start words, in whole pages, as the client's region 2. */
uint64_t *test_core_add_starts(struct test_core_client *client, uint64_t nbytes);

/* Waits until the loop thread has received these news of the client's session. */
void test_core_wait_until_told(const struct test_core_client *client, enum wharf_session_news news);

/* Publishes submissions, and does what the loop thread does after a doorbell. */
void test_core_publish(struct test_core_client *client);
void test_core_submit(struct test_core_client *client, const struct wharf_submission *submission);

/* Sleeps on the futex until there are n completions. */
void test_core_sleep(struct test_core_client *client, uint32_t n);
struct wharf_completion test_core_reap(struct test_core_client *client);

/* Whether there is a completion now. */
bool test_core_has_completion(struct test_core_client *client);

/* Submits a job that must be refused for this reason. */
void test_core_refused(struct test_core_client *client, const struct wharf_submission *submission,
                       uint32_t reason);

/* ---- jobs ---------------------------------------------------------------------------------- */

/* Compresses a chunk as zlib into the arena at `offset`.  Returns its size. */
size_t test_core_put_chunk(struct test_core_client *client, uint64_t offset, const uint8_t *plain,
                           size_t plain_nbytes);

/* Decodes a zlib chunk of the arena into the arena. */
struct wharf_submission test_core_decode_of(uint64_t user_data, uint64_t src, uint64_t src_nbytes,
                                            uint64_t dst, uint64_t dst_nbytes);

/* A chunk that takes some tens of milliseconds, in an arena of 64 MiB. */
struct wharf_submission test_core_put_long(struct test_core_client *client, uint64_t user_data);

/* From now on, the reference engine decodes this client's chunks.  It takes ten times as long for
 * what test_core_put_slow makes: longer than a thread of a test has to wait for a processor. */
void test_core_make_slower(struct test_core_client *client);

/*
 * Makes the slowest stream to decode: nbytes, at `offset` of the arena, of Deflate blocks that have
 * only a header with codes, so that tables must be built for each.  It decodes to nothing.
 */
struct wharf_submission test_core_put_slow(struct test_core_client *client, uint64_t user_data,
                                           uint64_t offset, uint64_t nbytes);

#endif
