/* SPDX-License-Identifier: Apache-2.0 */
/* test_engines.c: simulates a machine with CPUs and a GPU, event by event (test_engines.h). */
#include "tests/lib/test_engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/job.h"
#include "daemon/core/residency.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_pick.h"
#include "daemon/schedule/sched.h"
#include "tests/lib/test_bare.h"
#include "tests/lib/test_random.h"

/* A processor that was idle for so long is asleep. */
#define AWAKE_NS 20000u
/* The kernel of warps stays for so long after there were many items. */
#define MANY_FOR_NS 2000000u

static struct test_engines_machine machine;
static struct test_engines_load load;
static struct test_engines_result result;
static struct wharf_core core;
static struct wharf_tenant tenant;
static struct wharf_region region;
static struct wharf_gpu_memory memory;
static struct wharf_session *sessions;
static struct test_random rng;
static uint64_t now_ns;

/* ---- events -------------------------------------------------------------------------------- */

enum event_kind { SUBMITS, PROCESSOR_ENDS, GPU_ENDS, FEEDER_IS_FREE };

struct event {
    uint64_t at_ns;
    enum event_kind kind;
    uint32_t index; /* the chunk's or processor's */
};

/* A heap of events, the earliest first. */
static struct event *events;
static size_t n_events, most_events;

static void happens(uint64_t at_ns, enum event_kind kind, uint32_t index)
{
    if (n_events == most_events) {
        most_events = most_events ? 2 * most_events : 1024;
        events = realloc(events, most_events * sizeof(*events));
    }
    size_t at = n_events++;
    for (; at > 0 && events[(at - 1) / 2].at_ns > at_ns; at = (at - 1) / 2)
        events[at] = events[(at - 1) / 2];
    events[at] = (struct event){at_ns, kind, index};
}

static struct event next_event(void)
{
    struct event first = events[0], last = events[--n_events];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < n_events; at = child) {
        if (child + 1 < n_events && events[child + 1].at_ns < events[child].at_ns)
            child++;
        if (events[child].at_ns >= last.at_ns)
            break;
        events[at] = events[child];
    }
    events[at] = last;
    return first;
}

/* ---- chunks -------------------------------------------------------------------------------- */

struct chunk {
    struct wharf_job job;
    struct wharf_piece piece;
    struct wharf_gpu_round round;
    uint32_t client;
    uint64_t handed_ns;
};
static struct chunk *chunks;
static uint64_t *client_free_ns;
/* When the core lock is free again: only one holder at a time. */
static uint64_t lock_free_ns;

