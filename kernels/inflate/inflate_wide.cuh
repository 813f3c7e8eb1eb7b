/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_wide.cuh: output of which the 32 KiB before it are not known, as units of 16 bits; the
 * counterpart of encoders/inflate_parallel/inflate_markers.h.
 *
 * A unit below 256 is a byte.  Unit MARKER + i is a marker for byte i of the unknown window, oldest
 * first.  Matches copy units as they copy bytes.  The units lie in a ring, of which the last window
 * counts: positions are taken modulo its size.  It is twice the window, so that what a batch of
 * tokens writes never meets what it reads.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_WIDE_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_WIDE_CUH

#include "kernels/deflate/deflate_decode.cuh"
#include "kernels/inflate_parts.h"

namespace wharf
{
namespace flate
{

/* As `tuning`. */
struct wide_tuning : tuning {
    using unit = uint16_t;
    static constexpr unsigned ROUNDS = 4;
};

constexpr uint32_t MARKER = 0x8000;
constexpr uint32_t WINDOW_NUNITS = WHARF_INFLATE_WINDOW_NUNITS;
constexpr uint32_t RING_NUNITS = WHARF_INFLATE_RING_NUNITS;
static_assert(WINDOW_NUNITS == WHARF_DEFLATE_WINDOW_NBYTES && MARKER + WINDOW_NUNITS <= 1 << 16);
static_assert(RING_NUNITS >= WINDOW_NUNITS + 32 * WHARF_DEFLATE_MAX_MATCH);

/* The counterpart of plain_output. */
struct wide_output {
    uint16_t *ring;

    WHARF_DEVICE_MEMBER uint16_t *at(uint32_t position) const
    {
        return ring + (position & (RING_NUNITS - 1));
    }
    WHARF_DEVICE_MEMBER uint32_t take(uint32_t position, bool) const { return load(at(position)); }

    struct places {
        uint16_t *ring;
        uint32_t begin;
        WHARF_DEVICE_MEMBER void put(uint32_t i, uint32_t v) const
        {
            store(ring + ((begin + i) & (RING_NUNITS - 1)), (uint16_t)v);
        }
    };
    WHARF_DEVICE_MEMBER places from(uint32_t begin, uint32_t lane) const
    {
        return {ring, begin + lane};
    }
};

/* The stream's `out` is the ring. */
WHARF_DEVICE wide_output wide_of(const output_stream &out)
{
    return {reinterpret_cast<uint16_t *>(out.out)};
}

/* collective.  A ring in which the window is unknown, with output from the position behind it. */
WHARF_DEVICE void begin_wide(output_stream &out, uint16_t *ring)
{
    out.init(reinterpret_cast<uint8_t *>(ring), UINT32_MAX);
    out.position = WINDOW_NUNITS;
    uint32_t *pairs = reinterpret_cast<uint32_t *>(ring);
    for (uint32_t i = lane_id(); i < WINDOW_NUNITS / 2; i += 32)
        store(pairs + i, (MARKER + 2 * i) | (MARKER + 2 * i + 1) << 16);
    syncwarp();
}

/* collective.  The last window of output, to `tail`. */
WHARF_DEVICE void end_wide(const output_stream &out, uint16_t *tail)
{
    wide_output wide = wide_of(out);
    uint32_t *pairs = reinterpret_cast<uint32_t *>(tail);
    uint32_t begin = out.position - WINDOW_NUNITS;
    syncwarp();
    WHARF_UNROLL_BY(8)
    for (uint32_t i = lane_id(); i < WINDOW_NUNITS / 2; i += 32)
        store(pairs + i, load(wide.at(begin + 2 * i)) | (uint32_t)load(wide.at(begin + 2 * i + 1))
                                                            << 16);
    syncwarp();
}

/* collective.  A match that overlaps itself. */
WHARF_DEVICE void repeat_units(const wide_output &wide, uint32_t to, uint32_t distance,
                               uint32_t length)
{
    uint32_t i = lane_id() % distance;
    uint32_t step = 32 % distance;
    for (uint32_t o = lane_id(); o < length; o += 32) {
        store(wide.at(to + o), load(wide.at(to - distance + i)));
        i += step;
        i -= i >= distance ? distance : 0;
    }
}

/* collective.  As the function for bytes (deflate_write.cuh), but that there is always room, and no
 * distance reaches too far. */
template <typename P>
WHARF_DEVICE bool write_batch(const shared_ref<shared<P>> &, output_stream &out,
                              const uint32_t *tokens, uint32_t &n, uint16_t)
{
    wide_output wide = wide_of(out);
    bool mine = lane_id() < n;
    uint32_t word = mine ? load(&tokens[lane_id()]) : 0;
    batch_token token;
    token.length = mine ? token_length(word) : 0;
    token.value = (int32_t)word >> 9;
    token.begin = inclusive_add(token.length) - token.length;
    uint32_t total = reduce_add(token.length);
    uint32_t distance = (uint32_t)token.value + 1;
    bool overlaps = (distance < token.length) & (token.length >= P::LONG_OVERLAP);
    uint32_t alone = ballot((token.length > 1) & overlaps);
    uint32_t range = token.begin | token.length << 14;
    uint32_t first = 0, begin = 0;
    for (;;) {
        unsigned lane = alone ? first_lane(alone) : 32;
        uint32_t r = alone ? reduce_or(lane_id() == lane ? range : 0) : total;
        uint32_t end = r & 0x3fff;
        for (uint32_t i = first; begin < end; begin += 32 * P::ROUNDS) {
            write_span<P::ROUNDS>(wide, out.position, token, begin, end - begin, i);
            syncwarp();
        }
        if (!alone)
            break;
        uint32_t back = reduce_or(lane_id() == lane ? (uint32_t)token.value : 0) + 1;
        repeat_units(wide, out.position + end, back, r >> 14);
        syncwarp();
        alone &= alone - 1;
        first = lane + 1;
        begin = end + (r >> 14);
        if (first == 32)
            break;
    }
    out.position += total;
    return true;
}

/* collective.  The bytes of a stored block; a reason. */
WHARF_DEVICE uint32_t copy_stored_wide(state<wide_tuning> &st, uint32_t nbytes)
{
    wide_output wide = wide_of(st.out);
    uint32_t at = st.at / 8;
    if (nbytes > st.source.end - at)
        return WHARF_REASON_INPUT_TRUNCATED;
    /* Bytes that others in the same block replace in the ring are not written. */
    uint32_t first = nbytes > WINDOW_NUNITS ? nbytes - WINDOW_NUNITS : 0;
    syncwarp();
    WHARF_UNROLL_BY(4)
    for (uint32_t i = first + lane_id(); i < nbytes; i += 32)
        store(wide.at(st.out.position + i), (uint16_t)load_nc(st.source.aligned + at + i));
    syncwarp();
    st.at += 8 * nbytes;
    st.out.position += nbytes;
    return WHARF_REASON_NONE;
}

} // namespace flate
} // namespace wharf

#endif
