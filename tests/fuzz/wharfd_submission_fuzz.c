/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions: any bytes in a client's ring and arena, any indices, in any order with what the
 * daemon's threads do.  Every submission that was taken has one completion, with its number, and
 * when all is over nothing is left queued, charged or used.
 *
 * An input is a list of steps, a byte each with what it needs behind it: see do_step.  There are no
 * threads: up to two pieces are under way at a time, and end when a step says so.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/loop.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/dispatch/batch_open.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/gpu_memory.h"
#include "encoders/wharf_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum {
    N_ENTRIES = 8,
    ARENA_NBYTES = 1 << 16,
    /* What inputs find in the arena: a zlib stream, the same as raw Deflate, a batch's table. */
    PLAIN_NBYTES = 1000,
    TABLE_OFFSET = 8192,
    N_CHUNKS = 5,
    OUTPUT_OFFSET = 16384,
    N_PIECES = 2,
    STEPS_AT_MOST = 400,
};

static void check(int good)
{
    if (!good)
        abort();
}

/* ---- the daemon ---------------------------------------------------------------------------- */

static struct wharf_config config;
static struct wharf_core core;
static struct wharf_gpu_memory gpu_memory = {.is_device = true};
static struct wharf_loop *loop;

static void on_wake(void *context)
{
    (void)context;
}

static void set_up(void)
{
    static bool is_up;

    if (is_up)
        return;
    is_up = true;
    wharf_config_init(&config);
    config.quota.max_batch_chunks = 64;
    config.quota.max_job_nbytes = ARENA_NBYTES;
    check(wharf_loop_new(WHARF_LOOP_EPOLL, &loop) == 0);
    wharf_loop_on_wake(loop, on_wake, NULL);
    check(wharf_core_init(&core, &config, loop) == 0);
    core.workers.n_workers = 1;
}

/* A piece that an engine has. */
struct under_way {
    struct wharf_decode_poll poll;
    struct wharf_piece piece;
    bool is_there;
};

/* ---- a client ------------------------------------------------------------------------------ */

struct client {
    struct wharf_session *session;
    struct wharf_ring_c *c;
    struct wharf_submission *submissions;
    const struct wharf_completion *completions;
    uint8_t *arena;
    size_t ring_nbytes;
    /* Numbers of submissions that were taken, and of completions, added up. */
    uint64_t taken_sum, completed_sum;
    uint32_t n_taken, n_completed;
    struct under_way pieces[N_PIECES];
};

