/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.h: checks submissions and entries of a batch's table, and turns submissions into jobs.
 *
 * PROTOCOL.md, section 2, specifies the checks and their order.  Under the core lock, because they
 * look up regions.
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
 * Checks a private copy of an entry of a batch's table.  Returns WHARF_REASON_NONE and the regions
 * of its source and destination, or the first reason to refuse it.
 */
uint32_t wharf_chunk_check(struct wharf_session *session, const struct wharf_chunk *chunk,
                           bool compresses, struct wharf_region **ret_source,
                           struct wharf_region **ret_destination);

/* Likewise of memory that the daemon itself reads. */
uint32_t wharf_table_check(struct wharf_session *session, uint32_t region_number, uint64_t offset,
                           uint64_t nbytes, struct wharf_region **ret_region);

/*
 * For the leasing worker (lease.h), without the core lock: makes a job of a good submission of one
 * normal chunk without a deadline.  Returns NULL, and does nothing, for any other submission.
 */
struct wharf_job *wharf_admit_plain(struct wharf_session *session,
                                    const struct wharf_submission *submission, uint64_t now_ns);

/* Takes one submission: queues a job, or completes it at once.  Returns whether it is a job. */
bool wharf_core_enqueue(struct wharf_core *core, struct wharf_session *session,
                        const struct wharf_submission *submission, uint64_t now_ns);

#endif
