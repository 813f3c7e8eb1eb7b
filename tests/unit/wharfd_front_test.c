/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's centre with real workers, driven through real rings, without sockets: this process
 * is the daemon, its clients and the loop thread at once.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/loop.h"
#include "encoders/codec.h"
#include "proto/control.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"

#define MiB ((uint64_t)1 << 20)

/* ---- the daemon ---------------------------------------------------------------------------- */

static struct wharf_config config;
static struct wharf_front front;
static struct wharf_loop *loop;
static pthread_t loop_thread;
static bool loop_stops;
static struct wharf_timer deadline_timer;

/* What the loop thread was told, by session id. */
enum { MOST_SESSIONS = 16 };
static uint8_t told[MOST_SESSIONS];

static void on_deadline(struct wharf_timer *timer);

static void serve(void)
{
    enum wharf_session_news news;
    struct wharf_session *session;
    uint64_t next_ns = wharf_front_serve(&front);

    wharf_front_enter(&front);
    while ((session = wharf_front_next_news(&front, &news)))
        __atomic_fetch_or(&told[session->id], (uint8_t)(1u << news), __ATOMIC_SEQ_CST);
    wharf_front_leave(&front);
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

static void start_daemon(uint32_t n_workers)
{
    loop_stops = false;
    memset(told, 0, sizeof(told));
    config.n_workers = n_workers;
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &loop), 0);
    cr_assert_eq(wharf_front_init(&front, &config, loop), 0);
    wharf_loop_on_wake(loop, on_wake, NULL);
    cr_assert_eq(wharf_cpu_backend.start(&front, &config), 0);
    pthread_create(&loop_thread, NULL, turn, NULL);
}

static void stop_daemon(void)
{
    wharf_cpu_backend.stop(front.backend);
    __atomic_store_n(&loop_stops, true, __ATOMIC_SEQ_CST);
    wharf_loop_wake(loop);
    pthread_join(loop_thread, NULL);
    wharf_timer_clear(loop, &deadline_timer);
    wharf_front_deinit(&front);
    wharf_loop_free(loop);
}

static void set_up(void)
{
    wharf_config_init(&config);
    config.quota.max_job_nbytes = 64 * MiB;
    config.quota.max_batch_chunks = 2000;
    start_daemon(2);
}

/* ---- a client ------------------------------------------------------------------------------ */

struct client {
    struct wharf_session *session;
    struct wharf_ring_client ring;
    uint8_t *arena;
    size_t arena_nbytes;
    int sockets[2]; /* the daemon's end, the client's */
    void *c;
    const void *d;
    size_t ring_nbytes;
};

static void *map_fd(int fd, size_t nbytes, int protection)
{
    void *address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);

    cr_assert_neq(address, MAP_FAILED);
    return address;
}

static void client_init(struct client *client, uint64_t id, const char *tenant_name,
                        uint32_t n_entries, uint64_t arena_nbytes)
{
    struct wharf_session_options options = {
        .id = id,
        .n_entries = n_entries,
        .arena_nbytes = arena_nbytes,
        .n_regions = 4,
        .brought_fd = -1,
        .default_class = WHARF_CLASS_NORMAL,
    };

    wharf_front_enter(&front);
    struct wharf_tenant *tenant = wharf_tenants_get(&front.tenants, tenant_name, &config);
    wharf_front_leave(&front);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client->sockets), 0);
    cr_assert_eq(wharf_session_new(&options, tenant, &client->session), 0);
    client->session->socket = client->sockets[0];
    client->ring_nbytes = wharf_ring_segment_nbytes(n_entries);
    client->c = map_fd(client->session->c.fd, client->ring_nbytes, PROT_READ | PROT_WRITE);
    client->d = map_fd(client->session->d.fd, client->ring_nbytes, PROT_READ);
    client->arena_nbytes = arena_nbytes;
    client->arena =
        map_fd(client->session->regions[0].segment.fd, arena_nbytes, PROT_READ | PROT_WRITE);
    wharf_ring_client_init(&client->ring, client->c, client->d, n_entries);
    wharf_front_enter(&front);
    wharf_front_add_session(&front, client->session);
    wharf_front_leave(&front);
}

