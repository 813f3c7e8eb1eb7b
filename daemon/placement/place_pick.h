/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_pick.h: which queued job an engine gets next.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_PICK_H
#define WHARF_DAEMON_PLACEMENT_PLACE_PICK_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/* The next job for the CPU, or for this GPU, which stays in its queue; NULL if there is none.
 * most_ns: as in wharf_sched_first. */
struct wharf_job *wharf_place_first_for_cpu(struct wharf_core *core, uint64_t most_ns);
struct wharf_job *wharf_place_first_for_gpu(struct wharf_core *core, uint32_t gpu);

/* The next job for one of the GPU's places for large chunks: one that can run nowhere else, or one
 * that is a stream. */
struct wharf_job *wharf_place_first_large(struct wharf_core *core, uint32_t gpu);

/* The next job for a warp that compresses; takes_idle: of any lane, else not of the last. */
struct wharf_job *wharf_place_first_to_encode(struct wharf_core *core, uint32_t gpu,
                                              bool takes_idle);

/* A GPU is full: wakes another one that sleeps and can take the rest. */
void wharf_place_pass_on(struct wharf_core *core);

/* The CPU, or a GPU, has taken a piece.  Counts the reason; and, because each engine serves several
 * pools in turn, the lead of one pool over another while both have jobs. */
void wharf_place_took_by_cpu(struct wharf_core *core, const struct wharf_piece *piece);
void wharf_place_took_by_gpu(struct wharf_core *core, const struct wharf_piece *piece,
                             uint32_t gpu);

#endif
