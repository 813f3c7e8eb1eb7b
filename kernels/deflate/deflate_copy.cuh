/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_copy.cuh: the whole warp copies one match of up to 258 bytes in one pass, 8 bytes a lane.
 */
#ifndef WHARF_KERNELS_DEFLATE_COPY_CUH
#define WHARF_KERNELS_DEFLATE_COPY_CUH

#include "kernels/match_copy.cuh"

namespace wharf
{
namespace flate
{

/*
 * The eight bytes before the output's position, the same in all lanes: the pattern of a run.  They
 * stay in registers from one copy to the next, or another place of the same bytes is remembered:
 * loading bytes that were just stored costs a round trip to the second-level cache.
 */
struct last_bytes {
    uint64_t bytes; /* if known; the first in the low bits */
    uint32_t place; /* where else they are, as an offset into the output */
    bool known;

    /* `position` is MIN_COPY_POSITION or more, or is not used afterwards. */
    WHARF_DEVICE_MEMBER void init(uint32_t position)
    {
        bytes = 0;
        place = position - 8;
        known = false;
    }

    WHARF_DEVICE_MEMBER void fetch(const uint8_t *out)
    {
        if (!known)
            bytes = load_8(out + place, out);
        known = true;
    }

    /* collective.  Records that literals were written before `position`: those of lanes first to
     * end - 1, in the low eight bits of `value`. */
    WHARF_DEVICE_MEMBER void append_literals(const uint8_t *out, uint32_t value, uint32_t first,
                                             uint32_t end, uint32_t position)
    {
        uint32_t n = end - first;
        if (n == 0)
            return;
        if (position - n < MIN_COPY_POSITION) { /* there are no eight before the literals */
            init(position);
            return;
        }
        fetch(out);
        uint32_t nth = lane_id() + 8 - end; /* 0 to 7 for the last eight */
        bool mine = lane_id() >= first && nth < 8;
        uint32_t part = (value & 0xff) << (8 * (nth & 3));
        uint32_t lo = reduce_or(mine && nth < 4 ? part : 0);
        uint32_t hi = reduce_or(mine && nth >= 4 ? part : 0);
        bytes = (n < 8 ? bytes >> 8 * n : 0) | (uint64_t)hi << 32 | lo;
    }
};

/* collective.  The source ends at or before `to`, so its aligned words end before to + 8. */
WHARF_DEVICE void copy_apart(const uint8_t *first, uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    uint32_t lane = lane_id();
    cut c;
    c.init(to, length);
    uint64_t v = 0;
    uint8_t b = 0;
    if (lane < c.n_words)
        v = load_8(from + c.head + 8 * lane, first);
    if (c.has_byte)
        b = load(from + c.byte);
    if (lane < c.n_words)
        store(reinterpret_cast<uint64_t *>(to + c.head) + lane, v);
    if (c.has_byte)
        store(to + c.byte, b);
}

/* collective.  A distance of 1, 2, 4 or 8: all words are the same. */
WHARF_DEVICE void fill_words(const uint8_t *out, uint8_t *to, uint32_t distance, uint32_t length,
                             last_bytes &tail)
{
    uint32_t lane = lane_id();
    cut c;
    c.init(to, length);
    tail.fetch(out);
    uint64_t v = repeated(tail.bytes, distance);
    uint64_t word = rotate_right(v, c.head); /* whose first byte is byte `head` of the pattern */
    if (lane < c.n_words)
        store(reinterpret_cast<uint64_t *>(to + c.head) + lane, word);
    if (c.has_byte)
        store(to + c.byte, byte_of(v, c.byte));
    tail.bytes = rotate_right(v, length);
}

/*
 * collective, the same arguments in all lanes.  Copies a match of 8 to 258 bytes to out[at].  It
 * must fit, `at` must be at least MIN_COPY_POSITION, and distance is 1 to `at`.  The bytes that it
 * reads must be visible (syncwarp).
 */
WHARF_DEVICE void copy_long(uint8_t *out, uint32_t at, uint32_t distance, uint32_t length,
                            last_bytes &tail)
{
    if (distance >= length) {
        copy_apart(out, out + at, distance, length);
        tail.init(at - distance + length);
    } else if (distance <= 8 && (distance & (distance - 1)) == 0) {
        fill_words(out, out + at, distance, length, tail);
    } else {
        repeat_bytes(out + at, distance, length);
        tail.init(at + length);
    }
}

} // namespace flate
} // namespace wharf

#endif
