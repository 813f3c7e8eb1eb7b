/* SPDX-License-Identifier: Apache-2.0 */
/* rans_window.c: windows and buckets of a registered model, laid out and filled. */
#include "encoders/rans/rans_window.h"

#include <stdbool.h>

#include "encoders/rans/rans_model.h"

/* By slot, with two bytes each: what a first cache holds besides other things. */
#define MIN_NSLOTS (1u << 15)
/* Windows of 4 MiB: what of them is often looked at is still little. */
#define MAX_NWINDOWS (1u << 17)

static uint32_t floor_log2(uint32_t n)
{
    return 31 - (uint32_t)__builtin_clz(n);
}

/* As many buckets as there are symbols with slots, or half as many: so that where symbols are many,
 * the one that is looked for is seldom far behind its bucket's first one. */
static uint32_t bucket_nbits(uint32_t n_symbols, uint32_t n_bits)
{
    uint32_t nbits = floor_log2(n_symbols);

    return nbits < n_bits ? nbits : n_bits;
}

void wharf_rans_windows_lay_out(const struct wharf_rans_shape *shape,
                                struct wharf_rans_windows *ret_windows)
{
    uint32_t n_slots = 1u << shape->n_bits;
    uint32_t most = shape->alphabet < n_slots ? shape->alphabet : n_slots;
    /* With one for slots that are nobody's. */
    uint32_t stride = (most + WHARF_RANS_WINDOW_NSYMBOLS) / WHARF_RANS_WINDOW_NSYMBOLS;
    bool is_of_use = (uint32_t)shape->n_distributions << shape->n_bits >= MIN_NSLOTS &&
                     stride * shape->n_distributions <= MAX_NWINDOWS;

    ret_windows->stride = is_of_use ? stride : 0;
    ret_windows->n_buckets = shape->n_distributions << bucket_nbits(most + 1, shape->n_bits);
}

/* One distribution's, as far as it is filled in. */
struct filling {
    struct wharf_rans_window *windows;
    uint16_t *buckets;
    uint32_t bucket_shift;
    uint32_t n; /* symbols */
};

static void add(struct filling *filling, uint32_t first, uint32_t last, uint32_t symbol)
{
    uint32_t number = filling->n / WHARF_RANS_WINDOW_NSYMBOLS;
    uint32_t i = filling->n++ % WHARF_RANS_WINDOW_NSYMBOLS;
    struct wharf_rans_window *window = &filling->windows[number];
    uint32_t shift = filling->bucket_shift;

    if (i == 0) {
        *window = (struct wharf_rans_window){.edges[0] = (uint16_t)(first - 1)};
        for (uint32_t k = 1; k <= WHARF_RANS_WINDOW_NSYMBOLS; k++)
            window->edges[k] = UINT16_MAX;
    }
    window->edges[i + 1] = (uint16_t)last;
    window->symbols[i] = (uint16_t)symbol;
    for (uint32_t b = (first + (1u << shift) - 1) >> shift; b << shift <= last; b++)
        filling->buckets[b] = (uint16_t)number;
}

static uint32_t count_symbols(const struct wharf_rans_model *model, uint32_t d)
{
    const uint16_t *slot_symbols = model->slot_symbols + ((size_t)d << model->shape.n_bits);
    const struct wharf_rans_range *ranges = model->ranges + (size_t)d * model->shape.alphabet;
    uint32_t n = 0;

    for (uint32_t slot = 0; slot < model->totals[d]; n++)
        slot += ranges[slot_symbols[slot]].frequency_less_1 + 1u;
    return n;
}

void wharf_rans_windows_fill(const struct wharf_rans_model *model,
                             const struct wharf_rans_windows *windows)
{
    const struct wharf_rans_shape *shape = &model->shape;
    uint32_t n_slots = 1u << shape->n_bits;
    uint32_t n_buckets = 0;

    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        uint32_t nbits = bucket_nbits(count_symbols(model, d), shape->n_bits);
        const uint16_t *slot_symbols = model->slot_symbols + ((size_t)d << shape->n_bits);
        const struct wharf_rans_range *ranges = model->ranges + (size_t)d * shape->alphabet;
        struct filling filling = {
            .windows = windows->windows + (size_t)d * windows->stride,
            .buckets = windows->buckets + n_buckets,
            .bucket_shift = shape->n_bits - nbits,
        };
        uint32_t slot = 0;

        windows->scales[d] = n_buckets | (shape->n_bits - nbits) << WHARF_RANS_SCALE_SHIFT;
        n_buckets += 1u << nbits;

        while (slot < model->totals[d]) {
            uint32_t symbol = slot_symbols[slot];
            uint32_t last = slot + ranges[symbol].frequency_less_1;

            add(&filling, slot, last, symbol);
            slot = last + 1;
        }
        if (slot < n_slots)
            add(&filling, slot, n_slots - 1, 0);
    }
}
