/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c: assigns queued jobs to pools.
 *
 * A job's pool follows from what it asks for and what GPUs have at the moment, so it can change
 * while the job waits: when a worker dies or gets ready, memory is registered or evicted, or a
 * tenant is banned.  The job is then moved when it is picked, or when its memory's state changes.
 * Jobs of one session are moved in their order.
 */
#include "daemon/placement/place.h"

#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/core/stats.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_offer.h"
#include "daemon/placement/place_parts.h"
#include "daemon/schedule/idle_work.h"
#include "daemon/schedule/sched.h"
#include "encoders/wharf_codec.h"
#include "kernels/epoch_streams.h"
#include "proto/wharf_job.h"

/* ---- numbers ------------------------------------------------------------------------------- */

static uint32_t n_of_own(const struct wharf_core *core, uint32_t gpu)
{
    return core->sched[WHARF_POOL_OWN + gpu].n_queued;
}

uint32_t wharf_place_n_tenants(const struct wharf_core *core)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        n += wharf_sched_n_tenants(&core->sched[i], WHARF_LANE_NORMAL);
    return n;
}

bool wharf_place_wants_gpu(const struct wharf_core *core, uint32_t gpu)
{
    if (core->fleet.gpus_wanted >> gpu & 1)
        return true;
    return wharf_place_is_up(core, gpu) &&
           (core->sched[WHARF_POOL_GPU].n_queued > 0 || n_of_own(core, gpu) > 0 ||
            (core->sched[WHARF_POOL_LARGE].n_queued > 0 && wharf_place_may_take_large(core, gpu)) ||
            (core->sched[WHARF_POOL_STREAM].n_queued > 0 &&
             core->fleet.gpus[gpu].n_stream_free > 0) ||
            (core->sched[WHARF_POOL_ENCODE].n_queued > 0 && wharf_place_may_encode(core, gpu)));
}

bool wharf_place_may_encode(const struct wharf_core *core, uint32_t gpu)
{
    const struct wharf_gpu_view *own = &core->fleet.gpus[gpu];
    bool is_elsewhere = false;

    if (own->n_encode > 0)
        return own->n_encode_free > 0;
    for (uint32_t i = 0; i < core->fleet.n_gpus; i++)
        is_elsewhere |= wharf_place_is_up(core, i) && core->fleet.gpus[i].n_encode > 0;
    return !is_elsewhere;
}

bool wharf_place_may_take_large(const struct wharf_core *core, uint32_t gpu)
{
    const struct wharf_gpu_view *own = &core->fleet.gpus[gpu];
    bool is_elsewhere = false;

    if (own->n_large > 0)
        return own->n_large_free > 0;
    for (uint32_t i = 0; i < core->fleet.n_gpus; i++)
        is_elsewhere |= wharf_place_is_up(core, i) && core->fleet.gpus[i].n_large > 0;
    return !is_elsewhere;
}

/* From here on a GPU takes a seventh of a processor's time for a stream: about three milliseconds,
 * in which its other jobs have part of it. */
#define LEAST_STREAM_BY_CHOICE ((uint64_t)4 << 20)

bool wharf_place_can_stream(const struct wharf_submission *submission)
{
    const uint64_t codecs = (uint64_t)1 << WHARF_CODEC_DEFLATE | (uint64_t)1 << WHARF_CODEC_ZLIB |
                            (uint64_t)1 << WHARF_CODEC_GZIP;

    return codecs >> submission->codec & 1 && !(submission->flags & WHARF_JOB_COMPRESS);
}

/*
 * The sleeping GPUs that have requests or jobs of their own; and one for jobs of any GPU, if no
 * awake GPU has room.  Awake threads check for themselves.
 */