static void fill_arena(uint8_t *arena)
{
    uint8_t plain[PLAIN_NBYTES];
    uLongf nbytes = TABLE_OFFSET;

    for (unsigned i = 0; i < PLAIN_NBYTES; i++)
        plain[i] = (uint8_t)(i * i / 7);
    check(compress2(arena, &nbytes, plain, PLAIN_NBYTES, 6) == Z_OK);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        struct wharf_chunk chunk = {
            .src_nbytes = (uint32_t)nbytes,
            .dst_offset = OUTPUT_OFFSET + i * PLAIN_NBYTES,
            .dst_nbytes = PLAIN_NBYTES,
            /* The last one's goes to GPU memory, that before it comes from there. */
            .dst_region = i == N_CHUNKS - 1,
            .src_region = i == N_CHUNKS - 2,
        };
        memcpy(arena + TABLE_OFFSET + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
}

static void client_init(struct client *client, uint64_t id, const char *tenant_name)
{
    struct wharf_session_options options = {
        .id = id,
        .n_entries = N_ENTRIES,
        .arena_nbytes = ARENA_NBYTES,
        .n_regions = 2,
        .max_job_nbytes = config.quota.max_job_nbytes,
        .max_batch_chunks = config.quota.max_batch_chunks,
        .max_compress_nbytes = config.quota.max_compress_nbytes,
        .brought_fd = -1,
        .default_class = WHARF_CLASS_NORMAL,
    };

    memset(client, 0, sizeof(*client));
    wharf_core_enter(&core);
    struct wharf_tenant *tenant = wharf_tenants_get(&core.tenants, tenant_name, &config);
    wharf_core_leave(&core);
    check(tenant && wharf_session_new(&options, tenant, &client->session) == 0);
    client->ring_nbytes = wharf_ring_segment_nbytes(N_ENTRIES);
    void *c = mmap(NULL, client->ring_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                   client->session->c.fd, 0);
    check(c != MAP_FAILED);
    client->c = c;
    client->submissions = (void *)((char *)c + WHARF_RING_ENTRIES_OFFSET);
    client->completions =
        (const void *)((char *)client->session->d.address + WHARF_RING_ENTRIES_OFFSET);
    client->arena = client->session->regions[0].segment.address;
    fill_arena(client->arena);
    /* GPU memory, which no thread of the CPU may touch: it is nowhere, and of a GPU that is not
     * there. */
    client->session->regions[1] = (struct wharf_region){
        .number = 1,
        .is_there = true,
        .is_device = true,
        .segment = {.nbytes = ARENA_NBYTES, .fd = -1},
        .memory = &gpu_memory,
    };
    wharf_core_enter(&core);
    wharf_core_add_session(&core, client->session);
    wharf_core_watch(&core, client->session, wharf_now_ns());
    wharf_core_leave(&core);
}

/* Whether the loop thread was told that nobody uses the session any more. */
static bool is_free(const struct client *client)
{
    enum wharf_session_news news;
    struct wharf_session *session;
    bool found = false;

    wharf_core_enter(&core);
    while ((session = wharf_core_next_news(&core, &news)))
        found |= session == client->session && news == WHARF_SESSION_IS_FREE;
    wharf_core_leave(&core);
    return found;
}

/* ---- what threads do ----------------------------------------------------------------------- */

static void look(struct client *client, bool by_doorbell)
{
    wharf_core_enter(&core);
    if (by_doorbell)
        wharf_core_doorbell(&core, client->session, 1);
    else
        wharf_core_poll_rings(&core);
    wharf_core_leave(&core);
}

static void begin_piece(struct client *client, struct under_way *at, uint64_t most_ns)
{
    if (at->is_there)
        return;
    wharf_core_enter(&core);
    at->is_there = wharf_core_next(&core, most_ns, &at->piece);
    core.workers.n_short += at->is_there;
    wharf_core_leave(&core);
    if (at->is_there)
        check(at->piece.job->session == client->session);
}

static uint32_t ask(struct wharf_decode_poll *poll)
{
    struct under_way *at = (struct under_way *)poll;

    wharf_core_enter(&core);
    wharf_core_going_on(&core, &at->piece, wharf_now_ns());
    wharf_core_leave(&core);
    return at->piece.job->stopped;
}

static void end_piece(struct under_way *at)
{
    static struct wharf_cpu_buffer buffer;

    if (!at->is_there)
        return;
    at->poll.ask = ask;
    if (at->piece.kind == WHARF_PIECE_OPEN)
        wharf_batch_open(&core, &at->piece);
    else
        wharf_cpu_run(&core, &buffer, &at->piece,
                      &(struct wharf_cpu_others){&at->poll, NULL, NULL});
    wharf_core_enter(&core);
    core.workers.n_short--;
    wharf_core_done(&core, &at->piece);
    wharf_core_leave(&core);
    at->is_there = false;
}

/* ---- steps --------------------------------------------------------------------------------- */

struct input {
    const uint8_t *data;
    size_t nbytes;
};

/* The next bytes, or zeros. */
static void take(struct input *input, void *to, size_t nbytes)
{
    size_t n = nbytes < input->nbytes ? nbytes : input->nbytes;

    memset(to, 0, nbytes);
    if (n)
        memcpy(to, input->data, n);
    input->data += n;
    input->nbytes -= n;
}

/* Some bytes at some place. */
static void write_bytes(struct input *input, uint8_t *to, size_t to_nbytes)
{
    uint8_t bytes[32];
    uint16_t at, n;

    take(input, &at, sizeof(at));
    take(input, &n, sizeof(n));
    n = (uint16_t)(1 + n % sizeof(bytes));
    take(input, bytes, n);
    memcpy(to + at % (to_nbytes - sizeof(bytes)), bytes, n);
}

/* A submission as it is wanted, in its place, and its publication. */
static void submit(struct input *input, struct client *client)
{
    uint32_t tail = client->c->sq_tail;

    take(input, &client->submissions[tail % N_ENTRIES], sizeof(struct wharf_submission));
    wharf_ring_store_cq_head(&client->c->cq_head, client->session->ring.cq_woken);
    wharf_ring_store_sq_tail(&client->c->sq_tail, tail + 1);
}

static void do_step(struct input *input, struct client *client)
{
    uint8_t step;
    uint32_t index;

    take(input, &step, 1);
    switch (step % 12) {
    case 0:
    case 1:
        submit(input, client);
        break;
    case 2:
        write_bytes(input, client->arena, ARENA_NBYTES);
        break;
    case 3:
        write_bytes(input, (uint8_t *)client->c, client->ring_nbytes);
        break;
    case 4:
        take(input, &index, sizeof(index));
        wharf_ring_store_sq_tail(&client->c->sq_tail, index);
        break;
    case 5:
        take(input, &index, sizeof(index));
        wharf_ring_store_cq_head(&client->c->cq_head, index);
        break;
    case 6:
    case 7:
        look(client, step % 2);
        break;
    case 8:
        begin_piece(client, &client->pieces[step / 12 % N_PIECES], WHARF_NEVER);
        break;
    case 9:
        begin_piece(client, &client->pieces[step / 12 % N_PIECES], 20000);
        break;
    case 10:
        end_piece(&client->pieces[step / 12 % N_PIECES]);
        break;
    default:
        /* Workers fall asleep, or are there again; rarely the session is drained. */
        wharf_core_enter(&core);
        core.workers.n_awake = step / 12 % 2;
        if (step >= 240)
            wharf_core_drain_session(&core, client->session);
        wharf_core_leave(&core);
    }
}

/* ---- the end ------------------------------------------------------------------------------- */

/* What a step took and completed: of what was in the ring then. */
static void count(struct client *client)
{
    const struct wharf_ring_daemon *ring = &client->session->ring;

    check(ring->sq_head - client->n_taken <= N_ENTRIES);
    check(ring->cq_tail - client->n_completed <= N_ENTRIES);
    for (; client->n_taken != ring->sq_head; client->n_taken++)
        client->taken_sum += client->submissions[client->n_taken % N_ENTRIES].user_data;
    for (; client->n_completed != ring->cq_tail; client->n_completed++)
        client->completed_sum += client->completions[client->n_completed % N_ENTRIES].user_data;
}

/* All that was taken is done and completed, once. */
static void finish(struct client *client)
{
    struct wharf_session *session = client->session;

    for (unsigned i = 0; i < 200; i++) {
        look(client, false);
        for (unsigned k = 0; k < N_PIECES; k++) {
            end_piece(&client->pieces[k]);
            begin_piece(client, &client->pieces[k], WHARF_NEVER);
        }
        count(client);
    }
    check(session->n_in_flight == 0 && session->n_pieces == 0);
    check(wharf_place_n_queued(&core) == 0 && !core.deadlines.root);
    check(session->regions[0].n_users == 0);
    check(session->is_broken || client->n_taken == client->n_completed);
    check(session->is_broken || client->taken_sum == client->completed_sum);
}

static void client_deinit(struct client *client)
{
    struct wharf_session *session = client->session;

    wharf_core_kill_session(&core, session);
    for (unsigned k = 0; k < N_PIECES; k++)
        end_piece(&client->pieces[k]);
    check(is_free(client));
    check(wharf_place_n_queued(&core) == 0 && !core.deadlines.root && !wharf_core_watches(&core));
    check(session->tenant->used.memory_nbytes == 0);
    munmap(client->c, client->ring_nbytes);
    wharf_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct input input = {data, nbytes};
    struct client client;
    uint8_t ends_at_once;

    set_up();
    core.workers.n_awake = 1;
    client_init(&client, 1, "uid:1");
    take(&input, &ends_at_once, 1);
    for (unsigned i = 0; i < STEPS_AT_MOST && input.nbytes; i++) {
        do_step(&input, &client);
        count(&client);
    }
    if (ends_at_once % 2 == 0)
        finish(&client);
    client_deinit(&client);
    return 0;
}
