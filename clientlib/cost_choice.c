/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_choice.c: compares the calling thread with the daemon by measured costs.
 *
 * Each side has a smoothed cost per byte for each class of chunks.  The faster one is used, and the
 * other is tried now and then, more rarely the slower it is.
 */
#include "clientlib/cost_choice.h"

/*
 * While a side has few samples, every CALLS_LEARNING-th call goes to the side that seems slower;
 * later the interval grows with how much slower it is, so that trials cost at most a percent.  A
 * trial of the daemon costs more than the calls: its threads stay awake for a while, perhaps on a
 * caller's core.
 */
#define CALLS_LEARNING 8u
static const uint32_t calls_before[WHARF_CLIENT_N_SIDES] = {
    [WHARF_CLIENT_INLINE] = 128,
    [WHARF_CLIENT_DAEMON] = 512,
};
#define MOST_CALLS_BETWEEN 4096u
#define N_LEARNING 4u

/* For the same reason the daemon has to be faster by this part. */
#define SOONER_PART 8

/*
 * The calls of a trial.  The first one does not count: in this process it finds cold caches, and
 * takes half as long again as the next one; in the daemon it finds sleeping threads and a sleeping
 * GPU.  If the first one takes many times as long as the other side, it suffices, and the trial
 * ends.
 */
#define N_TRIES 3u
#define FAR_SLOWER 4

/* A delayed call counts as at most this many times the usual time. */
#define MOST_TIMES 2

/* Sizes up to 4 KiB, 16 KiB and so on, the last one without end. */
static struct wharf_client_cost *find(struct wharf_client_costs *costs, uint32_t codec,
                                      size_t nbytes)
{
    unsigned size = 0;

    for (size_t most = 4096; most < nbytes && size < WHARF_CLIENT_N_COST_SIZES - 1; most *= 4)
        size++;
    /* Codecs that share an entry would learn of each other's costs, which is slow, not wrong. */
    return &costs->of[codec % WHARF_CLIENT_N_COST_CODECS][size];
}

static uint32_t calls_between(const struct wharf_client_cost *cost, enum wharf_client_side best)
{
    double ratio = cost->ns_per_byte[!best] / cost->ns_per_byte[best];

    if (cost->n[!best] < N_LEARNING)
        return CALLS_LEARNING;
    double calls = calls_before[!best] * (ratio > 1 ? ratio : 1);
    return calls < MOST_CALLS_BETWEEN ? (uint32_t)calls : MOST_CALLS_BETWEEN;
}

/* The slower side's turn has come, or goes on. */
static int is_turn_of_other(struct wharf_client_cost *cost, enum wharf_client_side best)
{
    uint32_t most = calls_between(cost, best);

    /* Unless it is not the slower one any more. */
    if (cost->n_tries && cost->last != best) {
        cost->n_tries--;
        return 1;
    }
    cost->n_tries = 0;
    if (cost->until_other > most)
        cost->until_other = most;
    if (cost->until_other) {
        cost->until_other--;
        return 0;
    }
    cost->until_other = most;
    cost->n_tries = cost->n[!best] < N_LEARNING ? 0 : N_TRIES - 1;
    return 1;
}

static enum wharf_client_side better(const struct wharf_client_cost *cost)
{
    double here = cost->ns_per_byte[WHARF_CLIENT_INLINE];

    return cost->ns_per_byte[WHARF_CLIENT_DAEMON] < here - here / SOONER_PART ? WHARF_CLIENT_DAEMON
                                                                              : WHARF_CLIENT_INLINE;
}

enum wharf_client_side wharf_client_choose_side(struct wharf_client_costs *costs, uint32_t codec,
                                                size_t nbytes)
{
    struct wharf_client_cost *cost = find(costs, codec, nbytes);

    if (!cost->n[WHARF_CLIENT_INLINE] || !cost->n[WHARF_CLIENT_DAEMON])
        return cost->n[WHARF_CLIENT_INLINE] ? WHARF_CLIENT_DAEMON : WHARF_CLIENT_INLINE;
    enum wharf_client_side side = better(cost);
    if (is_turn_of_other(cost, side))
        side = !side;
    if (side != cost->last)
        cost->is_first[side] = 1;
    cost->last = (uint8_t)side;
    return side;
}

/* Whether a call tells nothing of those that would follow it. */
static int is_only_first(struct wharf_client_cost *cost, enum wharf_client_side at, double sample)
{
    int is_first = cost->is_first[at];

    cost->is_first[at] = 0;
    if (is_first && sample > FAR_SLOWER * cost->ns_per_byte[!at])
        cost->n_tries = is_first = 0;
    return is_first;
}

/* Learnt from the least of the first ones, which find cold caches and pages.  Then an eighth of
 * each, so that both sides' are means: what takes now less and now more would else seem to take
 * less.  Of the slower side, which is seldom tried, it is half: what was known is old. */
void wharf_client_note_side(struct wharf_client_costs *costs, uint32_t codec, size_t nbytes,
                            enum wharf_client_side at, uint64_t took_ns)
{
    struct wharf_client_cost *cost = find(costs, codec, nbytes);
    double *known = &cost->ns_per_byte[at];
    double sample = (double)(took_ns + 1) / (double)(nbytes + 1);

    if (cost->n[at] < N_LEARNING) {
        if (!cost->n[at]++ || sample < *known)
            *known = sample;
        return;
    }
    if (is_only_first(cost, at, sample))
        return;
    if (sample > MOST_TIMES * *known)
        sample = MOST_TIMES * *known;
    *known += (sample - *known) / (at == better(cost) ? 8 : 2);
}
