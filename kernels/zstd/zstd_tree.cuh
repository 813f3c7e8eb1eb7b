/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_tree.cuh: the Huffman tree of literals, as encoders/zstd/zstd_tree.c has it.  All lanes read
 * its weights alike, and make its decoding table together.
 *
 * Idea: codes are ordered by weight, then by literal.  So the literals are first sorted by weight
 * (a stable sort); the k-th literal of a weight then has the weight's k-th code.  The index of a
 * table entry alone tells the weight to whose entries it belongs, and the code's number among
 * these.  So no lane waits for another one's entries.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_TREE_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_TREE_CUH

#include "kernels/zstd/zstd_table.cuh"

namespace wharf
{
namespace zstd
{

/* collective.  n weights of four bits from byte `at` of the input on, which are there. */
WHARF_DEVICE void read_plain_weights(const state &st, uint32_t at, uint32_t n)
{
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES) {
        uint32_t byte = load_nc(st.source.aligned + at + i / 2);
        store(&st.s().tree.weights[i], (uint8_t)(i % 2 ? byte & 15 : byte >> 4));
    }
    syncwarp();
}

/* collective.  Weights by two states in turn, from bit p of the window down to bit `begin`.  They
 * end when too few bits are left for the next state.  Returns how many; 0: they are not good. */
WHARF_DEVICE uint32_t decode_weights(shared &s, uint32_t log, uint32_t begin, uint32_t p)
{
    if (p - begin < 2 * log)
        return 0;
    uint32_t one = window_bits_below(s.window, p, log),
             other = window_bits_below(s.window, p - log, log);
    p -= 2 * log;
    for (uint32_t i = 0; i < N_LITERALS - 2; i++) {
        uint32_t cell = uniform(load(&s.tree.cells[one]));
        uint32_t n = cell_n_state(cell);
        uint32_t other_cell = load(&s.tree.cells[other]);
        bool is_over = p - begin < n;
        if (lane_id() < 2)
            store(&s.tree.weights[i + lane_id()],
                  (uint8_t)cell_symbol(lane_id() == 0 ? cell : other_cell));
        syncwarp(); /* lanes meet, for the compiler too */
        if (is_over)
            return i + 2;
        one = other;
        other = (cell >> CELL_NEXT_SHIFT) + window_bits_below(s.window, p, n);
        p -= n;
    }
    return 0;
}

/* collective.  Weights by states: nbytes from byte `at` on.  How many; 0: they are not good. */
WHARF_DEVICE uint32_t read_coded_weights(const state &st, uint32_t at, uint32_t nbytes)
{
    shared &s = st.s();
    load_window(st.source, s.window, at >> 4);
    uint32_t p = 8 * (at & 15), end = p + 8 * nbytes;
    description d = read_counts(st.ref, p, end, N_LITERALS - 1, WHARF_ZSTD_WEIGHT_LOG);
    d = {uniform(d.log), uniform(d.n_symbols), uniform(d.nbytes)};
    uint32_t most =
        d.log == WHARF_ZSTD_WEIGHT_LOG ? MAX_WEIGHT_SYMBOLS_OF_64 : MAX_WEIGHT_SYMBOLS_OF_32;
    if (d.nbytes == 0 || d.n_symbols > most || d.nbytes == nbytes)
        return 0;
    make_cells(st.ref, offsetof(tree_memory, cells) / sizeof(uint32_t), WEIGHTS, d.n_symbols,
               d.log);
    uint32_t last = uniform(window_bits_below(s.window, end, 8));
    if (last == 0)
        return 0;
    return decode_weights(s, d.log, p + 8 * d.nbytes, end - 8 + high_bit(last));
}

/* collective.  Adds the last weight to the n of s.tree: the longest code's bits, or 0 if there is
 * no such tree. */
WHARF_DEVICE uint32_t complete_weights(shared &s, uint32_t n)
{
    uint32_t sum = 0, n_ones = 0, most = 0;
    /* A weight of w has 2^(w - 1) leaves: zstd_tree.c says why.  A plain weight has up to 15, of
     * which 256 still fit the sum. */
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES) {
        uint32_t weight = load(&s.tree.weights[i]);
        most = weight > most ? weight : most;
        sum += (1u << (weight & 31)) >> 1;
        n_ones += weight == 1;
    }
    syncwarp(); /* lanes meet, for the compiler too */
    if (reduce_max(most) > WHARF_ZSTD_TREE_MAX_NBITS)
        return 0;
    sum = reduce_add(sum);
    n_ones = reduce_add(n_ones);
    if (sum == 0)
        return 0;
    uint32_t log = high_bit(sum) + 1;
    if (log > WHARF_ZSTD_TREE_MAX_NBITS)
        return 0;
    uint32_t rest = (1u << log) - sum;
    if (rest & (rest - 1))
        return 0;
    uint32_t last = high_bit(rest) + 1;
    n_ones += last == 1;
    if (lane_id() == 0)
        store(&s.tree.weights[n], (uint8_t)last);
    syncwarp();
    return n_ones >= 2 && n_ones % 2 == 0 ? log : 0;
}

/*
 * collective.  Sorts the n literals by weight, without those of weight 0: a counting sort of 32 at
 * a time.  A literal's rank is how many of its weight are in earlier rounds and in lower lanes,
 * which one match tells of all weights at once.
 */
