/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.c: checks a submission and makes a job of it.
 *
 * Every function works on a private copy of the submission: its bytes in shared memory can change
 * at any time.  A check that adds two numbers comes after the checks that bound both, so that no
 * sum wraps.  The order of the checks is the one of PROTOCOL.md, since clients see the first
 * reason.
 */
#include "daemon/dispatch/admit.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/estimate.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/chains.h"
#include "daemon/dispatch/job_end.h"
#include "daemon/dispatch/job_queue.h"
#include "daemon/dispatch/starts.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/schedule/unqueued_work.h"
#include "encoders/codec.h"
#include "encoders/encode_job.h"
#include "proto/ring_ops.h"
#include "proto/wharf_job.h"

/* ---- checks -------------------------------------------------------------------------------- */

/* Checks the region and range of a source or destination. */
struct place {
    uint32_t region_number;
    uint64_t offset;
    uint64_t nbytes;
};

/* Checks its use: the CPU can access only host memory, GPU jobs also GPU memory. */
enum use {
    READ_BY_CPU,
    WRITTEN_BY_CPU,
    SOURCE,
    DESTINATION,
};

static bool may_be_used(const struct wharf_region *region, enum use use)
{
    switch (use) {
    case READ_BY_CPU:
        return !region->is_device && !region->is_file;
    case WRITTEN_BY_CPU:
        return !region->is_device && !region->is_file && !region->read_only;
    case SOURCE:
        return !region->write_only;
    default:
        return !region->read_only;
    }
}

static uint32_t find_place(struct wharf_session *session, const struct place *place, enum use use,
                           struct wharf_region **ret_region)
{
    struct wharf_region *region = wharf_session_region(session, place->region_number);

    if (!region || !may_be_used(region, use))
        return WHARF_REASON_REQUEST_REGION;
    if (!wharf_range_good(place->offset, place->nbytes, region->segment.nbytes))
        return WHARF_REASON_REQUEST_RANGE;
    *ret_region = region;
    return WHARF_REASON_NONE;
}

/* Both are within their regions, so the sums do not wrap. */
static bool overlap(const struct place *a, const struct place *b)
{
    return a->region_number == b->region_number && a->nbytes && b->nbytes &&
           a->offset < b->offset + b->nbytes && b->offset < a->offset + a->nbytes;
}

static uint32_t check_places(struct wharf_session *session, const struct place *source,
                             enum use source_use, const struct place *destination,
                             enum use destination_use, struct wharf_region **ret_source,
                             struct wharf_region **ret_destination)
{
    uint32_t reason = find_place(session, source, source_use, ret_source);

    if (!reason)
        reason = find_place(session, destination, destination_use, ret_destination);
    if (!reason && overlap(source, destination))
        reason = WHARF_REASON_REQUEST_OVERLAP;
    return reason;
}

/* Likewise, and they are within the limit of one chunk. */
static uint32_t check_chunk_places(struct wharf_session *session, const struct place *source,
                                   const struct place *destination, bool compresses,
                                   struct wharf_region **ret_source,
                                   struct wharf_region **ret_destination)
{
    uint32_t reason = check_places(session, source, SOURCE, destination, DESTINATION, ret_source,
                                   ret_destination);

    /* Only the CPU writes files, and compresses them, and only a GPU can access its memory. */
    if (!reason && wharf_regions_need_gpu(*ret_source, *ret_destination) &&
        ((*ret_destination)->is_file || (compresses && (*ret_source)->is_file)))
        reason = WHARF_REASON_REQUEST_REGION;
    /* Each is within a region: the sum does not wrap. */
    if (!reason && (source->nbytes + destination->nbytes > session->max_job_nbytes ||
                    (compresses && source->nbytes > session->max_compress_nbytes)))
        reason = WHARF_REASON_REQUEST_SIZE;
    return reason;
}

uint32_t wharf_chunk_check(struct wharf_session *session, const struct wharf_chunk *chunk,
                           bool compresses, struct wharf_region **ret_source,
                           struct wharf_region **ret_destination)
{
    struct place source = {chunk->src_region, chunk->src_offset, chunk->src_nbytes};
    struct place destination = {chunk->dst_region, chunk->dst_offset, chunk->dst_nbytes};

