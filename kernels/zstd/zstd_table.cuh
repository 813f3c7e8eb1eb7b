/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_table.cuh: FSE tables.  All lanes read a table's description alike, and make its states
 * together, 32 at a time.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_TABLE_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_TABLE_CUH

#include "kernels/zstd/zstd_state.cuh"

namespace wharf
{
namespace zstd
{

#define BASE(base, n_extra) ((base) | (n_extra) << 24)
WHARF_DEVICE_TABLE uint32_t
    LENGTH_BASES[WHARF_ZSTD_N_LITERAL_LENGTHS + WHARF_ZSTD_N_MATCH_LENGTHS] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, BASE(16, 1), BASE(18, 1), BASE(20, 1),
        BASE(22, 1), BASE(24, 2), BASE(28, 2), BASE(32, 3), BASE(40, 3), BASE(48, 4), BASE(64, 6),
        BASE(128, 7), BASE(256, 8), BASE(512, 9), BASE(1024, 10), BASE(2048, 11), BASE(4096, 12),
        BASE(8192, 13), BASE(16384, 14), BASE(32768, 15), BASE(65536, 16),
        /* Matches. */
        3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31, 32, 33, 34, BASE(35, 1), BASE(37, 1), BASE(39, 1), BASE(41, 1), BASE(43, 2),
        BASE(47, 2), BASE(51, 3), BASE(59, 3), BASE(67, 4), BASE(83, 4), BASE(99, 5), BASE(131, 7),
        BASE(259, 8), BASE(515, 9), BASE(1027, 10), BASE(2051, 11), BASE(4099, 12), BASE(8195, 13),
        BASE(16387, 14), BASE(32771, 15), BASE(65539, 16)};
#undef BASE

/* What a table is without a description, by kind. */
WHARF_DEVICE_TABLE int8_t USUAL_COUNTS[3][64] = {
    {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
     2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}};

/* Of each kind: its symbols, those without a description, and the logs of the sizes. */
WHARF_DEVICE uint32_t n_symbols_of(unsigned k)
{
    return k == LITERAL_LENGTHS ? WHARF_ZSTD_N_LITERAL_LENGTHS
           : k == MATCH_LENGTHS ? WHARF_ZSTD_N_MATCH_LENGTHS
                                : WHARF_ZSTD_N_OFFSETS;
}
WHARF_DEVICE uint32_t n_usual_of(unsigned k)
{
    return k == OFFSETS ? 29 : n_symbols_of(k);
}
WHARF_DEVICE uint32_t usual_log_of(unsigned k)
{
    return k == OFFSETS ? 5 : 6;
}
WHARF_DEVICE uint32_t max_log_of(unsigned k)
{
    return k == OFFSETS ? WHARF_ZSTD_OFFSET_LOG : WHARF_ZSTD_LITERAL_LENGTH_LOG;
}

/* A table's description.  The same in all lanes. */
struct description {
    uint32_t log;
    uint32_t n_symbols; /* up to the last that has a state */
    uint32_t nbytes;    /* 0: it is not good, or goes past the end */
};

/* One lane.  A number from 0 to `most`, of which the lowest are said with one bit less. */
WHARF_DEVICE uint32_t take_up_to(const shared &s, uint32_t &p, uint32_t most)
{
    uint32_t n = high_bit(most) + 1;
    uint32_t half = 1u << (n - 1);
    uint32_t n_short = 2 * half - 1 - most;
    uint32_t value = window_bits(s.window, p) & (2 * half - 1);
    uint32_t low = value & (half - 1);
    bool is_short = low < n_short;
    p += is_short ? n - 1 : n;
    return is_short ? low : value < half ? value : value - n_short;
}

/* One lane.  The symbol behind those that have no states either, which `symbol` may begin. */
WHARF_DEVICE uint32_t skip_zeros(const shared &s, uint32_t &p, uint32_t symbol, uint32_t max_symbol)
{
    uint32_t n_more = 3;
    while (n_more == 3 && symbol <= max_symbol) {
        n_more = window_bits(s.window, p) & 3;
        p += 2;
        symbol += n_more;
    }
    return symbol;
}

/* collective.  Fills s.counts with nothing. */
WHARF_DEVICE void clear_counts(shared &s)
{
    for (unsigned i = lane_id(); i < N_COUNTS; i += WARP_LANES)
        store(&s.counts[i], (int16_t)0);
    syncwarp();
}

/*
 * collective.  The description that begins at bit p of the window, of symbols 0 to max_symbol with
 * at most 2^max_log states, to s.counts, as far as that goes; it ends before bit `end`.
 * Synchronises.  Its 256 symbols at most take 12 bits at most: they are in the window.
 */
WHARF_DEVICE description read_counts(shared_ref<shared> ref, uint32_t p, uint32_t end,
                                     uint32_t max_symbol, uint32_t max_log)
{
    shared &s = ref.get();
    p = uniform(p);
    end = uniform(end);
    max_symbol = uniform(max_symbol);
    max_log = uniform(max_log);
    uint32_t begin = p, symbol = 0;
    description d = {WHARF_ZSTD_MIN_LOG + uniform(window_bits(s.window, p) & 15), 0, 0};
    p += 4;
    if (d.log > max_log)
        return d;
    clear_counts(s);
    uint32_t left = 1u << d.log;
    while (left > 0 && symbol <= max_symbol) {
        uint32_t n =
            uniform(take_up_to(s, p, left + 1)); /* one more than the count, 0 for a rare symbol */
        if (lane_id() == 0) /* of more symbols than there is room for the last: they are bad */
            store(&s.counts[symbol < N_COUNTS ? symbol : N_COUNTS - 1], (int16_t)((int32_t)n - 1));
        syncwarp(); /* lanes meet, for the compiler too */
        symbol++;
        left -= n == 0 ? 1 : n - 1;
        if (n == 1)
            symbol = uniform(skip_zeros(s, p, symbol, max_symbol));
        p = uniform(p);
    }
    syncwarp();
    d.n_symbols = symbol;
    d.nbytes = left > 0 || p > end ? 0 : (p - begin + 7) / 8;
    return d;
}

/* One lane.  A state's word: `x` is 2^log for all states of its symbol together, counted up. */
WHARF_DEVICE uint32_t make_cell(const shared &s, unsigned k, uint32_t symbol, uint32_t log,
                                uint32_t x)
{
    uint32_t n_state = log - high_bit(x);
    uint32_t next = (x << n_state) - (1u << log);
    uint32_t n_extra = 0;
    if (k == OFFSETS)
        n_extra = symbol;
    else if (k != WEIGHTS)
        n_extra =
            load(&s.bases[(k == MATCH_LENGTHS ? WHARF_ZSTD_N_LITERAL_LENGTHS : 0) + symbol]) >> 24;
    symbol = symbol < 63 ? symbol : 63; /* of weights, which are bad from 13 on */
    return n_state | n_extra << CELL_EXTRA_SHIFT | symbol << CELL_SYMBOL_SHIFT |
           next << CELL_NEXT_SHIFT;
}

/* collective.  Rare symbols get states from the end down, the others their ranks among the rest: at
 * the first of them stands the symbol + 1.  Returns how many states are left for these. */
WHARF_DEVICE uint32_t rank_symbols(shared &s, uint32_t *cells, uint32_t n_symbols, uint32_t size)
{
    uint32_t n_rare = 0, n_ranks = 0;
    for (uint32_t i = lane_id(); i < size; i += WARP_LANES)
        store(&s.ranks[i], (uint8_t)0);
    syncwarp();
    for (uint32_t first = 0; first < n_symbols; first += WARP_LANES) {
        uint32_t symbol = first + lane_id();
        int32_t count = symbol < n_symbols ? load(&s.counts[symbol]) : 0;
        uint32_t rare = ballot(count < 0);
        uint32_t n = count < 0 ? 0 : (uint32_t)count;
        uint32_t end = n_ranks + inclusive_add(n);
        if (count < 0)
            store(&cells[size - 1 - n_rare - popc(rare & lanemask_lt())], symbol);
        else if (n > 0)
            store(&s.ranks[end - n], (uint8_t)(symbol + 1));
        if (symbol < n_symbols)
            store(&s.next[symbol], (uint16_t)(count < 0 ? 1 : n));
        syncwarp(); /* lanes meet, for the compiler too */
        n_rare += popc(rare);
        n_ranks = uniform(shfl(end, 31));
    }
    syncwarp();
    return size - n_rare;
}

/* collective.  Puts the symbol of each rank there. */
WHARF_DEVICE void fill_ranks(shared &s, uint32_t n_ranks)
{
    uint32_t before = 0;
    for (uint32_t first = 0; first < n_ranks; first += WARP_LANES) {
        uint32_t i = first + lane_id();
        uint32_t v = inclusive_max(i < n_ranks ? load(&s.ranks[i]) : 0);
        v = v > before ? v : before;
        if (i < n_ranks)
            store(&s.ranks[i], (uint8_t)v);
        syncwarp(); /* lanes meet, for the compiler too */
        before = shfl(v, 31);
    }
    syncwarp();
}

/* collective.  Spreads the ranks over the states, by the format's step, which goes round all. */
WHARF_DEVICE void spread_ranks(shared &s, uint32_t *cells, uint32_t n_ranks, uint32_t size)
{
    uint32_t step = (size >> 1) + (size >> 3) + 3, done = 0;
    for (uint32_t first = 0; first < size; first += WARP_LANES) {
        uint32_t at = (first + lane_id()) * step & (size - 1);
        uint32_t there = ballot(at < n_ranks);
        if (at < n_ranks)
            store(&cells[at], (uint32_t)load(&s.ranks[done + popc(there & lanemask_lt())]) - 1);
        done += popc(there);
        syncwarp(); /* lanes meet, for the compiler too */
    }
    syncwarp();
}

/* collective.  Numbers each symbol's states, and makes their words. */
WHARF_DEVICE void number_states(shared &s, uint32_t *cells, unsigned k, uint32_t log)
{
    for (uint32_t first = 0; first < 1u << log; first += WARP_LANES) {
        uint32_t symbol = load(&cells[first + lane_id()]);
        uint32_t same = match_any(symbol);
        uint32_t x = load(&s.next[symbol]) + popc(same & lanemask_lt());
        syncwarp();
        if (first_lane(same) == lane_id())
            store(&s.next[symbol], (uint16_t)(x + popc(same)));
        store(&cells[first + lane_id()], make_cell(s, k, symbol, log, x));
        syncwarp();
    }
}

/* collective.  The 2^log (at least 32) cells of a good description in s.counts, from s.cells[first]
 * on.  Synchronises.  Not inlined: called from two places. */
WHARF_DEVICE void make_cells(shared_ref<shared> ref, uint32_t first, unsigned k, uint32_t n_symbols,
                             uint32_t log)
{
    shared &s = ref.get();
    k = uniform(k);
    n_symbols = uniform(n_symbols);
    log = uniform(log);
    uint32_t *cells = &s.cells[uniform(first)];
    uint32_t n_ranks = uniform(rank_symbols(s, cells, n_symbols, 1u << log));
    fill_ranks(s, n_ranks);
    spread_ranks(s, cells, n_ranks, 1u << log);
    number_states(s, cells, k, log);
}

} // namespace zstd
} // namespace wharf

#endif
