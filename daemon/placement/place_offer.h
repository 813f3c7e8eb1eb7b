/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_offer.h: which engine would be done with a job first.
 *
 * A job that several engines may run goes to the engine that finishes it first, what it has waiting
 * included.  Two things come before that: in a flood, the way with the highest throughput
 * (rate_probe.h); and now and then a chunk to an engine whose times have not been measured for
 * long. All under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_OFFER_H
#define WHARF_DAEMON_PLACEMENT_PLACE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/* A GPU that could take a job, and when it would be done with its next chunk. */
struct wharf_offer {
    uint32_t gpu;
    uint32_t n_in_flight;
    uint64_t ns;
    bool is_to_learn; /* it has had none of the kind for long */
};

/* In the place of a GPU's number: the CPU. */
#define WHARF_OFFER_NO_GPU UINT32_MAX

/* Of the GPUs that can take the job now, the one that would be done first, or one that is to learn;
 * false: none can. */
bool wharf_offer_best(const struct wharf_core *core, const struct wharf_job *job,
                      struct wharf_offer *ret_best);

/* Whether a GPU, and which, is to have the job rather than the CPU, which takes it up when it has
 * done `before_ns` of other things. */
bool wharf_offer_wins(const struct wharf_core *core, const struct wharf_job *job,
                      uint64_t before_ns, struct wharf_offer *ret_best);

/* What waits for the CPU's threads besides the next chunk of this job, shared by them. */
uint64_t wharf_offer_before_ns(const struct wharf_core *core, const struct wharf_job *job);

/* Whether this GPU takes a job of which `best` is the best offer, or leaves it to that one, whose
 * thread is wanted then. */
bool wharf_offer_takes(struct wharf_core *core, const struct wharf_job *job, uint32_t gpu,
                       const struct wharf_offer *best);

/* Counts why the chunks of a piece run where they do, on this GPU or on NO_GPU, and that others did
 * not have them. */
void wharf_offer_count(const struct wharf_core *core, const struct wharf_piece *piece,
                       uint32_t gpu);

#endif