    return check_chunk_places(session, &source, &destination, compresses, ret_source,
                              ret_destination);
}

uint32_t wharf_table_check(struct wharf_session *session, uint32_t region_number, uint64_t offset,
                           uint64_t nbytes, struct wharf_region **ret_region)
{
    struct place place = {region_number, offset, nbytes};

    return find_place(session, &place, READ_BY_CPU, ret_region);
}

/* Sizes of the table and of the results. */
static uint32_t check_batch_sizes(const struct wharf_session *session,
                                  const struct wharf_submission *submission)
{
    uint64_t head_nbytes = wharf_chain_nbytes(submission->flags & WHARF_SUBMISSION_CHAIN);
    uint64_t n_chunks = (submission->src_nbytes - head_nbytes) / sizeof(struct wharf_chunk);
    bool wants_results = submission->dst_nbytes != 0;

    if (submission->src_nbytes < head_nbytes ||
        submission->src_nbytes % sizeof(struct wharf_chunk) || n_chunks == 0 ||
        n_chunks > session->max_batch_chunks)
        return WHARF_REASON_REQUEST_BATCH;
    if (wants_results && submission->dst_nbytes != n_chunks * sizeof(struct wharf_chunk_result))
        return WHARF_REASON_REQUEST_BATCH;
    if (!wants_results && (submission->dst_offset || submission->dst_region))
        return WHARF_REASON_REQUEST_BATCH;
    return WHARF_REASON_NONE;
}

/* Of a chunk without a destination.  Its source is in host memory: the CPU may have to decode it.
 */
static uint32_t check_discarded(struct wharf_session *session,
                                const struct wharf_submission *submission,
                                struct wharf_region **ret_source)
{
    struct place source = {submission->src_region, submission->src_offset, submission->src_nbytes};
    uint32_t reason = find_place(session, &source, READ_BY_CPU, ret_source);

    if (!reason && (submission->dst_region || submission->dst_offset))
        reason = WHARF_REASON_REQUEST_RESERVED;
    if (!reason && (submission->dst_nbytes > session->max_job_nbytes ||
                    submission->src_nbytes > session->max_job_nbytes - submission->dst_nbytes))
        reason = WHARF_REASON_REQUEST_SIZE;
    return reason;
}

static uint32_t check_memory(struct wharf_session *session,
                             const struct wharf_submission *submission,
                             struct wharf_region **ret_source,
                             struct wharf_region **ret_destination)
{
    struct place source = {submission->src_region, submission->src_offset, submission->src_nbytes};
    struct place destination = {submission->dst_region, submission->dst_offset,
                                submission->dst_nbytes};
    uint32_t reason;

    if (submission->flags & WHARF_JOB_DISCARD) {
        reason = check_discarded(session, submission, ret_source);
        *ret_destination = *ret_source;
        return reason;
    }
    if (submission->opcode == WHARF_OP_DECODE)
        return check_chunk_places(session, &source, &destination,
                                  submission->flags & WHARF_JOB_COMPRESS, ret_source,
                                  ret_destination);
    reason = check_batch_sizes(session, submission);
    if (reason)
        return reason;
    if (destination.nbytes)
        return check_places(session, &source, READ_BY_CPU, &destination, WRITTEN_BY_CPU, ret_source,
                            ret_destination);
    return find_place(session, &source, READ_BY_CPU, ret_source);
}

/* NOOP and CANCEL: all unused members must be 0. */
static uint32_t check_simple(const struct wharf_submission *submission)
{
    struct wharf_submission expected = {
        .opcode = submission->opcode,
        .user_data = submission->user_data,
        .src_offset = submission->opcode == WHARF_OP_CANCEL ? submission->src_offset : 0,
    };

    return memcmp(&expected, submission, sizeof(expected)) ? WHARF_REASON_REQUEST_RESERVED
                                                           : WHARF_REASON_NONE;
}