uint32_t wharf_place_gpus_to_wake(const struct wharf_core *core)
{
    uint32_t wanted = core->fleet.gpus_wanted, can_take = 0, can_take_large = 0, can_stream = 0,
             can_encode = 0;

    for (uint32_t bits = core->fleet.gpus_up; bits; bits &= bits - 1) {
        uint32_t gpu = (uint32_t)__builtin_ctz(bits);
        wanted |= (uint32_t)(n_of_own(core, gpu) > 0) << gpu;
        if (!core->fleet.gpus[gpu].is_alone && wharf_place_gpu_has_room(core, gpu))
            can_take |= 1u << gpu;
        if (wharf_place_may_take_large(core, gpu))
            can_take_large |= 1u << gpu;
        if (core->fleet.gpus[gpu].n_stream_free > 0)
            can_stream |= 1u << gpu;
        if (wharf_place_may_encode(core, gpu))
            can_encode |= 1u << gpu;
    }
    if (core->sched[WHARF_POOL_GPU].n_queued > 0 && !(can_take & ~core->fleet.gpus_asleep))
        wanted |= can_take & -can_take;
    if (core->sched[WHARF_POOL_LARGE].n_queued > 0 && !(can_take_large & ~core->fleet.gpus_asleep))
        wanted |= can_take_large & -can_take_large;
    if (core->sched[WHARF_POOL_STREAM].n_queued > 0 && !(can_stream & ~core->fleet.gpus_asleep))
        wanted |= can_stream & -can_stream;
    if (core->sched[WHARF_POOL_ENCODE].n_queued > 0 && !(can_encode & ~core->fleet.gpus_asleep))
        wanted |= can_encode & -can_encode;
    return wanted & core->fleet.gpus_asleep;
}

/* ---- which pool ---------------------------------------------------------------------------- */

static bool is_small_enough(const struct wharf_core *core, const struct wharf_job *job)
{
    uint64_t most = core->config.gpu_chunk_nbytes;

    /* A GPU has a way only for streams to discard output. */
    if (wharf_job_discards(job))
        return false;
    if (wharf_job_has_file_source(job) && most > WHARF_FILE_STAGING_MOST_NBYTES)
        most = WHARF_FILE_STAGING_MOST_NBYTES;
    if (job->batch)
        return job->batch->max_chunk_nbytes <= most;
    return (job->submission.src_nbytes <= most && job->submission.dst_nbytes <= most) ||
           wharf_parts_can_do(core, job);
}

/* The places for large chunks have no way for sources in files. */
static bool is_large_from_file(const struct wharf_core *core, const struct wharf_job *job)
{
    return wharf_job_has_file_source(job) && !is_small_enough(core, job);
}

static enum wharf_pool cpu_because(enum wharf_placement why, enum wharf_placement *ret_why)
{
    *ret_why = why;
    return WHARF_POOL_CPU;
}

/* A banned tenant's jobs never go to a GPU, whatever they ask for. */
static bool is_banned(const struct wharf_job *job)
{
    return job->session->tenant->gpu_trust.banned_until_ns > job->taken_ns;
}

/*
 * A job in GPU memory waits for the GPU that owns the memory, or goes to the CPU, which refuses it
 * (wharf_place_refusal).
 */
static enum wharf_pool choose_for_gpu_memory(const struct wharf_core *core,
                                             const struct wharf_job *job,
                                             enum wharf_placement *ret_why)
{
    uint32_t owners = wharf_gpu_memory_owners(job);
    uint32_t owner = (uint32_t)__builtin_ctz(owners);
    const struct wharf_gpu_view *gpu = &core->fleet.gpus[owner];

