/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_staging.c: places in the staging area.
 *
 * A search goes on where the last one ended, so places that are taken one after the other lie one
 * behind the other, and become free in about that order.
 */
#include "daemon/core/file_staging.h"

#include <stdlib.h>

struct wharf_use wharf_file_staging_use(void)
{
    /* With its units' heads. */
    return (struct wharf_use){
        .n_descriptors = 2,
        .n_mappings = 1,
        .memory_nbytes =
            WHARF_FILE_STAGING_NBYTES + wharf_file_heads_nbytes(0, WHARF_FILE_MOST_UNITS),
    };
}

struct wharf_file_staging *wharf_file_staging_new(const struct wharf_segment *pooled)
{
    struct wharf_segment memory;

    /* Pages of a new one come when it is registered, or read to. */
    if (pooled)
        memory = *pooled;
    else if (wharf_segment_make(WHARF_SEGMENT_ARENA, WHARF_FILE_STAGING_NBYTES, &memory) < 0)
        return NULL;
    struct wharf_file_staging *staging = calloc(1, sizeof(*staging));
    if (!staging) {
        wharf_segment_free(&memory);
        return NULL;
    }
    staging->memory = memory;
    staging->n_free = WHARF_FILE_MOST_UNITS;
    staging->n_in_vain = WHARF_FILE_MOST_UNITS + 1;
    for (uint32_t i = 0; i < WHARF_FILE_STAGING_MOST_READS; i++)
        wharf_list_init(&staging->left[i].link);
    return staging;
}

void wharf_file_staging_free(struct wharf_file_staging *staging)
{
    if (!staging)
        return;
    wharf_segment_free(&staging->memory);
    free(staging);
}

/* ---- places -------------------------------------------------------------------------------- */

#define N_WORDS (WHARF_FILE_MOST_UNITS / 64)

/* Bit i of the result: n set bits begin at bit i of the word. */
static uint64_t begins_of_runs(uint64_t bits, uint32_t n)
{
    /* Bit i says of n_joined ones that they begin there: twice as many each time. */
    for (uint32_t n_joined = 1, n_more; n_joined < n && bits; n_joined += n_more) {
        n_more = n - n_joined < n_joined ? n - n_joined : n_joined;
        bits &= bits >> n_more;
    }
    return bits;
}

static uint32_t n_of_low_ones(uint64_t bits)
{
    return ~bits ? (uint32_t)__builtin_ctzll(~bits) : 64;
}

static uint32_t n_of_high_ones(uint64_t bits)
{
    return ~bits ? (uint32_t)__builtin_clzll(~bits) : 64;
}

/* The first of n free units from `from` on, none of them beyond the end.  A word costs a constant
 * time, however fragmented it is. */
static bool find(struct wharf_file_staging *staging, uint32_t from, uint32_t n, uint32_t *ret_first)
{
    uint32_t n_before = 0; /* free units in a row at the end of the last word */

    for (uint32_t word = from / 64; word < N_WORDS; word++) {
        uint64_t free_units = ~staging->taken[word];
        staging->n_looks++;
        if (word == from / 64)
            free_units &= UINT64_MAX << from % 64;
        if (n_before + n_of_low_ones(free_units) >= n) {
            *ret_first = word * 64 - n_before;
            return true;
        }
        uint64_t runs = n <= 64 ? begins_of_runs(free_units, n) : 0;
        if (runs) {
            *ret_first = word * 64 + (uint32_t)__builtin_ctzll(runs);
            return true;
        }
        n_before = free_units == UINT64_MAX ? n_before + 64 : n_of_high_ones(free_units);
    }
    return false;
}

static void mark(struct wharf_file_staging *staging, uint32_t place, uint32_t n)
{
    for (uint32_t unit = place; unit < place + n; unit++)
        staging->taken[unit / 64] ^= (uint64_t)1 << unit % 64;
}

bool wharf_file_staging_take(struct wharf_file_staging *staging, uint64_t nbytes,
                             uint32_t *ret_place)
{
    uint32_t n = (uint32_t)((nbytes + WHARF_FILE_UNIT_NBYTES - 1) / WHARF_FILE_UNIT_NBYTES);
    uint32_t place;

    n += n == 0;
    if (staging->n_reads == WHARF_FILE_STAGING_MOST_READS || n >= staging->n_in_vain)
        return false;
    if (!find(staging, staging->next, n, &place) && !find(staging, 0, n, &place)) {
        staging->n_in_vain = n;
        return false;
    }
    mark(staging, place, n);
    staging->n_units_at[place] = (uint16_t)n;
    staging->n_free -= n;
    staging->next = (place + n) % WHARF_FILE_MOST_UNITS;
    staging->n_reads++;
    __atomic_store_n(&staging->heads[place].n_steps, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&staging->heads[place].is_done, 0, __ATOMIC_RELAXED);
    *ret_place = place;
    return true;
}

void wharf_file_staging_answered(struct wharf_file_staging *staging)
{
    staging->n_reads--;
}

void wharf_file_staging_give_back(struct wharf_file_staging *staging, uint32_t place)
{
    mark(staging, place, staging->n_units_at[place]);
    staging->n_free += staging->n_units_at[place];
    staging->n_in_vain = WHARF_FILE_MOST_UNITS + 1;
}

bool wharf_file_staging_has_room_again(struct wharf_file_staging *staging)
{
    if (!staging->is_full || staging->n_free < WHARF_FILE_MOST_UNITS / 4 ||
        staging->n_reads > WHARF_FILE_STAGING_MOST_READS / 2)
        return false;
    staging->is_full = false;
    return true;
}
