/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items on their way to the workers of two GPUs and back: the test is their threads and their
 * kernels, so each step comes when it says so.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_files.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "tests/lib/test_bare.h"

enum { N_GPUS = 2, N_CHUNKS = WHARF_WORK_N_CANCELS, N_JOBS = 4 };
#define UNTOUCHED 0xee

static struct wharf_core core;
static struct wharf_tenant tenant;
static struct wharf_session session;
static struct wharf_region region;
static struct wharf_gpu_memory memory;
static struct wharf_job jobs[N_JOBS];
static struct wharf_batch *batch;
static struct wharf_gpu_backend *backends[N_GPUS];
static struct wharf_work_poster kernels[N_GPUS];
static uint64_t now_ns;

/* Where the client has the results of its chunks. */
static struct wharf_chunk_result results[N_CHUNKS];

static void add_gpu(uint32_t gpu)
{
    struct wharf_gpu_backend *backend = calloc(1, sizeof(*backend));

    cr_assert_not_null(backend);
    backend->core = &core;
    backend->gpu = gpu;
    backend->view = &core.fleet.gpus[gpu];
    backend->engine = WHARF_ENGINE_GPU;
    backend->state = WHARF_GPU_UP;
    backend->view->may_come = true;
    backend->view->n_warps = 1000;
    cr_assert_eq(wharf_gpu_items_init(backend), 0);
    cr_assert_eq(wharf_gpu_items_begin(backend), 0);
    wharf_work_poster_init(&kernels[gpu], backend->queue.address, WHARF_GPU_N_ENTRIES);
    memory.on[gpu].state = WHARF_GPU_MEMORY_READY;
    backends[gpu] = backend;
}

static void make_session(void)
{
    test_bare_tenant_init(&tenant);
    wharf_estimates_init(&tenant.estimates, NULL);
    for (unsigned i = 0; i < N_GPUS; i++)
        wharf_estimates_init_device(&tenant.gpu_costs[i].warps, NULL);
    wharf_list_init(&memory.pin_link);
    region = (struct wharf_region){
        .is_there = true,
        .memory = &memory,
        .segment = {.address = results, .nbytes = sizeof(results)},
    };
    test_bare_session_init(&session, &tenant, WHARF_ENGINE_GPU);
    session.regions = &region;
    memset(results, UNTOUCHED, sizeof(results));
}

static void set_up(void)
{
    test_bare_core_init(&core, N_GPUS);
    make_session();
    for (uint32_t gpu = 0; gpu < N_GPUS; gpu++)
        add_gpu(gpu);
    now_ns = wharf_now_ns();
}