    if (owners & (owners - 1))
        return cpu_because(WHARF_PLACED_SEVERAL_GPUS, ret_why);
    if (gpu->is_lost || !gpu->may_come)
        return cpu_because(WHARF_PLACED_NO_GPU, ret_why);
    if (is_banned(job))
        return cpu_because(WHARF_PLACED_BANNED, ret_why);
    *ret_why = WHARF_PLACED_GPU_MEMORY;
    /* Its next worker imports the memory again: until then the job waits. */
    if (!wharf_place_is_up(core, owner))
        return WHARF_POOL_NONE;
    if (!wharf_place_gpu_codes(core, job) || (wharf_job_compresses(job) && gpu->n_encode == 0))
        return cpu_because(WHARF_PLACED_CODEC, ret_why);
    bool is_large = !wharf_job_compresses(job) && !is_small_enough(core, job);
    if (is_large && (gpu->n_large == 0 || is_large_from_file(core, job)))
        return cpu_because(WHARF_PLACED_TOO_LARGE, ret_why);
    enum wharf_gpu_memory_state state = wharf_gpu_memory_of_job(job, owner);
    if (state == WHARF_GPU_MEMORY_REFUSED)
        return cpu_because(WHARF_PLACED_NOT_PINNED, ret_why);
    if (state != WHARF_GPU_MEMORY_READY || wharf_gpu_memory_is_full(job))
        return WHARF_POOL_NONE;
    if (wharf_job_compresses(job))
        return WHARF_POOL_ENCODE;
    return is_large ? WHARF_POOL_LARGE : WHARF_POOL_OWN + owner;
}

static bool wants_gpu_alone(const struct wharf_core *core, const struct wharf_job *job)
{
    uint32_t engine = __atomic_load_n(&core->fleet.gpu_engine, __ATOMIC_RELAXED);

    return job->session->engine == engine && engine != WHARF_ENGINE_AUTO;
}

static bool lacks_codec(const struct wharf_core *core, const struct wharf_job *job)
{
    /* Not by the job's last placement: a batch is placed again while its slices run. */
    uint64_t codecs = __atomic_load_n(&core->fleet.gpu_codecs, __ATOMIC_RELAXED);
    uint64_t encoders = __atomic_load_n(&core->fleet.gpu_encoders, __ATOMIC_RELAXED);
    uint64_t able = wharf_job_compresses(job) ? encoders : codecs;

    return wants_gpu_alone(core, job) && codecs && !(able >> job->submission.codec & 1);
}

bool wharf_place_is_refused(const struct wharf_core *core, const struct wharf_job *job)
{
    return lacks_codec(core, job) || (wants_gpu_alone(core, job) && is_large_from_file(core, job));
}

struct wharf_outcome wharf_place_refusal(const struct wharf_core *core, const struct wharf_job *job)
{
    switch (lacks_codec(core, job)          ? WHARF_PLACED_CODEC
            : is_large_from_file(core, job) ? WHARF_PLACED_TOO_LARGE
                                            : __atomic_load_n(&job->why, __ATOMIC_RELAXED)) {
    case WHARF_PLACED_SEVERAL_GPUS:
        return (struct wharf_outcome){.result = WHARF_BAD_REQUEST,
                                      .reason = WHARF_REASON_REQUEST_REGION};
    case WHARF_PLACED_CODEC:
        return (struct wharf_outcome){.result = wharf_place_needs_gpu(job) ? WHARF_UNSUPPORTED
                                                                           : WHARF_BAD_REQUEST,
                                      .reason = WHARF_REASON_GPU_CODEC};
    case WHARF_PLACED_TOO_LARGE: /* and no GPU has places for large chunks */
    case WHARF_PLACED_NOT_PINNED:
        return (struct wharf_outcome){.result = WHARF_NO_MEMORY};
    default:
        return (struct wharf_outcome){.result = WHARF_DEVICE_FAULT};
    }
}

/* Chunks that GPUs can compress at the same time, of jobs of this lane. */
static uint32_t n_encode(const struct wharf_core *core, unsigned lane)
{
    uint32_t n = 0;

    for (uint32_t bits = core->fleet.gpus_up; bits; bits &= bits - 1) {
        const struct wharf_gpu_view *gpu = &core->fleet.gpus[__builtin_ctz(bits)];
        if (gpu->n_encode > 0)
            n += lane == WHARF_LANE_IDLE ? wharf_idle_work_allowed(&gpu->idle_work, gpu->n_encode)
                                         : gpu->n_encode;
    }
    return n;
}

