/* SPDX-License-Identifier: Apache-2.0 */
/* compress_here.c: jobs that compress in this process (compress_here.h). */
#include "clientlib/compress_here.h"

#include <stdlib.h>

#include "encoders/outcome.h"
#include "proto/ring_ops.h"

static uint32_t flaw_of_request(const struct wharf_decode_job *job,
                                const struct wharf_encode_choice *choice, uint32_t job_class)
{
    if (!wharf_codec_find(job->codec))
        return WHARF_REASON_REQUEST_CODEC;
    if (job->flags != WHARF_JOB_COMPRESS)
        return WHARF_REASON_REQUEST_FLAGS;
    if (job_class > WHARF_CLASS_BACKGROUND)
        return WHARF_REASON_REQUEST_CLASS;
    return wharf_encode_flaw(choice);
}

uint32_t wharf_client_compress_check(const struct wharf_decode_job *job,
                                     const struct wharf_encode_choice *choice, uint32_t job_class,
                                     struct wharf_outcome *ret_outcome)
{
    uint32_t flaw = flaw_of_request(job, choice, job_class);
    struct wharf_decode_job ranges = *job;

    if (flaw) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_REQUEST, flaw, 0);
        return WHARF_BAD_REQUEST;
    }
    ranges.flags = 0;
    ranges.setting.parameter = choice->parameter;
    return wharf_decode_job_check(&ranges, ret_outcome) ? (uint32_t)WHARF_OK : ret_outcome->result;
}

static void compress_copy(const struct wharf_decode_job *job,
                          const struct wharf_encode_choice *choice, uint8_t *copy,
                          struct wharf_outcome *ret_outcome)
{
    struct wharf_encoder *encoder;

    wharf_ring_copy_in(copy, job->in, job->in_nbytes);
    if (wharf_encode_begin(choice, &encoder, ret_outcome) != WHARF_OK)
        return;
    wharf_encode_chunk(choice, encoder,
                       &(struct wharf_encode_chunk){copy, job->in_nbytes, job->out, job->out_avail},
                       ret_outcome);
    wharf_encode_free(choice, encoder);
}

void wharf_client_compress(const struct wharf_decode_job *job,
                           const struct wharf_encode_choice *choice, uint32_t job_class,
                           struct wharf_outcome *ret_outcome)
{
    uint8_t *copy;

    if (wharf_client_compress_check(job, choice, job_class, ret_outcome) != WHARF_OK)
        return;
    copy = malloc(job->in_nbytes ? job->in_nbytes : 1);
    if (copy)
        compress_copy(job, choice, copy, ret_outcome);
    else
        wharf_outcome_fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
    free(copy);
}
