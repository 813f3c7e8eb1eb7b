/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/front/front_place.h"

#include "daemon/base/clock.h"
#include "daemon/front/front.h"
#include "daemon/front/place_parts.h"
#include "daemon/gpu/gpu_memory.h"
#include "daemon/gpu/gpu_models.h"
#include "encoders/codec.h"

/* Jobs whose memory is not what it was when they were queued that are moved at one pick. */
#define MOST_MOVED 16

/* ---- numbers ------------------------------------------------------------------------------- */

uint32_t wharf_place_n_queued(const struct wharf_front *front)
{
    uint32_t n = front->n_waiting;

    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        n += front->sched[i].n_queued;
    return n;
}

static bool is_up(const struct wharf_front *front, uint32_t gpu)
{
    return front->gpus_up >> gpu & 1;
}

static uint32_t n_of_own(const struct wharf_front *front, uint32_t gpu)
{
    return front->sched[WHARF_POOL_OWN + gpu].n_queued;
}

uint32_t wharf_place_n_for_cpu(const struct wharf_front *front)
{
    uint32_t n = front->n_orphans + front->sched[WHARF_POOL_CPU].n_queued +
                 front->sched[WHARF_POOL_ANY].n_queued;

    if (!front->gpus_up)
        n += front->sched[WHARF_POOL_GPU].n_queued;
    /* What was queued for a GPU that has no worker now is the CPU's to move. */
    for (uint32_t gpu = 0; gpu < front->n_gpus; gpu++)
        n += is_up(front, gpu) ? 0 : n_of_own(front, gpu);
    return n;
}

uint32_t wharf_place_n_tenants(const struct wharf_front *front)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        n += wharf_sched_n_tenants(&front->sched[i], WHARF_LANE_NORMAL);
    return n;
}

bool wharf_place_has_gpu(const struct wharf_front *front, uint32_t engine)
{
    return front->gpus_up && (engine == WHARF_ENGINE_AUTO || engine == front->gpu_engine);
}

bool wharf_place_may_import(const struct wharf_front *front)
{
    for (uint32_t gpu = 0; gpu < front->n_gpus; gpu++)
        if (front->gpus[gpu].may_come)
            return true;
    return false;
}

bool wharf_place_wants_gpu(const struct wharf_front *front, uint32_t gpu)
{
    if (front->gpus_wanted >> gpu & 1)
        return true;
    return is_up(front, gpu) &&
           (front->sched[WHARF_POOL_GPU].n_queued > 0 || n_of_own(front, gpu) > 0);
}

/*
 * Those of whom something is wanted or whose own jobs wait, and one for jobs of all GPUs if none
 * that is awake can take more: those that are look by themselves.
 */
uint32_t wharf_place_gpus_to_wake(const struct wharf_front *front)
{
    uint32_t wanted = front->gpus_wanted, can_take = 0;

    for (uint32_t bits = front->gpus_up; bits; bits &= bits - 1) {
        uint32_t gpu = (uint32_t)__builtin_ctz(bits);
        wanted |= (uint32_t)(n_of_own(front, gpu) > 0) << gpu;
        if (!front->gpus[gpu].is_alone && wharf_place_gpu_has_room(front, gpu))
            can_take |= 1u << gpu;
    }
    if (front->sched[WHARF_POOL_GPU].n_queued > 0 && !(can_take & ~front->gpus_asleep))
        wanted |= can_take & -can_take;
    return wanted & front->gpus_asleep;
}

/* ---- which pool ---------------------------------------------------------------------------- */

static bool is_small_enough(const struct wharf_front *front, const struct wharf_job *job)
{
    uint64_t most = front->config.gpu_chunk_nbytes;

    if (job->batch)
        return job->batch->max_chunk_nbytes <= most;
    return (job->submission.src_nbytes <= most && job->submission.dst_nbytes <= most) ||
           wharf_parts_can_do(front, job);
}