static bool has_streams(const struct wharf_core *core)
{
    for (uint32_t bits = core->fleet.gpus_up; bits; bits &= bits - 1)
        if (core->fleet.gpus[__builtin_ctz(bits)].has_streams)
            return true;
    return false;
}

/* Whether a large chunk in host memory may go to a GPU: one that decodes it as a stream is far
 * sooner than any processor.  Suspects would have to wait until they are alone. */
static bool is_stream_by_choice(const struct wharf_core *core, const struct wharf_job *job)
{
    const struct wharf_submission *submission = &job->submission;
    uint64_t in_nbytes = submission->src_nbytes;

    return core->fleet.gpu_engine == WHARF_ENGINE_GPU && !job->batch &&
           !wharf_job_has_file_source(job) && in_nbytes >= LEAST_STREAM_BY_CHOICE &&
           in_nbytes <= WHARF_STREAM_MAX_SRC_NBYTES && submission->dst_nbytes <= UINT32_MAX &&
           in_nbytes + submission->dst_nbytes <= core->config.gpu_large_nbytes &&
           wharf_place_can_stream(submission) && job->session->tenant->gpu_trust.n_alone == 0 &&
           has_streams(core);
}

/* A chunk that GPUs can compress goes there, since that costs no processor; but not behind more
 * than they have warps for. */
static enum wharf_pool choose_for_encoding(const struct wharf_core *core,
                                           const struct wharf_job *job,
                                           enum wharf_placement *ret_why)
{
    uint32_t n = n_encode(core, job->lane);

    if (n == 0 || (job->pool != WHARF_POOL_ENCODE && core->sched[WHARF_POOL_ENCODE].n_queued >= n))
        return cpu_because(WHARF_PLACED_CPU_SOONER, ret_why);
    *ret_why = WHARF_PLACED_GPU_SOONER;
    return WHARF_POOL_ENCODE;
}

/* The CPU always opens batches, drops the rest of stopped ones and writes owed done words. */
static bool is_decoded(const struct wharf_job *job)
{
    return !job->stopped && !wharf_job_is_owed_word(job) &&
           (job->submission.opcode != WHARF_OP_BATCH || job->batch);
}

/*
 * The rules in the order in which they bind: what the job is, what its session asked for, whose
 * memory it names, what its tenant has done, what GPUs can do, and last where its memory is.  What
 * is left could run on either side: pool ANY, where the quicker side takes it when it is picked,
 * since that is known no earlier.
 *
 * Does not set `why` for jobs that do not decode, nor for pool ANY.
 */
static enum wharf_pool choose_why(const struct wharf_core *core, const struct wharf_job *job,
                                  enum wharf_placement *ret_why)
{
    const struct wharf_session *session = job->session;
    bool is_forced = session->engine == core->fleet.gpu_engine;

