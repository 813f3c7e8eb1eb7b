/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress_here.h: jobs that compress, in this process.
 *
 * Encoders look at their source twice, and would go wrong if another process rewrote registered
 * memory between.  So they get a private copy of it, here as in the daemon.
 */
#ifndef WHARF_CLIENT_COMPRESS_HERE_H
#define WHARF_CLIENT_COMPRESS_HERE_H

#include "encoders/decode_job.h"
#include "encoders/encode_job.h"

/*
 * wharf_client_compress_check: checks a job's codec, flags, class, parameter, encoder and ranges,
 * in this order.  Returns WHARF_OK, or BAD_REQUEST with *ret_outcome filled.  The job's codec and
 * parameter equal the choice's.
 */
uint32_t wharf_client_compress_check(const struct wharf_decode_job *job,
                                     const struct wharf_encode_choice *choice, uint32_t job_class,
                                     struct wharf_outcome *ret_outcome);

/* wharf_client_compress: checks, and compresses in the calling thread. */
void wharf_client_compress(const struct wharf_decode_job *job,
                           const struct wharf_encode_choice *choice, uint32_t job_class,
                           struct wharf_outcome *ret_outcome);

#endif
