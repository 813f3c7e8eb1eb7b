/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c: checks jobs and queues them.
 */
#include "clientlib/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clientlib/completions.h"
#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/job_words.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/pump.h"
#include "clientlib/sized_struct.h"

/* The sizes of the first version's structs.  They never change, whatever is added later. */
enum {
    JOB_NBYTES_0_1 = offsetof(struct wharf_job, reserved) + sizeof(uint32_t),
    BATCH_NBYTES_0_1 = offsetof(struct wharf_batch, reserved) + sizeof(uint32_t),
};

int wharf_client_copy_job(struct wharf_job *to, const struct wharf_job *from)
{
    int r = wharf_client_copy_struct(to, sizeof(*to), JOB_NBYTES_0_1, from, "the job");

    if (r == 0 && (to->reserved || to->reserved_2))
        return wharf_client_fail(-EINVAL, "a reserved member of the job is not 0");
    return r;
}

/* ---- what the ring cannot carry ------------------------------------------------------------ */

/*
 * The ring's members are smaller than the program's.  What does not fit is unknown in any case, and
 * stays so: the job is refused for the same reason.
 */
static uint16_t fit_16(uint32_t value)
{
    return value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

/* Of a job that compresses; others have none. */
static void set_encoder(struct wharf_submission *submission, uint32_t encoder, uint32_t level)
{
    int compresses = submission->flags & WHARF_JOB_COMPRESS;

    submission->encoder = compresses ? fit_16(encoder) : 0;
    submission->level = compresses ? fit_16(level) : 0;
}

#define RING_FLAGS (WHARF_SUBMISSION_DONE_WORD | WHARF_SUBMISSION_START_WORD)

static void set_request(struct wharf_submission *submission, uint32_t codec, uint32_t flags,
                        uint32_t job_class, uint32_t parameter)
{
    submission->codec = fit_16(codec);
    /* What the ring alone has a meaning for is unknown in a job. */
    submission->flags = flags & RING_FLAGS ? UINT16_MAX : fit_16(flags);
    submission->job_class = job_class > UINT8_MAX ? UINT8_MAX : (uint8_t)job_class;
    submission->parameter = fit_16(parameter);
}

int wharf_client_check_compress(struct wharf *wharf, uint32_t flags)
{
    const struct wharf_client_link *link = &wharf->link;

    /* With other flags it is a bad request, of which the completion tells. */
    if (flags != WHARF_JOB_COMPRESS || !wharf->is_daemon || link->facts.max_compress_nbytes > 0)
        return 0;
    return wharf_client_fail(-EOPNOTSUPP,
                             "the daemon at %s does not compress: it is too old, or "
                             "max_compress of its wharfd.conf is 0",
                             link->address.sun_path);
}

/* ---- queueing ------------------------------------------------------------------------------ */

static struct wharf_client_job *new_job(struct wharf *wharf, uint64_t user_data,
                                        uint32_t timeout_us, int is_private)
{
    struct wharf_client_job *job = wharf_client_job_new(&wharf->jobs, is_private);

    if (!job) {
        wharf_client_set_message("%u jobs are in flight: take completions first",
                                 wharf->jobs.max_public);
        return NULL;
    }
    job->user_data = user_data;
    job->timeout_us = job->submission.timeout_us = timeout_us;
    if (timeout_us || !wharf->is_daemon)
        job->queued_ns = wharf_client_now_ns();
    return job;
}

static void use_regions(struct wharf *wharf, uint16_t src_region, uint16_t dst_region)
{
    wharf->regions.by_number[src_region]->n_uses++;
    wharf->regions.by_number[dst_region]->n_uses++;
}

/* The queue that a job waits in. */
static struct wharf_client_job_list *queue_of(struct wharf *wharf,
                                              const struct wharf_client_job *job)
{
    uint32_t c = job->submission.job_class;

    if (wharf->is_daemon)
        return &wharf->jobs.queued[0];
    if (c == WHARF_CLASS_DEFAULT || c > WHARF_CLASS_BACKGROUND)
        c = wharf->default_class;
    return &wharf->jobs.queued[c];
}

/* A number that is no model's, of a codec that has no parameter so large either. */
#define NO_PARAMETER UINT16_MAX

/* A model that is being unregistered is none any more, for daemons too. */
static void use_model(struct wharf *wharf, struct wharf_client_job *job)
{
    struct wharf_submission *submission = &job->submission;

    if (!wharf_client_names_model(submission->codec, submission->parameter))
        return;
    job->model = wharf_client_model_use(&wharf->models, submission->codec, submission->parameter);
    if (!job->model)
        submission->parameter = NO_PARAMETER;
}

static void queue(struct wharf *wharf, struct wharf_client_job *job)
{
    use_model(wharf, job);
    use_regions(wharf, job->submission.src_region, job->submission.dst_region);
    if (job->words.done)
        wharf->regions.by_number[job->words.in_ring.done_region]->n_uses++;
    if (job->words.has_start)
        wharf->regions.by_number[job->words.in_ring.start_region]->n_uses++;
    job->state = WHARF_CLIENT_JOB_QUEUED;
    wharf_client_list_append(&wharf->jobs, queue_of(wharf, job), job);
}

/* What this process may write to a file itself; the daemon does not know it. */
static int check_file_size(const struct wharf *wharf, uint16_t region, uint64_t end)
{
    struct rlimit limit;

    if (wharf->regions.by_number[region]->kind != WHARF_CLIENT_FILE ||
        getrlimit(RLIMIT_FSIZE, &limit) < 0 || end <= limit.rlim_cur)
        return 0;
    return wharf_client_fail(-EFBIG,
                             "the destination ends at byte %llu of its file, and this process may "
                             "write %llu (RLIMIT_FSIZE)",
                             (unsigned long long)end, (unsigned long long)limit.rlim_cur);
}

static int locate(struct wharf *wharf, const void *memory, size_t nbytes, int is_output,
                  uint16_t *ret_region, uint64_t *ret_offset)
{
    if (wharf_client_regions_locate(&wharf->regions, memory, nbytes, is_output, ret_region,
                                    ret_offset) == 0)
        return is_output && nbytes ? check_file_size(wharf, *ret_region, *ret_offset + nbytes) : 0;
    return wharf_client_fail(
        -EFAULT, "the %s, %zu bytes at %p, is not from wharf_alloc and not registered%s",
        is_output ? "destination" : "source", nbytes, memory,
        is_output ? " for writing" : " for reading");
}

/* A discarded output has none. */
static int find_destination(struct wharf *wharf, const struct wharf_job *own,
                            struct wharf_submission *where)
{
    if (!wharf_client_discards(own->flags))
        return locate(wharf, own->out, own->out_avail, 1, &where->dst_region, &where->dst_offset);
    if (own->out)
        return wharf_client_fail(-EINVAL, "WHARF_JOB_DISCARD goes with no destination");
    if (!wharf->is_daemon)
        return wharf_client_fail(-EOPNOTSUPP, "only daemons discard outputs: WHARF_JOB_DISCARD");
    return 0;
}

static int find_words(struct wharf *wharf, const struct wharf_job *own,
                      struct wharf_client_words *ret_words)
{
    const struct wharf_client_wanted_words wanted = {
        own->done, own->start, own->done_serial, own->start_serial, own->start_timeout_us,
    };

    return wharf_client_words_find(wharf, &wanted, ret_words);
}

int wharf_client_queue_job(struct wharf *wharf, const struct wharf_job *own, int is_private,
                           struct wharf_client_job **ret_job)
{
    struct wharf_submission where = {.opcode = WHARF_OP_DECODE};
    struct wharf_client_words words;
    struct wharf_client_job *job;

    int r = locate(wharf, own->in, own->in_nbytes, 0, &where.src_region, &where.src_offset);
    if (r == 0)
        r = find_destination(wharf, own, &where);
    if (r == 0)
        r = find_words(wharf, own, &words);
    if (r < 0)
        return r;
    job = new_job(wharf, own->user_data, own->timeout_us, is_private);
    if (!job)
        return -EAGAIN;
    where.user_data = job->submission.user_data;
    where.timeout_us = own->timeout_us;
    where.src_nbytes = own->in_nbytes;
    where.dst_nbytes = own->out_avail;
    where.checksum = own->checksum;
    job->submission = where;
    job->words = words;
    set_request(&job->submission, own->codec, own->flags, own->job_class, own->parameter);
    set_encoder(&job->submission, own->encoder, own->level);
    queue(wharf, job);
    *ret_job = job;
    return 0;
}

int wharf_submit(struct wharf *wharf, const struct wharf_job *jobs, unsigned n_jobs)
{
    const char *at = (const char *)jobs;
    unsigned n_taken = 0;
    int r;

    r = wharf_client_enter(wharf);
    if (r < 0)
        return r;
    if (!jobs && n_jobs)
        r = wharf_client_fail(-EINVAL, "the jobs are NULL");
    if (r == 0)
        r = wharf_client_link_error(wharf);
    for (; r == 0 && n_taken < n_jobs && n_taken < INT32_MAX; n_taken++) {
        struct wharf_client_job *job;
        struct wharf_job own;
        r = wharf_client_copy_job(&own, (const struct wharf_job *)at);
        if (r == 0)
            r = wharf_client_check_compress(wharf, own.flags);
        if (r == 0)
            r = wharf_client_queue_job(wharf, &own, 0, &job);
        if (r < 0)
            break;
        at += jobs->struct_nbytes;
    }
    wharf_client_pump(wharf);
    wharf_client_leave(wharf);
    return n_taken ? (int)n_taken : r;
}

int wharf_submit_noop(struct wharf *wharf, uint64_t user_data)
{
    struct wharf_client_job *job;
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    r = wharf_client_link_error(wharf);
    if (r == 0) {
        job = new_job(wharf, user_data, 0, 0);
        r = job ? 0 : -EAGAIN;
    }
    if (r == 0) {
        job->submission.opcode = WHARF_OP_NOOP;
        queue(wharf, job);
        wharf_client_pump(wharf);
    }
    wharf_client_leave(wharf);
    return r;
}

/* ---- batches ------------------------------------------------------------------------------- */

/* A private copy of the table, in the ring's terms. */
static int copy_chunks(struct wharf *wharf, const struct wharf_batch *own,
                       struct wharf_client_batch *batch)
{
    for (uint32_t i = 0; i < own->n_chunks; i++) {
        const struct wharf_batch_chunk *from = &own->chunks[i];
        struct wharf_chunk *to = &batch->chunks[i];
        int r = locate(wharf, from->in, from->in_nbytes, 0, &to->src_region, &to->src_offset);
        if (r == 0)
            r = locate(wharf, from->out, from->out_avail, 1, &to->dst_region, &to->dst_offset);
        if (r == 0 && from->reserved)
            r = wharf_client_fail(-EINVAL, "a reserved member of chunk %u is not 0", i);
        if (r < 0)
            return r;
        to->src_nbytes = from->in_nbytes;
        to->dst_nbytes = from->out_avail;
        to->checksum = from->checksum;
    }
    return 0;
}

/* Where the daemon reads the table, and writes the results behind it. */
static int make_table(struct wharf *wharf, struct wharf_client_batch *batch)
{
    size_t n = batch->n_chunks;
    size_t nbytes = n * (sizeof(struct wharf_chunk) + sizeof(struct wharf_chunk_result));
    int r = wharf_client_arena_take(&wharf->arena, nbytes, &batch->table);

    if (r < 0)
        return wharf_client_fail(r, "no %zu bytes of the arena are free for the batch's table",
                                 nbytes);
    memcpy(batch->table, batch->chunks, n * sizeof(struct wharf_chunk));
    return 0;
}

static int new_batch(struct wharf *wharf, const struct wharf_batch *own,
                     struct wharf_client_batch **ret_batch)
{
    struct wharf_client_batch *batch =
        calloc(1, sizeof(*batch) + (size_t)own->n_chunks * sizeof(struct wharf_chunk));
    int r;

    if (!batch)
        return wharf_client_fail(-ENOMEM, "out of memory");
    batch->n_chunks = own->n_chunks;
    batch->results = own->results;
    r = copy_chunks(wharf, own, batch);
    if (r == 0)
        r = make_table(wharf, batch);
    if (r == 0)
        *ret_batch = batch;
    else
        free(batch);
    return r;
}

/* The batch is the job's from here on. */
static void queue_batch(struct wharf *wharf, struct wharf_client_job *job,
                        const struct wharf_batch *own, struct wharf_client_batch *batch,
                        const struct wharf_client_words *words)
{
    struct wharf_submission *submission = &job->submission;
    uint64_t table = (uintptr_t)batch->table - (uintptr_t)wharf->arena.address;
    uint64_t table_nbytes = own->n_chunks * (uint64_t)sizeof(struct wharf_chunk);

    job->batch = batch;
    job->words = *words;
    submission->opcode = WHARF_OP_BATCH;
    submission->src_offset = table;
    submission->src_nbytes = table_nbytes;
    if (own->results) {
        submission->dst_offset = table + table_nbytes;
        submission->dst_nbytes = own->n_chunks * (uint64_t)sizeof(struct wharf_chunk_result);
    }
    set_request(submission, own->codec, own->flags, own->job_class, own->parameter);
    set_encoder(submission, own->encoder, own->level);
    for (uint32_t i = 0; i < batch->n_chunks; i++)
        use_regions(wharf, batch->chunks[i].src_region, batch->chunks[i].dst_region);
    queue(wharf, job);
}

static int find_batch_words(struct wharf *wharf, const struct wharf_batch *own,
                            struct wharf_client_words *ret_words)
{
    const struct wharf_client_wanted_words wanted = {
        own->done, own->start, own->done_serial, own->start_serial, own->start_timeout_us,
    };

    return wharf_client_words_find(wharf, &wanted, ret_words);
}

static int submit_batch(struct wharf *wharf, const struct wharf_batch *own)
{
    struct wharf_client_batch *batch;
    struct wharf_client_words words;
    struct wharf_client_job *job;

    int r = wharf_client_link_error(wharf);
    if (r == 0)
        r = wharf_client_check_compress(wharf, own->flags);
    if (r == 0)
        r = find_batch_words(wharf, own, &words);
    if (r < 0)
        return r;
    r = new_batch(wharf, own, &batch);
    if (r != 0)
        return r;
    job = new_job(wharf, own->user_data, own->timeout_us, 0);
    if (!job) {
        wharf_client_arena_give_back(&wharf->arena, batch->table);
        free(batch);
        return -EAGAIN;
    }
    queue_batch(wharf, job, own, batch, &words);
    wharf_client_pump(wharf);
    return 0;
}

int wharf_submit_batch(struct wharf *wharf, const struct wharf_batch *batch)
{
    struct wharf_batch own;
    int r = wharf_client_check(wharf);

    if (r < 0)
        return r;
    if (!batch)
        return wharf_client_fail(-EINVAL, "the batch is NULL");
    r = wharf_client_copy_struct(&own, sizeof(own), BATCH_NBYTES_0_1, batch, "the batch");
    if (r < 0)
        return r;
    if (!own.chunks || own.n_chunks == 0 || own.reserved || own.reserved_2)
        return wharf_client_fail(-EINVAL, "the batch has no chunks, or a reserved member is not 0");
    r = wharf_client_enter(wharf);
    if (r < 0)
        return r;
    r = submit_batch(wharf, &own);
    wharf_client_leave(wharf);
    return r;
}

/* ---- cancel -------------------------------------------------------------------------------- */

/* Ends or marks what is on this list.  Returns how many. */
static int cancel_on(struct wharf *wharf, struct wharf_client_job_list *list, uint64_t user_data)
{
    struct wharf_client_job *next, *job = wharf_client_list_first(&wharf->jobs, list);
    int n = 0;

    for (; job; job = next) {
        next = wharf_client_list_next(&wharf->jobs, job);
        if (job->is_private || job->user_data != user_data || job->is_unwanted)
            continue;
        n++;
        if (job->state == WHARF_CLIENT_JOB_QUEUED && !job->was_published) {
            wharf_client_list_remove(&wharf->jobs, list, job);
            wharf_client_finish_unrun(wharf, job, WHARF_CANCELLED);
        } else {
            job->is_unwanted = 1;
            wharf->jobs.n_unwanted++;
        }
    }
    return n;
}

int wharf_cancel(struct wharf *wharf, uint64_t user_data)
{
    int n = 0;
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < 4; i++)
        n += cancel_on(wharf, &wharf->jobs.queued[i], user_data);
    n += cancel_on(wharf, &wharf->jobs.in_ring, user_data);
    r = wharf_client_link_error(wharf);
    wharf_client_pump(wharf);
    wharf_client_leave(wharf);
    return n || r == 0 ? n : r;
}
