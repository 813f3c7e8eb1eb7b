/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_probe.c: the throughput probe, a bandit with few arms.
 *
 * Time is divided into windows.  The best known policy runs in most of them; between, others are
 * tried for one window each, ever more rarely, and those that were far worse, more rarely still.
 * Rates are smoothed, and a change needs a clear margin, so that noise does not make the policy
 * flap.
 */
#include "daemon/core/rate_probe.h"

#include <string.h>

#include "daemon/base/clock.h"

/* A window lasts at least WINDOW_NS.  The best policy's window also has LEAST_CHUNKS chunks; if it
 * does not get them within LONGEST_NS, there is no flood. */
#define WINDOW_NS (4 * (uint64_t)WHARF_NS_PER_MS)
#define LEAST_CHUNKS 64u
#define LONGEST_NS (250 * (uint64_t)WHARF_NS_PER_MS)
/* Chunks that return at the start of a new policy's window were placed by the old one.  They do not
 * count: for a quarter of a window, or for as long as a chunk is in flight, up to the maximum. */
#define SETTLING_NS (WINDOW_NS / 4)
#define MOST_SETTLING_NS (10 * WINDOW_NS)
/* With fewer chunks in flight than this the faster engine is the better one. */
#define LEAST_PRESENT 4u
/* The policies are tried in turn, with FIRST_BETWEEN windows of the best one between two trials.
 * The second trial comes after some tens of milliseconds, because at first an engine may meet
 * memory that it never touched, while some clients have not begun.  Each later trial waits twice as
 * long, until trials take a fixed small part of the time.  A policy that was the best one before is
 * treated alike, since a moment's noise may have displaced it.  A policy that is poorer by a third
 * is tried half as often each time, down to 2^-MOST_POOR. */
#define FIRST_BETWEEN 2u
#define SECOND_BETWEEN 8u
#define KNOWN_WELL 3u
/* Threads that slept, and a virtual machine's processors, take milliseconds to reach their speed.
 * While the second half of a trial's window passes more than the first by one part in RISING_PART,
 * the trial gets another window, at most MOST_RISES times. */
#define RISING_PART 8u
#define MOST_RISES 3u
#define MOST_POOR 3u
/* A trial in which too few chunks returned says nothing, as while memory is pinned for the GPU.  It
 * is repeated, each time after twice as long, up to 2^MOST_UNKNOWN times. */
#define MOST_UNKNOWN 5u
/* The CPU's rate is known from the few chunks it had lately.  In a flood by the GPU those met
 * memory that the CPU never touched, so the true rate may be higher by this factor. */
#define CPU_TIMES 4u
/* Another policy wins if it passes more by one part in BETTER_PART. */
#define BETTER_PART 24u

static void begin_count(struct wharf_rate_probe *probe)
{
    probe->nbytes = probe->present_ns = 0;
    probe->half_ns = probe->half_nbytes = 0;
    probe->n_chunks = 0;
}

static void begin_window(struct wharf_rate_probe *probe, uint64_t now_ns, uint8_t policy,
                         uint64_t settling_ns)
{
    settling_ns = settling_ns < SETTLING_NS ? SETTLING_NS : settling_ns;
    settling_ns = settling_ns < MOST_SETTLING_NS ? settling_ns : MOST_SETTLING_NS;
    probe->counted_ns = now_ns + (policy == probe->policy ? 0 : settling_ns);
    probe->begun_ns = now_ns;
    probe->policy = policy;
    probe->n_rises = 0;
    begin_count(probe);
}

/* The flood is over.  What was learnt in it does not hold for the next one. */
static void begin_anew(struct wharf_rate_probe *probe, uint64_t now_ns)
{
    memset(probe, 0, sizeof(*probe));
    begin_window(probe, now_ns, WHARF_POLICY_BY_TIME, 0);
}

static bool passes_more(uint32_t rate, uint32_t than)
{
    return rate > than + than / BETTER_PART;
}

/* Enough chunks returned to trust the rate: LEAST_CHUNKS, or as many as are in flight. */
static bool is_known(const struct wharf_rate_probe *probe)
{
    return probe->n_chunks >= LEAST_CHUNKS || probe->n_chunks >= probe->n_present;
}

/* Takes in the rate of a trial: of a policy other than the best one. */
static void learn_trial(struct wharf_rate_probe *probe, uint32_t rate)
{
    uint8_t *n_known = &probe->n_known[probe->policy], *n_poor = &probe->n_poor[probe->policy];
    uint32_t best = probe->rates[probe->best];
    bool is_better = passes_more(rate, best);

    probe->rates[probe->policy] = rate;
    if (!is_better && !is_known(probe)) {
        probe->rates[probe->policy] = 0;
        *n_poor += *n_poor < MOST_UNKNOWN;
        return;
    }
    if (is_better) {
        probe->n_known[probe->best] = 1;
        probe->best = probe->policy;
    }
    if (*n_known == 0 || rate >= best - best / 3)
        *n_poor = 0;
    else
        *n_poor = *n_poor < MOST_POOR ? (uint8_t)(*n_poor + 1) : MOST_POOR;
    *n_known += *n_known < KNOWN_WELL;
}