static enum wharf_pool cpu_because(enum wharf_placement why, enum wharf_placement *ret_why)
{
    *ret_why = why;
    return WHARF_POOL_CPU;
}

/*
 * A job for GPU memory waits for the GPU whose memory it is, or is the CPU's, which refuses it
 * (wharf_place_refusal).
 */
static enum wharf_pool choose_for_gpu_memory(const struct wharf_front *front,
                                             const struct wharf_job *job,
                                             enum wharf_placement *ret_why)
{
    uint32_t owners = wharf_gpu_memory_owners(job);
    uint32_t owner = (uint32_t)__builtin_ctz(owners);
    const struct wharf_gpu_view *gpu = &front->gpus[owner];

    if (owners & (owners - 1))
        return cpu_because(WHARF_PLACED_SEVERAL_GPUS, ret_why);
    if (gpu->is_lost || !gpu->may_come)
        return cpu_because(WHARF_PLACED_NO_GPU, ret_why);
    if (job->session->tenant->gpu_trust.banned_until_ns > job->taken_ns)
        return cpu_because(WHARF_PLACED_BANNED, ret_why);
    if (!is_small_enough(front, job))
        return cpu_because(WHARF_PLACED_TOO_LARGE, ret_why);
    *ret_why = WHARF_PLACED_GPU_MEMORY;
    if (!is_up(front, owner))
        return (enum wharf_pool)WHARF_POOL_NONE;
    if (!(front->gpu_codecs >> job->submission.codec & 1))
        return cpu_because(WHARF_PLACED_CODEC, ret_why);
    enum wharf_gpu_memory_state state = wharf_gpu_memory_of_job(job, owner);
    if (state == WHARF_GPU_MEMORY_REFUSED)
        return cpu_because(WHARF_PLACED_NOT_PINNED, ret_why);
    return state == WHARF_GPU_MEMORY_READY ? (enum wharf_pool)(WHARF_POOL_OWN + owner)
                                           : (enum wharf_pool)WHARF_POOL_NONE;
}

struct wharf_outcome wharf_place_refusal(const struct wharf_job *job)
{
    switch (job->why) {
    case WHARF_PLACED_SEVERAL_GPUS:
        return (struct wharf_outcome){.result = WHARF_BAD_REQUEST,
                                      .reason = WHARF_REASON_REQUEST_REGION};
    case WHARF_PLACED_TOO_LARGE:
        return (struct wharf_outcome){.result = WHARF_BAD_REQUEST,
                                      .reason = WHARF_REASON_REQUEST_RANGE};
    case WHARF_PLACED_CODEC:
        return (struct wharf_outcome){.result = WHARF_UNSUPPORTED};
    case WHARF_PLACED_NOT_PINNED:
        return (struct wharf_outcome){.result = WHARF_NO_MEMORY};
    default:
        return (struct wharf_outcome){.result = WHARF_DEVICE_FAULT};
    }
}

/* Opening a batch, and dropping the rest of one, is the CPU's work in any case. */
static bool is_decoded(const struct wharf_job *job)
{
    return !job->stopped && (job->submission.opcode != WHARF_OP_BATCH || job->batch);
}

/* Why is left alone for what is not decoded, and for pool ANY: that is decided when the job is
 * picked. */
static enum wharf_pool choose_why(const struct wharf_front *front, const struct wharf_job *job,
                                  enum wharf_placement *ret_why)
{
    const struct wharf_session *session = job->session;
    bool is_forced = session->engine == front->gpu_engine;

