/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_latency.h: the latency of chunks on a GPU, by how many chunks it has.
 *
 * Latency runs from handing a chunk over until its completion is seen.  One of few chunks has a
 * block of warps and the link to itself.  One of thousands has a single warp, and waits for the
 * link and for the thread that hands over.  No model predicts that well, so it is learnt: for each
 * tenant and codec, for several sizes of chunks, and for several numbers of chunks in flight on the
 * GPU, whoever owns them.  Plain data, without locks.
 */
#ifndef WHARF_DAEMON_CORE_GPU_LATENCY_H
#define WHARF_DAEMON_CORE_GPU_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/estimate.h"

/* Classes of numbers: below 4 chunks, 16, 64, 256, 1024, 4096, and more. */
#define WHARF_GPU_LATENCY_N_COUNTS 7
/* Classes of sizes, input plus output: below 16 KiB, 64, 256, and more. */
#define WHARF_GPU_LATENCY_N_SIZES 4

struct wharf_gpu_latencies {
    /* 0: unknown. */
    uint32_t ns_per_kib[WHARF_N_CODECS][WHARF_GPU_LATENCY_N_SIZES][WHARF_GPU_LATENCY_N_COUNTS];
};

/* The costs of a tenant's chunks on one GPU.  GPUs of a machine can differ, also in their link to
 * the processors, so each GPU has its own. */
struct wharf_gpu_costs {
    struct wharf_estimates warps;         /* of a single warp */
    struct wharf_gpu_latencies latencies; /* with hand-over and link */
};

/* Starts with the costs of samples on its warps (0: unknown) and the GPU's latency. */
void wharf_gpu_costs_init(struct wharf_gpu_costs *costs, const uint32_t *ns_per_kib,
                          uint64_t latency_ns);

/*
 * The latency of a chunk of nbytes, input plus output, when the GPU has n_there chunks including
 * it.  Uses the class of n_there, or the next lower one that is known; *ret_is_known says whether
 * it was the class itself.  0 if nothing is known.
 */
uint64_t wharf_gpu_latency_ns(const struct wharf_gpu_latencies *latencies, uint32_t codec,
                              uint64_t nbytes, uint32_t n_there, bool *ret_is_known);

/* Records the latency of a chunk, or of the last of several that were handed over together; nbytes
 * is the size of one chunk. */
void wharf_gpu_latencies_learn(struct wharf_gpu_latencies *latencies, uint32_t codec,
                               uint64_t nbytes, uint32_t n_there, uint64_t took_ns);

#endif