static void wait_until_told(const struct client *client, enum wharf_session_news news)
{
    for (unsigned i = 0; i < 20000; i++) {
        if (__atomic_load_n(&told[client->session->id], __ATOMIC_SEQ_CST) & 1u << news)
            return;
        usleep(1000);
    }
    cr_assert_fail("the loop was not told");
}

static void client_deinit(struct client *client)
{
    wharf_front_kill_session(&front, client->session);
    wait_until_told(client, WHARF_SESSION_IS_FREE);
    wharf_session_free(client->session);
    munmap(client->c, client->ring_nbytes);
    munmap((void *)client->d, client->ring_nbytes);
    munmap(client->arena, client->arena_nbytes);
    close(client->sockets[0]);
    close(client->sockets[1]);
}

/* Publishes, and does what the loop thread does when the doorbell comes. */
static void publish(struct client *client)
{
    if (wharf_ring_publish_submissions(&client->ring) == 0)
        return;
    wharf_front_enter(&front);
    wharf_front_rung(&front, client->session);
    wharf_front_leave(&front);
}

static void submit(struct client *client, const struct wharf_submission *submission)
{
    cr_assert_gt(wharf_ring_room(&client->ring), 0);
    wharf_ring_submit(&client->ring, submission);
    publish(client);
}

/* Sleeps on the futex until `n` completions can be reaped. */
static void sleep_until(struct client *client, uint32_t n)
{
    struct timespec limit = {.tv_sec = 20};

    for (;;) {
        int r = wharf_ring_client_arm(&client->ring, WHARF_WAIT_FUTEX, n);
        cr_assert_geq(r, 0);
        if ((uint32_t)r >= n)
            return;
        if (syscall(SYS_futex, &client->ring.d->cq_tail, FUTEX_WAIT, client->ring.cq_tail, &limit,
                    NULL, 0) < 0)
            cr_assert_neq(errno, ETIMEDOUT, "a wake-up was lost");
    }
}

static struct wharf_completion reap(struct client *client)
{
    struct wharf_completion completion = {.result = 99};

    sleep_until(client, 1);
    cr_assert_eq(wharf_ring_reap(&client->ring, &completion), 1);
    return completion;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Compresses a chunk into the arena at `offset`; returns its size. */
static size_t put_chunk(struct client *client, uint64_t offset, const uint8_t *plain,
                        size_t plain_nbytes)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(WHARF_CODEC_ZLIB)->ops->encoder;
    struct wharf_encoder *encoder;
    size_t nbytes;

    cr_assert_eq(ops->new (NULL, &encoder), 0);
    cr_assert_eq(ops->encode(encoder, plain, plain_nbytes, client->arena + offset,
                             client->arena_nbytes - offset, &nbytes),
                 0);
    ops->free(encoder);
    return nbytes;
}

static struct wharf_submission decode_of(uint64_t user_data, uint64_t src, uint64_t src_nbytes,
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

enum { CHUNK = 65536 };

/* A look at what the front lock guards. */
#define LOCKED(expression)                                                                         \
    ({                                                                                             \
        wharf_front_enter(&front);                                                                 \
        __typeof__(expression) locked_ = (expression);                                             \
        wharf_front_leave(&front);                                                                 \
        locked_;                                                                                   \
    })

/* ---- single jobs --------------------------------------------------------------------------- */

Test(wharfd_front, chunk_is_decoded_and_told_of, .init = set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, CHUNK);
    struct client client;

    client_init(&client, 1, "uid:1", 8, MiB);
    size_t nbytes = put_chunk(&client, 100, plain, CHUNK);
    struct wharf_submission submission = decode_of(42, 100, nbytes, 2 * CHUNK, CHUNK);
    submit(&client, &submission);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.user_data, 42);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    cr_assert_eq(completion.in_nbytes, nbytes);
    cr_assert_eq(completion.out_nbytes, CHUNK);
    cr_assert_eq(completion.flags, 0);
    cr_assert_gt(completion.run_ns, 0);
    cr_assert_lt(completion.run_ns + completion.queue_ns, 60 * (uint64_t)WHARF_NS_PER_S);
    cr_assert_arr_eq(client.arena + 2 * CHUNK, plain, CHUNK);
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

