/* SPDX-License-Identifier: Apache-2.0 */
/* wharf_decompress and wharf_compress: any memory, one call. */
#include <errno.h>
#include <string.h>

#include "clientlib/completions.h"
#include "clientlib/embedded.h"
#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/pump.h"
#include "clientlib/submit.h"
#include "clientlib/wait_step.h"
#include "encoders/encode_job.h"
#include "proto/ring_ops.h"

/* For another thread's memory or slot, of which nobody may tell. */
#define PATIENT_NS 20000000u

struct call {
    struct wharf *wharf;
    const struct wharf_job *own;  /* as the program wants it */
    struct wharf_job sent;        /* with copies in the place of memory that the daemon lacks */
    struct wharf_client_job *job; /* once it is queued */
    int copies_in, copies_out;    /* the daemon does not reach the source, the destination */
    int may_run_here;
};

static struct wharf_decode_job decode_job_of(const struct wharf_job *own,
                                             const struct wharf_client_model *model)
{
    return (struct wharf_decode_job){
        .codec = own->codec,
        .flags = own->flags,
        .checksum = own->checksum,
        .setting = wharf_client_setting(model, own->parameter),
        .in = own->in,
        .in_nbytes = own->in_nbytes,
        .out = own->out,
        .out_avail = own->out_avail,
    };
}

/* On a handle with a daemon no job that names a model, whose images are the daemon's. */
static void run_here(struct wharf *wharf, const struct wharf_job *own,
                     struct wharf_outcome *ret_outcome)
{
    struct wharf_client_model *model =
        wharf_client_model_use(&wharf->models, own->codec, own->parameter);
    struct wharf_client_work work = {
        .job = decode_job_of(own, model),
        .choice = {own->codec, own->parameter, own->encoder, own->level},
    };

    wharf_client_run_here(&work, own->job_class, wharf->engine, ret_outcome);
    wharf_client_model_release(model);
}

/* Ranges that no copy can be made of.  A codec or flag that is unknown here is for the daemon. */
static int has_bad_ranges(const struct wharf_job *own)
{
    struct wharf_decode_job job = decode_job_of(own, NULL);
    struct wharf_outcome outcome = {.result = WHARF_OK};

    job.codec = WHARF_CODEC_STORED;
    job.flags = 0;
    job.setting.parameter = 0;
    return !wharf_decode_job_check(&job, &outcome);
}

/* ---- copies -------------------------------------------------------------------------------- */

static void drop_copies(struct call *call)
{
    wharf_client_drop_copy(call->wharf, call->sent.in == call->own->in ? NULL : call->sent.in);
    wharf_client_drop_copy(call->wharf, call->sent.out == call->own->out ? NULL : call->sent.out);
    call->sent = *call->own;
}

static int take_copy(struct wharf *wharf, size_t nbytes, void **ret_copy)
{
    int r = wharf_client_arena_take(&wharf->arena, nbytes, ret_copy);

    wharf->n_copies += r == 0;
    return r;
}

static int is_reachable(const struct call *call, const void *memory, size_t nbytes, int is_output)
{
    uint16_t region;
    uint64_t offset;

    return wharf_client_regions_locate(&call->wharf->regions, memory, nbytes, is_output, &region,
                                       &offset) == 0;
}

static int is_distant(const struct call *call, const void *memory, size_t nbytes)
{
    return wharf_client_regions_touch_distant(&call->wharf->regions, memory, nbytes);
}

/* Memory of the arena for what is not reachable.  Returns 0, or -errno with nothing taken. */
static int take_copies(struct call *call)
{
    void *in_copy, *out_copy;
    int r = 0;

    if (call->copies_in) {
        r = take_copy(call->wharf, call->own->in_nbytes, &in_copy);
        if (r == 0)
            call->sent.in = in_copy;
    }
    if (r == 0 && call->copies_out) {
        r = take_copy(call->wharf, call->own->out_avail, &out_copy);
        if (r == 0)
            call->sent.out = out_copy;
    }
    if (r < 0)
        drop_copies(call);
    return r;
}

/* What the daemon reaches.  Returns 0 or -EFAULT. */
static int look_at_memory(struct call *call)
{
    const struct wharf *wharf = call->wharf;
    const struct wharf_job *own = call->own;

    call->copies_in = !is_reachable(call, own->in, own->in_nbytes, 0);
    call->copies_out = !is_reachable(call, own->out, own->out_avail, 1);
    if ((call->copies_in && is_distant(call, own->in, own->in_nbytes)) ||
        (call->copies_out && is_distant(call, own->out, own->out_avail)))
        return wharf_client_fail(-EFAULT, "the source or the destination is GPU memory or a file, "
                                          "and reaches beyond what is registered for that");
    call->may_run_here = call->copies_in && call->copies_out &&
                         !(wharf->flags & WHARF_OPEN_DAEMON) &&
                         !wharf_client_names_model(own->codec, own->parameter) &&
                         wharf->engine != WHARF_ENGINE_GPU && wharf->engine != WHARF_ENGINE_SIMT;
    return 0;
}