static void tear_down(void)
{
    for (uint32_t gpu = 0; gpu < N_GPUS; gpu++) {
        wharf_gpu_items_deinit(backends[gpu]);
        free(backends[gpu]);
    }
    free(batch);
    wharf_core_deinit(&core);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static struct wharf_job *make_job(unsigned i)
{
    test_bare_job_init(&jobs[i], &session, WHARF_CODEC_STORED, 1024, 1024, &region, &region);
    return &jobs[i];
}

/* Opened, of N_CHUNKS. */
static struct wharf_job *make_batch(unsigned i)
{
    static uint64_t first_region = 1;
    struct wharf_job *job = make_job(i);

    batch = calloc(1, sizeof(*batch) + N_CHUNKS * sizeof(batch->entries[0]));
    cr_assert_not_null(batch);
    batch->n_chunks = batch->n_handed_out = N_CHUNKS;
    batch->regions = &first_region;
    batch->n_region_words = 1;
    for (unsigned at = 0; at < N_CHUNKS; at++)
        batch->entries[at] = (struct wharf_batch_entry){
            .chunk = {.src_nbytes = 1024, .dst_nbytes = 1024},
            .source = &region,
            .destination = &region,
        };
    job->submission.opcode = WHARF_OP_BATCH;
    job->submission.dst_offset = 0;
    job->batch = batch;
    return job;
}

/* A piece of a job, of so many chunks. */
static void hand_over_some(uint32_t gpu, struct wharf_job *job, uint32_t n_chunks)
{
    struct wharf_piece piece = {
        .kind = job->batch ? WHARF_PIECE_SLICE : WHARF_PIECE_CHUNK,
        .job = job,
        .n_chunks = n_chunks,
        .pool = WHARF_POOL_GPU,
    };

    wharf_core_enter(&core);
    wharf_gpu_items_submit(backends[gpu], &piece, n_chunks, 1000, now_ns);
    wharf_core_leave(&core);
}

static void hand_over(uint32_t gpu, struct wharf_job *job)
{
    hand_over_some(gpu, job, job->batch ? job->batch->n_chunks : 1);
}

/* As the GPU's thread does, under the lock. */
static void exchange(uint32_t gpu)
{
    wharf_core_enter(&core);
    wharf_gpu_items_pump(backends[gpu], now_ns);
    wharf_core_leave(&core);
    wharf_gpu_items_publish(backends[gpu]);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static void complete(uint32_t gpu, uint32_t index, uint32_t attempt, uint32_t result)
{
    struct wharf_work_completion completion = {
        .item = index,
        .attempt = attempt,
        .result = (uint16_t)result,
        .in_nbytes = result == WHARF_OK ? 1024 : 0,
        .out_nbytes = result == WHARF_OK ? 1024 : 0,
    };

    wharf_work_post(&kernels[gpu], &completion);
}

/* Takes the cancels that there are: completes those items.  Returns how many. */
static uint32_t take_cancels(uint32_t gpu)
{
    const struct wharf_work_queue *queue = &kernels[gpu].queue;
    uint32_t n = queue->core->cancel_tail - queue->kernel->cancel_head;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = queue->kernel->cancel_head++ % WHARF_WORK_N_CANCELS;
        const struct wharf_work_cancel *cancel = &queue->core->cancels[at];
        complete(gpu, cancel->item, cancel->attempt, WHARF_CANCELLED);
    }
    return n;
}

/* Takes all that was published. */
static void take_items(uint32_t gpu)
{
    kernels[gpu].queue.kernel->head = kernels[gpu].queue.core->tail;
}

static void complete_well(uint32_t gpu, uint32_t index)
{
    complete(gpu, index, wharf_gpu_item_at(backends[gpu], index)->attempt, WHARF_OK);
}

static void reap(uint32_t gpu)
{
    wharf_gpu_results_reap(backends[gpu], now_ns);
    wharf_gpu_results_tell(backends[gpu]);
}

/* Whether the CPU's threads are given a piece of that job, and it is all of it. */
static bool cpu_has(const struct wharf_job *job)
{
    struct wharf_piece piece;

    wharf_core_enter(&core);
    bool has = wharf_retry_take(&core.retries, &piece);
    wharf_core_leave(&core);
    return has && piece.job == job && piece.n_chunks == (job->batch ? N_CHUNKS : 1);
}

static bool nothing_is_told(void)
{
    const uint8_t *bytes = (const uint8_t *)results;

    for (size_t i = 0; i < sizeof(results); i++)
        if (bytes[i] != UNTOUCHED)
            return false;
    return true;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Where the ring of cancels had room for some of a batch that took too long, and these came back
 * before the rest could be withdrawn too, its client was told CANCELLED of chunks that nobody had
 * cancelled. */
Test(wharfd_items, batch_that_is_taken_back_in_part_is_the_cpus, .init = set_up, .fini = tear_down)
{
    struct wharf_job *lone = make_job(0), *many = make_batch(1);

    session.engine = WHARF_ENGINE_AUTO;
    hand_over(0, lone);
    hand_over(0, many);
    uint32_t last = backends[0]->submitter.tail - 1;
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_assert_eq(take_cancels(0), WHARF_WORK_N_CANCELS, "the lone chunk's and all but one");
    complete(0, last, wharf_gpu_item_at(backends[0], last)->attempt, WHARF_OK);
    reap(0);
    cr_assert(nothing_is_told(), "a client has results of a batch that the CPU is to do");
    exchange(0);
    cr_assert(cpu_has(lone));
    cr_assert(cpu_has(many));
    cr_assert_eq(backends[0]->flight.n_places, 0);
    cr_assert_eq(backends[0]->view->n_given_up, 1 + N_CHUNKS);
}

/* Who wants the GPU alone is given nothing by the CPU for what takes long: chunks that came back in
 * time have their results, and each of the others waits for a place where it holds nobody up. */
Test(wharfd_items, who_wants_the_gpu_alone_has_other_places_there, .init = set_up,
     .fini = tear_down)
{
    struct wharf_gpu_large *large = &backends[0]->large;
    struct wharf_job *lone = make_job(0), *many = make_batch(1);
    struct wharf_piece piece;
    const struct wharf_work_item *item = large->warps.submitter.queue.items;

    large->n_places = 2;
    backends[0]->config.gpu_large_nbytes = 1 << 20;
    hand_over(0, lone);
    hand_over(0, many);
    uint32_t last = backends[0]->submitter.tail - 1;
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    complete(0, last, wharf_gpu_item_at(backends[0], last)->attempt, WHARF_OK);
    cr_assert_eq(take_cancels(0), WHARF_WORK_N_CANCELS, "the lone chunk's and all but one");
    reap(0);
    exchange(0);
    wharf_core_enter(&core);
    cr_assert_not(wharf_retry_take(&core.retries, &piece));
    wharf_core_leave(&core);
    cr_assert_eq(backends[0]->flight.n_places, 0);
    cr_assert_eq(large->n_taken, 2);
    cr_assert_eq(backends[0]->flight.n_without_places, 1 + N_CHUNKS);
    cr_assert(item[0].opcode == WHARF_WORK_DECODE_LARGE && item[0].dst_nbytes == 1024);
    /* It is under way for that long again, and stays. */
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_assert_eq(large->warps.submitter.cancel_tail, 0);
    now_ns += core.config.gpu_large_longest_ns;
    exchange(0);
    cr_assert_eq(large->warps.submitter.cancel_tail, 2, "not longer than such places are had");
}

/* A large chunk of the first GPU's, of a session that wants the GPU alone, under way. */
static void begin_large(struct wharf_job *job)
{
    backends[0]->large.n_places = 2;
    backends[0]->config.gpu_large_nbytes = 1 << 20;
    hand_over_some(0, job, 1);
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    take_items(0);
    cr_assert_eq(take_cancels(0), 1);
    reap(0);
    exchange(0);
    cr_assert_eq(backends[0]->large.n_taken, 1);
}

/* A suspect's chunk waited until no large chunk was under way, and all that others had for the GPU
 * with it: for a minute, or for ever where somebody had one large chunk after the other. */
Test(wharfd_items, no_suspect_waits_for_large_chunks, .init = set_up, .fini = tear_down)
{
    struct wharf_job *suspect = make_job(1), *next = make_job(2);
    uint32_t n_cancels;

    begin_large(make_job(0));
    core.fleet.gpus_up = 1;
    tenant.gpu_trust.n_alone = 3;
    wharf_place_push(&core, suspect, false);
    wharf_place_push(&core, next, false);
    n_cancels = backends[0]->large.warps.submitter.cancel_tail;
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 1, "the suspect's, and nothing beside it");
    /* Only what keeps others waiting is taken back soon. */
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_expect_eq(backends[0]->large.warps.submitter.cancel_tail, n_cancels);
    /* Nobody knows whose fault it was. */
    wharf_core_enter(&core);
    wharf_gpu_recovery_blame(backends[0], now_ns);
    wharf_core_leave(&core);
    cr_expect_eq(tenant.gpu_trust.n_worker_faults, 0);
}

/* It is alone as before when a large chunk that was there ends. */
Test(wharfd_items, end_of_a_large_chunk_clears_no_suspect, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_large *large = &backends[0]->large;
    struct wharf_work_poster kernel;

    begin_large(make_batch(0));
    wharf_work_poster_init(
        &kernel, wharf_worker_large_queue(backends[0]->queue.address, WHARF_GPU_N_ENTRIES),
        WHARF_WORKER_LARGE_ENTRIES);
    core.fleet.gpus_up = 1;
    tenant.gpu_trust.n_alone = 3;
    wharf_place_push(&core, make_job(1), false);
    wharf_place_push(&core, make_job(2), false);
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 1);
    kernel.queue.kernel->head = kernel.queue.core->tail;
    wharf_work_post(&kernel, &(struct wharf_work_completion){.item = large->places[0].index,
                                                             .attempt = large->places[0].attempt,
                                                             .result = WHARF_OK,
                                                             .in_nbytes = 1024,
                                                             .out_nbytes = 1024});
    cr_assert(wharf_gpu_large_reap(backends[0], now_ns));
    reap(0);
    /* It has no ring that could be looked at. */
    session.state = WHARF_SESSION_DRAINING;
    exchange(0);
    cr_expect_eq(large->n_taken, 0);
    cr_expect_eq(backends[0]->flight.n_items, 1);
    cr_expect(backends[0]->is_alone);
    cr_expect_eq(tenant.gpu_trust.n_alone, 3);
}

