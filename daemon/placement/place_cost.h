/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_cost.h: learns from finished pieces how long engines take for chunks.
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

/* Whether a source or destination of a job is in a client's GPU memory, so that the CPU cannot run
 * it. */
bool wharf_place_needs_gpu(const struct wharf_job *job);

/* A job's next chunk, and its mean time on a processor. */
struct wharf_next_chunk {
    uint64_t in_nbytes, out_nbytes;
    uint64_t cpu_ns;
};
struct wharf_next_chunk wharf_place_next_chunk(const struct wharf_job *job);

/* The time from now until a GPU's completion of it would be seen. */
uint64_t wharf_place_latency_ns(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_next_chunk *next);

/* Whether a GPU has room: its items keep its warps busy for less than `ahead`. */
bool wharf_place_gpu_has_room(const struct wharf_core *core, uint32_t gpu);

/* Measurements of a piece that a GPU ran. */
struct wharf_gpu_round {
    uint64_t elapsed_ns;  /* from hand-over to the last chunk's completion */
    uint64_t decode_ns;   /* decode time of its slowest chunk */
    uint64_t estimate_ns; /* sum of the estimated warp times */
    uint64_t nbytes;      /* most bytes in flight meanwhile, sources plus capacities */
    uint32_t n_there;     /* chunks in flight at hand-over, including its own */
    uint32_t n_idle;      /* pieces of idle work (idle_work.h) that the GPU had then */
};

/* A GPU has decoded a whole piece.  When the link and not the warps limited it, updates the
 * estimate of the link's throughput and marks the piece as crowded. */
void wharf_place_learn_latency(struct wharf_gpu_view *gpu, struct wharf_piece *piece,
                               const struct wharf_gpu_round *round);

/* A piece was withdrawn from the GPU: its time there is a lower bound. */
void wharf_place_learn_too_long(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_gpu_round *round);

/* A piece took took_ns: updates the costs of its kind on that engine, and the throughput probe. */
void wharf_place_learn(struct wharf_core *core, const struct wharf_piece *piece, uint64_t took_ns);

/* The time that nbytes take on the link to that GPU. */
uint64_t wharf_place_flow_ns(const struct wharf_gpu_view *gpu, uint64_t nbytes);

/* How long one warp of that GPU will take for a chunk of this job's codec. */
uint64_t wharf_place_warp_ns(uint32_t gpu, const struct wharf_job *job, uint64_t in_nbytes,
                             uint64_t out_nbytes);

#endif
