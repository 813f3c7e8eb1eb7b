/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/trial.h"

#include <string.h>

#include "daemon/base/clock.h"

/* A window is at least so long, and that of the best way has so many chunks: if these do not come
 * together it is no flood. */
#define WINDOW_NS (4 * (uint64_t)WHARF_NS_PER_MS)
#define LEAST_CHUNKS 64u
#define LONGEST_NS (250 * (uint64_t)WHARF_NS_PER_MS)
/* What comes back at the beginning of a way's first window another one has placed: for a quarter of
 * it, or as long as chunks are there, and no longer than this. */
#define SETTLING_NS (WINDOW_NS / 4)
#define MOST_SETTLING_NS (10 * WINDOW_NS)
/* So many chunks are there at a time: with fewer the sooner engine is the better one. */
#define LEAST_PRESENT 4u
/* Ways are tried one after the other at first, with so many windows of the best one between; once
 * more after some tens of milliseconds, since at first an engine may meet memory that it has never
 * touched, and some of the clients be on their way; then after twice as long each time, in the end
 * for one part of so many of the time.  So is what was the best one: a moment's noise may have cost
 * it that.  What was poorer by a third is, but for the first time, tried half as often each time,
 * down to 2^MOST_POOR. */
#define FIRST_BETWEEN 2u
#define SECOND_BETWEEN 8u
#define KNOWN_WELL 3u
/* Threads that have slept for long, and processors of a virtual machine, take milliseconds until
 * they are what they will be: while the second half of a window passes more than the first one by
 * this part, a way that is tried has another one, so often at most. */
#define RISING_PART 8u
#define MOST_RISES 3u
#define MOST_POOR 3u
/* Where too few chunks came back to know anything, as while memory gets ready for the GPU, it is
 * tried again, each time after twice as long, 2^MOST_UNKNOWN times in the end. */
#define MOST_UNKNOWN 5u
/* What the CPU could pass is known by the few chunks that it had of late, which in a flood by the
 * GPU met memory that it had never touched: it may be so many times as much. */
#define CPU_TIMES 4u
/* Another way has to pass more by one part of so many. */
#define BETTER_PART 24u

static void begin_count(struct wharf_trial *trial)
{
    trial->nbytes = trial->present_ns = 0;
    trial->half_ns = trial->half_nbytes = 0;
    trial->n_chunks = 0;
}

static void begin_window(struct wharf_trial *trial, uint64_t now_ns, uint8_t way,
                         uint64_t settling_ns)
{
    settling_ns = settling_ns < SETTLING_NS ? SETTLING_NS : settling_ns;
    settling_ns = settling_ns < MOST_SETTLING_NS ? settling_ns : MOST_SETTLING_NS;
    trial->counted_ns = now_ns + (way == trial->way ? 0 : settling_ns);
    trial->begun_ns = now_ns;
    trial->way = way;
    trial->n_rises = 0;
    begin_count(trial);
}

/* No flood, or none any more: nothing of what was learnt is to be trusted in the next one. */
static void begin_anew(struct wharf_trial *trial, uint64_t now_ns)
{
    memset(trial, 0, sizeof(*trial));
    begin_window(trial, now_ns, WHARF_TRIAL_BY_TIME, 0);
}

static bool passes_more(uint32_t rate, uint32_t than)
{
    return rate > than + than / BETTER_PART;
}

/* Of those that were there at a time, all have gone this way, or enough. */
static bool is_known(const struct wharf_trial *trial)
{
    return trial->n_chunks >= LEAST_CHUNKS || trial->n_chunks >= trial->n_present;
}

