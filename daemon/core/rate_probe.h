/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_probe.h: finds by measurement which placement policy has the highest throughput.
 *
 * Choosing the engine that finishes a chunk first minimises the latency of one chunk, but not
 * throughput under load: CPU threads take chunks that a GPU would finish sooner, or one chunk of
 * sixteen that went to the GPU keeps its client from sending more.  The time of a single chunk
 * shows neither.  While a tenant keeps at least four chunks of a codec in flight, the throughput
 * of each policy is measured for a few milliseconds now and then, and the best policy is kept.
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

/* All zeros at first. */
struct wharf_rate_probe {
    uint64_t begun_ns;    /* start of the measuring window */
    uint64_t counted_ns;  /* chunks count from here on: those handed over earlier have returned */
    uint64_t nbytes;      /* returned since counted_ns */
    uint64_t half_ns;     /* start of the window's second half; 0: not reached yet */
    uint64_t half_nbytes; /* returned in the first half */
    uint64_t present_ns;  /* sum of the times that the returned chunks were in flight */
    uint64_t quiet_ns;    /* length of the best policy's windows since another one was tried */
    uint64_t tried_ns;    /* length of the last trial of another policy */
    uint64_t cpu_rate;    /* upper bound of what the CPU alone passes, KiB a second */
    uint32_t n_chunks;    /* returned since counted_ns */
    uint32_t n_present;   /* mean number of chunks in flight in the best policy's last window */
    uint8_t policy;       /* of this window, enum wharf_policy */
    uint8_t best;         /* as far as is known */
    uint8_t last;         /* the policy that was tried last */
    uint8_t n_rises;      /* how often this window was restarted because its rate was rising */
    /* Trials in a row whose rate was far below the best, or whose rate is unknown. */
    uint8_t n_poor[WHARF_PROBE_N_POLICIES];
    /* Trials with a known rate, up to 3; having been the best counts as one. */
    uint8_t n_known[WHARF_PROBE_N_POLICIES];
    uint32_t rates[WHARF_PROBE_N_POLICIES]; /* KiB a second, smoothed; 0: unknown */
};

/*
 * wharf_rate_probe_count: n_chunks with nbytes in all have returned now, present_ns after their
 * client submitted them.  may_try: another engine could be tried.  cpu_rate: an upper bound of what
 * the CPU alone passes, in KiB a second.
 */
void wharf_rate_probe_count(struct wharf_rate_probe *probe, uint64_t now_ns, uint32_t n_chunks,
                            uint64_t nbytes, uint64_t present_ns, bool may_try, uint64_t cpu_rate);

#endif