static uint32_t index_of(const struct wharf_job *job)
{
    return (uint32_t)((const struct chunk *)(const void *)job - chunks);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void submit(struct chunk *chunk)
{
    struct wharf_job *job = &chunk->job;

    test_bare_job_init(job, &sessions[chunk->client], load.codec, load.in_nbytes, load.out_nbytes,
                       &region, &region);
    job->taken_ns = now_ns;
    job->estimate_ns =
        wharf_estimate_ns(&tenant.estimates, load.codec, load.in_nbytes, load.out_nbytes);
    wharf_place_push(&core, job, false);
}

/* Takes a chunk from its queue, as wharf_core_take does. */
static void take(struct chunk *chunk, bool is_gpu, uint64_t estimate_ns)
{
    struct wharf_job *job = &chunk->job;

    chunk->piece = (struct wharf_piece){
        .kind = WHARF_PIECE_CHUNK,
        .job = job,
        .n_chunks = 1,
        .pool = job->pool,
        .estimate_ns = estimate_ns,
        .source_nbytes = load.in_nbytes,
        .capacity_nbytes = load.out_nbytes,
        .begun_ns = now_ns,
    };
    wharf_place_remove(&core, job);
    wharf_sched_charge(&core.sched[job->pool], job, (int64_t)estimate_ns);
    if (is_gpu)
        wharf_place_took_by_gpu(&core, &chunk->piece, 0);
    else
        wharf_place_took_by_cpu(&core, &chunk->piece);
}

/* Returns a chunk to its client, who submits it again after client_ns. */
static void give_back(struct chunk *chunk, bool is_gpu, uint64_t took_ns)
{
    chunk->piece.ended_ns = now_ns;
    wharf_place_learn(&core, &chunk->piece, took_ns);
    result.n_chunks++;
    result.n_gpu += is_gpu;
    uint64_t at_ns = later(now_ns, client_free_ns[chunk->client]) + machine.client_ns;
    client_free_ns[chunk->client] = at_ns;
    happens(at_ns, SUBMITS, (uint32_t)(chunk - chunks));
}

/* ---- processors ---------------------------------------------------------------------------- */

struct processor {
    uint32_t chunk;
    bool is_busy;
    uint64_t idle_since_ns;
    uint64_t took_ns;
};
static struct processor *processors;
static unsigned n_idle;

static uint64_t noisy(uint64_t ns)
{
    uint64_t most = ns * machine.noise_percent / 100;

    /* Now and then, another program takes the processor. */
    if (machine.noise_percent > 0 && test_random_below(&rng, 50) == 0)
        ns *= 2;
    return ns + (most ? test_random_below(&rng, (uint32_t)most) : 0);
}

static void begin_on(struct processor *processor, struct chunk *chunk)
{
    uint64_t begun_ns = now_ns;

    if (now_ns - processor->idle_since_ns > AWAKE_NS)
        begun_ns += machine.wake_ns;
    take(chunk, false, chunk->job.estimate_ns);
    lock_free_ns = later(lock_free_ns, begun_ns) + machine.lock_ns;
    processor->is_busy = true;
    processor->chunk = (uint32_t)(chunk - chunks);
    processor->took_ns = noisy(load.cpu_ns);
    core.workers.n_sleeping = --n_idle;
    happens(lock_free_ns + processor->took_ns, PROCESSOR_ENDS, (uint32_t)(processor - processors));
}

/* The idle processor that was busy last. */
static struct processor *idle_one(void)
{
    struct processor *best = NULL;

    for (unsigned i = 0; i < machine.n_processors; i++)
        if (!processors[i].is_busy && (!best || processors[i].idle_since_ns > best->idle_since_ns))
            best = &processors[i];
    return best;
}

static void serve_processors(void)
{
    while (n_idle > 0 && wharf_place_n_for_cpu(&core) > 0) {
        struct wharf_job *job = wharf_place_first_for_cpu(&core, WHARF_NEVER);
        if (!job)
            return;
        begin_on(idle_one(), &chunks[index_of(job)]);
    }
}

static void end_on(struct processor *processor)
{
    processor->is_busy = false;
    processor->idle_since_ns = now_ns;
    core.workers.n_sleeping = ++n_idle;
    give_back(&chunks[processor->chunk], false, processor->took_ns);
}

/* ---- the GPU ------------------------------------------------------------------------------- */

/* The decoders of the GPU: a heap of the times at which each is free. */
struct servers {
    uint64_t *free_ns;
    unsigned n;
};
static struct servers blocks, warps;
static uint64_t link_free_ns, feeder_free_ns, many_at_ns;
static uint32_t *done; /* a ring of chunks that are done and not yet noticed by the feeder */
static uint32_t n_done_in, n_done_out, n_places;
static bool feeder_is_called;

static struct servers servers_of(unsigned n)
{
    return (struct servers){calloc(n + 1, sizeof(uint64_t)), n};
}

/* Makes the earliest one busy until then. */
static void occupy_first(struct servers *servers, uint64_t until_ns)
{
    unsigned at = 0;

    for (unsigned child; (child = 2 * at + 1) < servers->n; at = child) {
        if (child + 1 < servers->n && servers->free_ns[child + 1] < servers->free_ns[child])
            child++;
        if (servers->free_ns[child] >= until_ns)
            break;
        servers->free_ns[at] = servers->free_ns[child];
    }
    servers->free_ns[at] = until_ns;
}

static bool are_blocks(void)
{
    if (core.fleet.gpus[0].n_in_flight > machine.n_few)
        many_at_ns = now_ns;
    return machine.n_blocks > 0 && load.block_ns > 0 &&
           (many_at_ns == 0 || now_ns - many_at_ns >= MANY_FOR_NS);
}

static void hand_over(struct chunk *chunk)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    uint64_t nbytes = load.in_nbytes + load.out_nbytes;
    uint64_t estimate_ns = wharf_place_warp_ns(0, &chunk->job, load.in_nbytes, load.out_nbytes);

    take(chunk, true, estimate_ns / gpu->n_warps);
    gpu->n_in_flight++;
    gpu->in_flight_ns += estimate_ns;
    gpu->in_flight_nbytes += nbytes;
    chunk->handed_ns = now_ns;
    chunk->round = (struct wharf_gpu_round){
        .estimate_ns = estimate_ns,
        .nbytes = gpu->in_flight_nbytes,
        .n_there = gpu->n_in_flight,
    };
    bool by_block = are_blocks();
    struct servers *servers = by_block ? &blocks : &warps;
    uint64_t begun_ns = later(now_ns + machine.latency_ns / 2, servers->free_ns[0]);
    uint64_t ended_ns = begun_ns + (by_block ? load.block_ns : load.warp_ns);
    link_free_ns = later(now_ns, link_free_ns) + nbytes * machine.link_ps_per_kib / 1024 / 1000;
    ended_ns = later(ended_ns, link_free_ns);
    occupy_first(servers, ended_ns);
    chunk->piece.warp_ns = chunk->round.decode_ns = ended_ns - begun_ns;
    happens(ended_ns + load.way_ns + machine.latency_ns / 2, GPU_ENDS, (uint32_t)(chunk - chunks));
}

static void notice(struct chunk *chunk)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];

    gpu->n_in_flight--;
    gpu->in_flight_ns -= chunk->round.estimate_ns;
    gpu->in_flight_nbytes -= load.in_nbytes + load.out_nbytes;
    chunk->round.elapsed_ns = now_ns - chunk->handed_ns;
    wharf_place_learn_latency(gpu, &chunk->piece, &chunk->round);
    give_back(chunk, true, chunk->piece.warp_ns / gpu->n_warps);
}

