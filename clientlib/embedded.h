/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded.h: jobs in this process, on the CPU.
 *
 * Submitted jobs wait in their classes' queues, and are run by the threads that wait and poll,
 * each job by one thread without the handle's lock: as many at once as the program has threads
 * there.
 */
#ifndef WHARF_CLIENT_EMBEDDED_H
#define WHARF_CLIENT_EMBEDDED_H

#include <stdint.h>

#include "encoders/decode_job.h"
#include "encoders/encode_job.h"

struct wharf;
struct wharf_client_model;

/* One chunk. */
struct wharf_client_work {
    struct wharf_decode_job job;
    struct wharf_encode_choice choice; /* with WHARF_JOB_COMPRESS */
};

/* wharf_client_run_here: checks and decodes or compresses one chunk in the calling thread. */
void wharf_client_run_here(const struct wharf_client_work *work, uint32_t job_class,
                           uint32_t engine, struct wharf_outcome *ret_outcome);

/*
 * wharf_client_embedded_run: runs the next queued job, releasing the lock meanwhile.  Returns
 * whether there was one.
 */
int wharf_client_embedded_run(struct wharf *wharf);

/* The same; without a queued job, waits for jobs that other threads run. */
void wharf_client_embedded_rest(struct wharf *wharf, uint64_t deadline_ns);

/* The decoder's setting from a job's model (or NULL) and parameter. */
struct wharf_codec_setting wharf_client_setting(const struct wharf_client_model *model,
                                                uint32_t parameter);

#endif
