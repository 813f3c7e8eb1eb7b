/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_statistics.c: counts of symbols, in the symbols' order and without those that do not occur.
 */
#include "encoders/rans/rans_statistics.h"

#include <errno.h>
#include <stdlib.h>

#include "encoders/little_endian.h"

#define N_BYTES 256
#define N_WORDS 65536

int wharf_rans_statistics_init(struct wharf_rans_statistics *statistics, uint32_t symbol_nbytes)
{
    size_t n = symbol_nbytes == 1 ? N_BYTES : N_WORDS;

    *statistics = (struct wharf_rans_statistics){
        .symbol_nbytes = symbol_nbytes,
        .symbols = malloc((n + 1) * sizeof(*statistics->symbols)), /* one is put behind the last */
        .counts = malloc(n * sizeof(*statistics->counts)),
        .by_symbol = calloc(n, sizeof(*statistics->by_symbol)),
    };
    return statistics->symbols && statistics->counts && statistics->by_symbol ? 0 : -ENOMEM;
}

void wharf_rans_statistics_deinit(struct wharf_rans_statistics *statistics)
{
    free(statistics->symbols);
    free(statistics->counts);
    free(statistics->by_symbol);
}

/* Takes a symbol's count to the end of the list. */
static void list_symbol(struct wharf_rans_statistics *statistics, uint32_t symbol)
{
    statistics->symbols[statistics->n] = symbol;
    statistics->counts[statistics->n++] = statistics->by_symbol[symbol];
    statistics->by_symbol[symbol] = 0;
}

/* Four bytes next to each other have counters of their own: where bytes repeat, one would have to
 * wait for itself. */
static void count_bytes(struct wharf_rans_statistics *statistics, const uint8_t *in, uint32_t n)
{
    uint32_t *counts = statistics->by_symbol;
    uint32_t partial[4][N_BYTES] = {{0}};

    for (; n % 4 != 0; n--)
        counts[*in++]++;
    for (; n > 0; n -= 4, in += 4)
        for (unsigned i = 0; i < 4; i++)
            partial[i][in[i]]++;
    for (uint32_t s = 0; s < N_BYTES; s++) {
        counts[s] += partial[0][s] + partial[1][s] + partial[2][s] + partial[3][s];
        if (counts[s] > 0)
            list_symbol(statistics, s);
    }
}

/* Finds the symbols in the order in which they occur first, and sorts them by a bit for each. */
static void count_words(struct wharf_rans_statistics *statistics, const uint8_t *in, uint32_t n)
{
    uint64_t occurs[N_WORDS / 64] = {0};
    uint32_t *counts = statistics->by_symbol;
    uint32_t *found = statistics->symbols;
    uint32_t n_found = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t symbol = wharf_load_le16(in + 2 * i);

        found[n_found] = symbol; /* is overwritten if it was found before */
        n_found += counts[symbol]++ == 0;
    }
    for (uint32_t i = 0; i < n_found; i++)
        occurs[found[i] / 64] |= (uint64_t)1 << found[i] % 64;
    for (uint32_t word = 0; word < N_WORDS / 64; word++)
        for (uint64_t left = occurs[word]; left != 0; left &= left - 1)
            list_symbol(statistics, 64 * word + (uint32_t)__builtin_ctzll(left));
}

void wharf_rans_statistics_take(struct wharf_rans_statistics *statistics, const uint8_t *symbols,
                                uint32_t n_symbols)
{
    statistics->n = 0;
    if (statistics->symbol_nbytes == 1)
        count_bytes(statistics, symbols, n_symbols);
    else
        count_words(statistics, symbols, n_symbols);
    if (statistics->n == 0) {
        list_symbol(statistics, 0);
        statistics->counts[0] = 1;
    }
}
