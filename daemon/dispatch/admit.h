/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.h: what is wrong with a submission or with an entry of a batch's table; from a submission
 * to a job.
 *
 * The checks and their order are those of PROTOCOL.md, section 2.  Under the core lock: they look
 * up regions.
 */
#ifndef WHARF_DAEMON_DISPATCH_ADMIT_H
#define WHARF_DAEMON_DISPATCH_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wharf_ring.h"

struct wharf_core;
struct wharf_job;
struct wharf_region;
struct wharf_session;

/*
 * An entry of a batch's table, of which this is a private copy.  Returns WHARF_REASON_NONE, with
 * the regions of its source and destination, or the first reason to refuse it.
 */
uint32_t wharf_chunk_check(struct wharf_session *session, const struct wharf_chunk *chunk,
                           bool compresses, struct wharf_region **ret_source,
                           struct wharf_region **ret_destination);

/*
 * For the worker that has the session to itself (lease.h), without the core lock: makes a job of a
 * good submission of one chunk that is normal and has no deadline.  NULL, with nothing done, if it
 * is anything else.
 */
struct wharf_job *wharf_admit_plain(struct wharf_session *session,
                                    const struct wharf_submission *submission, uint64_t now_ns);

/* Takes in one submission: queues a job, or completes it at once; whether it is a job. */
bool wharf_core_enqueue(struct wharf_core *core, struct wharf_session *session,
                        const struct wharf_submission *submission, uint64_t now_ns);

#endif
