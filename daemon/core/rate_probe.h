/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_probe.h: which policy of placing has the highest throughput, found by measuring.
 *
 * Choosing the engine that finishes a chunk first minimises the latency of one chunk, but not
 * throughput under load: CPU threads take chunks that a GPU would finish sooner, and get into each
 * other's way; or one chunk of sixteen that went to the GPU keeps its client from sending more.
 * The time of a single chunk shows neither.  So while a tenant keeps many chunks of a codec in
 * flight, the throughput of each policy is measured for a few milliseconds now and then, and the
 * best policy is kept.
 *
 * Numbers alone, without locks; one struct for each tenant and codec.
 */
#ifndef WHARF_DAEMON_CORE_RATE_PROBE_H
#define WHARF_DAEMON_CORE_RATE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum wharf_policy {
    WHARF_POLICY_BY_TIME, /* each chunk to the engine that finishes it first */
    WHARF_POLICY_GPU,     /* all to the GPU */
    WHARF_POLICY_CPU,     /* all to the CPU */
    WHARF_PROBE_N_POLICIES,
};

/* All zeros to begin with. */
struct wharf_rate_probe {
    uint64_t begun_ns;    /* the window: when it began */
    uint64_t counted_ns;  /* from when on chunks count: those handed over before have come back */
    uint64_t nbytes;      /* of those that have come back since then */
    uint64_t half_ns;     /* and from when on they are of the window's second half; 0: not yet */
    uint64_t half_nbytes; /* those of the first half */
    uint64_t present_ns;  /* for how long these were there, together */
    uint64_t quiet_ns;    /* of windows of the best policy, since another one was tried */
    uint64_t tried_ns;    /* that that one took */
    uint64_t cpu_rate;    /* the most that the CPU alone could pass */
    uint32_t n_chunks;    /* of them */
    uint32_t n_present;   /* how many were there at a time, in the last window of the best policy */
    uint8_t policy;       /* of this window, enum wharf_policy */
    uint8_t best;         /* as far as is known */
    uint8_t last;         /* what was tried last */
    uint8_t n_rises;      /* how often this window was begun again */
    uint8_t n_poor[WHARF_PROBE_N_POLICIES];  /* how often in a row it was far from the best, or not
                                            known  after it was tried */
    uint8_t n_known[WHARF_PROBE_N_POLICIES]; /* how often it was tried and is known, up to 3; to
                                            have been the best counts as one */
    uint32_t rates[WHARF_PROBE_N_POLICIES];  /* KiB a second, smoothed; 0: not known */
};

/*
 * wharf_rate_probe_count: n_chunks of together nbytes have come back now, present_ns after they
 * came from the client.  may_try: there is another engine to try; cpu_rate is what the CPU alone
 * could pass at most, in KiB a second.
 */
void wharf_rate_probe_count(struct wharf_rate_probe *probe, uint64_t now_ns, uint32_t n_chunks,
                            uint64_t nbytes, uint64_t present_ns, bool may_try, uint64_t cpu_rate);

#endif