/* The objects that a submission names. */
struct names {
    struct wharf_region *source;
    struct wharf_region *destination;  /* NULL: none */
    struct wharf_session_model *model; /* likewise */
    struct wharf_job_words words;      /* done is NULL: it has none */
};

/* For a job that compresses: checks its flags and encoder. */
static uint32_t check_flags(const struct wharf_session *session,
                            const struct wharf_submission *submission)
{
    uint32_t known = WHARF_JOB_KNOWN_FLAGS;

    if (submission->opcode == WHARF_OP_DECODE)
        known |= WHARF_JOB_DISCARD;
    if (submission->flags & WHARF_JOB_COMPRESS && session->max_compress_nbytes > 0)
        known = WHARF_JOB_COMPRESS;
    if (session->words)
        known |= WHARF_SUBMISSION_DONE_WORD;
    if (session->max_start_ns > 0)
        known |= WHARF_SUBMISSION_START_WORD;
    /* One wait at a time. */
    if (session->slots && submission->opcode == WHARF_OP_BATCH &&
        !(submission->flags & (WHARF_JOB_COMPRESS | WHARF_SUBMISSION_START_WORD)))
        known |= WHARF_SUBMISSION_CHAIN;
    return submission->flags & ~known ? WHARF_REASON_REQUEST_FLAGS : WHARF_REASON_NONE;
}

static uint32_t check_encoder(const struct wharf_submission *submission)
{
    const struct wharf_encode_choice choice = {submission->codec, submission->parameter,
                                               submission->encoder, submission->level};

    if (submission->flags & WHARF_JOB_COMPRESS)
        return wharf_encode_flaw(&choice);
    return submission->encoder || submission->level ? WHARF_REASON_REQUEST_RESERVED
                                                    : WHARF_REASON_NONE;
}

static uint32_t check_done(struct wharf_session *session,
                           const struct wharf_submission_words *words,
                           struct wharf_job_words *ret_words)
{
    struct place place = {words->done_region, words->done_offset, sizeof(struct wharf_done)};

    if (place.offset % sizeof(struct wharf_done) ||
        find_place(session, &place, WRITTEN_BY_CPU, &ret_words->done)) {
        ret_words->done = NULL;
        return WHARF_REASON_REQUEST_WORD;
    }
    ret_words->done_offset = words->done_offset;
    ret_words->done_serial = words->done_serial;
    return WHARF_REASON_NONE;
}

static uint32_t check_start(struct wharf_session *session,
                            const struct wharf_submission_words *words,
                            struct wharf_job_words *ret_words)
{
    struct place place = {words->start_region, words->start_offset, sizeof(uint64_t)};
    struct wharf_region *region;
    uint64_t timeout_ns = (uint64_t)words->start_timeout_us * WHARF_NS_PER_US;

    if (place.offset % sizeof(uint64_t) || find_place(session, &place, READ_BY_CPU, &region) ||
        !region->has_starts)
        return WHARF_REASON_REQUEST_WORD;
    ret_words->start = region;
    ret_words->start_word =
        (const uint64_t *)((const char *)region->segment.address + words->start_offset);
    ret_words->start_serial = words->start_serial;
    ret_words->start_limit_ns = session->max_start_ns;
    if (timeout_ns && timeout_ns < session->max_start_ns)
        ret_words->start_limit_ns = timeout_ns;
    return WHARF_REASON_NONE;
}

/* Finds the words that a submission has; all others must be 0. */
static uint32_t check_words(struct wharf_session *session,
                            const struct wharf_submission *submission,
                            struct wharf_job_words *ret_words)
{
    bool has_done = submission->flags & WHARF_SUBMISSION_DONE_WORD;
    bool has_start = submission->flags & WHARF_SUBMISSION_START_WORD;
    struct wharf_submission_words words;
    uint32_t reason = WHARF_REASON_NONE;

