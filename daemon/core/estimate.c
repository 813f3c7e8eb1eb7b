/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.c: learns the cost of a unit of work.
 *
 * Two exponential averages: one rises quickly and falls slowly, so that estimates err on the high
 * side; the other is the mean.  Both stay within fixed bounds.
 */
#include "daemon/core/estimate.h"

#include <stdbool.h>
#include <stddef.h>

/* For looking up and checking one job. */
#define CONSTANT_NS 1000u

/*
 * The initial cost and its bounds, in nanoseconds per KiB.  Deflate reaches 1 GB/s on ordinary
 * data; no codec is faster than memory (32 GB/s); and the slowest work of a decoder, building
 * tables for hostile headers, takes about 100 ns for each byte.
 */
#define START_NS_PER_KIB 1024u
#define LEAST_NS_PER_KIB 32u
#define MOST_NS_PER_KIB (100u * 1024u)

/*
 * For a warp, which may be a hundred times slower than a processor; one on the SIMT layer, some
 * thousand times.  Sizes are below 2^30, so times fit 64 bits.
 */
#define START_WARP_NS_PER_KIB (100u * 1024u)
#define MOST_WARP_NS_PER_KIB (1000u * 1000u * 1000u)

/* For encoders: initially 10 MB/s, as a thorough one has; at most the slowest on the worst data. */
#define START_ENCODING_NS_PER_KIB (100u * 1024u)
#define MOST_ENCODING_NS_PER_KIB (20u * 1000u * 1024u)

/* Smaller samples tell more about the clock than about the codec. */
#define LEAST_SAMPLE_NBYTES 4096u

/* The mean is over about this many samples; each counts as at most MOST_TIMES times the mean. */
#define MEAN_OF 16u
#define MOST_TIMES 4u

static uint32_t within(const struct wharf_estimates *estimates, uint64_t price)
{
    if (price < estimates->least_ns_per_kib)
        return estimates->least_ns_per_kib;
    return price < estimates->most_ns_per_kib ? (uint32_t)price : estimates->most_ns_per_kib;
}

static void begin(struct wharf_estimates *estimates, const uint32_t *ns_per_kib, uint32_t otherwise)
{
    for (unsigned i = 0; i < WHARF_N_CODECS; i++) {
        bool is_known = ns_per_kib && ns_per_kib[i];
        estimates->ns_per_kib[i] = is_known ? within(estimates, ns_per_kib[i]) : otherwise;
        estimates->mean_ns_per_kib[i] = estimates->ns_per_kib[i];
        estimates->n_elsewhere[i] = 0;
    }
}

void wharf_estimates_init(struct wharf_estimates *estimates, const uint32_t *ns_per_kib)
{
    estimates->least_ns_per_kib = LEAST_NS_PER_KIB;
    estimates->most_ns_per_kib = MOST_NS_PER_KIB;
    begin(estimates, ns_per_kib, START_NS_PER_KIB);
}

void wharf_estimates_init_encoding(struct wharf_estimates *estimates)
{
    estimates->least_ns_per_kib = LEAST_NS_PER_KIB;
    estimates->most_ns_per_kib = MOST_ENCODING_NS_PER_KIB;
    begin(estimates, NULL, START_ENCODING_NS_PER_KIB);
}

void wharf_estimates_init_device(struct wharf_estimates *estimates, const uint32_t *ns_per_kib)
{
    estimates->least_ns_per_kib = LEAST_NS_PER_KIB;
    estimates->most_ns_per_kib = MOST_WARP_NS_PER_KIB;
    begin(estimates, ns_per_kib, START_WARP_NS_PER_KIB);
}

uint64_t wharf_estimate_at(uint32_t ns_per_kib, uint64_t in_nbytes, uint64_t out_nbytes)
{
    /* Sizes are below 2^41 and prices below 2^17, but for encoders: below 2^25 and 2^25. */
    return CONSTANT_NS + (in_nbytes + out_nbytes) * ns_per_kib / 1024;
}

uint64_t wharf_estimate_ns(const struct wharf_estimates *estimates, uint32_t codec,
                           uint64_t in_nbytes, uint64_t out_nbytes)
{
    return wharf_estimate_at(estimates->ns_per_kib[codec], in_nbytes, out_nbytes);
}

uint64_t wharf_estimate_mean_ns(const struct wharf_estimates *estimates, uint32_t codec,
                                uint64_t in_nbytes, uint64_t out_nbytes)
{
    return wharf_estimate_at(estimates->mean_ns_per_kib[codec], in_nbytes, out_nbytes);
}

/* A sample of many times the mean tells more about what else there was than about the codec. */
static void learn_mean(uint32_t *mean, uint32_t price)
{
    uint64_t most = (uint64_t)MOST_TIMES * *mean;
    uint64_t sample = price < most ? price : most;

    *mean = (uint32_t)((*mean * (uint64_t)(MEAN_OF - 1) + sample + MEAN_OF / 2) / MEAN_OF);
}

void wharf_estimates_learn(struct wharf_estimates *estimates, uint32_t codec, uint64_t in_nbytes,
                           uint64_t out_nbytes, uint64_t took_ns)
{
    uint64_t nbytes = in_nbytes + out_nbytes;

    if (nbytes < LEAST_SAMPLE_NBYTES)
        return;
    /* An hour is below 2^42 ns. */
    uint32_t price =
        within(estimates, took_ns < (uint64_t)1 << 42 ? took_ns * 1024 / nbytes : UINT64_MAX);
    learn_mean(&estimates->mean_ns_per_kib[codec], price);
    /* Up by half of the difference, down slowly: estimates that are too low hurt others. */
    uint32_t *learnt = &estimates->ns_per_kib[codec];
    if (price > *learnt)
        *learnt += (uint32_t)((price - *learnt + 1) / 2);
    else
        *learnt -= (uint32_t)((*learnt - price) / 16);
}