    if (!is_decoded(job))
        return WHARF_POOL_CPU;
    if (session->engine == WHARF_ENGINE_CPU || session->engine == WHARF_ENGINE_REFERENCE)
        return cpu_because(WHARF_PLACED_CPU_ASKED, ret_why);
    if (wharf_place_needs_gpu(job))
        return choose_for_gpu_memory(front, job, ret_why);
    if (!wharf_place_has_gpu(front, session->engine))
        return cpu_because(WHARF_PLACED_NO_GPU, ret_why);
    /* Who did harm to a worker before does none again, whatever it asks for. */
    if (session->tenant->gpu_trust.banned_until_ns > job->taken_ns)
        return cpu_because(WHARF_PLACED_BANNED, ret_why);
    enum wharf_gpu_memory_state state = wharf_gpu_memory_anywhere(front, job);
    if (is_forced) {
        *ret_why = WHARF_PLACED_GPU_ASKED;
        return state == WHARF_GPU_MEMORY_READY || state == WHARF_GPU_MEMORY_REFUSED
                   ? WHARF_POOL_GPU
                   : (enum wharf_pool)WHARF_POOL_NONE;
    }
    if (!(front->gpu_codecs >> job->submission.codec & 1))
        return cpu_because(WHARF_PLACED_CODEC, ret_why);
    if (!is_small_enough(front, job))
        return cpu_because(WHARF_PLACED_TOO_LARGE, ret_why);
    if (state != WHARF_GPU_MEMORY_READY)
        return cpu_because(WHARF_PLACED_NOT_PINNED, ret_why);
    return WHARF_POOL_ANY;
}

static enum wharf_pool choose(const struct wharf_front *front, const struct wharf_job *job)
{
    enum wharf_placement why;

    return choose_why(front, job, &why);
}

/* An engine that has had none of a tenant's chunks of a codec while the other one had so many gets
 * one, to learn what it takes there; unless that would take so many times as long. */
#define TRY_AFTER 512
#define TRY_FACTOR 8
/* The GPU may be later by this part: what it does costs no processor.  More of it would cost who
 * waits for each chunk more than a twentieth of what passes. */
#define WORTH_PART 24

/* Whether idle threads of the CPU may help with its next chunk: share.h. */
static bool is_shared(const struct wharf_job *job)
{
    uint64_t least = wharf_codec_find(job->submission.codec)->ops->least_shared_nbytes;
    uint64_t nbytes = job->submission.dst_nbytes;

    if (job->batch)
        nbytes = job->batch->entries[job->batch->n_handed_out].chunk.dst_nbytes;
    return least > 0 && nbytes >= least;
}

/* A GPU that could take a job, and when it would be done with its next chunk. */
struct offer {
    uint32_t gpu;
    uint32_t n_in_flight;
    uint64_t ns;
};

/* Numbers of chunks that are not told apart take equally long. */
static bool is_better(const struct offer *offer, const struct offer *than)
{
    return offer->ns < than->ns ||
           (offer->ns == than->ns && offer->n_in_flight < than->n_in_flight);
}

/* False: its worker cannot take the job now. */
static bool offer_of(const struct wharf_front *front, const struct wharf_job *job, uint32_t gpu,
                     const struct wharf_next_chunk *next, struct offer *ret_offer)
{
    const struct wharf_gpu_view *view = &front->gpus[gpu];

    if (!is_up(front, gpu) || view->is_alone ||
        wharf_gpu_memory_of_job(job, gpu) != WHARF_GPU_MEMORY_READY)
        return false;
    *ret_offer = (struct offer){gpu, view->n_in_flight, wharf_place_trip_ns(view, job, next)};
    return true;
}

/* Of the GPUs that can take the job, the one that would be done with its next chunk first. */
static bool best_offer(const struct wharf_front *front, const struct wharf_job *job,
                       const struct wharf_next_chunk *next, struct offer *ret_best)
{
    bool is_any = false;

    for (uint32_t bits = front->gpus_up; bits; bits &= bits - 1) {
        struct offer offer;
        if (!offer_of(front, job, (uint32_t)__builtin_ctz(bits), next, &offer) ||
            (is_any && !is_better(&offer, ret_best)))
            continue;
        *ret_best = offer;
        is_any = true;
    }
    return is_any;
}