    if (!has_done && !has_start)
        return WHARF_REASON_NONE;
    wharf_ring_take_words(&session->ring, &words);
    if ((!has_done && (words.done_offset || words.done_serial || words.done_region)) ||
        (!has_start && (words.start_offset || words.start_serial || words.start_region ||
                        words.start_timeout_us)))
        return WHARF_REASON_REQUEST_WORD;
    if (has_done)
        reason = check_done(session, &words, ret_words);
    if (!reason && has_start)
        reason = check_start(session, &words, ret_words);
    /* Both or none: what has a bad word gets none written. */
    if (reason)
        ret_words->done = NULL;
    return reason;
}

/* Checks the parameter: one of the codec's, or, for decoders, the number of a model. */
static uint32_t check_parameter(struct wharf_session *session,
                                const struct wharf_submission *submission,
                                const struct wharf_codec_ops *ops,
                                struct wharf_session_model **ret_model)
{
    if (!ops->models || submission->parameter < WHARF_FIRST_MODEL ||
        submission->flags & WHARF_JOB_COMPRESS)
        return wharf_codec_unit_nbytes(ops, submission->parameter) ? WHARF_REASON_NONE
                                                                   : WHARF_REASON_REQUEST_PARAMETER;
    *ret_model = wharf_session_model(session, submission->parameter);
    return *ret_model && (*ret_model)->codec == submission->codec ? WHARF_REASON_NONE
                                                                  : WHARF_REASON_REQUEST_PARAMETER;
}

/*
 * Returns WHARF_REASON_NONE and the objects that it names, or the first reason to refuse it.  The
 * submission is a private copy.
 */
static uint32_t check_submission(struct wharf_session *session,
                                 const struct wharf_submission *submission, struct names *ret_names)
{
    *ret_names = (struct names){.source = NULL};
    switch (submission->opcode) {
    case WHARF_OP_NOOP:
    case WHARF_OP_CANCEL:
        return check_simple(submission);
    case WHARF_OP_DECODE:
    case WHARF_OP_BATCH:
        break;
    default:
        return WHARF_REASON_REQUEST_OPCODE;
    }
    const struct wharf_codec_row *codec = wharf_codec_find(submission->codec);
    if (!codec)
        return WHARF_REASON_REQUEST_CODEC;
    uint32_t reason = check_flags(session, submission);
    if (!reason)
        reason = check_words(session, submission, &ret_names->words);
    if (reason)
        return reason;
    if (submission->job_class > WHARF_CLASS_BACKGROUND)
        return WHARF_REASON_REQUEST_CLASS;
    reason = check_parameter(session, submission, codec->ops, &ret_names->model);
    if (!reason)
        reason = check_encoder(submission);
    if (reason)
        return reason;
    if (submission->opcode == WHARF_OP_BATCH && submission->checksum != 0 &&
        !(submission->flags & WHARF_SUBMISSION_CHAIN))
        return WHARF_REASON_REQUEST_RESERVED;
    return check_memory(session, submission, &ret_names->source, &ret_names->destination);
}

/* ---- admission ----------------------------------------------------------------------------- */

/* The price of one slot for a cancel, which visits all slots of its session. */
#define LOOK_NS 2u

/* There is a free slot: jobs in flight are at most entries of the ring, this submission counted. */
static struct wharf_job *job_take(struct wharf_session *session,
                                  const struct wharf_submission *submission, uint64_t now_ns)
{
    struct wharf_job *job = &session->jobs[session->free_job];

    session->free_job = job->next_free;
    session->n_in_flight++;
    job->is_plain = false;
    job->is_chain = submission->flags & WHARF_SUBMISSION_CHAIN;
    job->submission = *submission;
    job->submission.flags &= (uint16_t)~WHARF_SUBMISSION_CHAIN;
    job->words = NULL;
    job->index = session->ring.sq_head - 1; /* the last one that was taken */
    job->taken_ns = now_ns;
    job->begun_ns = 0;
    job->batch = NULL;
    job->n_pieces = 0;
    job->attempt = 0;
    job->stopped = 0;
    job->state = WHARF_JOB_QUEUED;
    if (session->slots)
        session->slots[job->index % session->ring.n_entries] = (uint32_t)(job - session->jobs);
    return job;
}

