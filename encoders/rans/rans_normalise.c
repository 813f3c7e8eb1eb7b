/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "encoders/rans/rans_model.h"

/* A counted symbol, and the bits that one more slot would save in all its occurrences together. */
struct entry {
    double gain;
    uint64_t count;
    uint32_t symbol;
    uint32_t frequency;
};

static double gain_of(const struct entry *entry)
{
    return (double)entry->count * log2(1.0 + 1.0 / entry->frequency);
}

/* Lets entry i sink to its place in a heap with the largest gain first. */
static void sink(struct entry *heap, uint32_t n, uint32_t i)
{
    struct entry moving = heap[i];

    for (uint32_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && heap[child + 1].gain > heap[child].gain)
            child++;
        if (heap[child].gain <= moving.gain)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

/* Slots go one by one to the symbol that gains most, from less than each symbol's share on: gains
 * only shrink, so no other distribution of the slots saves more. */
static void give_rest(struct entry *heap, uint32_t n, uint32_t n_left)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
    for (; n_left > 0; n_left--) {
        heap[0].frequency++;
        heap[0].gain = gain_of(&heap[0]);
        sink(heap, n, 0);
    }
}

/* A share that is certainly not too large: of the slots that are left if each symbol takes one,
 * rounded down, less one for the rounding of the best share. */
static uint32_t low_share(uint64_t count, uint64_t total, uint32_t n_slots, uint32_t n_symbols)
{
    double share = floor((double)count * (n_slots - n_symbols) / (double)total) - 1;

    return share > 1 ? (uint32_t)share : 1;
}

int wharf_rans_normalise(const uint64_t *counts, uint32_t alphabet, uint32_t n_bits,
                         uint32_t *ret_frequencies)
{
    uint32_t n_slots = 1u << n_bits;
    uint32_t n_left = n_slots;
    struct entry *heap;
    uint64_t total = 0;
    uint32_t n = 0;

    for (uint32_t s = 0; s < alphabet; s++) {
        total += counts[s];
        n += counts[s] > 0;
    }
    if (n == 0 || n > n_slots)
        return -EINVAL;
    heap = malloc(n * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    n = 0;
    for (uint32_t s = 0; s < alphabet; s++)
        if (counts[s] > 0)
            heap[n++] = (struct entry){.count = counts[s], .symbol = s};
    for (uint32_t i = 0; i < n; i++) {
        heap[i].frequency = low_share(heap[i].count, total, n_slots, n);
        heap[i].gain = gain_of(&heap[i]);
        n_left -= heap[i].frequency;
    }
    give_rest(heap, n, n_left);
    for (uint32_t s = 0; s < alphabet; s++)
        ret_frequencies[s] = 0;
    for (uint32_t i = 0; i < n; i++)
        ret_frequencies[heap[i].symbol] = heap[i].frequency;
    free(heap);
    return 0;
}
