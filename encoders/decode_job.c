/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_job.c: one job by the CPU engine: its arguments, the decoder, and what the job promised.
 */
#include "encoders/decode_job.h"

#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

/* Why nbytes at p cannot be one object, or NONE. */
static uint32_t flaw_of_range(const void *p, size_t nbytes)
{
    if (nbytes == 0)
        return WHARF_REASON_NONE;
    if (!p)
        return WHARF_REASON_REQUEST_NULL;
    if (nbytes > PTRDIFF_MAX)
        return WHARF_REASON_REQUEST_SIZE;
    if (nbytes - 1 > UINTPTR_MAX - (uintptr_t)p)
        return WHARF_REASON_REQUEST_RANGE;
    return WHARF_REASON_NONE;
}

static int ranges_overlap(const void *a, size_t a_nbytes, const void *b, size_t b_nbytes)
{
    uintptr_t a_start = (uintptr_t)a;
    uintptr_t b_start = (uintptr_t)b;

    if (a_nbytes == 0 || b_nbytes == 0)
        return 0;
    return a_start < b_start ? b_start - a_start < a_nbytes : a_start - b_start < b_nbytes;
}

static uint32_t flaw_of_ranges(const struct wharf_decode_job *job)
{
    uint32_t reason = flaw_of_range(job->in, job->in_nbytes);

    if (!reason)
        reason = flaw_of_range(job->out, job->out_avail);
    if (!reason && ranges_overlap(job->in, job->in_nbytes, job->out, job->out_avail))
        reason = WHARF_REASON_REQUEST_OVERLAP;
    return reason;
}

/* Why the job makes no sense, or NONE.  `row` is its codec's, or NULL. */
static uint32_t flaw_of(const struct wharf_decode_job *job, const struct wharf_codec_row *row)
{
    if (!row)
        return WHARF_REASON_REQUEST_CODEC;
    if (job->is_range ? job->flags != 0 || !row->ops->decode_range
                      : job->flags & ~WHARF_JOB_KNOWN_FLAGS)
        return WHARF_REASON_REQUEST_FLAGS;
    if (!wharf_codec_unit_nbytes(row->ops, job->setting.parameter))
        return WHARF_REASON_REQUEST_PARAMETER;
    return flaw_of_ranges(job);
}

const struct wharf_codec_ops *wharf_decode_job_check(const struct wharf_decode_job *job,
                                                     struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_row *row = wharf_codec_find(job->codec);
    uint32_t reason = flaw_of(job, row);

    if (reason) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_REQUEST, reason, 0);
        return NULL;
    }
    return row->ops;
}

static int leaves_input(const struct wharf_decode_job *job, const struct wharf_outcome *outcome)
{
    return (job->flags & WHARF_JOB_EXACT_INPUT) && outcome->in_nbytes != job->in_nbytes;
}

static int misses_output(const struct wharf_decode_job *job, const struct wharf_outcome *outcome)
{
    return (job->flags & WHARF_JOB_EXACT_OUTPUT) && outcome->out_nbytes != job->out_avail;
}

int wharf_decode_job_wants_checksum(const struct wharf_decode_job *job,
                                    const struct wharf_outcome *outcome)
{
    return outcome->result == WHARF_OK && (job->flags & WHARF_JOB_CHECKSUM) &&
           !leaves_input(job, outcome) && !misses_output(job, outcome);
}

void wharf_decode_job_settle(const struct wharf_decode_job *job, uint32_t out_checksum,
                             struct wharf_outcome *outcome)
{
    uint64_t end_bit = 8 * outcome->in_nbytes;

    if (outcome->result != WHARF_OK)
        return;
    if (leaves_input(job, outcome))
        wharf_outcome_fail(outcome, WHARF_BAD_DATA, WHARF_REASON_INPUT_LEFT, end_bit);
    else if (misses_output(job, outcome))
        wharf_outcome_fail(outcome, WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING, end_bit);
    else if ((job->flags & WHARF_JOB_CHECKSUM) && out_checksum != job->checksum)
        wharf_outcome_fail(outcome, WHARF_BAD_CHECKSUM, WHARF_REASON_JOB_CHECKSUM, end_bit);
}

void wharf_decode_job_run(const struct wharf_decode_job *job, int reference,
                          struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_ops *ops = wharf_decode_job_check(job, ret_outcome);
    wharf_decode_fn *decode;
    uint32_t checksum = WHARF_CRC32_INIT;

    if (!ops)
        return;
    if (job->is_range) {
        wharf_decode_range_fn *range = reference ? ops->decode_range_reference : ops->decode_range;
        range(job->in, job->in_nbytes, job->first, job->out, job->out_avail, &job->setting,
              ret_outcome);
        return;
    }
    decode = reference ? ops->decode_reference : ops->decode;
    decode(job->in, job->in_nbytes, job->out, job->out_avail, &job->setting, ret_outcome);
    if (wharf_decode_job_wants_checksum(job, ret_outcome)) {
        uint32_t stopped = wharf_poll_checksum(&job->setting, wharf_crc32, job->out,
                                               ret_outcome->out_nbytes, &checksum);
        if (stopped)
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    }
    wharf_decode_job_settle(job, checksum, ret_outcome);
}