/* Who has not asked for a GPU is told nothing of how long it took. */
Test(wharfd_items, large_chunk_that_is_there_by_choice_is_the_cpus_after_its_time, .init = set_up,
     .fini = tear_down)
{
    const struct wharf_gpu_large_place *place = &backends[0]->large.places[0];
    struct wharf_job *job = make_job(0);
    struct wharf_work_poster kernel;

    begin_large(job);
    session.engine = WHARF_ENGINE_AUTO;
    now_ns += core.config.gpu_large_longest_ns;
    exchange(0);
    cr_assert(place->is_over);
    wharf_work_poster_init(
        &kernel, wharf_worker_large_queue(backends[0]->queue.address, WHARF_GPU_N_ENTRIES),
        WHARF_WORKER_LARGE_ENTRIES);
    kernel.queue.kernel->head = kernel.queue.core->tail;
    wharf_work_post(&kernel, &(struct wharf_work_completion){.item = place->index,
                                                             .attempt = place->attempt,
                                                             .result = WHARF_CANCELLED});
    cr_assert(wharf_gpu_large_reap(backends[0], now_ns));
    reap(0);
    /* It has no ring that could be looked at. */
    session.state = WHARF_SESSION_DRAINING;
    /* It is not the suspect's item that runs alone meanwhile. */
    backends[0]->is_alone = true;
    tenant.gpu_trust.n_alone = 3;
    exchange(0);
    cr_expect(cpu_has(job));
    cr_expect_eq(backends[0]->flight.n_without_places, 0);
    cr_expect(backends[0]->is_alone);
    cr_expect_eq(tenant.gpu_trust.n_alone, 3);
}