/* Lets the feeder do one thing, if it is free and there is one. */
static void serve_gpu(void)
{
    struct wharf_job *job = NULL;

    if (now_ns < feeder_free_ns)
        return;
    if (n_done_out != n_done_in)
        notice(&chunks[done[n_done_out++ % n_places]]);
    else if (wharf_place_gpu_has_room(&core, 0) && (job = wharf_place_first_for_gpu(&core, 0)))
        hand_over(&chunks[index_of(job)]);
    else
        return;
    /* It holds the lock for half of its time. */
    lock_free_ns = later(lock_free_ns, now_ns) + machine.feed_ns / 4;
    feeder_free_ns = lock_free_ns + machine.feed_ns / 4;
    if (!feeder_is_called)
        happens(feeder_free_ns, FEEDER_IS_FREE, 0);
    feeder_is_called = true;
}

/* ---- the simulation ------------------------------------------------------------------------ */

static uint32_t price(uint64_t ns, const struct test_engines_load *of)
{
    return (uint32_t)(ns * 1024 / (of->in_nbytes + of->out_nbytes)) + 1;
}

void test_engines_start(const struct test_engines_machine *with,
                        const struct test_engines_load *samples)
{
    uint32_t cpu_prices[WHARF_N_CODECS] = {0}, gpu_prices[WHARF_N_CODECS] = {0};

    machine = *with;
    test_bare_core_init(&core, 1);
    core.workers.n_workers = machine.n_processors;
    core.fleet.gpus[0] = (struct wharf_gpu_view){
        .n_warps = machine.n_warps,
        .latency_ns = machine.latency_ns,
    };
    cpu_prices[samples->codec] = price(samples->cpu_ns, samples);
    gpu_prices[samples->codec] =
        price(samples->block_ns ? samples->block_ns : samples->warp_ns, samples);
    test_bare_tenant_init(&tenant);
    wharf_estimates_init(&tenant.estimates, cpu_prices);
    wharf_gpu_costs_init(&tenant.gpu_costs[0], gpu_prices, machine.latency_ns);
    memset(&memory, 0, sizeof(memory));
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    region = (struct wharf_region){.is_there = true, .memory = &memory};
    rng.state = 1;
    now_ns = WHARF_NS_PER_S;
}

void test_engines_stop(void)
{
    wharf_core_deinit(&core);
}

static void make_clients(void)
{
    sessions = calloc(load.n_clients, sizeof(*sessions));
    client_free_ns = calloc(load.n_clients, sizeof(*client_free_ns));
    n_places = load.n_clients * load.depth;
    chunks = calloc(n_places, sizeof(*chunks));
    done = calloc(n_places, sizeof(*done));
    for (unsigned i = 0; i < load.n_clients; i++) {
        test_bare_session_init(&sessions[i], &tenant, load.engine);
    }
    for (uint32_t i = 0; i < n_places; i++) {
        chunks[i].client = i % load.n_clients;
        happens(now_ns + (i / load.n_clients + 1) * machine.client_ns, SUBMITS, i);
    }
}

static void make_engines(void)
{
    processors = calloc(machine.n_processors, sizeof(*processors));
    n_idle = core.workers.n_sleeping = machine.n_processors;
    blocks = servers_of(machine.n_blocks);
    warps = servers_of(machine.n_warps);
    link_free_ns = feeder_free_ns = lock_free_ns = many_at_ns = 0;
    n_done_in = n_done_out = 0;
    feeder_is_called = false;
    core.fleet.gpus[0].n_in_flight = 0;
    core.fleet.gpus[0].in_flight_ns = core.fleet.gpus[0].in_flight_nbytes = 0;
}

static void forget_all(void)
{
    for (unsigned i = 0; i < load.n_clients; i++)
        wharf_place_drop(&core, &sessions[i]);
    n_events = 0;
    free(events);
    events = NULL;
    most_events = 0;
    free(sessions);
    free(client_free_ns);
    free(chunks);
    free(done);
    free(processors);
    free(blocks.free_ns);
    free(warps.free_ns);
}

static void happen(const struct event *event)
{
    now_ns = later(now_ns, event->at_ns);
    switch (event->kind) {
    case SUBMITS:
        submit(&chunks[event->index]);
        break;
    case PROCESSOR_ENDS:
        end_on(&processors[event->index]);
        break;
    case GPU_ENDS:
        done[n_done_in++ % n_places] = event->index;
        break;
    case FEEDER_IS_FREE:
        feeder_is_called = false;
        break;
    }
    serve_gpu();
    serve_processors();
}

struct test_engines_result test_engines_run(const struct test_engines_load *of, uint64_t for_ns)
{
    uint64_t until_ns = now_ns + for_ns;

    load = *of;
    memset(&result, 0, sizeof(result));
    memset(tenant.stats.n_placed, 0, sizeof(tenant.stats.n_placed));
    make_clients();
    make_engines();
    while (now_ns < until_ns) {
        struct event event = next_event();
        happen(&event);
    }
    memcpy(result.n_placed, tenant.stats.n_placed, sizeof(result.n_placed));
    forget_all();
    return result;
}
