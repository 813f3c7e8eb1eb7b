/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_state.cuh: what a warp holds while it decodes one Deflate stream, and the tuning
 * constants.
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
 * The tuning of the product.  It makes 32 warps fit a multiprocessor of an H100: 64 registers a
 * thread, and with blocks of four warps 7040 bytes of shared memory each ((228 - 8) KiB / 32).
 *
 * Nine bits of LITLEN_ROOT and more sub-ranges in their place are faster where few symbols have
 * longer codes, and slower elsewhere; so are more ROUNDS for short matches and for columns; 24 or
 * 20 warps with more registers are slower throughout.
 */
struct tuning {
    static constexpr unsigned LITLEN_ROOT = 10;
    static constexpr unsigned DISTANCE_ROOT = 7;
    /* Symbols of a sub-range, an odd number, so that lanes at the same place of theirs store to
     * different banks; and the most sub-ranges that a lane may find. */
    static constexpr unsigned SUB_NSYMBOLS = 9;
    static constexpr unsigned MAX_SUBS = 21;
    /* Symbols that lanes walk over between two looks at whether their columns need more input. */
    static constexpr unsigned WALK_NSYMBOLS = 5;
    /* Bits of each lane's range: in a block's first region, and at least and at most. */
    static constexpr unsigned FIRST_RANGE_NBITS = 960;
    static constexpr unsigned MIN_RANGE_NBITS = 256;
    static constexpr unsigned MAX_RANGE_NBITS = 4096;
    /* Rounds of 32 output bytes whose loads are on their way together. */
    static constexpr unsigned ROUNDS = 4;
    /* Matches that are copied one by one: so long, or so long and overlapping themselves. */
    static constexpr unsigned LONG_MATCH = 128;
    static constexpr unsigned LONG_OVERLAP = 12;
    /* So many of them at distance 8 make a stretch that is written by its cycle. */
    static constexpr unsigned MIN_CYCLE_MATCHES = 2;
};

constexpr uint32_t NO_WINDOW = 3u << 30; /* far behind all bits, of which there are 2^31 */

/* Code lengths on their way from a block's header to its tables. */
struct header_scratch {
    alignas(4) uint8_t nbits[320];
    uint8_t precode[1 << WHARF_DEFLATE_MAX_PRECODE_NBITS];
    build_scratch build;
};

/*
 * Input that each lane reads on its own: a column of 8 words, a ring, with word 0 once more behind
 * word 7 so that two words in a row are always there.  A lane's words are all in its own bank.
 */
struct input_columns {
    static constexpr unsigned N_ROWS = 8;
    uint32_t words[N_ROWS + 1][32];
};

/* The last eight bytes of output by their addresses: byte r is the last one whose address is r
 * modulo 8, if `position` is where the output stands: what has just been stored is slow to load. */
struct last_cycle {
    uint64_t bytes;
    uint32_t position;
};

/* Shared memory of one warp. */
template <typename P>
struct alignas(16) shared {
    /* Input for each lane on its own, and for all together, take turns. */
    static constexpr unsigned WINDOW_NWORDS = sizeof(input_columns) / 4;
    union {
        input_columns columns;
        uint32_t window[WINDOW_NWORDS];
    };
    stop_word stop;
    last_cycle cycle;
    code_table<P::LITLEN_ROOT, 288, 288> litlen;
    code_table<P::DISTANCE_ROOT, 32, 128> distance;
    /* Symbol starts that lanes found: number i of lane l at [i][l], from where l began. */
    uint16_t starts[P::MAX_SUBS][32];
    /* Header and body take turns. */
    union {
        header_scratch header;
        uint32_t tokens[32 * P::SUB_NSYMBOLS + 32];
    };
};

/*
 * Registers of one warp, the same in all lanes.  It is given to functions that are not inlined by
 * value, and they give back numbers: a reference would keep it in memory, and a pointer that comes
 * back would no longer be known to point to shared memory.
 */
template <typename P>
struct state {
    shared_ref<shared<P>> ref;
    input_source source;
    uint32_t window;   /* skewed position of the first bit in s.window; a multiple of 128 */
    uint32_t at;       /* skewed position of the next bit */
    output_stream out; /* what this stream has put out, and where it goes on */

    WHARF_DEVICE_MEMBER shared<P> &s() const { return ref.get(); }
    WHARF_DEVICE_MEMBER const input_source &input() const { return source; }
    WHARF_DEVICE_MEMBER uint32_t end() const { return 8 * source.end; }
    /* Where `at` stands in the input. */
    WHARF_DEVICE_MEMBER uint32_t bit_offset() const { return at - source.skew_nbits(); }
    /* collective.  Whether the job is to be stopped, after the first header. */
    WHARF_DEVICE_MEMBER bool is_stopped() const { return wharf::is_stopped(s().stop); }
};

/* Among reasons, within a decoder: the job was stopped. */
constexpr uint32_t STOPPED = 0xffff;

/* A checksum of the output that is not wanted: for crc32_sum or adler32_sum, which look at the
 * output while it is still in the cache. */
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
 * What is taken from the step budget (decoder.cuh); a symbol of the exact path takes 1.  That is
 * never more than one for each bit of input, and on the parallel path 5.2 for a byte, because
 * - a block takes at least 10 bits, and if it is not empty 18 (a literal between the header and the
 *   end, in the fixed codes);
 * - a region but a block's last takes all that lane 0 has walked over, which is right: at least
 *   MIN_RANGE_NBITS, or the 189 symbols (MAX_SUBS * SUB_NSYMBOLS) for which there is room;
 * - a group but a region's last two takes 32 pieces, or what the window holds, which is more bits.
 * So a body of b bits takes 2 + 4 (1 + b / 189) + 2 (2 (1 + b / 189) + b / 32), which for a body of
 * 15 bits in a block of 18 is 11.6.  The exact path goes at most once over bits for which the
 * parallel path has taken already: those of one region, 189 symbols of each lane, for which there
 * is STEPS_BESIDES and what the budget has more than 5.2.
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
