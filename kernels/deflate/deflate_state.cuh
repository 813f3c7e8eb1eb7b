/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_state.cuh: the registers and shared memory of a warp that decodes a Deflate stream, and
 * the tuning constants.
 */
#ifndef WHARF_KERNELS_DEFLATE_STATE_CUH
#define WHARF_KERNELS_DEFLATE_STATE_CUH

#include "kernels/decoder.cuh"
#include "kernels/deflate/deflate_tables.cuh"
#include "kernels/input_stream.cuh"
#include "kernels/output_stream.cuh"

namespace wharf
{
namespace flate
{

/*
 * The tuning of the product.  32 warps fit a multiprocessor of an H100: 64 registers a thread, and,
 * with blocks of four warps, 7040 bytes of shared memory a warp ((228 - 8) KiB / 32).
 *
 * Measured alternatives: LITLEN_ROOT 9 with more sub-ranges is faster where few symbols have longer
 * codes, and slower elsewhere.  6 ROUNDS are slower for binary numbers and repeated columns, 4 for
 * few values and text.  24 or 20 warps with more registers are slower on all data.
 */
struct tuning {
    using unit = uint8_t; /* of output */
    static constexpr unsigned LITLEN_ROOT = 10;
    static constexpr unsigned DISTANCE_ROOT = 7;
    /* Symbols of a sub-range: odd, so that lanes at equal places in theirs store to different
     * banks.  And the most sub-ranges that a lane may find. */
    static constexpr unsigned SUB_NSYMBOLS = 9;
    static constexpr unsigned MAX_SUBS = 21;
    /* Symbols that lanes walk over between two refills of their columns. */
    static constexpr unsigned WALK_NSYMBOLS = 5;
    /* Bits of each lane's range: in a block's first region, the least, and the most. */
    static constexpr unsigned FIRST_RANGE_NBITS = 960;
    static constexpr unsigned MIN_RANGE_NBITS = 256;
    static constexpr unsigned MAX_RANGE_NBITS = 4096;
    /* Rounds of 32 output bytes whose loads are in flight together. */
    static constexpr unsigned ROUNDS = 5;
    /* The least lengths of matches copied one by one: of any, and of self-overlapping ones. */
    static constexpr unsigned LONG_MATCH = 128;
    static constexpr unsigned LONG_OVERLAP = 12;
    /* Stretches with at least so many such matches at distance 8 are written by their cycle. */
    static constexpr unsigned MIN_CYCLE_MATCHES = 2;
};

constexpr uint32_t NO_WINDOW = 3u << 30; /* far behind all bits, of which there are 2^31 */

/* A block's code lengths, between reading its header and making its tables. */
struct header_scratch {
    alignas(4) uint8_t nbits[320];
    uint8_t precode[1 << WHARF_DEFLATE_MAX_PRECODE_NBITS];
    build_scratch build;
};

/*
 * Input that each lane reads independently: a ring of 8 words, its column.  Word 0 is repeated
 * behind word 7, so two consecutive words can always be loaded.  A lane's words all lie in its own
 * bank.
 */
struct input_columns {
    static constexpr unsigned N_ROWS = 8;
    uint32_t words[N_ROWS + 1][32];
};

/* The last eight bytes of output: byte r is the last one whose address is r modulo 8.  Valid while
 * `position` equals the output's.  It saves a slow load of bytes that were just stored. */
struct last_cycle {
    uint64_t bytes;
    uint32_t position;
};

/* Shared memory of one warp. */
template <typename P>
struct alignas(16) shared {
    /* The columns and the common window share one place. */
    static constexpr unsigned WINDOW_NWORDS = sizeof(input_columns) / 4;
    union {
        input_columns columns;
        uint32_t window[WINDOW_NWORDS];
    };
    stop_word stop;
    last_cycle cycle;
    code_table<P::LITLEN_ROOT, 288, 288> litlen;
    code_table<P::DISTANCE_ROOT, 32, 128> distance;
    /* Symbol starts that lanes noted: number i of lane l at [i][l], relative to l's start. */
    uint16_t starts[P::MAX_SUBS][32];
    /* Header and body use this place in turn. */
    union {
        header_scratch header;
        uint32_t tokens[32 * P::SUB_NSYMBOLS + 32];
    };
};

/*
 * Registers of one warp, the same in all lanes.  Functions that are not inlined take it by value
 * and return numbers: a reference would force it into memory, and the compiler would not know that
 * a returned pointer points to shared memory.
 */
template <typename P>
struct state {
    shared_ref<shared<P>> ref;
    input_source source;
    uint32_t window;   /* skewed position of the first bit in s.window; a multiple of 128 */
    uint32_t at;       /* skewed position of the next bit */
    output_stream out; /* this stream's output so far */

