/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/sides.h"

/* While either side is little known, each so many calls go to the one that seems slower; later
 * as many times this as it is slower, so that trying costs a percent or two. */
#define CALLS_LEARNING 8u
#define CALLS_BETWEEN 64u
#define MOST_CALLS_BETWEEN 4096u
#define N_LEARNING 4u

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
    if (ratio < MOST_CALLS_BETWEEN / CALLS_BETWEEN)
        return CALLS_BETWEEN * (uint32_t)(ratio + 0.5);
    return MOST_CALLS_BETWEEN;
}

enum wharf_client_side wharf_client_choose_side(struct wharf_client_costs *costs, uint32_t codec,
                                                size_t nbytes)
{
    struct wharf_client_cost *cost = find(costs, codec, nbytes);

    if (!cost->n[WHARF_CLIENT_HERE] || !cost->n[WHARF_CLIENT_THERE])
        return cost->n[WHARF_CLIENT_HERE] ? WHARF_CLIENT_THERE : WHARF_CLIENT_HERE;
    enum wharf_client_side best =
        cost->ns_per_byte[WHARF_CLIENT_THERE] < cost->ns_per_byte[WHARF_CLIENT_HERE]
            ? WHARF_CLIENT_THERE
            : WHARF_CLIENT_HERE;
    uint32_t most = calls_between(cost, best);

    if (cost->until_other > most)
        cost->until_other = most;
    if (cost->until_other) {
        cost->until_other--;
        return best;
    }
    cost->until_other = most;
    return !best;
}

/* Learnt from the least of the first ones, which find cold caches and pages.  Then from each: half
 * of it if it took less, an eighth if it took more, since calls are held up by what has nothing to
 * do with the side, and one that was held up for long counts as four times what is usual. */
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
    if (sample > 4 * *known)
        sample = 4 * *known;
    *known += (sample - *known) / (sample < *known ? 2 : 8);
}