/* A suspect's large chunk waits for one that is there, as it would for a free place: only for what
 * is soon done do others wait too. */
Test(wharfd_items, no_other_waits_while_a_suspect_waits_for_a_large_chunk, .init = set_up,
     .fini = tear_down)
{
    struct wharf_job *large = make_job(1), *small = make_job(2);
    struct wharf_tenant other;
    struct wharf_session session_of_other;

    begin_large(make_job(0));
    core.fleet.gpus_up = 1;
    tenant.gpu_trust.n_alone = 3;
    large->submission.dst_nbytes = core.config.gpu_chunk_nbytes + 1;
    wharf_place_push(&core, large, false);
    test_bare_tenant_init(&other);
    wharf_estimates_init(&other.estimates, NULL);
    for (unsigned i = 0; i < N_GPUS; i++)
        wharf_estimates_init_device(&other.gpu_costs[i].warps, NULL);
    test_bare_session_init(&session_of_other, &other, WHARF_ENGINE_GPU);
    session_of_other.regions = &region;
    small->session = &session_of_other;
    wharf_place_push(&core, small, false);
    exchange(0);
    cr_expect_eq(backends[0]->large.n_taken, 1);
    cr_expect_eq(backends[0]->flight.n_items, 1, "nobody else is held up");
}

/* Nothing large was begun while a chunk that had been taken back waited for its memory to be pinned
 * anew, which others have to make room for. */
Test(wharfd_items, no_large_chunk_waits_for_another_ones_memory, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory other_memory = {.on[0].state = WHARF_GPU_MEMORY_READY};
    struct wharf_region other_region = region;
    struct wharf_job *lone = make_job(0), *other = make_job(1);

    backends[0]->large.n_places = 2;
    backends[0]->config.gpu_large_nbytes = 1 << 20;
    hand_over(0, lone);
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_assert_eq(take_cancels(0), 1);
    reap(0);
    memory.on[0].state = WHARF_GPU_MEMORY_ABSENT;
    core.fleet.gpus_up = 1;
    wharf_list_init(&other_memory.pin_link);
    other_region.memory = &other_memory;
    other->source = other->destination = &other_region;
    other->submission.dst_nbytes = core.config.gpu_chunk_nbytes + 1;
    wharf_place_push(&core, other, false);
    exchange(0);
    cr_expect_eq(backends[0]->large.n_taken, 1);
    cr_expect_not(wharf_list_is_empty(&backends[0]->large.waiting));
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    exchange(0);
    cr_expect_eq(backends[0]->large.n_taken, 2);
}