/* KiB a second. */
static uint32_t rate_of(uint64_t nbytes, uint64_t ns)
{
    uint64_t passed = nbytes * (WHARF_NS_PER_S / 1024) / (ns + (ns == 0));

    return passed < UINT32_MAX ? (uint32_t)passed : UINT32_MAX;
}

/* Whether the rate of a trial that loses so far is still rising. */
static bool is_rising(const struct wharf_rate_probe *probe, uint64_t now_ns)
{
    uint64_t first_ns = probe->half_ns - probe->counted_ns;
    uint32_t first = rate_of(probe->half_nbytes, first_ns);
    uint32_t second = rate_of(probe->nbytes - probe->half_nbytes, now_ns - probe->half_ns);
    uint32_t all = rate_of(probe->nbytes, now_ns - probe->counted_ns);

    return probe->n_rises < MOST_RISES && is_known(probe) && second > first + first / RISING_PART &&
           !passes_more(all, probe->rates[probe->best]);
}

static void learn(struct wharf_rate_probe *probe, uint64_t took_ns)
{
    uint32_t rate = rate_of(probe->nbytes, took_ns);
    uint32_t *own = &probe->rates[probe->policy];

    if (probe->policy != probe->best) {
        learn_trial(probe, rate);
        return;
    }
    *own = *own ? (uint32_t)((3 * (uint64_t)*own + rate) / 4) : rate;
    probe->n_known[probe->policy] += probe->n_known[probe->policy] == 0;
}

/* Whether it is a policy's turn to be tried. */
static bool is_due(const struct wharf_rate_probe *probe, uint8_t policy)
{
    uint64_t each_ns = probe->tried_ns > WINDOW_NS ? probe->tried_ns : WINDOW_NS;

    if (policy == probe->best ||
        (policy == WHARF_POLICY_CPU && CPU_TIMES * probe->cpu_rate < probe->rates[probe->best]))
        return false;
    if (!probe->rates[policy] && !probe->n_poor[policy])
        return probe->quiet_ns >= FIRST_BETWEEN * WINDOW_NS;
    if (!probe->rates[policy])
        return probe->quiet_ns >= FIRST_BETWEEN * each_ns << probe->n_poor[policy];
    /* The best policy has become slower than this one was. */
    if (passes_more(probe->rates[policy], probe->rates[probe->best]))
        return true;
    uint64_t n_between = SECOND_BETWEEN << (probe->n_known[policy] - 1);
    return probe->quiet_ns >= n_between * each_ns << probe->n_poor[policy];
}

/* The policy of the next window, mostly the best one.  took_ns: length of the window that ends,
 * settling included. */
static uint8_t next_policy(struct wharf_rate_probe *probe, uint64_t took_ns, bool may_try)
{
    if (probe->policy != probe->best) {
        probe->tried_ns = took_ns;
        return probe->best;
    }
    probe->quiet_ns += took_ns;
    for (uint8_t i = 1; i <= WHARF_PROBE_N_POLICIES && may_try; i++) {
        uint8_t policy = (uint8_t)((probe->last + i) % WHARF_PROBE_N_POLICIES);
        if (!is_due(probe, policy))
            continue;
        probe->quiet_ns = 0;
        probe->last = policy;
        return policy;
    }
    return probe->best;
}

void wharf_rate_probe_count(struct wharf_rate_probe *probe, uint64_t now_ns, uint32_t n_chunks,
                            uint64_t nbytes, uint64_t present_ns, bool may_try, uint64_t cpu_rate)
{
    /* Callers read the clock before they take the lock. */
    if (now_ns < probe->begun_ns)
        now_ns = probe->begun_ns;
    bool is_tried = probe->policy != probe->best;
    if (probe->begun_ns == 0 || (!is_tried && now_ns - probe->begun_ns > LONGEST_NS))
        begin_anew(probe, now_ns);
    if (now_ns < probe->counted_ns)
        return;
    probe->cpu_rate = cpu_rate;
    probe->n_chunks += n_chunks;
    probe->nbytes += nbytes;
    probe->present_ns += present_ns;
    uint64_t took_ns = now_ns - probe->counted_ns;
    if (took_ns < WINDOW_NS || probe->n_chunks < (is_tried ? 1 : LEAST_CHUNKS)) {
        if (probe->half_ns == 0 && took_ns >= WINDOW_NS / 2) {
            probe->half_ns = now_ns;
            probe->half_nbytes = probe->nbytes;
        }
        return;
    }
    uint64_t n_present = probe->present_ns / took_ns;
    if (!is_tried && n_present < LEAST_PRESENT) {
        begin_anew(probe, now_ns);
        return;
    }
    if (!is_tried)
        probe->n_present = n_present < UINT32_MAX ? (uint32_t)n_present : UINT32_MAX;
    if (is_tried && probe->half_ns && is_rising(probe, now_ns)) {
        probe->n_rises++;
        probe->counted_ns = now_ns;
        begin_count(probe);
        return;
    }
    uint64_t settling_ns = probe->present_ns / probe->n_chunks;
    learn(probe, took_ns);
    begin_window(probe, now_ns, next_policy(probe, now_ns - probe->begun_ns, may_try), settling_ns);
}
