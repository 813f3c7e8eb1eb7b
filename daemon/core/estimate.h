/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.h: how long a chunk will take on one processor, or on one warp of a GPU.
 *
 * A chunk's work is its input plus its capacity for output, in bytes, and a constant.  What one
 * unit of that costs is learnt for each codec and each tenant: a tenant whose chunks are slower
 * than others' spoils nobody else's estimates.
 */
#ifndef WHARF_DAEMON_CORE_ESTIMATE_H
#define WHARF_DAEMON_CORE_ESTIMATE_H

#include <stdint.h>

#include "encoders/wharf_codec.h"

#define X(ID, name, number, summary) +1
enum { WHARF_N_CODECS = 0 WHARF_CODEC_LIST(X) };
#undef X

struct wharf_estimates {
    uint32_t ns_per_kib[WHARF_N_CODECS];        /* rather too high than too low */
    uint32_t mean_ns_per_kib[WHARF_N_CODECS];   /* neither */
    uint32_t least_ns_per_kib, most_ns_per_kib; /* what they stay within */
    uint32_t n_elsewhere[WHARF_N_CODECS];       /* chunks that another engine has had since */
};

/* Of a processor.  ns_per_kib: what was measured there, 0 where nothing is known; NULL: nothing. */
void wharf_estimates_init(struct wharf_estimates *estimates, const uint32_t *ns_per_kib);

/* Of a processor that compresses, at whatever level: the slowest that was seen of late counts. */
void wharf_estimates_init_encoding(struct wharf_estimates *estimates);

/* Of a device's warp, from what was measured there: 0 where nothing is known. */
void wharf_estimates_init_device(struct wharf_estimates *estimates, const uint32_t *ns_per_kib);

/* At this price: one of ns_per_kib. */
uint64_t wharf_estimate_at(uint32_t ns_per_kib, uint64_t in_nbytes, uint64_t out_nbytes);

/* `codec` is one that there is. */
uint64_t wharf_estimate_ns(const struct wharf_estimates *estimates, uint32_t codec,
                           uint64_t in_nbytes, uint64_t out_nbytes);

/* The same as it is in the mean: what two engines are compared by. */
uint64_t wharf_estimate_mean_ns(const struct wharf_estimates *estimates, uint32_t codec,
                                uint64_t in_nbytes, uint64_t out_nbytes);

/* Such a chunk, or several with these sizes together, took so long. */
void wharf_estimates_learn(struct wharf_estimates *estimates, uint32_t codec, uint64_t in_nbytes,
                           uint64_t out_nbytes, uint64_t took_ns);

#endif