/* The settings are the core lock's, and the thread looks for what hangs without it. */
Test(wharfd_items, large_chunk_hangs_by_what_held_when_it_was_withdrawn, .init = set_up,
     .fini = tear_down)
{
    struct wharf_job *job = make_job(0);
    uint64_t hang_ns = core.config.gpu_hang_timeout_ns;

    begin_large(job);
    job->stopped = WHARF_CANCELLED;
    exchange(0);
    core.config.gpu_hang_timeout_ns *= 1000;
    cr_expect_not(wharf_gpu_large_hang(backends[0], now_ns + hang_ns));
    cr_expect(wharf_gpu_large_hang(backends[0], now_ns + hang_ns + 1));
}

/* What had been taken back by a worker that was dying waited for a place of the next one, which
 * there may never be. */
Test(wharfd_items, what_a_dying_worker_gave_back_is_the_cpus, .init = set_up, .fini = tear_down)
{
    struct wharf_job *lone = make_job(0);

    hand_over(0, lone);
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_assert_eq(take_cancels(0), 1);
    wharf_gpu_results_reap(backends[0], now_ns);
    backends[0]->state = WHARF_GPU_DYING;
    wharf_gpu_recovery_hand_on(backends[0]);
    wharf_gpu_results_tell(backends[0]);
    exchange(0);
    cr_expect(wharf_list_is_empty(&backends[0]->large.waiting));
    cr_expect(cpu_has(lone));
}

/* A worker's end leaves all that it had to the CPU's threads.  As long as these had not done it, no
 * other GPU was given anything: orphans of all counted against the places of each. */
Test(wharfd_items, requeued_jobs_of_one_gpu_hold_no_other_one_up, .init = set_up, .fini = tear_down)
{
    struct wharf_job *lost = make_job(0), *next = make_job(1);

    for (uint32_t i = 0; i < WHARF_GPU_N_ENTRIES; i++)
        hand_over(0, lost);
    backends[0]->state = WHARF_GPU_DYING;
    core.fleet.gpus_up = 2;
    wharf_gpu_recovery_hand_on(backends[0]);
    cr_assert_eq(core.retries.n, WHARF_GPU_N_ENTRIES);
    wharf_place_push(&core, next, false);
    exchange(1);
    cr_assert_eq(backends[1]->flight.n_items, 1);
    cr_assert_eq(wharf_place_n_queued(&core), 0);
}

/* Its own next worker waits for them: there is a gpu_piece for each place, and orphans have theirs
 * until a thread of the CPU has taken them, or has put them aside for a tenant that is
 * suspended. */
Test(wharfd_items, requeued_jobs_hold_their_own_gpu_up, .init = set_up, .fini = tear_down)
{
    struct wharf_job *lost = make_job(0), *next = make_job(1);
    struct wharf_piece piece;

    for (uint32_t i = 0; i < WHARF_GPU_N_ENTRIES; i++)
        hand_over(0, lost);
    wharf_gpu_recovery_hand_on(backends[0]);
    cr_assert_eq(wharf_gpu_items_begin(backends[0]), 0);
    core.fleet.gpus_up = 1;
    wharf_place_push(&core, next, false);
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 0);
    tenant.is_suspended = true;
    cr_assert_not(wharf_retry_take(&core.retries, &piece));
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 0);
    tenant.is_suspended = false;
    wharf_retry_resume(&core.retries);
    cr_assert(cpu_has(lost));
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 1);
}

/* A worker calls all that is withdrawn cancelled; a client is told what stopped its job. */
Test(wharfd_items, chunks_of_a_batch_that_ran_out_of_time_say_so, .init = set_up, .fini = tear_down)
{
    struct wharf_job *many = make_batch(0);

    hand_over(0, many);
    exchange(0);
    many->stopped = WHARF_DEADLINE;
    core.n_stopped++;
    exchange(0);
    cr_assert_eq(take_cancels(0), N_CHUNKS);
    reap(0);
    for (unsigned i = 0; i < N_CHUNKS; i++)
        cr_assert_eq(results[i].result, WHARF_DEADLINE, "chunk %u: %u", i, results[i].result);
}