Test(wharfd_front, bad_data_is_told_like_in_process, .init = set_up)
{
    struct client client;

    client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission submission = decode_of(7, 0, 1000, 4096, CHUNK);
    submit(&client, &submission);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_ZLIB_METHOD);
    cr_assert_eq(completion.out_nbytes, 0);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    client_deinit(&client);
    stop_daemon();
}

/* What is wrong, and what stays wrong when it is put right: the order is part of the protocol. */
Test(wharfd_front, bad_requests_have_their_reasons_in_order, .init = set_up)
{
    struct wharf_submission all_wrong = {
        .opcode = 77,
        .codec = 999,
        .flags = 0x8000,
        .job_class = 4,
        .parameter = 1,
        .reserved = 1,
        .src_region = 3,
        .src_offset = MiB,
        .src_nbytes = 1,
        .dst_region = 3,
        .dst_offset = UINT64_MAX,
        .dst_nbytes = 2,
    };
    struct client client;

    client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission s = all_wrong;
#define EXPECT(REASON)                                                                             \
    do {                                                                                           \
        submit(&client, &s);                                                                       \
        struct wharf_completion completion = reap(&client);                                        \
        cr_assert_eq(completion.result, WHARF_BAD_REQUEST);                                        \
        cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_##REASON, "%u", completion.reason);   \
    } while (0)
    EXPECT(OPCODE);
    s.opcode = WHARF_OP_DECODE;
    EXPECT(CODEC);
    s.codec = WHARF_CODEC_ZLIB;
    EXPECT(FLAGS);
    s.flags = WHARF_JOB_EXACT_INPUT;
    EXPECT(CLASS);
    s.job_class = WHARF_CLASS_BACKGROUND;
    EXPECT(PARAMETER);
    s.parameter = 0;
    EXPECT(RESERVED);
    s.reserved = 0;
    EXPECT(REGION);
    s.src_region = 0;
    EXPECT(RANGE);
    s.src_offset = MiB - 1;
    EXPECT(REGION);
    s.dst_region = 0;
    EXPECT(RANGE);
    s.dst_offset = MiB - 2;
    EXPECT(RANGE); /* they overlap */
    s.dst_offset = MiB - 3;
    submit(&client, &s);
    cr_assert_eq(reap(&client).result, WHARF_BAD_DATA);
    /* Simple operations use nothing but their own members. */
    s = (struct wharf_submission){.opcode = WHARF_OP_NOOP, .src_offset = 1};
    EXPECT(RESERVED);
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 1};
    EXPECT(NO_JOB);
    s.checksum = 1;
    EXPECT(RESERVED);
    client_deinit(&client);
    stop_daemon();
}

Test(wharfd_front, source_and_destination_have_a_limit_together)
{
    struct client client;

    wharf_config_init(&config);
    config.quota.max_job_nbytes = 5000;
    start_daemon(1);
    client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission s = decode_of(1, 0, 1000, 4096, 4001);
    EXPECT(RANGE);
    s.dst_nbytes = 4000;
    submit(&client, &s);
    cr_assert_eq(reap(&client).result, WHARF_BAD_DATA);
    client_deinit(&client);
    stop_daemon();
}

