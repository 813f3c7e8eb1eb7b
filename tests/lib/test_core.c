/* SPDX-License-Identifier: Apache-2.0 */
/* test_core.c: runs the daemon's core and its workers inside the test. */
#include "tests/lib/test_core.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/loop.h"
#include "daemon/core/backend.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/gpu/gpus.h"
#include "daemon/placement/gpu_memory.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)

static void expect(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "the daemon's centre: %s\n", what);
    abort();
}

/* ---- the daemon ---------------------------------------------------------------------------- */

struct wharf_config test_core_config;
struct wharf_core test_core;
uint32_t test_core_engine;
static struct wharf_loop *loop;
static pthread_t loop_thread;
static bool loop_stops;
static struct wharf_timer deadline_timer;

/* The news that the loop thread received, by session id. */
enum { MOST_SESSIONS = 16 };
static uint8_t told[MOST_SESSIONS];

static void on_deadline(struct wharf_timer *timer);

static void serve(void)
{
    enum wharf_session_news news;
    struct wharf_session *session;
    uint64_t next_ns = wharf_core_serve(&test_core);

    wharf_core_enter(&test_core);
    while ((session = wharf_core_next_news(&test_core, &news)))
        __atomic_fetch_or(&told[session->id], (uint8_t)(1u << news), __ATOMIC_SEQ_CST);
    wharf_core_leave(&test_core);
    wharf_timer_set(loop, &deadline_timer, next_ns, on_deadline);
}

static void on_deadline(struct wharf_timer *timer)
{
    (void)timer;
    serve();
}

static void on_wake(void *context)
{
    (void)context;
    serve();
}

static void *turn(void *data)
{
    (void)data;
    while (!__atomic_load_n(&loop_stops, __ATOMIC_SEQ_CST))
        wharf_loop_turn(loop);
    return NULL;
}

void test_core_start(uint32_t n_workers)
{
    loop_stops = false;
    memset(told, 0, sizeof(told));
    test_core_config.n_workers = n_workers;
    expect(wharf_loop_new(WHARF_LOOP_EPOLL, &loop) == 0, "no loop");
    expect(wharf_core_init(&test_core, &test_core_config, loop) == 0, "does not start");
    wharf_loop_on_wake(loop, on_wake, NULL);
    expect(wharf_cpu_backend.start(&test_core, &test_core_config) == 0, "no workers");
    expect(wharf_gpus_start(&test_core, &test_core_config) == 0, "no GPU worker");
    expect(pthread_create(&loop_thread, NULL, turn, NULL) == 0, "no thread");
}

void test_core_config_simt(void)
{
    struct wharf_config *config = &test_core_config;

    wharf_config_init(config);
    config->gpu_engine = WHARF_GPU_SIMT;
    /* A slow processor must not make a worker look hung. */
    config->gpu_hang_timeout_ns = 3600 * (uint64_t)WHARF_NS_PER_S;
    snprintf(config->gpu_worker, sizeof(config->gpu_worker), "%s", test_worker_program());
    test_core_engine = WHARF_ENGINE_SIMT;
}

void test_core_set_up(void)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_config.quota.max_batch_chunks = 2000;
    test_core_start(2);
}

void test_core_stop(void)
{
    wharf_gpus_stop(&test_core);
    wharf_cpu_backend.stop(test_core.backend);
    __atomic_store_n(&loop_stops, true, __ATOMIC_SEQ_CST);
    wharf_loop_wake(loop);
    pthread_join(loop_thread, NULL);
    wharf_timer_clear(loop, &deadline_timer);
    wharf_core_deinit(&test_core);
    wharf_loop_free(loop);
}

void test_core_wait_until_up(void)
{
    expect(TEST_WAIT(TEST_CORE_LOCKED(test_core.fleet.gpus_up)), "the worker does not come back");
}

/* ---- clients ------------------------------------------------------------------------------- */

static void *map_fd(int fd, size_t nbytes, int protection)
{
    void *address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);

    expect(address != MAP_FAILED, "cannot map");
    return address;
}