/* A worker that ends in the middle of that: none of it has a result. */
Test(wharfd_items, batch_taken_back_in_part_from_a_worker_that_ends_is_the_cpus, .init = set_up,
     .fini = tear_down)
{
    struct wharf_job *lone = make_job(0), *many = make_batch(1);
    struct wharf_piece piece;
    unsigned n = 0;

    hand_over(0, lone);
    hand_over(0, many);
    now_ns += core.config.gpu_longest_ns + 1;
    exchange(0);
    cr_assert_eq(take_cancels(0), WHARF_WORK_N_CANCELS, "the lone chunk's and all but one");
    reap(0);
    wharf_core_enter(&core);
    wharf_gpu_retry_cut(backends[0],
                        WHARF_LIST_FIRST(&backends[0]->under_way, struct wharf_gpu_piece, link));
    while (wharf_retry_take(&core.retries, &piece))
        n += piece.job == many && piece.n_chunks == 1;
    wharf_core_leave(&core);
    cr_assert(nothing_is_told());
    cr_assert_eq(n, N_CHUNKS);
}

/* ---- places -------------------------------------------------------------------------------- */

/* As many items as there are places, of a batch that does not end with them. */
static void fill_places(void)
{
    struct wharf_job *many = make_batch(0);

    batch->n_chunks = UINT32_MAX;
    /* It has no ring that could be watched. */
    session.state = WHARF_SESSION_DRAINING;
    many->n_pieces = session.n_pieces = WHARF_GPU_N_ENTRIES;
    for (uint32_t i = 0; i < WHARF_GPU_N_ENTRIES; i++)
        hand_over_some(0, many, 1);
    wharf_gpu_items_publish(backends[0]);
    core.fleet.gpus_up = 1;
}

/* Items from `first` on, one of so many, are done. */
static void end_items(uint32_t first, uint32_t step)
{
    for (uint32_t i = first; i < WHARF_GPU_N_ENTRIES; i += step)
        complete_well(0, i);
    while (wharf_gpu_results_reap(backends[0], now_ns))
        ;
    while (!wharf_list_is_empty(&backends[0]->finished)) {
        wharf_gpu_results_tell(backends[0]);
        exchange(0);
    }
}

/* Places were used in their order: one item that took long kept all waiting whose indices had come
 * round to its place, though all others were free. */
Test(wharfd_items, long_item_holds_nobody_up, .init = set_up, .fini = tear_down)
{
    struct wharf_job *next = make_job(1);

    fill_places();
    take_items(0);
    end_items(1, 1);
    cr_assert_eq(backends[0]->flight.n_items, 1);
    wharf_place_push(&core, next, false);
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 2);
    cr_assert_eq(backends[0]->submitter.tail, WHARF_GPU_N_ENTRIES + 2);
    cr_assert_eq(wharf_gpu_item_at(backends[0], 0)->piece->first, 0);
    cr_assert_eq(wharf_gpu_item_at(backends[0], 1)->piece->piece.job, next);
}

/* What no kernel has taken yet is not to be written over. */
Test(wharfd_items, item_that_was_not_taken_keeps_its_place, .init = set_up, .fini = tear_down)
{
    struct wharf_job *next = make_job(1);

    fill_places();
    end_items(1, 1);
    wharf_place_push(&core, next, false);
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_items, 1);
    cr_assert_eq(backends[0]->submitter.tail, WHARF_GPU_N_ENTRIES);
}

/* Parts of a chunk want places in a row.  Those between are passed by too; and where none are in a
 * row anywhere, not more than a round. */
Test(wharfd_items, parts_find_places_in_a_row, .init = set_up, .fini = tear_down)
{
    struct wharf_job *next = make_job(1);

    fill_places();
    take_items(0);
    end_items(1, 2);
    next->submission.codec = WHARF_CODEC_RANS;
    next->submission.dst_nbytes = 2 * core.config.gpu_chunk_nbytes;
    wharf_place_push(&core, next, false);
    for (unsigned i = 0; i < 100; i++) {
        exchange(0);
        take_items(0);
    }
    cr_assert_eq(backends[0]->flight.n_items, WHARF_GPU_N_ENTRIES / 2);
    cr_assert_leq(backends[0]->submitter.tail, 2 * WHARF_GPU_N_ENTRIES + 2);
    for (uint32_t i = 5000; i < 5008; i += 2)
        complete_well(0, i);
    wharf_gpu_results_reap(backends[0], now_ns);
    wharf_gpu_results_tell(backends[0]);
    for (unsigned i = 0; i < 100 && wharf_place_n_queued(&core) > 0; i++) {
        exchange(0);
        take_items(0);
    }
    cr_assert_eq(wharf_place_n_queued(&core), 0);
    cr_assert_eq(wharf_gpu_item_at(backends[0], 5000)->piece->piece.job, next);
}