    if (!is_decoded(job))
        return WHARF_POOL_CPU;
    if (session->engine == WHARF_ENGINE_CPU || session->engine == WHARF_ENGINE_REFERENCE)
        return cpu_because(WHARF_PLACED_CPU_ASKED, ret_why);
    if (wharf_place_needs_gpu(job))
        return choose_for_gpu_memory(core, job, ret_why);
    if (!wharf_place_has_gpu(core, session->engine))
        return cpu_because(WHARF_PLACED_NO_GPU, ret_why);
    if (is_banned(job))
        return cpu_because(WHARF_PLACED_BANNED, ret_why);
    /* If the session wants only the GPU, the CPU refuses the job (wharf_place_is_refused). */
    if (!wharf_place_gpu_codes(core, job))
        return cpu_because(WHARF_PLACED_CODEC, ret_why);
    enum wharf_gpu_memory_state state = wharf_gpu_memory_anywhere(core, job);
    /* Whoever forces a GPU waits until the memory is registered or refused, and is told so: nothing
     * is moved to the CPU silently. */
    if (is_forced) {
        *ret_why = WHARF_PLACED_GPU_ASKED;
        if ((state != WHARF_GPU_MEMORY_READY && state != WHARF_GPU_MEMORY_REFUSED) ||
            wharf_gpu_memory_is_full(job))
            return WHARF_POOL_NONE;
        if (wharf_job_compresses(job))
            return WHARF_POOL_ENCODE;
        if (is_large_from_file(core, job))
            return cpu_because(WHARF_PLACED_TOO_LARGE, ret_why);
        return is_small_enough(core, job) ? WHARF_POOL_GPU : WHARF_POOL_LARGE;
    }
    bool is_stream = is_stream_by_choice(core, job);
    /* Warps that compress need no memory of a chunk's size.  But one takes several times as long as
     * a processor, which tells where somebody waits for a large chunk. */
    bool may_be_large =
        is_stream || (wharf_job_compresses(job) && job->lane != WHARF_LANE_INTERACTIVE);
    if (!may_be_large && !is_small_enough(core, job))
        return cpu_because(WHARF_PLACED_TOO_LARGE, ret_why);
    if (state != WHARF_GPU_MEMORY_READY)
        return cpu_because(WHARF_PLACED_NOT_PINNED, ret_why);
    if (is_stream) {
        *ret_why = WHARF_PLACED_GPU_SOONER;
        return WHARF_POOL_STREAM;
    }
    if (wharf_job_compresses(job))
        return choose_for_encoding(core, job, ret_why);
    return WHARF_POOL_ANY;
}

enum wharf_pool wharf_place_pool_of(const struct wharf_core *core, const struct wharf_job *job)
{
    enum wharf_placement why;

    return choose_why(core, job, &why);
}

/* Writing a done word. */
#define WORD_NS 500u

/* ---- queues -------------------------------------------------------------------------------- */

/* An opened batch has all its chunks still to run. */
static uint64_t backlog_of(const struct wharf_job *job)
{
    uint64_t nbytes;

    if (job->stopped || !job->batch)
        return job->estimate_ns;
    nbytes = job->batch->total_nbytes;
    return wharf_estimate_ns(wharf_job_estimates(job), job->submission.codec, nbytes, 0);
}

static void place(struct wharf_core *core, struct wharf_job *job, bool at_front)
{
    enum wharf_placement why = WHARF_PLACED_CPU_SOONER;

    wharf_gpu_models_want(core, job);
    wharf_gpu_room_want(core, job, job->taken_ns);
    enum wharf_pool pool = choose_why(core, job, &why);

    job->pool = (uint8_t)pool;
    __atomic_store_n(&job->why, (uint8_t)why, __ATOMIC_RELAXED);
    if (job->pool == WHARF_POOL_NONE) {
        wharf_list_append(&job->session->placing.waiting, &job->link);
        core->n_waiting++;
        return;
    }
    job->backlog_ns = backlog_of(job);
    if (at_front)
        wharf_sched_push_front(&core->sched[pool], job);
    else
        wharf_sched_push(&core->sched[pool], job);
    struct wharf_offer best;
    if (pool == WHARF_POOL_ANY &&
        wharf_offer_wins(core, job, wharf_offer_before_ns(core, job), &best))
        core->fleet.gpus_wanted |= 1u << best.gpu;
    else if (pool == WHARF_POOL_CPU || pool == WHARF_POOL_ANY || pool == WHARF_POOL_STREAM)
        core->nothing_fits = false;
}

void wharf_place_push(struct wharf_core *core, struct wharf_job *job, bool at_front)
{
    struct wharf_session *session = job->session;

    if (at_front || wharf_list_is_empty(&session->placing.due)) {
        place(core, job, at_front);
        return;
    }
    /* Earlier jobs of the session come first. */
    job->pool = WHARF_POOL_NONE;
    wharf_list_append(&session->placing.due, &job->link);
    core->n_waiting++;
}

