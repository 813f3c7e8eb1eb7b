/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_cost.h: how long engines take for chunks, learnt from the pieces that they ran.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_COST_H
#define WHARF_DAEMON_PLACEMENT_PLACE_COST_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_gpu_view;
struct wharf_job;
struct wharf_piece;

/* Whether a source or destination of a job is a client's own GPU memory: then the CPU cannot run
 * it. */
bool wharf_place_needs_gpu(const struct wharf_job *job);

/* What there is to do of a job next, and what a processor takes for it in the mean. */
struct wharf_next_chunk {
    uint64_t in_nbytes, out_nbytes;
    uint64_t cpu_ns;
};
struct wharf_next_chunk wharf_place_next_chunk(const struct wharf_job *job);

/* What a GPU would take for it from now on, until it is known to be done. */
uint64_t wharf_place_latency_ns(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_next_chunk *next);

/* Whether a GPU can be given more: what it has keeps its warps busy for less than `ahead`. */
bool wharf_place_gpu_has_room(const struct wharf_core *core, uint32_t gpu);

/* A piece's way to the GPU and back. */
struct wharf_gpu_round {
    uint64_t elapsed_ns;  /* from handing over until the last chunk was completed */
    uint64_t decode_ns;   /* the longest that one of its chunks was decoded */
    uint64_t estimate_ns; /* that warps were expected to take for them, together */
    uint64_t nbytes;      /* the most that was in flight with it, of sources and capacities */
    uint32_t n_there;     /* chunks that were in flight when it was handed over, its own included */
};

/* A piece has come back from the GPU, all of it decoded there: teaches what passes through the GPU
 * and the way to it when warps are not what jobs wait for, and finds out whether that is why it
 * took so long. */
void wharf_place_learn_latency(struct wharf_gpu_view *gpu, struct wharf_piece *piece,
                               const struct wharf_gpu_round *round);

/* A piece of the job was taken back from that GPU: what it takes there is at least that. */
void wharf_place_learn_too_long(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_gpu_round *round);

/* A piece is done and took so long: learns what its kind takes on that engine, and what passes. */
void wharf_place_learn(struct wharf_core *core, const struct wharf_piece *piece, uint64_t took_ns);

/* The time that so many bytes take together on that way. */
uint64_t wharf_place_flow_ns(const struct wharf_gpu_view *gpu, uint64_t nbytes);

/* How long one warp of that GPU will take for a chunk of this job's codec. */
uint64_t wharf_place_warp_ns(uint32_t gpu, const struct wharf_job *job, uint64_t in_nbytes,
                             uint64_t out_nbytes);

#endif