/*
 * Whether a GPU, and which, is to have a job, with all that it has to do, rather than the CPU,
 * which takes it up when it has done `before_ns` of other things: the one that ends it first.
 */
static bool goes_to_gpu(const struct wharf_front *front, const struct wharf_job *job,
                        uint64_t before_ns, struct offer *ret_best)
{
    const struct wharf_tenant *tenant = job->session->tenant;
    uint32_t codec = job->submission.codec;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);

    if (!best_offer(front, job, &next, ret_best))
        return false;
    uint64_t cpu_ns = next.cpu_ns;
    if (is_shared(job))
        cpu_ns /= 1 + front->n_sleeping;
    cpu_ns += before_ns;
    uint64_t gpu_ns = ret_best->ns;
    if (tenant->trials[codec].way != WHARF_TRIAL_BY_TIME)
        return tenant->trials[codec].way == WHARF_TRIAL_GPU;
    if (tenant->device_estimates.n_elsewhere[codec] >= TRY_AFTER && gpu_ns / TRY_FACTOR < cpu_ns)
        return true;
    if (tenant->estimates.n_elsewhere[codec] >= TRY_AFTER && cpu_ns / TRY_FACTOR < gpu_ns)
        return false;
    return gpu_ns < cpu_ns + cpu_ns / WORTH_PART;
}

/* Another GPU may be sooner than the one that could take a job now by this part: below that it is
 * not worth waking it. */
#define SOONER_PART 8

/* Whether this GPU takes a job of which `best` is the best offer, or leaves it to that one. */
static bool takes(struct wharf_front *front, const struct wharf_job *job, uint32_t gpu,
                  const struct offer *best)
{
    struct offer own;

    if (best->gpu == gpu)
        return true;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);
    if (offer_of(front, job, gpu, &next, &own) && (own.ns <= best->ns + best->ns / SOONER_PART ||
                                                   !wharf_place_gpu_has_room(front, best->gpu)))
        return true;
    front->gpus_wanted |= 1u << best->gpu;
    return false;
}

/* What waits for the CPU's threads besides the next chunk of this job, shared by them. */
static uint64_t cpu_backlog_ns(const struct wharf_front *front, const struct wharf_job *job)
{
    uint64_t sum_ns =
        front->sched[WHARF_POOL_CPU].backlog_ns + front->sched[WHARF_POOL_ANY].backlog_ns;
    uint64_t own_ns = job->estimate_ns < job->backlog_ns ? job->estimate_ns : job->backlog_ns;

    return front->n_workers == 0 ? 0 : (sum_ns - own_ns) / front->n_workers;
}

/* ---- queues -------------------------------------------------------------------------------- */

/* Opened batches have all their chunks before them. */
static uint64_t backlog_of(const struct wharf_job *job)
{
    uint64_t nbytes;

    if (job->stopped || !job->batch)
        return job->estimate_ns;
    nbytes = job->batch->total_nbytes;
    return wharf_estimate_ns(&job->session->tenant->estimates, job->submission.codec, nbytes, 0);
}

void wharf_place_push(struct wharf_front *front, struct wharf_job *job, bool at_front)
{
    enum wharf_placement why = WHARF_PLACED_CPU_SOONER;

    wharf_gpu_models_want(front, job);
    wharf_gpu_room_want(front, job, job->taken_ns);
    enum wharf_pool pool = choose_why(front, job, &why);

    job->pool = (uint8_t)pool;
    job->why = (uint8_t)why;
    if (job->pool == WHARF_POOL_NONE) {
        wharf_list_append(&job->session->waiting, &job->link);
        front->n_waiting++;
        return;
    }
    job->backlog_ns = backlog_of(job);
    if (at_front)
        wharf_sched_push_front(&front->sched[pool], job);
    else
        wharf_sched_push(&front->sched[pool], job);
    struct offer best;
    if (pool == WHARF_POOL_ANY && goes_to_gpu(front, job, cpu_backlog_ns(front, job), &best))
        front->gpus_wanted |= 1u << best.gpu;
    else if (pool == WHARF_POOL_CPU || pool == WHARF_POOL_ANY)
        front->nothing_fits = false;
}