/* Another way than the best was tried. */
static void judge(struct wharf_trial *trial, uint32_t rate)
{
    uint8_t *n_known = &trial->n_known[trial->way], *n_poor = &trial->n_poor[trial->way];
    uint32_t best = trial->rates[trial->best];
    bool is_better = passes_more(rate, best);

    /* What it did of late counts most where it is judged by it. */
    trial->rates[trial->way] = rate;
    if (!is_better && !is_known(trial)) {
        trial->rates[trial->way] = 0;
        *n_poor += *n_poor < MOST_UNKNOWN;
        return;
    }
    if (is_better) {
        trial->n_known[trial->best] = 1;
        trial->best = trial->way;
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

/* Whether a way that is not the better one, as it seems, may be on the way to that. */
static bool is_rising(const struct wharf_trial *trial, uint64_t now_ns)
{
    uint64_t first_ns = trial->half_ns - trial->counted_ns;
    uint32_t first = rate_of(trial->half_nbytes, first_ns);
    uint32_t second = rate_of(trial->nbytes - trial->half_nbytes, now_ns - trial->half_ns);
    uint32_t all = rate_of(trial->nbytes, now_ns - trial->counted_ns);

    return trial->n_rises < MOST_RISES && is_known(trial) && second > first + first / RISING_PART &&
           !passes_more(all, trial->rates[trial->best]);
}

static void learn(struct wharf_trial *trial, uint64_t took_ns)
{
    uint32_t rate = rate_of(trial->nbytes, took_ns);
    uint32_t *own = &trial->rates[trial->way];

    if (trial->way != trial->best) {
        judge(trial, rate);
        return;
    }
    *own = *own ? (uint32_t)((3 * (uint64_t)*own + rate) / 4) : rate;
    trial->n_known[trial->way] += trial->n_known[trial->way] == 0;
}

/* Whether it is a way's turn to be tried. */
static bool is_due(const struct wharf_trial *trial, uint8_t way)
{
    uint64_t each_ns = trial->tried_ns > WINDOW_NS ? trial->tried_ns : WINDOW_NS;

    if (way == trial->best ||
        (way == WHARF_TRIAL_CPU && CPU_TIMES * trial->cpu_rate < trial->rates[trial->best]))
        return false;
    if (!trial->rates[way] && !trial->n_poor[way])
        return trial->quiet_ns >= FIRST_BETWEEN * WINDOW_NS;
    if (!trial->rates[way])
        return trial->quiet_ns >= FIRST_BETWEEN * each_ns << trial->n_poor[way];
    /* The best one is not any more what it was. */
    if (passes_more(trial->rates[way], trial->rates[trial->best]))
        return true;
    uint64_t n_between = SECOND_BETWEEN << (trial->n_known[way] - 1);
    return trial->quiet_ns >= n_between * each_ns << trial->n_poor[way];
}

/* The way of the next window: mostly the best one.  This one took so long, with settling. */
static uint8_t next_way(struct wharf_trial *trial, uint64_t took_ns, bool may_try)
{
    if (trial->way != trial->best) {
        trial->tried_ns = took_ns;
        return trial->best;
    }
    trial->quiet_ns += took_ns;
    for (uint8_t i = 1; i <= WHARF_TRIAL_N_WAYS && may_try; i++) {
        uint8_t way = (uint8_t)((trial->last + i) % WHARF_TRIAL_N_WAYS);
        if (!is_due(trial, way))
            continue;
        trial->quiet_ns = 0;
        trial->last = way;
        return way;
    }
    return trial->best;
}

void wharf_trial_count(struct wharf_trial *trial, uint64_t now_ns, uint32_t n_chunks,
                       uint64_t nbytes, uint64_t present_ns, bool may_try, uint64_t cpu_rate)
{
    /* Who ends a chunk looks at the clock before he has the lock. */
    if (now_ns < trial->begun_ns)
        now_ns = trial->begun_ns;
    bool is_tried = trial->way != trial->best;
    if (trial->begun_ns == 0 || (!is_tried && now_ns - trial->begun_ns > LONGEST_NS))
        begin_anew(trial, now_ns);
    if (now_ns < trial->counted_ns)
        return;
    trial->cpu_rate = cpu_rate;
    trial->n_chunks += n_chunks;
    trial->nbytes += nbytes;
    trial->present_ns += present_ns;
    uint64_t took_ns = now_ns - trial->counted_ns;
    if (took_ns < WINDOW_NS || trial->n_chunks < (is_tried ? 1 : LEAST_CHUNKS)) {
        if (trial->half_ns == 0 && took_ns >= WINDOW_NS / 2) {
            trial->half_ns = now_ns;
            trial->half_nbytes = trial->nbytes;
        }
        return;
    }
    uint64_t n_present = trial->present_ns / took_ns;
    if (!is_tried && n_present < LEAST_PRESENT) {
        begin_anew(trial, now_ns);
        return;
    }
    if (!is_tried)
        trial->n_present = n_present < UINT32_MAX ? (uint32_t)n_present : UINT32_MAX;
    if (is_tried && trial->half_ns && is_rising(trial, now_ns)) {
        trial->n_rises++;
        trial->counted_ns = now_ns;
        begin_count(trial);
        return;
    }
    uint64_t settling_ns = trial->present_ns / trial->n_chunks;
    learn(trial, took_ns);
    begin_window(trial, now_ns, next_way(trial, now_ns - trial->begun_ns, may_try), settling_ns);
}