void wharf_place_hold(struct wharf_core *core, struct wharf_job *job)
{
    struct wharf_session *session = job->session;

    job->pool = WHARF_POOL_NONE;
    wharf_list_append(&session->placing.held, &job->link);
    session->placing.n_held++;
    core->n_waiting++;
    wharf_core_count_active(core, session);
    if (!wharf_list_is_linked(&session->placing.held_link))
        wharf_list_append(&session->tenant->starts.sessions, &session->placing.held_link);
}

/* So many jobs left the session's list of held ones.  Nobody polls for a session without any. */
static void held_fewer(struct wharf_core *core, struct wharf_session *session, uint32_t n)
{
    struct wharf_tenant_starts *starts = &session->tenant->starts;

    session->placing.n_held -= n;
    wharf_core_count_active(core, session);
    if (!wharf_list_is_linked(&session->placing.held_link) ||
        !wharf_list_is_empty(&session->placing.held))
        return;
    wharf_list_remove(&session->placing.held_link);
    if (!wharf_list_is_empty(&starts->sessions))
        return;
    wharf_list_remove(&starts->young);
    wharf_heap_remove(&core->starts.looks, &starts->look);
}

void wharf_place_push_word(struct wharf_core *core, struct wharf_job *job)
{
    job->lane = WHARF_LANE_INTERACTIVE;
    job->pool = WHARF_POOL_CPU;
    job->estimate_ns = job->backlog_ns = WORD_NS;
    wharf_sched_push_front(&core->sched[WHARF_POOL_CPU], job);
    core->nothing_fits = false;
}

void wharf_place_remove(struct wharf_core *core, struct wharf_job *job)
{
    if (job->pool == WHARF_POOL_NONE) {
        wharf_list_remove(&job->link);
        core->n_waiting--;
        if (job->words && job->words->is_held)
            held_fewer(core, job->session, 1);
        return;
    }
    wharf_sched_remove(&core->sched[job->pool], job);
}

static void drop(struct wharf_core *core, struct wharf_list *jobs)
{
    while (!wharf_list_is_empty(jobs)) {
        wharf_list_remove(jobs->next);
        core->n_waiting--;
    }
}

void wharf_place_drop(struct wharf_core *core, struct wharf_session *session)
{
    drop(core, &session->placing.waiting);
    drop(core, &session->placing.due);
    drop(core, &session->placing.held);
    held_fewer(core, session, session->placing.n_held);
    wharf_list_remove(&session->placing.due_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_drop(&core->sched[i], session);
}

/* ---- jobs that waited ---------------------------------------------------------------------- */

/* Jobs that are placed again under one hold of the lock, at about 300 ns each. */
#define MOST_PLACED 64

void wharf_place_look_again(struct wharf_core *core, struct wharf_session *session)
{
    /* Jobs that were placed again earlier come before those that were not. */
    wharf_list_splice(&session->placing.waiting, &session->placing.due);
    wharf_list_splice(&session->placing.due, &session->placing.waiting);
    if (!wharf_list_is_empty(&session->placing.due) &&
        !wharf_list_is_linked(&session->placing.due_link))
        wharf_list_append(&core->due, &session->placing.due_link);
}

/* Places one job of the next session. */
static void place_next(struct wharf_core *core)
{
    struct wharf_session *session =
        WHARF_LIST_FIRST(&core->due, struct wharf_session, placing.due_link);
    struct wharf_job *job = WHARF_LIST_FIRST(&session->placing.due, struct wharf_job, link);

    /* None: it was cancelled. */
    if (job) {
        wharf_place_remove(core, job);
        place(core, job, false);
    }
    wharf_list_remove(&session->placing.due_link);
    if (!wharf_list_is_empty(&session->placing.due))
        wharf_list_append(&core->due, &session->placing.due_link);
}

void wharf_place_due(struct wharf_core *core)
{
    for (unsigned n = 0; n < MOST_PLACED && !wharf_list_is_empty(&core->due); n++)
        place_next(core);
}