WHARF_DEVICE void sort_literals(tree_memory &t, uint32_t n, uint32_t log)
{
    uint32_t lane = lane_id();
    if (lane < 16)
        store(&t.n_of[lane], (uint16_t)0);
    syncwarp();
    uint32_t ranks[N_LITERALS / WARP_LANES];
    WHARF_UNROLL
    for (unsigned k = 0; k < N_LITERALS / WARP_LANES; k++) {
        uint32_t i = WARP_LANES * k + lane;
        uint32_t weight = i < n ? load(&t.weights[i]) : 0;
        uint32_t same = match_any(weight);
        uint32_t before = load(&t.n_of[weight]);
        ranks[k] = before + popc(same & lanemask_lt());
        syncwarp();
        if (first_lane(same) == lane)
            store(&t.n_of[weight], (uint16_t)(before + popc(same)));
        syncwarp();
    }
    /* Lane w has weight w: where its literals begin, and where its entries do. */
    uint32_t count = lane > 0 && lane <= log ? load(&t.n_of[lane]) : 0;
    uint32_t first = inclusive_add(count) - count;
    uint32_t n_entries = count << ((lane - 1) & 31);
    uint32_t start = inclusive_add(n_entries) - n_entries;
    if (lane < 16) {
        store(&t.firsts[lane], (uint16_t)first);
        store(&t.starts[lane], (uint16_t)start);
    }
    syncwarp();
    WHARF_UNROLL
    for (unsigned k = 0; k < N_LITERALS / WARP_LANES; k++) {
        uint32_t i = WARP_LANES * k + lane;
        uint32_t weight = i < n ? load(&t.weights[i]) : 0;
        if (weight > 0)
            store(&t.sorted[load(&t.firsts[weight]) + ranks[k]], (uint8_t)i);
    }
    syncwarp();
}

/* One lane.  What stands for the bits `index`, of which there are log, and which have this
 * weight. */
WHARF_DEVICE uint32_t entry_of(const tree_memory &t, uint32_t index, uint32_t log, uint32_t weight)
{
    uint32_t rank = (index - load(&t.starts[weight])) >> (weight - 1);
    uint32_t literal = load(&t.sorted[load(&t.firsts[weight]) + rank]);
    return literal << 8 | (log + 1 - weight);
}

/* collective.  Makes the tree of n weights in s.tree, a good one; its table only if it is not too
 * large for that.  Synchronises. */
WHARF_DEVICE void make_tree(shared &s, uint32_t n, uint32_t log)
{
    tree_memory &t = s.tree;
    sort_literals(t, n, log);
    if (log > QUICK_TREE_LOG)
        return;
    /* A lane's indexes only grow, and entries are in order of weight, so the search goes on where
     * it ended. */
    uint32_t weight = 1;
    for (uint32_t i = lane_id(); i < 1u << log; i += WARP_LANES) {
        while (weight < log && i >= load(&t.starts[weight + 1]))
            weight++;
        store(&t.table[i], (uint16_t)entry_of(t, i, log, weight));
    }
    syncwarp();
}

/* collective.  Keeps the tree for later blocks: its weights alone, of which make_tree makes the
 * table again. */
WHARF_DEVICE void keep_tree(const state &st, uint32_t n, uint32_t log)
{
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
        store(&st.keep->weights[i], load(&st.s().tree.weights[i]));
    if (lane_id() == 0) {
        store(&st.keep->n_weights, n);
        store(&st.keep->tree_log, log);
    }
    syncwarp();
}

/* A tree whose weights are in s.tree. */
struct tree_result {
    uint32_t nbytes; /* of its description */
    uint32_t n;      /* weights */
    uint32_t log;    /* 0: it is not good */
};

/* collective.  The tree that a block before had. */
WHARF_DEVICE tree_result restore_tree(const state &st)
{
    shared &s = st.s();
    uint32_t n = uniform(load(&st.keep->n_weights)), log = uniform(load(&st.keep->tree_log));
    syncwarp(); /* what was in the tree's place is not wanted any more */
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
        store(&s.tree.weights[i], load(&st.keep->weights[i]));
    syncwarp();
    return {0, n, log};
}

/* collective.  Reads the tree at byte `at` of the input, before byte `end`, and keeps it. */
WHARF_DEVICE tree_result read_tree(const state &st, uint32_t at, uint32_t end)
{
    shared &s = st.s();
    if (at >= end)
        return {0, 0, 0};
    uint32_t header = load_bytes(st.source, at) & 0xff;
    bool is_plain = header >= 128;
    uint32_t n = header - 127, nbytes = is_plain ? (n + 1) / 2 : header;
    if (nbytes > end - at - 1)
        return {0, 0, 0};
    syncwarp(); /* what was in the tree's place is not wanted any more */
    if (is_plain)
        read_plain_weights(st, at + 1, n);
    else
        n = uniform(read_coded_weights(st, at + 1, nbytes));
    uint32_t log = n > 0 ? uniform(complete_weights(s, n)) : 0;
    if (log == 0)
        return {0, 0, 0};
    keep_tree(st, n + 1, log);
    return {1 + nbytes, n + 1, log};
}

} // namespace zstd
} // namespace wharf

#endif