Test(wharfd_front, read_only_regions_are_no_destinations, .init = set_up)
{
    struct client client;
    int fd = memfd_create("region", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    client_init(&client, 1, "uid:1", 8, MiB);
    cr_assert_eq(ftruncate(fd, 8192), 0);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    wharf_front_enter(&front);
    struct wharf_region *region = wharf_session_region_place(client.session);
    cr_assert_eq(wharf_segment_adopt(fd, 8000, true, &region->segment), 0);
    region->number = 500;
    region->read_only = region->is_there = true;
    wharf_front_leave(&front);
    struct wharf_submission s = decode_of(1, 0, 10, 0, 8000);
    s.dst_region = 500;
    EXPECT(REGION);
    s = decode_of(1, 0, 8001, 0, 10);
    s.src_region = 500;
    EXPECT(RANGE);
    s.src_nbytes = 8000;
    submit(&client, &s);
    cr_assert_eq(reap(&client).result, WHARF_BAD_DATA);
    cr_assert_eq(LOCKED(region->n_users), 0);
    client_deinit(&client);
    stop_daemon();
    close(fd);
}

/* ---- batches ------------------------------------------------------------------------------- */

enum { N_CHUNKS = 300, SMALL = 3000, TABLE = 8 << 20, RESULTS = 9 << 20, OUTPUTS = 4 << 20 };

/* A batch of N_CHUNKS chunks in the arena, all of the same data; odd alignments. */
static struct wharf_submission put_batch(struct client *client, const uint8_t *plain)
{
    size_t nbytes = put_chunk(client, 5, plain, SMALL);
    struct wharf_chunk chunk = {
        .src_offset = 5,
        .src_nbytes = (uint32_t)nbytes,
        .dst_nbytes = SMALL,
    };

    for (unsigned i = 0; i < N_CHUNKS; i++) {
        chunk.dst_offset = OUTPUTS + i * SMALL;
        memcpy(client->arena + TABLE + 3 + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 1234,
        .src_offset = TABLE + 3,
        .src_nbytes = N_CHUNKS * sizeof(chunk),
        .dst_offset = RESULTS + 1,
        .dst_nbytes = N_CHUNKS * sizeof(struct wharf_chunk_result),
    };
}

static struct wharf_chunk_result result_of(const struct client *client, unsigned i)
{
    struct wharf_chunk_result result;

    memcpy(&result, client->arena + RESULTS + 1 + i * sizeof(result), sizeof(result));
    return result;
}

/* A member of an entry of the table, at whatever alignment. */
#define ENTRY_AT(client, i, member)                                                                \
    ((client)->arena + TABLE + 3 + (i) * sizeof(struct wharf_chunk) +                              \
     offsetof(struct wharf_chunk, member))

Test(wharfd_front, batch_is_decoded_whole, .init = set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct client client;

    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    uint32_t in_nbytes;
    memcpy(&in_nbytes, ENTRY_AT(&client, 0, src_nbytes), 4);
    submit(&client, &batch);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    cr_assert_eq(completion.out_nbytes, N_CHUNKS * SMALL);
    cr_assert_eq(completion.in_nbytes, (uint64_t)N_CHUNKS * in_nbytes);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        cr_assert_arr_eq(client.arena + OUTPUTS + i * SMALL, plain, SMALL);
        cr_assert_eq(result_of(&client, i).result, WHARF_OK);
        cr_assert_eq(result_of(&client, i).out_nbytes, SMALL);
        cr_assert_eq(result_of(&client, i).engine, WHARF_ENGINE_CPU);
    }
    cr_assert_eq(LOCKED(front.tenants.n), 1);
    cr_assert_eq(LOCKED(client.session->tenant->used.memory_nbytes), 0);
    cr_assert_eq(LOCKED(client.session->regions[0].n_users), 0);
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

Test(wharfd_front, first_bad_chunk_is_the_lowest_and_others_are_decoded, .init = set_up)
{
    static const uint8_t nonsense[8] = {0x78, 0x9c, 0xff};
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct client client;

    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    memcpy(client.arena + 6 * MiB, nonsense, sizeof(nonsense));
    for (unsigned i = 250; i >= 50; i -= 50) {
        uint64_t offset = 6 * MiB;
        memcpy(ENTRY_AT(&client, i, src_offset), &offset, sizeof(offset));
    }
    submit(&client, &batch);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_DEFLATE_BLOCK_TYPE);
    cr_assert_eq(completion.bit_offset, 16);
    cr_assert_eq(completion.first_bad_chunk, 50);
    cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    cr_assert_eq(completion.out_nbytes, 0);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        bool is_bad = i % 50 == 0 && i > 0 && i <= 250;
        cr_assert_eq(result_of(&client, i).result, is_bad ? WHARF_BAD_DATA : WHARF_OK);
        if (!is_bad)
            cr_assert_arr_eq(client.arena + OUTPUTS + i * SMALL, plain, SMALL);
    }
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

Test(wharfd_front, bad_table_entry_stops_a_batch_before_it_begins, .init = set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct client client;
    uint64_t offset = 16 * MiB - 1;
    uint16_t region = 9;

    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    memcpy(ENTRY_AT(&client, 299, dst_offset), &offset, sizeof(offset));
    submit(&client, &batch);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_REQUEST);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_RANGE);
    cr_assert_eq(completion.first_bad_chunk, 299);
    cr_assert_eq(completion.flags, 0);
    memcpy(ENTRY_AT(&client, 150, src_region), &region, sizeof(region));
    submit(&client, &batch);
    completion = reap(&client);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_REGION);
    cr_assert_eq(completion.first_bad_chunk, 150);
    for (unsigned i = 0; i < N_CHUNKS * SMALL; i++)
        cr_assert_eq(client.arena[OUTPUTS + i], 0, "something was decoded");
    cr_assert_eq(LOCKED(client.session->tenant->used.memory_nbytes), 0);
    cr_assert_eq(LOCKED(client.session->regions[0].n_users), 0);
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

