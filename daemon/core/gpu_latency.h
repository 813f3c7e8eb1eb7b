/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_latency.h: how long chunks are away on a GPU, by how many are there.
 *
 * From handing over until it is known to be done, a chunk of a few has a block of warps to itself
 * and the link; one of thousands is one warp's, which waits for the link, and for the thread that
 * hands over.  What that makes of its time no sum of parts tells, so it is learnt: for each tenant
 * and codec, for chunks of several sizes, and for several numbers of chunks, of whomever, that the
 * GPU has.  Numbers alone, without locks.
 */
#ifndef WHARF_DAEMON_CORE_GPU_LATENCY_H
#define WHARF_DAEMON_CORE_GPU_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/estimate.h"

/* Below 4 chunks, 16, 64, 256, 1024 and 4096, and more. */
#define WHARF_GPU_LATENCY_N_COUNTS 7
/* Of input and output, below 16 KiB, 64, 256, and more. */
#define WHARF_GPU_LATENCY_N_SIZES 4

struct wharf_gpu_latencies {
    /* 0: not known. */
    uint32_t ns_per_kib[WHARF_N_CODECS][WHARF_GPU_LATENCY_N_SIZES][WHARF_GPU_LATENCY_N_COUNTS];
};

/* What one GPU takes for a tenant's chunks.  GPUs of a machine need not be alike, nor have the same
 * way to the processors, so each has its own. */
struct wharf_gpu_costs {
    struct wharf_estimates warps;         /* of one of its warps */
    struct wharf_gpu_latencies latencies; /* there and back */
};

/* Nothing is known but what its warps took for samples, 0 where not even that, and its latency. */
void wharf_gpu_costs_init(struct wharf_gpu_costs *costs, const uint32_t *ns_per_kib,
                          uint64_t latency_ns);

/*
 * What a chunk of so many bytes, of input and output, takes if the GPU has n_there then, this one
 * among them: as learnt for the number nearest to that from below.  *ret_is_known: for this very
 * one.  0 if nothing is known of its kind.
 */
uint64_t wharf_gpu_latency_ns(const struct wharf_gpu_latencies *latencies, uint32_t codec,
                              uint64_t nbytes, uint32_t n_there, bool *ret_is_known);

/* A chunk took so long, or the last of several that were handed over together; nbytes are those of
 * one of them. */
void wharf_gpu_latencies_learn(struct wharf_gpu_latencies *latencies, uint32_t codec,
                               uint64_t nbytes, uint32_t n_there, uint64_t took_ns);

#endif
