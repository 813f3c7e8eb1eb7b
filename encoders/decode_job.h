/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_job.h: one job on the CPU, and the rules around a decode that every engine shares.
 *
 * An engine validates a job with wharf_decode_job_check, decodes, and lets
 * wharf_decode_job_settle compare the result with what the job promised: so the embedded
 * engine, the daemon and its GPU workers give one outcome for one job.
 */
#ifndef WHARF_ENCODERS_DECODE_JOB_H
#define WHARF_ENCODERS_DECODE_JOB_H

#include "encoders/codec.h"
#include "proto/wharf_job.h"

struct wharf_decode_job {
    uint32_t codec;
    uint32_t flags;    /* enum wharf_job_flag */
    uint32_t checksum; /* expected CRC-32 of the output, with WHARF_JOB_CHECKSUM */
    bool is_range;     /* fill the destination from byte `first` of the output on; no flags */
    uint64_t first;
    struct wharf_codec_setting setting;
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_avail;
};

/*
 * Looks at the request alone: first the codec, then the flags, the parameter and the ranges
 * (source, then destination, each NULL with a size, over PTRDIFF_MAX or past the end of the address
 * space; then whether they overlap).  Returns the codec's functions, or NULL after filling
 * *ret_outcome with WHARF_BAD_REQUEST.
 */
const struct wharf_codec_ops *wharf_decode_job_check(const struct wharf_decode_job *job,
                                                     struct wharf_outcome *ret_outcome);

/*
 * Compares a finished decode with the job's flags, in the order that wharf_job.h gives, and
 * turns *outcome into the failure that they ask for.  An outcome that is not WHARF_OK stays.
 * out_checksum is the CRC-32 of the output; it is looked at only if
 * wharf_decode_job_wants_checksum said so of the same job and outcome.
 */
void wharf_decode_job_settle(const struct wharf_decode_job *job, uint32_t out_checksum,
                             struct wharf_outcome *outcome);

/* Whether settling this job needs the CRC-32 of its output. */
int wharf_decode_job_wants_checksum(const struct wharf_decode_job *job,
                                    const struct wharf_outcome *outcome);

/*
 * Checks, decodes with the CPU engine (or with the reference engine) and settles.  Fills
 * *ret_outcome always.  Does not allocate in the CPU engine.
 */
void wharf_decode_job_run(const struct wharf_decode_job *job, int reference,
                          struct wharf_outcome *ret_outcome);

#endif