/* They take no gpu_piece more than they have: as many as a worker can have are not too many. */
Test(wharfd_items, chunks_kept_from_a_worker_find_places_however_many_they_are, .init = set_up,
     .fini = tear_down)
{
    backends[0]->flight.n_without_places = WHARF_GPU_N_ENTRIES;
    cr_assert(wharf_gpu_items_find_place(backends[0]));
    backends[0]->flight.n_without_places = 0;
}

/* ---- sources in files ---------------------------------------------------------------------- */

static struct wharf_gpu_memory area;
/* And what was read ahead. */
static struct wharf_file_slot heads[WHARF_FILE_MOST_UNITS + 1];

/* The read that was asked for last has ended. */
static void answer(const struct wharf_file_staging *staging, int process)
{
    struct wharf_file_request request;

    wharf_gpu_files_publish(backends[0]);
    cr_assert_eq(recv(process, &request, sizeof(request), MSG_DONTWAIT), sizeof(request));
    cr_assert(request.op == WHARF_FILE_STAGE && request.nbytes == 1024);
    staging->heads[request.slot].nbytes = 1024;
    staging->heads[request.slot].is_done = 1;
    wharf_gpu_files_reap(backends[0], now_ns);
}

/* A session with a file, whose process is the test, and a job from there to a client's GPU memory;
 * its read is about to be asked for. */
struct file_scene {
    struct wharf_file_staging *staging;
    struct wharf_file_io io;
    struct wharf_region file;
    int process;
};