/* Until there is room, if that is to be waited for. */
static int prepare(struct call *call)
{
    struct wharf *wharf = call->wharf;
    uint64_t nbytes = (uint64_t)call->own->in_nbytes + call->own->out_avail;
    int r;

    if (call->own->flags & WHARF_JOB_COMPRESS &&
        call->own->in_nbytes > wharf->link.facts.max_compress_nbytes)
        return wharf_client_fail(
            -EMSGSIZE, "%zu bytes to compress in one chunk, and the daemon takes %llu",
            call->own->in_nbytes, (unsigned long long)wharf->link.facts.max_compress_nbytes);
    if (nbytes > wharf->link.facts.max_job_nbytes)
        return wharf_client_fail(-EMSGSIZE, "%llu bytes in one job, and the daemon takes %llu",
                                 (unsigned long long)nbytes,
                                 (unsigned long long)wharf->link.facts.max_job_nbytes);
    while ((r = take_copies(call)) == -ENOBUFS && !call->may_run_here && wharf->n_copies)
        wharf_client_wait_changed(wharf, wharf_client_now_ns() + PATIENT_NS);
    if (r < 0)
        return wharf_client_fail(r,
                                 "the arena has no room for copies of %llu bytes: open the "
                                 "handle with a larger arena_nbytes",
                                 (unsigned long long)nbytes);
    return r;
}

static void copy_source(const struct call *call)
{
    if (call->sent.in == call->own->in)
        return;
    pthread_mutex_unlock(&call->wharf->lock);
    memcpy((void *)call->sent.in, call->own->in, call->own->in_nbytes);
    pthread_mutex_lock(&call->wharf->lock);
}

static void copy_output(const struct call *call, uint64_t out_nbytes)
{
    if (call->sent.out == call->own->out)
        return;
    pthread_mutex_unlock(&call->wharf->lock);
    wharf_ring_copy_in(call->own->out, call->sent.out, out_nbytes);
    pthread_mutex_lock(&call->wharf->lock);
}

/* ---- the job ------------------------------------------------------------------------------- */

static int queue_when_possible(struct call *call)
{
    struct wharf *wharf = call->wharf;
    struct wharf_client_job *job;
    int r;

    for (;;) {
        r = wharf_client_link_error(wharf);
        if (r == 0)
            r = wharf_client_queue_job(wharf, &call->sent, 1, &job);
        if (r == 0)
            break;
        if (r != -EAGAIN || call->may_run_here)
            return r;
        if (wharf->jobs.in_ring.n)
            wharf_client_wait_step(wharf, 1, wharf_client_now_ns() + PATIENT_NS);
        else
            wharf_client_wait_changed(wharf, wharf_client_now_ns() + PATIENT_NS);
        wharf_client_pump(wharf);
    }
    if (call->sent.in != call->own->in)
        job->in_copy = (void *)call->sent.in;
    if (call->sent.out != call->own->out)
        job->out_copy = call->sent.out;
    call->job = job;
    return 0;
}

/* Returns 0 when the job is done, or an error, after which it is nobody's. */
static int wait_for_job(struct call *call)
{
    struct wharf *wharf = call->wharf;
    struct wharf_client_job *job = call->job;

    for (;;) {
        wharf_client_pump(wharf);
        if (job->state == WHARF_CLIENT_JOB_DONE)
            return 0;
        int r = wharf_client_link_error(wharf);
        if (r < 0) {
            job->is_abandoned = job->is_unwanted = 1;
            wharf->jobs.n_unwanted++;
            return r;
        }
        wharf_client_wait_step(wharf, 1, WHARF_CLIENT_NEVER);
    }
}

static void finish(struct call *call, struct wharf_outcome *ret_outcome)
{
    const struct wharf_completion *completion = &call->job->completion;

    copy_output(call, completion->out_nbytes);
    *ret_outcome = (struct wharf_outcome){
        .result = completion->result,
        .reason = completion->reason,
        .bit_offset = completion->bit_offset,
        .in_nbytes = completion->in_nbytes,
        .out_nbytes = completion->out_nbytes,
    };
    wharf_client_free_private(call->wharf, call->job);
}

/* With the lock. */
static int run_there(struct call *call, struct wharf_outcome *ret_outcome)
{
    int r = wharf_client_check_compress(call->wharf, call->own->flags);

    if (r == 0)
        r = prepare(call);

    if (r < 0)
        return r;
    copy_source(call);
    r = queue_when_possible(call);
    if (r < 0) {
        drop_copies(call);
        return r;
    }
    r = wait_for_job(call);
    if (r == 0)
        finish(call, ret_outcome);
    return r;
}

/* ---- which of the two ---------------------------------------------------------------------- */

static size_t nbytes_of(const struct wharf_job *own)
{
    return own->in_nbytes + own->out_avail;
}

/* A deadline is the daemon's to keep, and so is it to wait for idle processors.  Encoders are not
 * the same ones here. */
