/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_table.c: reads the descriptions of FSE tables, and makes decoding tables of them: RFC 8878,
 * sections 4.1.1 and 4.1.2.  FSE is the tabled form of asymmetric numeral systems (Duda, 2013).
 */
#include "encoders/zstd/zstd_table.h"

#include <string.h>

static unsigned high_bit(uint32_t value)
{
    return 31u - (unsigned)__builtin_clz(value);
}

/* ---- descriptions of FSE tables ------------------------------------------------------------- */

/* Bits in the usual order; those past the end are 0. */
struct forward {
    const uint8_t *in;
    size_t in_nbytes;
    size_t at; /* the next bit */
};

static uint32_t forward_peek(const struct forward *bits, unsigned n)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < 4; i++)
        if (bits->at / 8 + i < bits->in_nbytes)
            value |= (uint32_t)bits->in[bits->at / 8 + i] << 8 * i;
    return value >> bits->at % 8 & ((UINT32_C(1) << n) - 1);
}

static uint32_t forward_take(struct forward *bits, unsigned n)
{
    uint32_t value = forward_peek(bits, n);

    bits->at += n;
    return value;
}

/*
 * A number from 0 to `most`.  n bits can say more than that, so the lowest ones are said with one
 * bit less.  Those that need all n bits and begin with a 1 stand for what the short ones left.
 */
static uint32_t take_up_to(struct forward *bits, uint32_t most)
{
    unsigned n = high_bit(most) + 1;
    uint32_t half = UINT32_C(1) << (n - 1);
    uint32_t n_short = 2 * half - 1 - most;
    uint32_t value = forward_peek(bits, n);

    if ((value & (half - 1)) < n_short) {
        bits->at += n - 1;
        return value & (half - 1);
    }
    bits->at += n;
    return value < half ? value : value - n_short;
}

size_t wharf_zstd_read_counts(const uint8_t *in, size_t in_nbytes, unsigned max_symbol,
                              unsigned max_log, struct wharf_zstd_counts *ret_counts)
{
    struct forward bits = {in, in_nbytes, 0};
    unsigned symbol = 0;

    memset(ret_counts->counts, 0, sizeof(ret_counts->counts));
    ret_counts->log = WHARF_ZSTD_MIN_LOG + forward_take(&bits, 4);
    if (ret_counts->log > max_log)
        return 0;
    uint32_t left = UINT32_C(1) << ret_counts->log;
    while (left > 0 && symbol <= max_symbol) {
        /* A count is said as one more, since it may be -1.  It is at most `left`, whatever the bits
         * are, so the counts never add up to more than the table has room for. */
        int count = (int)take_up_to(&bits, left + 1) - 1;
        ret_counts->counts[symbol++] = (int16_t)count;
        left -= count < 0 ? 1 : (uint32_t)count;
        /* Behind a count of 0 comes how many more there are, in twos of bits. */
        if (count == 0) {
            uint32_t n_more;
            do {
                n_more = forward_take(&bits, 2);
                symbol += n_more;
            } while (n_more == 3 && symbol <= max_symbol);
        }
    }
    ret_counts->n_symbols = symbol;
    if (left > 0 || bits.at > 8 * in_nbytes)
        return 0;
    return (bits.at + 7) / 8;
}

/* ---- FSE tables ----------------------------------------------------------------------------- */

/*
 * Gives each symbol its cells' bases: those that are rare at the end, the others spread.  The step
 * is odd and so has no divisor in common with the table's size: it comes by every cell once, those
 * at the end are passed over, and the loops end.
 */
static void spread(const struct wharf_zstd_counts *counts, struct wharf_zstd_cell *cells)
{
    uint32_t size = UINT32_C(1) << counts->log, mask = size - 1;
    uint32_t step = (size >> 1) + (size >> 3) + 3;
    uint32_t n_spread = size, at = 0;

    for (unsigned s = 0; s < counts->n_symbols; s++)
        if (counts->counts[s] < 0)
            cells[--n_spread].base = s;
    for (unsigned s = 0; s < counts->n_symbols; s++)
        for (int i = 0; i < counts->counts[s]; i++) {
            cells[at].base = s;
            do
                at = (at + step) & mask;
            while (at >= n_spread);
        }
}

void wharf_zstd_make_cells(const struct wharf_zstd_counts *counts,
                           const struct wharf_zstd_symbol *symbols, struct wharf_zstd_cell *cells)
{
    uint32_t size = UINT32_C(1) << counts->log;
    uint16_t states[256]; /* of each symbol, the next in line */

    for (unsigned s = 0; s < counts->n_symbols; s++)
        states[s] = counts->counts[s] < 0 ? 1 : (uint16_t)counts->counts[s];
    spread(counts, cells);
    /* A symbol of count c has its cells numbered from c to 2c - 1 in the order of the table.  From
     * number x, log - floor(log2 x) bits lead back into the whole table: `next` and what they say
     * together are below `size`. */
    for (uint32_t i = 0; i < size; i++) {
        struct wharf_zstd_cell *cell = &cells[i];
        uint32_t symbol = cell->base, state = states[symbol]++;
        cell->n_bits = (uint8_t)(counts->log - high_bit(state));
        cell->next = (uint16_t)((state << cell->n_bits) - size);
        cell->base = symbols[symbol].base;
        cell->n_extra = symbols[symbol].n_extra;
    }
}
