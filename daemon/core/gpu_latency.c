/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/gpu_latency.h"

#include <string.h>

#include "daemon/core/estimate.h"
#include "daemon/core/split_parts.h"

/* Of so many latencies a mean is made, each of which counts as so many times the mean at most: what
 * takes much longer met something else. */
#define MEAN_OF 8u
#define MOST_TIMES 4u
/* The least that latencies are told apart by. */
#define LEAST_NBYTES 1024u

static unsigned count_class(uint32_t n_there)
{
    unsigned n_bits = 31 - (unsigned)__builtin_clz(n_there | 1);

    return n_bits / 2 < WHARF_GPU_LATENCY_N_COUNTS - 1 ? n_bits / 2
                                                       : WHARF_GPU_LATENCY_N_COUNTS - 1;
}

static unsigned size_class(uint64_t nbytes)
{
    unsigned class = 0;

    for (uint64_t least = (uint64_t)16 << 10;
         class < WHARF_GPU_LATENCY_N_SIZES - 1 && nbytes >= least; least *= 4)
        class ++;
    return class;
}

/* Sizes are below 2^30 and an hour is below 2^42 ns. */
static uint32_t price_of(uint64_t nbytes, uint64_t ns)
{
    uint64_t kib = nbytes < LEAST_NBYTES ? LEAST_NBYTES : nbytes;
    uint64_t price = (ns < (uint64_t)1 << 42 ? ns : (uint64_t)1 << 42) * 1024 / kib;

    return price == 0 ? 1 : price < UINT32_MAX ? (uint32_t)price : UINT32_MAX;
}

/* Nothing is known but what warps take for a chunk alone, at these prices, and the latency. */
static void init_latencies(struct wharf_gpu_latencies *latencies, const uint32_t *ns_per_kib,
                           uint64_t latency_ns)
{
    memset(latencies, 0, sizeof(*latencies));
    for (unsigned codec = 0; codec < WHARF_N_CODECS; codec++)
        for (unsigned size = 0; size < WHARF_GPU_LATENCY_N_SIZES && ns_per_kib[codec]; size++) {
            /* In the middle of the class. */
            uint64_t nbytes = (uint64_t)8192 << 2 * size;
            uint64_t ns = latency_ns + wharf_estimate_at(ns_per_kib[codec], nbytes, 0) /
                                           wharf_parts_alone(codec, nbytes);
            latencies->ns_per_kib[codec][size][0] = price_of(nbytes, ns);
        }
}

void wharf_gpu_costs_init(struct wharf_gpu_costs *costs, const uint32_t *ns_per_kib,
                          uint64_t latency_ns)
{
    wharf_estimates_init_device(&costs->warps, ns_per_kib);
    init_latencies(&costs->latencies, ns_per_kib, latency_ns);
}

uint64_t wharf_gpu_latency_ns(const struct wharf_gpu_latencies *latencies, uint32_t codec,
                              uint64_t nbytes, uint32_t n_there, bool *ret_is_known)
{
    const uint32_t *prices = latencies->ns_per_kib[codec][size_class(nbytes)];
    unsigned class = count_class(n_there);

    *ret_is_known = prices[class] != 0;
    while (class > 0 && !prices[class])
        class --;
    return (nbytes < LEAST_NBYTES ? LEAST_NBYTES : nbytes) * prices[class] / 1024;
}

void wharf_gpu_latencies_learn(struct wharf_gpu_latencies *latencies, uint32_t codec,
                               uint64_t nbytes, uint32_t n_there, uint64_t took_ns)
{
    uint32_t *mean = &latencies->ns_per_kib[codec][size_class(nbytes)][count_class(n_there)];
    uint64_t price = price_of(nbytes, took_ns);

    if (!*mean) {
        *mean = (uint32_t)price;
        return;
    }
    price = price < (uint64_t)MOST_TIMES * *mean ? price : (uint64_t)MOST_TIMES * *mean;
    *mean = (uint32_t)((*mean * (uint64_t)(MEAN_OF - 1) + price + MEAN_OF / 2) / MEAN_OF);
}