void wharf_place_remove(struct wharf_front *front, struct wharf_job *job)
{
    if (job->pool == WHARF_POOL_NONE) {
        wharf_list_remove(&job->link);
        front->n_waiting--;
        return;
    }
    wharf_sched_remove(&front->sched[job->pool], job);
}

void wharf_place_drop(struct wharf_front *front, struct wharf_session *session)
{
    while (!wharf_list_is_empty(&session->waiting)) {
        wharf_list_remove(session->waiting.next);
        front->n_waiting--;
    }
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_drop(&front->sched[i], session);
}

void wharf_place_waiting(struct wharf_front *front, struct wharf_session *session)
{
    struct wharf_list jobs;

    /* Those that still have to wait come back to the list. */
    wharf_list_init(&jobs);
    while (!wharf_list_is_empty(&session->waiting)) {
        struct wharf_list *link = session->waiting.next;
        wharf_list_remove(link);
        wharf_list_append(&jobs, link);
        front->n_waiting--;
    }
    while (!wharf_list_is_empty(&jobs)) {
        struct wharf_job *job = WHARF_LIST_FIRST(&jobs, struct wharf_job, link);
        wharf_list_remove(&job->link);
        wharf_place_push(front, job, false);
    }
}

/* ---- picking ------------------------------------------------------------------------------- */

/* Of the first jobs of two pools that one engine serves, the one whose pool has had less of its
 * time. */
static struct wharf_job *by_turns(struct wharf_job *own, struct wharf_job *any, int64_t lead_ns)
{
    if (!own || !any)
        return own ? own : any;
    return lead_ns > 0 ? own : any;
}

/* Counts why the piece's chunks run where they do, and that the other engine did not have them. */
static void count_placement(const struct wharf_piece *piece, bool is_gpu)
{
    bool is_any = piece->pool == WHARF_POOL_ANY;
    enum wharf_placement why = (enum wharf_placement)piece->job->why;
    struct wharf_tenant *tenant = piece->job->session->tenant;
    struct wharf_estimates *own = is_gpu ? &tenant->device_estimates : &tenant->estimates;
    struct wharf_estimates *others = is_gpu ? &tenant->estimates : &tenant->device_estimates;
    uint32_t codec = piece->job->submission.codec;

    /* In the order in which goes_to_gpu decides. */
    if (is_any && tenant->trials[codec].way != WHARF_TRIAL_BY_TIME)
        why = is_gpu ? WHARF_PLACED_GPU_MORE : WHARF_PLACED_CPU_MORE;
    else if (is_any && own->n_elsewhere[codec] >= TRY_AFTER)
        why = WHARF_PLACED_TO_LEARN;
    else if (is_any)
        why = is_gpu ? WHARF_PLACED_GPU_SOONER : WHARF_PLACED_CPU_SOONER;
    else if (piece->pool == WHARF_POOL_GPU && !is_gpu)
        why = WHARF_PLACED_NO_GPU;
    tenant->stats.n_placed[why] += piece->n_chunks;
    own->n_elsewhere[codec] = 0;
    if (is_any && others->n_elsewhere[codec] < TRY_AFTER)
        others->n_elsewhere[codec] += piece->n_chunks;
}

/* One of two pools of an engine has had more of it; or less, below 0. */
static void count_lead(const struct wharf_front *front, int64_t *lead_ns, unsigned other,
                       int64_t more_ns)
{
    *lead_ns = front->sched[other].n_queued > 0 ? *lead_ns + more_ns : 0;
}

static void count_why(const struct wharf_piece *piece, bool is_gpu)
{
    if (piece->kind != WHARF_PIECE_OPEN && !piece->job->stopped)
        count_placement(piece, is_gpu);
}

