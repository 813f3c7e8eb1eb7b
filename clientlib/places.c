/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/places.h"

/* While either place is little known, each so many calls go to the one that seems slower; later
 * as many times this as it is slower, so that trying costs a percent or two. */
#define CALLS_LEARNING 8u
#define CALLS_BETWEEN 64u
#define MOST_CALLS_BETWEEN 4096u
#define N_LEARNING 4u

/* Sizes up to 4 KiB, 16 KiB and so on, the last one without end. */
static struct wharf_client_place *find(struct wharf_client_places *places, uint32_t codec,
                                       size_t nbytes)
{
    unsigned size = 0;

    for (size_t most = 4096; most < nbytes && size < WHARF_CLIENT_N_PLACE_SIZES - 1; most *= 4)
        size++;
    /* Codecs that share a place would learn of each other's costs, which is slow, not wrong. */
    return &places->of[codec % WHARF_CLIENT_N_PLACE_CODECS][size];
}

static uint32_t calls_between(const struct wharf_client_place *place,
                              enum wharf_client_place_name best)
{
    double ratio = place->ns_per_byte[!best] / place->ns_per_byte[best];

    if (place->n[!best] < N_LEARNING)
        return CALLS_LEARNING;
    if (ratio < MOST_CALLS_BETWEEN / CALLS_BETWEEN)
        return CALLS_BETWEEN * (uint32_t)(ratio + 0.5);
    return MOST_CALLS_BETWEEN;
}

enum wharf_client_place_name wharf_client_choose_place(struct wharf_client_places *places,
                                                       uint32_t codec, size_t nbytes)
{
    struct wharf_client_place *place = find(places, codec, nbytes);

    if (!place->n[WHARF_CLIENT_HERE] || !place->n[WHARF_CLIENT_THERE])
        return place->n[WHARF_CLIENT_HERE] ? WHARF_CLIENT_THERE : WHARF_CLIENT_HERE;
    enum wharf_client_place_name best =
        place->ns_per_byte[WHARF_CLIENT_THERE] < place->ns_per_byte[WHARF_CLIENT_HERE]
            ? WHARF_CLIENT_THERE
            : WHARF_CLIENT_HERE;
    uint32_t most = calls_between(place, best);

    if (place->until_other > most)
        place->until_other = most;
    if (place->until_other) {
        place->until_other--;
        return best;
    }
    place->until_other = most;
    return !best;
}

/* Learnt from the least of the first ones, which find cold caches and pages.  Then from each: half
 * of it if it took less, an eighth if it took more, since calls are held up by what has nothing to
 * do with the place, and one that was held up for long counts as four times what is usual. */
void wharf_client_note_place(struct wharf_client_places *places, uint32_t codec, size_t nbytes,
                             enum wharf_client_place_name at, uint64_t took_ns)
{
    struct wharf_client_place *place = find(places, codec, nbytes);
    double *known = &place->ns_per_byte[at];
    double sample = (double)(took_ns + 1) / (double)(nbytes + 1);

    if (place->n[at] < N_LEARNING) {
        if (!place->n[at]++ || sample < *known)
            *known = sample;
        return;
    }
    if (sample > 4 * *known)
        sample = 4 * *known;
    *known += (sample - *known) / (sample < *known ? 2 : 8);
}
