/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_lz.cuh: decodes blosclz, the codec that only Blosc uses (BLOSCLZ in
 * encoders/blosc/blosc_format.h): the format for lz_decode.cuh, which has the decoder.
 *
 * As snappy's, its elements are either literals or a match.  A batch takes those whose length has
 * at most one byte more; take_one decodes any other with all checks, and alone reports errors.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_LZ_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_LZ_CUH

#include "kernels/lz4/lz4_decode.cuh"

namespace wharf
{
namespace blosc
{

constexpr uint32_t MATCH = 32;       /* the least first byte of a match */
constexpr uint32_t LENGTH_MORE = 7;  /* more bytes of the length follow */
constexpr uint32_t FAR = 8191;       /* all bits of the distance: two bytes follow, */
constexpr uint32_t FAR_FIRST = 8192; /* which are added to this */
constexpr uint32_t LENGTH_LEAST = 2; /* a match's length is the high three bits plus this */

/* One lane.  Reads the element that would begin i bytes after the position.  It is `good` only if
 * it suits a batch: at most one length byte, a distance below 2^16, and more input behind a match.
 */
template <typename Input>
WHARF_DEVICE lz::found look_at_element(const Input &in, uint32_t i, uint32_t in_left)
{
    lz::found f;
    uint32_t word = in.peek_32(8 * i), tag = word & 0xff;
    bool is_match = tag >= MATCH, has_more = is_match & (tag >> 5 == LENGTH_MORE);
    uint32_t more = has_more ? word >> 8 & 0xff : 0;
    uint32_t low = word >> (has_more ? 16 : 8) & 0xff;
    uint32_t distance = (tag & 31) << 8 | low;
    bool is_far = is_match & (distance == FAR);
    uint32_t far_bytes = in.peek_32(8 * (i + 2 + has_more)) & 0xffff;
    distance = is_far ? FAR_FIRST + (far_bytes >> 8 | (far_bytes & 0xff) << 8) : distance + 1;
    f.n_literals = is_match ? 0 : tag + 1;
    f.literals = i + 1;
    f.match_length = is_match ? (tag >> 5) + LENGTH_LEAST + more : 0;
    f.distance = distance;
    f.end = i + (is_match ? 2u + has_more + (is_far ? 2 : 0) : tag + 2);
    f.good = (f.end < in_left + !is_match) & !(has_more & (more == 255)) &
             !(is_match & (distance > 0xffff));
    return f;
}

/* What the rest of the stream depends on: nothing. */
struct lz_format {
    /* collective.  The first element: of its first byte only the low five bits count, so that it is
     * literals. */
    WHARF_DEVICE_MEMBER uint32_t begin(lz::stream &st)
    {
        if (lz::bytes_left(st.in) == 0)
            return WHARF_REASON_NONE;
        return take_literals(st, uniform(st.in.fetch_bits(8)) % MATCH + 1);
    }

    WHARF_DEVICE_MEMBER bool is_done(const lz::stream &st) const
    {
        return lz::bytes_left(st.in) == 0;
    }

    WHARF_DEVICE_MEMBER void took_batch(uint32_t, const lz::found &, bool) {}

    WHARF_DEVICE_MEMBER uint32_t take_one(lz::stream &st)
    {
        /* A call takes at least the first byte's eight bits. */
        if (!st.steps.take(8))
            return WHARF_REASON_STEP_BUDGET;
        uint32_t tag = uniform(st.in.fetch_bits(8));
        return tag < MATCH ? take_literals(st, tag + 1) : take_match(st, tag);
    }

    static constexpr bool CYCLES = false;
    static constexpr bool JOINS = false;
    static constexpr uint32_t LONG_OVERLAP = 64;
    static constexpr uint32_t AHEAD_NBYTES = lz::WINDOW_NBYTES + 8;

    /* Guesses that no distance is far. */
    WHARF_DEVICE_MEMBER uint32_t links(const lz::input &in, uint32_t) const
    {
        uint32_t tags = in.peek_32(32 * lane_id()), places = 0;
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            uint32_t tag = tags >> 8 * k & 0xff;
            uint32_t n = tag < MATCH ? tag + 2 : tag >> 5 == LENGTH_MORE ? 3 : 2;
            places |= (4 * lane_id() + k + n) << 8 * k;
        }
        return places;
    }

    template <typename Input>
    static WHARF_DEVICE_MEMBER lz::found look(const Input &in, uint32_t i, uint32_t in_left,
                                              uint32_t)
    {
        return look_at_element(in, i, in_left);
    }

  private:
    WHARF_DEVICE_MEMBER uint32_t take_literals(lz::stream &st, uint32_t n)
    {
        if (n > lz::bytes_left(st.in))
            return WHARF_REASON_INPUT_TRUNCATED;
        if (n > st.out.room())
            return WHARF_REASON_OUTPUT_FULL;
        return lz::take_literals(st, n);
    }

    WHARF_DEVICE_MEMBER uint32_t take_match(lz::stream &st, uint32_t tag)
    {
        uint32_t length = (tag >> 5) + LENGTH_LEAST;
        if (tag >> 5 == LENGTH_MORE) {
            uint32_t reason = uniform(lz4::add_length_bytes(st, length));
            if (reason != WHARF_REASON_NONE)
                return reason;
        }
        /* The next element's first byte has to be there as well. */
        if (lz::bytes_left(st.in) < 2)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t distance = (tag & 31) << 8 | uniform(st.in.fetch_bits(8));
        if (distance == FAR) {
            if (lz::bytes_left(st.in) < 3)
                return WHARF_REASON_INPUT_TRUNCATED;
            uint32_t bytes = uniform(st.in.fetch_bits(16));
            distance = FAR_FIRST - 1 + (bytes >> 8 | (bytes & 0xff) << 8);
        }
        if (distance >= st.out.position)
            return WHARF_REASON_BLOSC_LZ_OFFSET;
        return lz::copy_match(st, distance + 1, length, WHARF_REASON_OUTPUT_FULL);
    }
};

/* collective. */
WHARF_DEVICE verdict lz_decode(lz::shared &s, const chunk_job &job)
{
    return lz::decode<lz_format>(s, job);
}

} // namespace blosc
} // namespace wharf

#endif