void test_core_client_init(struct test_core_client *client, uint64_t id, const char *tenant_name,
                           uint32_t n_entries, uint64_t arena_nbytes)
{
    struct wharf_session_options options = {
        .id = id,
        .n_entries = n_entries,
        .arena_nbytes = arena_nbytes,
        .n_regions = 4,
        .max_job_nbytes = test_core_config.quota.max_job_nbytes,
        .max_batch_chunks = test_core_config.quota.max_batch_chunks,
        .max_compress_nbytes = test_core_config.quota.max_compress_nbytes,
        .brought_fd = -1,
        .default_class = WHARF_CLASS_NORMAL,
        .engine = (uint8_t)test_core_engine,
        .has_marks = true,
        .has_words = true,
        .has_chains = true,
        .max_start_ns = test_core_config.quota.max_start_ns,
    };

    expect(id < MOST_SESSIONS, "too many sessions");
    wharf_core_enter(&test_core);
    struct wharf_tenant *tenant =
        wharf_tenants_get(&test_core.tenants, tenant_name, &test_core_config);
    wharf_core_leave(&test_core);
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client->sockets) == 0,
           "no sockets");
    expect(wharf_session_new(&options, tenant, &client->session) == 0, "no session");
    client->session->socket = client->sockets[0];
    client->c_nbytes = wharf_ring_c_nbytes(n_entries, true);
    client->d_nbytes = wharf_ring_d_nbytes(n_entries, true);
    client->c = map_fd(client->session->c.fd, client->c_nbytes, PROT_READ | PROT_WRITE);
    client->d = map_fd(client->session->d.fd, client->d_nbytes, PROT_READ);
    client->marks =
        (const uint32_t *)((const char *)client->d + wharf_ring_marks_offset(n_entries));
    client->arena_nbytes = arena_nbytes;
    client->arena =
        map_fd(client->session->regions[0].segment.fd, arena_nbytes, PROT_READ | PROT_WRITE);
    wharf_ring_client_init(&client->ring, client->c, client->d, n_entries);
    wharf_ring_client_use_words(&client->ring);
    client->session->regions[0].memory = wharf_gpu_memory_new(
        &test_core, client->session, client->session->regions[0].segment.fd, arena_nbytes, false);
    wharf_core_enter(&test_core);
    wharf_gpu_memory_add(&test_core, client->session->regions[0].memory);
    wharf_core_add_session(&test_core, client->session);
    wharf_core_leave(&test_core);
}

void test_core_wait_until_registered(const struct test_core_client *client)
{
    const struct wharf_gpu_hold *hold = &client->session->regions[0].memory->on[0];

    expect(TEST_WAIT(TEST_CORE_LOCKED(hold->state) == WHARF_GPU_MEMORY_READY),
           "the arena is not registered");
}

uint64_t *test_core_add_starts(struct test_core_client *client, uint64_t nbytes)
{
    struct wharf_region region = {.number = 2, .is_there = true, .read_only = true};
    int fd = memfd_create("starts", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    expect(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0, "no memfd");
    uint64_t *words = map_fd(fd, nbytes, PROT_READ | PROT_WRITE);
    expect(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) == 0,
           "not sealed");
    expect(wharf_segment_adopt(fd, nbytes, true, &region.segment) == 0, "not adopted");
    region.has_starts = wharf_segment_keep(fd, &region.segment);
    close(fd);
    wharf_core_enter(&test_core);
    client->session->regions[2] = region;
    wharf_core_leave(&test_core);
    return words;
}

void test_core_wait_until_told(const struct test_core_client *client, enum wharf_session_news news)
{
    expect(TEST_WAIT(__atomic_load_n(&told[client->session->id], __ATOMIC_SEQ_CST) & 1u << news),
           "the loop was not told");
}

void test_core_add_gpu_memory(struct test_core_client *client, int fd, uint64_t nbytes)
{
    struct wharf_session *session = client->session;
    struct wharf_gpu_memory *memory = wharf_gpu_memory_new_device(&test_core, session, fd, nbytes);

    expect(memory != NULL, "no GPU memory");
    wharf_core_enter(&test_core);
    session->regions[1] = (struct wharf_region){
        .number = 1,
        .is_there = true,
        .is_device = true,
        .segment = {.nbytes = nbytes, .fd = -1},
        .memory = memory,
    };
    session->n_device_regions++;
    wharf_gpu_memory_add(&test_core, memory);
    wharf_core_leave(&test_core);
    expect(TEST_WAIT(TEST_CORE_LOCKED(memory->owner) < WHARF_MAX_GPUS),
           "GPU memory is not imported");
}

void test_core_client_deinit(struct test_core_client *client)
{
    wharf_core_kill_session(&test_core, client->session);
    test_core_wait_until_told(client, WHARF_SESSION_IS_FREE);
    /* Nothing may have been charged for it. */
    wharf_core_enter(&test_core);
    for (unsigned i = 0; i < 2; i++)
        wharf_gpu_memory_drop(&test_core, client->session->regions[i].memory,
                              &(struct wharf_use){.n_jobs = 0});
    wharf_core_leave(&test_core);
    wharf_session_free(client->session);
    munmap(client->c, client->c_nbytes);
    munmap((void *)client->d, client->d_nbytes);
    munmap(client->arena, client->arena_nbytes);
    close(client->sockets[0]);
    close(client->sockets[1]);
}

void test_core_publish(struct test_core_client *client)
{
    if (wharf_ring_publish_submissions(&client->ring) == 0)
        return;
    wharf_core_enter(&test_core);
    wharf_core_doorbell(&test_core, client->session, 1);
    wharf_core_leave(&test_core);
}

