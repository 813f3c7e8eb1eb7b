/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_normalise.c: frequencies of a model from counts, such that no others with the same sum make
 * the stream smaller.
 *
 * Each symbol begins with a share that is certainly not too large, and at least one slot.  The
 * slots that are left go one by one to the symbol that gains most: count * log2((f + 1) / f)
 * bits.  Gains only shrink as f grows, so taking the largest each time is optimal.  A heap holds
 * the gains; symbols of equal, small counts are one entry in it.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "encoders/rans/rans_model.h"

/*
 * Symbols that were counted equally often gain equally from a slot.  Where many symbols occur, most
 * of them do so a few times, so those of a count below SHARED_COUNTS are one entry together: then
 * entries are at most that many, and one for each SHARED_COUNTS occurrences.  Up to FEW_SYMBOLS
 * each has its own.
 */
#define FEW_SYMBOLS 512
#define SHARED_COUNTS 256

/* Symbols of one count, and the bits that one more slot for one of them would save. */
struct entry {
    double gain;
    uint64_t count;
    uint32_t id;
    uint32_t n_symbols;
    uint32_t frequency; /* of each of them */
};

/* What is counted, and the memory of one call. */
struct tally {
    const uint64_t *counts; /* of symbols that occur */
    uint32_t n_symbols;
    uint64_t total;
    uint32_t n_shared; /* counts below this one are their entries' ids */
    uint32_t n_ids;    /* the others' follow, in the symbols' order */
    uint32_t *shares;  /* what each symbol gets, by id */
    uint32_t more_id;  /* but the first n_more of these one slot more */
    uint32_t n_more;
    struct entry *heap;
    uint32_t n_entries;
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
 * only shrink, so no other distribution of the slots saves more.  Returns how many are left for the
 * first entry's symbols, which are more. */
static uint32_t give_rest(struct entry *heap, uint32_t n, uint32_t n_left)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
    while (n_left >= heap[0].n_symbols) {
        n_left -= heap[0].n_symbols;
        heap[0].frequency++;
        heap[0].gain = gain_of(&heap[0]);
        sink(heap, n, 0);
    }
    return n_left;
}

/* A share that is certainly not too large: of the slots that are left if each symbol takes one,
 * rounded down, less one for the rounding of the best share. */
static uint32_t low_share(uint64_t count, uint64_t total, uint32_t n_slots, uint32_t n_symbols)
{
    double share = floor((double)count * (n_slots - n_symbols) / (double)total) - 1;

    return share > 1 ? (uint32_t)share : 1;
}

static void tally_symbols(struct tally *tally)
{
    uint32_t n_shared = tally->n_symbols > FEW_SYMBOLS ? SHARED_COUNTS : 0;
    uint32_t n_ids = n_shared;
    uint64_t total = 0;

    for (uint32_t i = 0; i < tally->n_symbols; i++) {
        total += tally->counts[i];
        n_ids += tally->counts[i] >= n_shared;
    }
    tally->total = total;
    tally->n_shared = n_shared;
    tally->n_ids = n_ids;
}

static void add_entry(struct tally *tally, uint64_t count, uint32_t id, uint32_t n_symbols)
{
    if (n_symbols > 0)
        tally->heap[tally->n_entries++] =
            (struct entry){.count = count, .id = id, .n_symbols = n_symbols};
}

static void make_entries(struct tally *tally)
{
    /* By turns: most counts are equal, and a counter would have to wait for itself. */
    uint32_t n_with[4][SHARED_COUNTS] = {{0}};
    uint32_t id = tally->n_shared;

    for (uint32_t i = 0; i < tally->n_symbols; i++) {
        uint64_t count = tally->counts[i];

        if (count < tally->n_shared)
            n_with[i % 4][count]++;
        else
            add_entry(tally, count, id++, 1);
    }
    for (uint32_t count = 0; count < tally->n_shared; count++)
        add_entry(tally, count, count,
                  n_with[0][count] + n_with[1][count] + n_with[2][count] + n_with[3][count]);
}

static void share_slots(struct tally *tally, uint32_t n_slots)
{
    struct entry *heap = tally->heap;
    uint32_t n_left = n_slots;

    for (uint32_t i = 0; i < tally->n_entries; i++) {
        heap[i].frequency = low_share(heap[i].count, tally->total, n_slots, tally->n_symbols);
        heap[i].gain = gain_of(&heap[i]);
        n_left -= heap[i].frequency * heap[i].n_symbols;
    }
    tally->n_more = give_rest(heap, tally->n_entries, n_left);
    tally->more_id = heap[0].id;
    for (uint32_t i = 0; i < tally->n_entries; i++)
        tally->shares[heap[i].id] = heap[i].frequency;
}

static void hand_out(const struct tally *tally, uint32_t *frequencies)
{
    uint32_t next_id = tally->n_shared;
    uint32_t n_more = tally->n_more;

    for (uint32_t i = 0; i < tally->n_symbols; i++) {
        uint64_t count = tally->counts[i];
        bool is_shared = count < tally->n_shared;
        uint32_t id = is_shared ? (uint32_t)count : next_id;
        uint32_t more = id == tally->more_id && n_more > 0;

        next_id += !is_shared;
        frequencies[i] = tally->shares[id] + more;
        n_more -= more;
    }
}

int wharf_rans_normalise_some(const uint64_t *counts, uint32_t n_symbols, uint32_t n_bits,
                              uint32_t *ret_frequencies)
{
    uint32_t n_slots = 1u << n_bits;
    struct tally tally = {.counts = counts, .n_symbols = n_symbols};
    int rc = 0;

    if (n_symbols == 0 || n_symbols > n_slots)
        return -EINVAL;
    tally_symbols(&tally);
    tally.heap = malloc(tally.n_ids * sizeof(*tally.heap));
    tally.shares = malloc(tally.n_ids * sizeof(*tally.shares));
    if (tally.heap && tally.shares) {
        make_entries(&tally);
        share_slots(&tally, n_slots);
        hand_out(&tally, ret_frequencies);
    } else {
        rc = -ENOMEM;
    }
    free(tally.shares);
    free(tally.heap);
    return rc;
}

/* Those of all symbols, from those of symbols that occur, which stand at the array's beginning. */
static void spread(const uint64_t *counts, uint32_t alphabet, uint32_t n_symbols,
                   uint32_t *frequencies)
{
    for (uint32_t s = alphabet; s-- > 0;)
        frequencies[s] = counts[s] > 0 ? frequencies[--n_symbols] : 0;
}

int wharf_rans_normalise(const uint64_t *counts, uint32_t alphabet, uint32_t n_bits,
                         uint32_t *ret_frequencies)
{
    uint64_t *some = calloc((size_t)alphabet + 1, sizeof(*some));
    uint32_t n = 0;
    int rc;

    if (!some)
        return -ENOMEM;
    for (uint32_t s = 0; s < alphabet; s++) {
        some[n] = counts[s]; /* is overwritten if that is 0 */
        n += counts[s] > 0;
    }
    rc = wharf_rans_normalise_some(some, n, n_bits, ret_frequencies);
    if (rc == 0)
        spread(counts, alphabet, n, ret_frequencies);
    free(some);
    return rc;
}