void wharf_place_took_by_cpu(struct wharf_front *front, const struct wharf_piece *piece)
{
    int64_t more_ns = (int64_t)piece->estimate_ns;

    count_why(piece, false);
    if (piece->pool == WHARF_POOL_ANY)
        count_lead(front, &front->cpu_lead_ns, WHARF_POOL_CPU, more_ns);
    else
        count_lead(front, &front->cpu_lead_ns, WHARF_POOL_ANY, -more_ns);
}

void wharf_place_took_by_gpu(struct wharf_front *front, const struct wharf_piece *piece,
                             uint32_t gpu)
{
    struct wharf_gpu_view *view = &front->gpus[gpu];
    unsigned own = WHARF_POOL_OWN + gpu;
    int64_t more_ns = (int64_t)piece->estimate_ns;

    count_why(piece, true);
    if (piece->pool == WHARF_POOL_ANY) {
        count_lead(front, &view->lead_ns,
                   front->sched[own].n_queued > 0 ? own : (unsigned)WHARF_POOL_GPU, more_ns);
        return;
    }
    count_lead(front, &view->lead_ns, WHARF_POOL_ANY, -more_ns);
    if (piece->pool == own)
        count_lead(front, &view->own_lead_ns, WHARF_POOL_GPU, more_ns);
    else
        count_lead(front, &view->own_lead_ns, own, -more_ns);
}

/* What was queued for a GPU when it was up, and can only be run there, waits for it. */
static struct wharf_job *first_that_can_do_without(struct wharf_front *front, unsigned pool,
                                                   unsigned lane, uint64_t most_ns)
{
    for (unsigned n = 0; n < MOST_MOVED && front->sched[pool].n_queued > 0; n++) {
        struct wharf_job *job = wharf_sched_first_of_lane(&front->sched[pool], lane, most_ns);
        if (!job || job->stopped || !wharf_place_needs_gpu(job))
            return job;
        wharf_place_remove(front, job);
        wharf_place_push(front, job, false);
    }
    return NULL;
}

/* Of the pools of GPUs that have no worker now. */
static struct wharf_job *first_left_by_gpus(struct wharf_front *front, unsigned lane,
                                            uint64_t most_ns)
{
    struct wharf_job *job = NULL;

    if (!front->gpus_up)
        job = first_that_can_do_without(front, WHARF_POOL_GPU, lane, most_ns);
    for (uint32_t gpu = 0; gpu < front->n_gpus && !job; gpu++)
        if (!is_up(front, gpu))
            job = first_that_can_do_without(front, WHARF_POOL_OWN + gpu, lane, most_ns);
    return job;
}

struct wharf_job *wharf_place_first_for_cpu(struct wharf_front *front, uint64_t most_ns)
{
    struct wharf_sched *sched = front->sched;
    struct wharf_job *job = NULL;
    struct offer best;

    for (unsigned lane = 0; lane < WHARF_N_LANES && !job; lane++) {
        struct wharf_job *own = wharf_sched_first_of_lane(&sched[WHARF_POOL_CPU], lane, most_ns);
        struct wharf_job *any = wharf_sched_first_of_lane(&sched[WHARF_POOL_ANY], lane, most_ns);
        if (any && goes_to_gpu(front, any, 0, &best)) {
            front->gpus_wanted |= 1u << best.gpu;
            front->gpus_left |= 1u << best.gpu;
            any = NULL;
        }
        job = by_turns(own, any, front->cpu_lead_ns);
        if (!job)
            job = first_left_by_gpus(front, lane, most_ns);
    }
    return job;
}