/* Of one that is refused with nothing but its done word. */
static void refuse_later(struct wharf_core *core, struct wharf_job *job, uint32_t reason)
{
    struct wharf_job_end end = {
        .outcome = {.result = WHARF_BAD_REQUEST, .reason = reason},
        .ended_ns = job->taken_ns,
    };

    wharf_core_charge_unqueued(core, job->session, WHARF_UNQUEUED_NS);
    job->job_class = WHARF_CLASS_NORMAL;
    wharf_core_end_job(core, job, &end);
}

static void complete_at_once(struct wharf_core *core, struct wharf_session *session,
                             const struct wharf_submission *submission, uint32_t reason)
{
    struct wharf_completion completion = {
        .user_data = submission->user_data,
        .result = reason ? WHARF_BAD_REQUEST : WHARF_OK,
        .reason = (uint16_t)reason,
    };

    wharf_core_charge_unqueued(core, session, WHARF_UNQUEUED_NS);
    session->tenant->stats.engines[WHARF_ENGINE_AUTO].n_jobs[completion.result]++;
    wharf_core_complete(core, session, &completion);
}

static void use(struct wharf_job *job, const struct names *names)
{
    job->source = names->source;
    job->destination = names->destination;
    job->model = names->model;
    if (job->source)
        job->source->n_users++;
    if (job->destination)
        job->destination->n_users++;
    if (job->model)
        job->model->n_users++;
}

static bool has_words(const struct names *names)
{
    return names->words.done || names->words.start;
}

/* The words are the slot's; flags that only the ring has go no further. */
static void use_words(struct wharf_job *job, const struct names *names)
{
    struct wharf_session *session = job->session;

    job->submission.flags &= (uint16_t) ~(WHARF_SUBMISSION_DONE_WORD | WHARF_SUBMISSION_START_WORD);
    job->words = &session->words[job - session->jobs];
    *job->words = names->words;
    if (job->words->done)
        job->words->done->n_users++;
    if (job->words->start)
        job->words->start->n_users++;
}

bool wharf_core_enqueue(struct wharf_core *core, struct wharf_session *session,
                        const struct wharf_submission *submission, uint64_t now_ns)
{
    struct names names;
    uint32_t reason = check_submission(session, submission, &names);

    if (reason && names.words.done) {
        struct wharf_job *refused = job_take(session, submission, now_ns);
        use(refused, &(struct names){.source = NULL});
        use_words(refused, &names);
        refuse_later(core, refused, reason);
        return true;
    }
    if (reason || submission->opcode == WHARF_OP_NOOP) {
        complete_at_once(core, session, submission, reason);
        return false;
    }
    if (submission->opcode == WHARF_OP_CANCEL) {
        session->cancel = (struct wharf_session_cancel){
            .is_under_way = true,
            .user_data = submission->src_offset,
            .own_user_data = submission->user_data,
        };
        wharf_core_charge_unqueued(core, session,
                                   WHARF_UNQUEUED_NS + session->ring.n_entries * LOOK_NS);
        return false;
    }
    struct wharf_job *job = job_take(session, submission, now_ns);
    use(job, &names);
    if (has_words(&names))
        use_words(job, &names);
    if (names.words.start)
        wharf_starts_take(core, job, now_ns);
    else if (job->is_chain)
        wharf_chain_take(core, job, now_ns);
    else
        wharf_core_queue_job(core, job, now_ns);
    return true;
}

struct wharf_job *wharf_admit_plain(struct wharf_session *session,
                                    const struct wharf_submission *submission, uint64_t now_ns)
{
    struct names names;

    if (!wharf_job_may_be_plain(session, submission) ||
        check_submission(session, submission, &names) ||
        wharf_regions_need_gpu(names.source, names.destination) ||
        wharf_regions_have_file(names.source, names.destination))
        return NULL;
    struct wharf_job *job = job_take(session, submission, now_ns);
    use(job, &names);
    wharf_job_set_plain(job);
    job->job_class = WHARF_CLASS_NORMAL;
    job->lane = WHARF_LANE_NORMAL;
    return job;
}