Test(wharfd_front, batch_sizes_are_checked, .init = set_up)
{
    struct client client;

    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission s = {.opcode = WHARF_OP_BATCH, .codec = WHARF_CODEC_ZLIB};
    EXPECT(BATCH);
    s.src_nbytes = 33;
    EXPECT(BATCH);
    s.src_nbytes = 2001 * 32;
    EXPECT(BATCH);
    s.src_nbytes = 64;
    s.dst_nbytes = 24;
    s.dst_offset = 64;
    EXPECT(BATCH);
    s.dst_nbytes = 0;
    EXPECT(BATCH);
    s.dst_nbytes = 48;
    s.dst_offset = 63;
    EXPECT(RANGE);
    s.dst_offset = 64;
    s.checksum = 1;
    EXPECT(RESERVED);
    s.checksum = 0;
    /* Zeroes are two chunks of nothing: that is truncated data. */
    submit(&client, &s);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_INPUT_TRUNCATED);
    client_deinit(&client);
    stop_daemon();
}

Test(wharfd_front, batch_over_the_memory_quota_is_quota, .init = set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct client client;

    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    wharf_front_enter(&front);
    client.session->tenant->quota.max_memory_nbytes = 1000;
    wharf_front_leave(&front);
    struct wharf_submission batch = put_batch(&client, plain);
    submit(&client, &batch);
    cr_assert_eq(reap(&client).result, WHARF_QUOTA);
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

/* ---- cancel and deadlines ------------------------------------------------------------------ */

/* Work for some tens of milliseconds, in one chunk: a run of stored zeroes is fast per byte. */
static struct wharf_submission put_long(struct client *client, uint64_t user_data)
{
    static const uint8_t stored[5] = {0x00, 0xff, 0xff, 0x00, 0x00};
    uint64_t nbytes = 0;

    /* Empty fixed blocks by the million would do too, but stored ones are read at memory speed. */
    while (nbytes + 5 + 65535 < 40 * MiB) {
        memcpy(client->arena + nbytes, stored, 5);
        nbytes += 5 + 65535;
    }
    struct wharf_submission s = decode_of(user_data, 0, nbytes, 40 * MiB, 1 * MiB);
    s.codec = WHARF_CODEC_DEFLATE;
    s.dst_nbytes = 24 * MiB;
    return s;
}

Test(wharfd_front, cancel_takes_queued_jobs_of_its_number_alone)
{
    enum { N = 200 };
    struct client client;
    unsigned n_cancelled = 0, n_other = 0;

    wharf_config_init(&config);
    config.quota.max_job_nbytes = 64 * MiB;
    start_daemon(1);
    client_init(&client, 1, "uid:1", 512, 64 * MiB);
    struct wharf_submission s = put_long(&client, 5);
    wharf_ring_submit(&client.ring, &s);
    for (unsigned i = 0; i < N; i++) {
        s = decode_of(i % 2 ? 77 : 78, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
        wharf_ring_submit(&client.ring, &s);
    }
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .user_data = 9, .src_offset = 77};
    submit(&client, &s);
    sleep_until(&client, N + 2);
    struct wharf_completion completion;
    while (wharf_ring_reap(&client.ring, &completion) == 1) {
        if (completion.user_data == 77) {
            cr_assert_eq(completion.result, WHARF_CANCELLED);
            cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
            n_cancelled++;
        } else if (completion.user_data == 9) {
            cr_assert_eq(completion.result, WHARF_OK);
        } else {
            cr_assert_neq(completion.result, WHARF_CANCELLED);
            n_other++;
        }
    }
    cr_assert_eq(n_cancelled, N / 2);
    cr_assert_eq(n_other, N / 2 + 1);
    client_deinit(&client);
    stop_daemon();
}

Test(wharfd_front, cancelled_batch_stops_between_chunks)
{
    enum { N = 1000 };
    struct client client;
    uint8_t *plain = test_data_new(test_data_find("text"), 1, CHUNK);
    unsigned n_ok = 0, n_cancelled = 0;

    wharf_config_init(&config);
    start_daemon(1);
    client_init(&client, 1, "uid:1", 8, 16 * MiB);
    size_t nbytes = put_chunk(&client, 0, plain, CHUNK);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_chunk chunk = {
            .src_nbytes = (uint32_t)nbytes, .dst_offset = OUTPUTS, .dst_nbytes = CHUNK};
        memcpy(client.arena + TABLE + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 3,
        .src_offset = TABLE,
        .src_nbytes = N * sizeof(struct wharf_chunk),
        .dst_offset = RESULTS + 1,
        .dst_nbytes = N * sizeof(struct wharf_chunk_result),
    };
    submit(&client, &s);
    usleep(10000);
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 3};
    submit(&client, &s);
    sleep_until(&client, 2);
    struct wharf_completion completion;
    while (wharf_ring_reap(&client.ring, &completion) == 1) {
        if (completion.user_data != 3)
            continue;
        cr_assert_eq(completion.result, WHARF_CANCELLED);
        cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    }
    for (unsigned i = 0; i < N; i++) {
        n_ok += result_of(&client, i).result == WHARF_OK;
        n_cancelled += result_of(&client, i).result == WHARF_CANCELLED;
    }
    cr_assert_eq(n_ok + n_cancelled, N);
    cr_assert_gt(n_ok, 0);
    cr_assert_gt(n_cancelled, 0);
    client_deinit(&client);
    stop_daemon();
    free(plain);
}