/* Jobs that were queued for a GPU, and whose memory it no longer has, go where they belong. */
static struct wharf_job *first_that_is_ready(struct wharf_front *front, unsigned pool,
                                             unsigned lane)
{
    for (unsigned n = 0; n < MOST_MOVED && front->sched[pool].n_queued > 0; n++) {
        struct wharf_job *job = wharf_sched_first_of_lane(&front->sched[pool], lane, UINT64_MAX);
        if (!job || choose(front, job) == pool)
            return job;
        wharf_place_remove(front, job);
        wharf_place_push(front, job, false);
    }
    return NULL;
}

static bool has_memory(const struct wharf_job *job, const void *gpu)
{
    return wharf_gpu_memory_of_job(job, *(const uint32_t *)gpu) == WHARF_GPU_MEMORY_READY;
}

/* Of jobs for several engines the next one; where another GPU has its memory and this one has not,
 * one that is not held up by it. */
static struct wharf_job *first_with_memory(struct wharf_front *front, unsigned pool, uint32_t gpu,
                                           unsigned lane)
{
    struct wharf_job *job = first_that_is_ready(front, pool, lane);

    if (!job || has_memory(job, &gpu) ||
        wharf_gpu_memory_anywhere(front, job) != WHARF_GPU_MEMORY_READY)
        return job;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);
    struct offer best;
    if (best_offer(front, job, &next, &best))
        front->gpus_wanted |= 1u << best.gpu;
    struct wharf_job *other = wharf_sched_first_good(&front->sched[pool], lane, has_memory, &gpu);
    return other && choose(front, other) == pool ? other : job;
}

/* Of those that any GPU can have, one for this one; or what no GPU has the memory for, to be
 * refused. */
static struct wharf_job *first_of_all_gpus(struct wharf_front *front, uint32_t gpu, unsigned lane)
{
    struct wharf_job *job = first_with_memory(front, WHARF_POOL_GPU, gpu, lane);
    struct offer best;

    if (!job || wharf_gpu_memory_anywhere(front, job) == WHARF_GPU_MEMORY_REFUSED)
        return job;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);
    return best_offer(front, job, &next, &best) && takes(front, job, gpu, &best) ? job : NULL;
}

static struct wharf_job *first_of_any(struct wharf_front *front, uint32_t gpu, unsigned lane)
{
    struct wharf_job *job = first_with_memory(front, WHARF_POOL_ANY, gpu, lane);
    struct offer best;

    if (!job || !goes_to_gpu(front, job, cpu_backlog_ns(front, job), &best))
        return NULL;
    return takes(front, job, gpu, &best) ? job : NULL;
}

struct wharf_job *wharf_place_first_for_gpu(struct wharf_front *front, uint32_t gpu)
{
    const struct wharf_gpu_view *view = &front->gpus[gpu];
    struct wharf_job *job = NULL;

    for (unsigned lane = 0; lane < WHARF_N_LANES && !job; lane++) {
        struct wharf_job *own = first_that_is_ready(front, WHARF_POOL_OWN + gpu, lane);
        struct wharf_job *all = first_of_all_gpus(front, gpu, lane);
        struct wharf_job *any = first_of_any(front, gpu, lane);
        /* The other way round: what is ahead there is the second one. */
        own = by_turns(all, own, view->own_lead_ns);
        job = by_turns(own, any, view->lead_ns);
    }
    /* What a thread of the CPU left to it, and it does not want either any more. */
    if (!job && front->gpus_left >> gpu & 1) {
        front->gpus_left &= ~(1u << gpu);
        front->nothing_fits = false;
    }
    return job;
}

void wharf_place_pass_on(struct wharf_front *front)
{
    if (front->n_gpus < 2)
        return;
    for (unsigned lane = 0; lane < WHARF_N_LANES; lane++) {
        struct wharf_job *job =
            wharf_sched_first_of_lane(&front->sched[WHARF_POOL_ANY], lane, UINT64_MAX);
        struct offer best;
        if (job && goes_to_gpu(front, job, cpu_backlog_ns(front, job), &best)) {
            front->gpus_wanted |= 1u << best.gpu;
            return;
        }
    }
}