    WHARF_DEVICE_MEMBER shared<P> &s() const { return ref.get(); }
    WHARF_DEVICE_MEMBER const input_source &input() const { return source; }
    WHARF_DEVICE_MEMBER uint32_t end() const { return 8 * source.end; }
    /* `at` as an offset into the input, in bits. */
    WHARF_DEVICE_MEMBER uint32_t bit_offset() const { return at - source.skew_nbits(); }
    /* collective.  Whether the job is to be stopped, after the first header. */
    WHARF_DEVICE_MEMBER bool is_stopped() const { return wharf::is_stopped(s().stop); }
};

/* Among reasons, within a decoder: the job was stopped. */
constexpr uint32_t STOPPED = 0xffff;

/* Replaces crc32_sum and adler32_sum, which read the output while it is still in the cache, where
 * no checksum is wanted. */
struct no_sum {
    WHARF_DEVICE_MEMBER void update(uint32_t) {}
};

/* collective.  Moves the window to begin at most 127 bits before a position.  Synchronises before
 * it writes and after. */
template <typename P>
WHARF_DEVICE void move_window(state<P> &st, uint32_t at)
{
    constexpr unsigned N_QUADS = shared<P>::WINDOW_NWORDS / 4;
    constexpr unsigned N = (N_QUADS + 31) / 32;
    u32x4 quads[N];
    st.window = at & ~127u;
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        if (32 * k + lane_id() < N_QUADS)
            quads[k] = st.source.load_quad((st.window >> 7) + 32 * k + lane_id());
    syncwarp();
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        if (32 * k + lane_id() < N_QUADS)
            store(reinterpret_cast<u32x4 *>(st.s().window) + 32 * k + lane_id(), quads[k]);
    syncwarp();
}

/*
 * Charges to the step budget (decoder.cuh).  A symbol of the exact path costs 1, so that path costs
 * at most 1 a bit of input.  The parallel path costs at most 5.2 a byte, because
 * - a block takes at least 10 bits, and if it is not empty 18 (a literal between the header and the
 *   end, in the fixed codes);
 * - every region except a block's last completes all that lane 0, whose start is true, has walked
 *   over: at least MIN_RANGE_NBITS, or the 189 symbols (MAX_SUBS * SUB_NSYMBOLS) that fit;
 * - every group except a region's last two completes 32 pieces, or the window's bits, which are
 * more. So a body of b bits costs 2 + 4 (1 + b / 189) + 2 (2 (1 + b / 189) + b / 32): 11.6 for a
 * body of 15 bits in a block of 18.  The exact path decodes at most one region a second time, 189
 * symbols of each lane.  STEPS_BESIDES and the budget's margin above 5.2 a byte cover that.
 */
constexpr uint32_t BLOCK_STEPS = 2;
constexpr uint32_t REGION_STEPS = 4;
constexpr uint32_t GROUP_STEPS = 2;

enum class status { more, block_end, stop };

/* A token: a literal or a whole match.
 *   bits 0 to 8    length - 3, modulo 512; so 510 for a literal, whose length is 1
 *   bits 9 to 23   distance - 1 of a match; bits 9 to 16 a literal
 *   bit 31         a literal */
constexpr uint32_t TOKEN_LITERAL = 1u << 31 | ((1 - WHARF_DEFLATE_MIN_MATCH) & 0x1ff);

WHARF_DEVICE uint32_t token_length(uint32_t token)
{
    return (token + WHARF_DEFLATE_MIN_MATCH) & 0x1ff;
}

} // namespace flate
} // namespace wharf

#endif
