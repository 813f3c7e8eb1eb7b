/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.h: how long a chunk will take on one processor, or on one warp of a GPU.
 *
 * A chunk's work is its input plus its output capacity, in bytes, plus a constant.  The cost of a
 * unit of work is learnt for each codec and tenant, so a tenant with slow chunks does not spoil the
 * estimates of others.
 */
#ifndef WHARF_DAEMON_CORE_ESTIMATE_H
#define WHARF_DAEMON_CORE_ESTIMATE_H

#include <stdint.h>

#include "encoders/wharf_codec.h"

#define X(ID, name, number, summary) +1
enum { WHARF_N_CODECS = 0 WHARF_CODEC_LIST(X) };
#undef X

struct wharf_estimates {
    uint32_t ns_per_kib[WHARF_N_CODECS];        /* errs on the high side */
    uint32_t mean_ns_per_kib[WHARF_N_CODECS];   /* the mean */
    uint32_t least_ns_per_kib, most_ns_per_kib; /* bounds of both */
    uint32_t n_elsewhere[WHARF_N_CODECS]; /* chunks that other engines ran since this one's last */
};

/* For a processor.  ns_per_kib: measured costs, 0 where unknown; NULL: all unknown. */
void wharf_estimates_init(struct wharf_estimates *estimates, const uint32_t *ns_per_kib);

/* For compressing on a processor.  The slowest recent chunk counts, whatever its level. */
void wharf_estimates_init_encoding(struct wharf_estimates *estimates);

/* For a device's warp.  ns_per_kib: measured costs, 0 where unknown. */
void wharf_estimates_init_device(struct wharf_estimates *estimates, const uint32_t *ns_per_kib);

/* The time at a given cost, one of ns_per_kib. */
uint64_t wharf_estimate_at(uint32_t ns_per_kib, uint64_t in_nbytes, uint64_t out_nbytes);

/* `codec` must be a known codec. */
uint64_t wharf_estimate_ns(const struct wharf_estimates *estimates, uint32_t codec,
                           uint64_t in_nbytes, uint64_t out_nbytes);

/* The mean time, for comparing two engines. */
uint64_t wharf_estimate_mean_ns(const struct wharf_estimates *estimates, uint32_t codec,
                                uint64_t in_nbytes, uint64_t out_nbytes);

/* Records that a chunk, or several with these sizes in total, took took_ns. */
void wharf_estimates_learn(struct wharf_estimates *estimates, uint32_t codec, uint64_t in_nbytes,
                           uint64_t out_nbytes, uint64_t took_ns);

#endif