static void begin_file_scene(struct file_scene *scene)
{
    int sockets[2];

    *scene = (struct file_scene){
        .staging = wharf_file_staging_new(NULL),
        .file = {.is_there = true, .is_file = true},
    };
    cr_assert(scene->staging && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
    scene->io =
        (struct wharf_file_io){.staging = scene->staging,
                               .timeout_ns = UINT64_MAX / 2,
                               .socket = sockets[0],
                               .memory = {.address = heads, .nbytes = sizeof(heads), .fd = -1}};
    scene->process = sockets[1];
    memset(heads, 0, sizeof(heads));
    scene->staging->heads = heads;
    scene->staging->account = &area;
    wharf_list_init(&area.pin_link);
    area.on[0].state = WHARF_GPU_MEMORY_READY;
    session.file_io = &scene->io;
    region.is_device = true;
    core.fleet.gpus_up = 1;
}

static void end_file_scene(struct file_scene *scene)
{
    close(scene->io.socket);
    close(scene->process);
    wharf_file_staging_free(scene->staging);
}

static void begin_file_job(struct file_scene *scene)
{
    test_bare_job_init(&jobs[0], &session, WHARF_CODEC_STORED, 1024, 1024, &scene->file, &region);
    wharf_place_push(&core, &jobs[0], false);
    exchange(0);
    cr_assert_eq(area.on[0].n_pieces, 1);
}

/* A source that was read waited for its memory, which had to leave the GPU and waited for it: for
 * ever, and whoever was to have that room with them. */
Test(wharfd_items, memory_that_leaves_does_not_wait_for_what_waits_for_it, .init = set_up,
     .fini = tear_down)
{
    struct file_scene scene;

    begin_file_scene(&scene);
    begin_file_job(&scene);
    answer(scene.staging, scene.process);
    area.on[0].state = WHARF_GPU_MEMORY_LEAVING;
    exchange(0);
    cr_expect_eq(area.on[0].n_pieces, 0, "it waits");
    cr_expect_eq(scene.staging->n_free, WHARF_FILE_MOST_UNITS);
    cr_expect_eq(backends[0]->flight.n_without_places, 1);
    area.on[0].state = WHARF_GPU_MEMORY_READY;
    exchange(0);
    answer(scene.staging, scene.process);
    exchange(0);
    cr_expect_eq(backends[0]->flight.n_items, 1, "it is read again, and handed over");
    cr_expect_eq(area.on[0].n_pieces, 1);
    end_file_scene(&scene);
}

/* A slow file kept it there, and whoever was to have that room waited for the file. */
Test(wharfd_items, memory_that_leaves_does_not_wait_for_reads, .init = set_up, .fini = tear_down)
{
    struct file_scene scene;
    struct wharf_file_request request;

    begin_file_scene(&scene);
    begin_file_job(&scene);
    wharf_gpu_files_publish(backends[0]);
    cr_assert_eq(recv(scene.process, &request, sizeof(request), MSG_DONTWAIT), sizeof(request));
    area.on[0].state = WHARF_GPU_MEMORY_LEAVING;
    core.residency.room.leaving_nbytes = 1;
    exchange(0);
    cr_expect_eq(area.on[0].n_pieces, 0, "it waits");
    cr_expect_lt(scene.staging->n_free, WHARF_FILE_MOST_UNITS, "the process may write there");
    heads[request.slot].is_done = 1;
    exchange(0);
    cr_expect_eq(scene.staging->n_free, WHARF_FILE_MOST_UNITS);
    area.on[0].state = WHARF_GPU_MEMORY_READY;
    core.residency.room.leaving_nbytes = 0;
    exchange(0);
    answer(scene.staging, scene.process);
    exchange(0);
    cr_expect_eq(backends[0]->flight.n_items, 1, "it is read again, and handed over");
    end_file_scene(&scene);
}

/* A batch in a file, whose chunks are being read together. */
static struct wharf_file_request begin_file_batch(struct file_scene *scene)
{
    struct wharf_file_request request;
    struct wharf_job *job;

    begin_file_scene(scene);
    job = make_batch(1);
    batch->n_handed_out = 0;
    batch->n_chunks = 8;
    batch->has_file_source = true;
    for (unsigned i = 0; i < batch->n_chunks; i++) {
        batch->entries[i].source = &scene->file;
        batch->entries[i].chunk.src_offset = 1024 * i;
    }
    wharf_place_push(&core, job, false);
    exchange(0);
    wharf_gpu_files_publish(backends[0]);
    cr_assert_eq(recv(scene->process, &request, sizeof(request), MSG_DONTWAIT), sizeof(request));
    cr_assert_eq(request.nbytes, 8 * 1024);
    return request;
}

/* Each chunk that waited for a file kept one of the pieces that all sessions share: three sessions
 * with files that hung had all of them, and the GPU got nothing more. */
Test(wharfd_items, a_read_keeps_one_piece_whatever_it_is_for, .init = set_up, .fini = tear_down)
{
    struct file_scene scene;
    struct wharf_file_request request = begin_file_batch(&scene);

    cr_assert_eq(backends[0]->flight.n_without_places, 1);
    /* It failed, so its chunks are read alone, when there is a piece for each. */
    heads[request.slot] = (struct wharf_file_slot){.is_done = 1, .error = EIO};
    backends[0]->flight.n_requeued = WHARF_GPU_N_ENTRIES - 7;
    for (unsigned turn = 0; turn < 3; turn++) {
        wharf_gpu_files_reap(backends[0], now_ns);
        exchange(0);
        cr_assert_eq(backends[0]->flight.n_without_places, 1);
        cr_assert_eq(scene.staging->n_reads, 0);
    }
    backends[0]->flight.n_requeued = 0;
    exchange(0);
    cr_assert_eq(backends[0]->flight.n_without_places, 8);
    cr_assert_eq(scene.staging->n_reads, 8);
    end_file_scene(&scene);
}

/* A batch of a suspect, whose chunks were read together before it was one. */
Test(wharfd_items, suspects_chunks_are_alone_although_they_were_read_together, .init = set_up,
     .fini = tear_down)
{
    struct file_scene scene;
    struct wharf_file_request request = begin_file_batch(&scene);

    heads[request.slot] = (struct wharf_file_slot){.is_done = 1, .nbytes = 8 * 1024};
    tenant.gpu_trust.n_alone = 8;
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            wharf_gpu_files_reap(backends[0], now_ns);
            exchange(0);
            wharf_gpu_files_publish(backends[0]);
            while (recv(scene.process, &request, sizeof(request), MSG_DONTWAIT) > 0)
                heads[request.slot] = (struct wharf_file_slot){.is_done = 1, .nbytes = 1024};
        }
        cr_assert_eq(backends[0]->flight.n_items, 1, "%u beside each other",
                     backends[0]->flight.n_items);
        cr_assert(backends[0]->is_alone);
        cr_assert_eq(tenant.gpu_trust.n_alone, 8 - i);
        take_items(0);
        complete_well(0, backends[0]->submitter.tail - 1);
        reap(0);
        session.state = WHARF_SESSION_DRAINING;
    }
    end_file_scene(&scene);
}
