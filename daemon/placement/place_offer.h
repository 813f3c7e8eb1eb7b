/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_offer.h: which engine would finish a job first.
 *
 * A job that several engines may run goes to the engine that finishes it first, including its
 * queue.  There are two exceptions: under load, the policy with the highest throughput decides
 * (rate_probe.h); and now and then a chunk goes to an engine without recent samples.  All under the
 * core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_OFFER_H
#define WHARF_DAEMON_PLACEMENT_PLACE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/* A GPU that could take a job, and when it would finish the next chunk. */
struct wharf_offer {
    uint32_t gpu;
    uint32_t n_in_flight;
    uint64_t ns;
    bool is_to_learn; /* it has no recent sample of this kind */
};

/* Instead of a GPU's number: the CPU. */
#define WHARF_OFFER_NO_GPU UINT32_MAX

/* Among the GPUs that can take the job now, the one that would finish first, or one that needs a
 * sample; false: none can. */
bool wharf_offer_best(const struct wharf_core *core, const struct wharf_job *job,
                      struct wharf_offer *ret_best);

/* Whether a GPU should run the job, and which, rather than the CPU, which would start it after
 * before_ns of other work. */
bool wharf_offer_wins(const struct wharf_core *core, const struct wharf_job *job,
                      uint64_t before_ns, struct wharf_offer *ret_best);

/* The time that other queued work takes the CPU threads before this job's next chunk. */
uint64_t wharf_offer_before_ns(const struct wharf_core *core, const struct wharf_job *job);

/* Whether this GPU takes a job, or leaves it to the GPU of the best offer, whose thread is woken
 * then. */
bool wharf_offer_takes(struct wharf_core *core, const struct wharf_job *job, uint32_t gpu,
                       const struct wharf_offer *best);

/* Counts why a piece's chunks run on this GPU (or on NO_GPU), and that other engines did not get
 * them. */
void wharf_offer_count(const struct wharf_core *core, const struct wharf_piece *piece,
                       uint32_t gpu);

#endif