/* The only worker is busy: the loop thread's timer has to see to it. */
Test(wharfd_front, deadline_passes_while_all_workers_are_busy)
{
    struct client client;
    struct wharf_completion completion;

    wharf_config_init(&config);
    config.quota.max_job_nbytes = 64 * MiB;
    start_daemon(1);
    client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 20; i++) {
        struct wharf_submission s = put_long(&client, 1000 + i);
        wharf_ring_submit(&client.ring, &s);
    }
    struct wharf_submission late = decode_of(2, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
    late.timeout_us = 2000;
    submit(&client, &late);
    do {
        completion = reap(&client);
    } while (completion.user_data != 2);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
    cr_assert_geq(completion.queue_ns, 2000000);
    client_deinit(&client);
    stop_daemon();
}

Test(wharfd_front, chunk_that_ends_too_late_is_deadline, .init = set_up)
{
    struct client client;

    client_init(&client, 1, "uid:1", 64, 64 * MiB);
    struct wharf_submission s = put_long(&client, 1);
    s.timeout_us = 100;
    submit(&client, &s);
    struct wharf_completion completion = reap(&client);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.out_nbytes, 0);
    client_deinit(&client);
    stop_daemon();
}

/* ---- sessions' ends ------------------------------------------------------------------------ */

Test(wharfd_front, broken_indices_end_the_session_and_nothing_else, .init = set_up)
{
    static const uint32_t jumps[] = {9, 0x80000000u, UINT32_MAX, 1000};
    struct client good;

    client_init(&good, 0, "uid:1", 8, MiB);
    for (unsigned i = 0; i < 4; i++) {
        struct client bad;
        client_init(&bad, 1 + i, "uid:2", 8, MiB);
        wharf_ring_store_sq_tail(&((struct wharf_ring_c *)bad.c)->sq_tail, jumps[i]);
        wharf_front_enter(&front);
        wharf_front_rung(&front, bad.session);
        wharf_front_leave(&front);
        wait_until_told(&bad, WHARF_SESSION_IS_BROKEN);
        client_deinit(&bad);
    }
    struct wharf_submission s = {.opcode = WHARF_OP_NOOP, .user_data = 3};
    submit(&good, &s);
    cr_assert_eq(reap(&good).user_data, 3);
    client_deinit(&good);
    stop_daemon();
}