void test_core_submit(struct test_core_client *client, const struct wharf_submission *submission)
{
    expect(wharf_ring_room(&client->ring) > 0, "the ring is full");
    wharf_ring_submit(&client->ring, submission);
    test_core_publish(client);
}

void test_core_sleep(struct test_core_client *client, uint32_t n)
{
    struct timespec limit = {.tv_sec = 100};

    for (;;) {
        int r = wharf_ring_client_arm(&client->ring, WHARF_WAIT_FUTEX, n);
        expect(r >= 0, "an index of the completions is wrong");
        if ((uint32_t)r >= n)
            return;
        if (syscall(SYS_futex, &client->ring.d->cq_tail, FUTEX_WAIT, client->ring.cq_tail, &limit,
                    NULL, 0) < 0)
            expect(errno != ETIMEDOUT, "a wake-up was lost");
    }
}

struct wharf_completion test_core_reap(struct test_core_client *client)
{
    struct wharf_completion completion = {.result = 99};

    test_core_sleep(client, 1);
    expect(wharf_ring_reap(&client->ring, &completion) == 1, "no completion");
    return completion;
}

bool test_core_has_completion(struct test_core_client *client)
{
    expect(wharf_ring_look_completions(&client->ring) == 0, "an index of the completions is wrong");
    return client->ring.cq_head != client->ring.cq_tail;
}

void test_core_refused(struct test_core_client *client, const struct wharf_submission *submission,
                       uint32_t reason)
{
    test_core_submit(client, submission);
    struct wharf_completion completion = test_core_reap(client);
    if (completion.result == WHARF_BAD_REQUEST && completion.reason == reason)
        return;
    fprintf(stderr, "result %u, reason %u instead of reason %u\n", completion.result,
            completion.reason, (unsigned)reason);
    abort();
}

/* ---- jobs ---------------------------------------------------------------------------------- */

size_t test_core_put_chunk(struct test_core_client *client, uint64_t offset, const uint8_t *plain,
                           size_t plain_nbytes)
{
    return test_pack_into(WHARF_CODEC_ZLIB, plain, plain_nbytes, client->arena + offset,
                          client->arena_nbytes - offset);
}

struct wharf_submission test_core_decode_of(uint64_t user_data, uint64_t src, uint64_t src_nbytes,
                                            uint64_t dst, uint64_t dst_nbytes)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = user_data,
        .src_offset = src,
        .src_nbytes = src_nbytes,
        .dst_offset = dst,
        .dst_nbytes = dst_nbytes,
    };
}

struct wharf_submission test_core_put_long(struct test_core_client *client, uint64_t user_data)
{
    static const uint8_t stored[5] = {0x00, 0xff, 0xff, 0x00, 0x00};
    uint64_t nbytes = 0;

    /* Stored blocks decode at the speed of memory. */
    while (nbytes + 5 + 65535 < 40 * MiB) {
        memcpy(client->arena + nbytes, stored, 5);
        nbytes += 5 + 65535;
    }
    struct wharf_submission s = test_core_decode_of(user_data, 0, nbytes, 40 * MiB, 24 * MiB);
    s.codec = WHARF_CODEC_DEFLATE;
    return s;
}

/* A dynamic block of two symbols, a literal and the end of block, of which only the latter is used;
 * then an empty stored block, which pads it to a byte. */
static size_t forge_slow_unit(uint8_t *unit, size_t avail)
{
    struct test_forge forge;

    test_forge_init(&forge, 1);
    forge.litlen.n_symbols = 257;
    memset(forge.litlen.nbits, 0, sizeof(forge.litlen.nbits));
    forge.litlen.nbits[0] = forge.litlen.nbits[256] = 1;
    forge.distance.n_symbols = 1;
    forge.distance.nbits[0] = 1;
    test_forge_dynamic(&forge, 0);
    test_forge_end(&forge);
    test_forge_stored(&forge, 0, 0);
    size_t nbytes = test_forge_nbytes(&forge);
    expect(nbytes <= avail, "a block is too long");
    memcpy(unit, forge.data, nbytes);
    test_forge_deinit(&forge);
    return nbytes;
}

void test_core_make_slower(struct test_core_client *client)
{
    TEST_CORE_LOCKED(client->session->engine = WHARF_ENGINE_REFERENCE);
}

struct wharf_submission test_core_put_slow(struct test_core_client *client, uint64_t user_data,
                                           uint64_t offset, uint64_t nbytes)
{
    uint8_t unit[64];
    size_t unit_nbytes = forge_slow_unit(unit, sizeof(unit));
    uint64_t at = offset;

    for (; at + unit_nbytes <= offset + nbytes; at += unit_nbytes)
        memcpy(client->arena + at, unit, unit_nbytes);
    struct wharf_submission s = test_core_decode_of(user_data, offset, at - offset, at, 0);
    s.codec = WHARF_CODEC_DEFLATE;
    return s;
}
