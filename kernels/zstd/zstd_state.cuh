/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_state.cuh: the state of a warp that decodes zstd frames, and how it reads their bits.
 *
 * Positions are skewed (input_source): they count from an aligned word at or before the beginning
 * of the input; positions of bytes count bytes, those of bits count bits.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_STATE_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_STATE_CUH

#include "encoders/zstd/zstd_format.h"
#include "kernels/output_stream.cuh"

namespace wharf
{
namespace zstd
{

/* The three tables of a sequence, in the order in which their next states are read; and that of a
 * tree's weights. */
enum kind : unsigned { LITERAL_LENGTHS, MATCH_LENGTHS, OFFSETS, WEIGHTS };

/*
 * A state of a table is a word, a cell, so that one sum of three of them says how many bits a
 * sequence takes.  Byte 0 has the bits of the next state: shifts by a cell are shifts by them. Byte
 * 1 has the bits of the value.  Then come the symbol, and the next state where its bits are 0.
 */
constexpr unsigned CELL_EXTRA_SHIFT = 8, CELL_SYMBOL_SHIFT = 16, CELL_NEXT_SHIFT = 23;
WHARF_DEVICE uint32_t cell_n_extra(uint32_t cell)
{
    return byte_perm(cell, 0, 0x4441);
}
WHARF_DEVICE uint32_t cell_n_state(uint32_t cell)
{
    return cell & 31;
}
WHARF_DEVICE uint32_t cell_symbol(uint32_t cell)
{
    return cell >> CELL_SYMBOL_SHIFT & 63;
}

/* Where a kind's cells begin: the kind times this. */
constexpr unsigned CELLS_STRIDE = 1 << WHARF_ZSTD_LITERAL_LENGTH_LOG;
constexpr unsigned N_CELLS = 2 * CELLS_STRIDE + (1 << WHARF_ZSTD_OFFSET_LOG);

/* A weight's symbols: libzstd has no room for more (encoders/zstd/zstd_tree.c). */
constexpr unsigned MAX_WEIGHT_SYMBOLS_OF_32 = 92, MAX_WEIGHT_SYMBOLS_OF_64 = 12;
constexpr unsigned N_COUNTS = 96;
constexpr unsigned N_LITERALS = 256;

/* Codes of more bits than this are decoded by the exact path alone: no encoder makes them. */
constexpr unsigned QUICK_TREE_LOG = 11;

/* Tree and sequences take turns. */
struct tree_memory {
    /* By the next bits: the literal << 8 | how many of them it has. */
    uint16_t table[1 << QUICK_TREE_LOG];
    uint8_t sorted[N_LITERALS];  /* literals by weight, then by value */
    uint8_t weights[N_LITERALS]; /* by literal */
    uint32_t cells[1 << WHARF_ZSTD_WEIGHT_LOG];
    /* By weight: the first of its codes' table entries; the first of its literals in `sorted`; how
     * many they are. */
    uint16_t starts[16], firsts[16], n_of[16];
};

/* A window of the input, N words (a power of two) from word WINDOW_FIRST on; the words around are
 * 0. */
constexpr unsigned WINDOW_FIRST = 4;
template <unsigned N>
struct alignas(16) bits_of {
    uint32_t words[WINDOW_FIRST + N + 4];
};
constexpr unsigned WINDOW_NWORDS = 128;
using bit_window = bits_of<WINDOW_NWORDS>;

/* What is noted of a batch of sequences.  Of each: its three cells and where its bits begin. Behind
 * the last: the three states and where the bits of the next one begin. */
struct alignas(16) batch_notes {
    u32x4 records[WARP_LANES + 1];
};

/* Shared memory of one warp. */
struct alignas(16) shared {
    bit_window window;
    union {
        batch_notes notes;
        uint8_t ranks[1 << WHARF_ZSTD_LITERAL_LENGTH_LOG]; /* while a table is made */
    };
    union {
        uint32_t cells[N_CELLS];
        tree_memory tree;
    };
    /* Lengths of literals, then of matches: the base, and its bits << 24. */
    uint32_t bases[WHARF_ZSTD_N_LITERAL_LENGTHS + WHARF_ZSTD_N_MATCH_LENGTHS];
    int16_t counts[N_COUNTS];
    uint16_t next[N_COUNTS];
    stop_word stop;
};

/* What blocks hand on to later ones, in scratch: descriptions, from which tables are made again. */
struct kept {
    uint64_t sums[4];             /* XXH64 */
    uint32_t n_weights, tree_log; /* 0: there is no tree */
    /* Of a table of one state the log is 0 and the count of its symbol 1. */
    uint32_t n_symbols[3], log[3];
    int16_t counts[3][64];
    uint8_t weights[N_LITERALS];
};

/* Registers of one warp, the same in all lanes. */
struct state {
    shared_ref<shared> ref;
    input_source source;
    uint8_t *out;
    uint32_t out_avail;
    kept *keep;
    uint32_t at;    /* the next byte of input */
    uint32_t n_out; /* the output so far */
    /* Of the frame. */
    uint32_t frame_at, frame_out;
    uint32_t window_nbytes, block_max;
    uint32_t content_nbytes; /* 0xffffffff: not known, or more than a chunk has */
    uint32_t has_content, has_checksum, has_tables;
    uint32_t hashed; /* up to here its output is in the sums */
    uint32_t offsets[3];
    step_counter steps;

    WHARF_DEVICE_MEMBER shared &s() const { return ref.get(); }
};

/* Among reasons, within a decoder: the job was stopped; all is done. */
constexpr uint32_t STOPPED = 0xffff, DONE = 0xfffe;

/* A reason, and the byte where the error is. */
struct failure {
    uint32_t reason;
    uint32_t at;
};

/* collective.  What a new window has around its words. */
template <unsigned N>
WHARF_DEVICE void init_window(bits_of<N> &w)
{
    if (lane_id() < 4) {
        store(&w.words[lane_id()], 0u);
        store(&w.words[WINDOW_FIRST + N + lane_id()], 0u);
    }
    syncwarp();
}

/* collective.  512 bytes of input, from a multiple of 16 on; outside the input they are 0.
 * Synchronises before and after. */
WHARF_DEVICE void load_window(const input_source &source, bit_window &w, uint32_t quad)
{
    u32x4 v = source.load_quad(quad + lane_id());
    syncwarp();
    store(reinterpret_cast<u32x4 *>(&w.words[WINDOW_FIRST]) + lane_id(), v);
    syncwarp();
}

/* One lane.  32 bits from bit p of the window on; those outside the window are undefined. */
template <unsigned N>
WHARF_DEVICE uint32_t window_bits(const bits_of<N> &window, uint32_t p)
{
    const uint32_t *w = &window.words[WINDOW_FIRST + (p >> 5 & (N - 1))];
    return funnel_right(load(w), load(w + 1), p);
}

/* One lane.  n bits, 0 to 31, which end in front of bit p. */
template <unsigned N>
WHARF_DEVICE uint32_t window_bits_below(const bits_of<N> &window, uint32_t p, uint32_t n)
{
    return window_bits(window, p - n) & ((1u << n) - 1);
}

/* collective, with the same `at` in all lanes.  Four bytes of input; outside the input they are
 * 0. */
WHARF_DEVICE uint32_t load_bytes(const input_source &source, uint32_t at)
{
    return uniform(
        funnel_right(source.load_word(at >> 2), source.load_word((at >> 2) + 1), 8 * (at & 3)));
}

WHARF_DEVICE uint32_t high_bit(uint32_t value)
{
    return 31u - (unsigned)clz(value);
}

} // namespace zstd
} // namespace wharf

#endif