Test(wharfd_front, killed_session_is_free_when_its_pieces_are_done, .init = set_up)
{
    struct client client;

    client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 50; i++) {
        struct wharf_submission s = put_long(&client, i);
        s.timeout_us = i % 2 ? 1000000 : 0;
        wharf_ring_submit(&client.ring, &s);
    }
    publish(&client);
    usleep(5000);
    client_deinit(&client);
    cr_assert_null(LOCKED(front.deadlines.root));
    cr_assert_eq(LOCKED(front.sched.n_queued), 0);
    stop_daemon();
}

Test(wharfd_front, drained_session_finishes_what_it_took, .init = set_up)
{
    struct client client;
    struct wharf_completion completion;
    unsigned n = 0;

    client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 10; i++) {
        struct wharf_submission s = put_long(&client, i);
        wharf_ring_submit(&client.ring, &s);
    }
    publish(&client);
    usleep(2000);
    wharf_front_enter(&front);
    wharf_front_drain_session(&front, client.session);
    wharf_front_leave(&front);
    cr_assert(wharf_ring_load_flags(&client.ring.d->flags) & WHARF_RING_DRAINING);
    wait_until_told(&client, WHARF_SESSION_IS_DRAINED);
    while (wharf_ring_reap(&client.ring, &completion) == 1)
        n++;
    cr_assert_eq(n, wharf_ring_load_sq_head(&client.ring.d->sq_head));
    /* Nothing is taken any more. */
    struct wharf_submission s = {.opcode = WHARF_OP_NOOP};
    if (wharf_ring_room(&client.ring)) {
        submit(&client, &s);
        usleep(5000);
        cr_assert_eq(wharf_ring_reap(&client.ring, &completion), 0);
    }
    client_deinit(&client);
    stop_daemon();
}

/* ---- hostile rings ------------------------------------------------------------------------- */

/* Every submission gets its completion, whatever its bytes are. */
Test(wharfd_front, random_submissions_get_one_completion_each, .init = set_up)
{
    struct test_random random = {3};
    struct client client;
    struct wharf_submission s;
    uint64_t n_reaped = 0;

    client_init(&client, 1, "uid:1", 64, 4 * MiB);
    test_random_fill(&random, client.arena, 4 * MiB);
    for (uint64_t i = 0; i < 20000; i++) {
        test_random_fill(&random, (uint8_t *)&s, sizeof(s));
        /* Mostly almost right, so that all checks are reached. */
        s.opcode = (uint8_t)test_random_below(&random, 6);
        s.codec %= 5;
        if (!test_random_one_in(&random, 8)) {
            s.flags &= 7;
            s.job_class &= 3;
            s.parameter = 0;
            s.reserved = 0;
            s.src_region = s.dst_region = 0;
            s.src_offset %= 4 * MiB;
            s.src_nbytes %= 4096;
            s.dst_offset %= 4 * MiB;
            s.dst_nbytes %= 4096;
            s.timeout_us %= 100;
        }
        if (s.opcode == WHARF_OP_BATCH && !test_random_one_in(&random, 4)) {
            s.src_nbytes &= ~(uint64_t)31;
            s.dst_nbytes = s.src_nbytes / 32 * 24;
            s.checksum = 0;
        }
        s.user_data = i;
        while (wharf_ring_room(&client.ring) == 0) {
            reap(&client);
            n_reaped++;
        }
        submit(&client, &s);
    }
    for (; n_reaped < 20000; n_reaped++)
        reap(&client);
    struct wharf_completion completion;
    cr_assert_eq(wharf_ring_reap(&client.ring, &completion), 0);
    cr_assert_eq(LOCKED(client.session->n_in_flight), 0);
    client_deinit(&client);
    stop_daemon();
}