static int has_choice(const struct call *call)
{
    return call->may_run_here && !(call->own->flags & WHARF_JOB_COMPRESS) &&
           call->wharf->engine == WHARF_ENGINE_AUTO && !call->own->timeout_us &&
           call->own->job_class != WHARF_CLASS_BACKGROUND;
}

static enum wharf_client_side choose_side(struct call *call)
{
    enum wharf_client_side side = WHARF_CLIENT_DAEMON;

    if (has_choice(call))
        side =
            wharf_client_choose_side(&call->wharf->costs, call->own->codec, nbytes_of(call->own));
    call->wharf->n_here += side == WHARF_CLIENT_INLINE;
    return side;
}

/* For what the daemon could not do: so it is seldom asked, until it can. */
#define FAILED_NS UINT64_C(1000000000)

/* Whether the outcome is about the stream, which is the same everywhere. */
static int is_of_data(uint32_t result)
{
    return result == WHARF_BAD_DATA || result == WHARF_BAD_CHECKSUM ||
           result == WHARF_OUTPUT_TOO_SMALL || result == WHARF_OUTPUT_SHORT ||
           result == WHARF_UNSUPPORTED || result == WHARF_BAD_REQUEST;
}

/* A bad stream ends anywhere, so how long that took says nothing. */
static void note_side(struct call *call, enum wharf_client_side side, uint64_t begun_ns, int r,
                      const struct wharf_outcome *outcome)
{
    uint64_t took_ns = wharf_client_now_ns() - begun_ns;

    if (!has_choice(call) || (r == 0 && is_of_data(outcome->result)))
        return;
    if (r < 0 || outcome->result != WHARF_OK)
        took_ns += FAILED_NS;
    wharf_client_note_side(&call->wharf->costs, call->own->codec, nbytes_of(call->own), side,
                           took_ns);
}

/* With the lock. */
static int run_somewhere(struct call *call, struct wharf_outcome *ret_outcome)
{
    int r = look_at_memory(call);

    if (r < 0)
        return r;
    uint64_t begun_ns = wharf_client_now_ns();
    enum wharf_client_side side = choose_side(call);
    if (side == WHARF_CLIENT_DAEMON) {
        r = run_there(call, ret_outcome);
    } else {
        pthread_mutex_unlock(&call->wharf->lock);
        run_here(call->wharf, call->own, ret_outcome);
        pthread_mutex_lock(&call->wharf->lock);
    }
    note_side(call, side, begun_ns, r, ret_outcome);
    return r;
}

static int run_call(struct wharf *wharf, const struct wharf_job *own,
                    struct wharf_outcome *ret_outcome)
{
    struct call call = {.wharf = wharf, .own = own, .sent = *own};
    int r;

    if (!wharf->is_daemon || has_bad_ranges(own)) {
        run_here(wharf, own, ret_outcome);
        return 0;
    }
    r = wharf_client_enter(wharf);
    if (r < 0)
        return r;
    r = run_somewhere(&call, ret_outcome);
    wharf_client_leave(wharf);
    if (r < 0 && call.may_run_here) {
        run_here(wharf, own, ret_outcome);
        return 0;
    }
    return r;
}

/* As it is to be, with these flags too. */
static int run_copy(struct wharf *wharf, const struct wharf_job *job, uint32_t flags,
                    struct wharf_outcome *ret_outcome)
{
    struct wharf_job own;
    int r;

    if (!wharf || !job || !ret_outcome)
        return wharf_client_fail(-EINVAL, "the handle, the job or the outcome is NULL");
    r = wharf_client_copy_job(&own, job);
    if (r < 0)
        return r;
    if (own.done || own.start)
        return wharf_client_fail(-EINVAL, "words of streams are for jobs that are submitted");
    if (wharf_client_discards(own.flags))
        return wharf_client_fail(-EINVAL, "WHARF_JOB_DISCARD is for jobs that are submitted");
    own.flags |= flags;
    return run_call(wharf, &own, ret_outcome);
}

int wharf_decompress(struct wharf *wharf, const struct wharf_job *job,
                     struct wharf_outcome *ret_outcome)
{
    return run_copy(wharf, job, 0, ret_outcome);
}

int wharf_compress(struct wharf *wharf, const struct wharf_job *job,
                   struct wharf_outcome *ret_outcome)
{
    return run_copy(wharf, job, WHARF_JOB_COMPRESS, ret_outcome);
}

int wharf_compress_bound(const struct wharf_job *job, size_t *ret_nbytes)
{
    struct wharf_job own;
    int r;

    if (!job || !ret_nbytes)
        return wharf_client_fail(-EINVAL, "the job or the size's place is NULL");
    r = wharf_client_copy_job(&own, job);
    if (r < 0)
        return r;
    r = wharf_encode_bound(
        &(struct wharf_encode_choice){own.codec, own.parameter, own.encoder, own.level},
        own.in_nbytes, ret_nbytes);
    if (r < 0)
        return wharf_client_fail(r, r == -ENOMEM ? "out of memory"
                                                 : "no such codec or parameter, or the source is "
                                                   "larger than an object can be");
    return 0;
}