/* ---- many clients at once ------------------------------------------------------------------ */

struct stress {
    struct client client;
    pthread_t thread;
    const uint8_t *plain;
    size_t nbytes; /* compressed */
    uint64_t seed;
    unsigned n_bad;
};

enum { STRESS_CHUNK = 2000, STRESS_ROUNDS = 400, NO_SLOT = 99 };

static void wait_for_packet(struct client *client)
{
    struct timeval limit = {.tv_sec = 20};
    char byte[8];

    setsockopt(client->sockets[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    int r = wharf_ring_client_arm(&client->ring, WHARF_WAIT_PACKET, 1);
    if (r == 0 && recv(client->sockets[1], byte, sizeof(byte), 0) < 0)
        abort(); /* a wake-up was lost */
    wharf_ring_client_disarm(&client->ring);
}

/* Submits up to a ring full, then waits in one of three ways for some of it. */
static void *stress_client(void *data)
{
    struct stress *stress = data;
    struct client *client = &stress->client;
    struct test_random random = {stress->seed};
    struct wharf_completion completion;
    uint32_t n_outstanding = 0;
    uint32_t busy = 0; /* bit i: destination i belongs to a job in flight */

    for (unsigned round = 0; round < STRESS_ROUNDS || n_outstanding; round++) {
        uint32_t n = round < STRESS_ROUNDS
                         ? (uint32_t)test_random_below(&random, wharf_ring_room(&client->ring) + 1)
                         : 0;
        for (uint32_t i = 0; i < n; i++) {
            struct wharf_submission s = {.opcode = WHARF_OP_NOOP, .user_data = NO_SLOT};
            if (!test_random_one_in(&random, 3)) {
                uint32_t slot = (uint32_t)__builtin_ctz(~busy);
                busy |= 1u << slot;
                s = decode_of(slot, 0, stress->nbytes, CHUNK * (1 + (uint64_t)slot), STRESS_CHUNK);
            }
            wharf_ring_submit(&client->ring, &s);
        }
        n_outstanding += n;
        publish(client);
        if (n_outstanding == 0)
            continue;
        if (test_random_one_in(&random, 3))
            wait_for_packet(client);
        else if (test_random_one_in(&random, 2))
            sleep_until(client, 1 + (uint32_t)test_random_below(&random, n_outstanding));
        while (wharf_ring_reap(&client->ring, &completion) == 1) {
            n_outstanding--;
            stress->n_bad += completion.result != WHARF_OK;
            if (completion.user_data == NO_SLOT)
                continue;
            busy &= ~(1u << completion.user_data);
            stress->n_bad += memcmp(client->arena + CHUNK * (1 + completion.user_data),
                                    stress->plain, STRESS_CHUNK) != 0;
        }
    }
    return NULL;
}

static void run_stress(uint32_t n_workers, uint64_t spin_ns)
{
    enum { N = 4 };
    static struct stress stress[N];
    uint8_t *plain = test_data_new(test_data_find("text"), 1, STRESS_CHUNK);
    char tenant[16];

    wharf_config_init(&config);
    config.spin_ns = spin_ns;
    start_daemon(n_workers);
    for (unsigned i = 0; i < N; i++) {
        snprintf(tenant, sizeof(tenant), "uid:%u", i / 2);
        stress[i] = (struct stress){.plain = plain, .seed = 100 * i + n_workers};
        client_init(&stress[i].client, i, tenant, 16, 2 * MiB);
        stress[i].nbytes = put_chunk(&stress[i].client, 0, plain, STRESS_CHUNK);
        pthread_create(&stress[i].thread, NULL, stress_client, &stress[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        pthread_join(stress[i].thread, NULL);
        cr_assert_eq(stress[i].n_bad, 0);
        client_deinit(&stress[i].client);
    }
    stop_daemon();
    free(plain);
}

Test(wharfd_front, no_wake_up_is_lost_with_one_worker)
{
    run_stress(1, 50000);
}

Test(wharfd_front, no_wake_up_is_lost_with_several_workers)
{
    run_stress(3, 50000);
}

Test(wharfd_front, no_wake_up_is_lost_without_spinning)
{
    run_stress(2, 0);
}
