/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_copy.cuh: one match of up to 258 bytes copied by the whole warp, 8 bytes a lane, in a
 * single go.
 */
#ifndef WHARF_KERNELS_DEFLATE_COPY_CUH
#define WHARF_KERNELS_DEFLATE_COPY_CUH

#include "kernels/warp.cuh"

namespace wharf
{
namespace flate
{

/* How a destination is cut: `head` bytes up to a multiple of 8, n_words words of 8, the rest. */
struct cut {
    uint32_t head;
    uint32_t n_words;
    uint32_t tail; /* where the rest begins */
    /* This lane's byte of head (lanes 0 to 7) or rest (8 to 15), if it has one: byte < length */
    uint32_t byte;

    WHARF_DEVICE_MEMBER void init(const uint8_t *to, uint32_t length)
    {
        uint32_t lane = lane_id();
        head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 7;
        head = head < length ? head : length;
        n_words = (length - head) / 8;
        tail = head + 8 * n_words;
        byte = lane < 8 ? (lane < head ? lane : length) : (lane < 16 ? tail + lane - 8 : length);
    }
};

/* One lane.  8 bytes from any address; those of aligned words from `first` on may be read. */
WHARF_DEVICE uint64_t load_8(const uint8_t *from, const uint8_t *first)
{
    unsigned skew = reinterpret_cast<uintptr_t>(from) & 7;
    const uint64_t *w = reinterpret_cast<const uint64_t *>(from - skew);
    if (skew == 0)
        return load(w);
    if (from - skew >= first)
        return load(w) >> 8 * skew | load(w + 1) << (64 - 8 * skew);
    uint64_t v = 0;
    for (unsigned k = 0; k < 8; k++)
        v |= (uint64_t)load(from + k) << 8 * k;
    return v;
}

/* collective.  The source ends at or before `to`, so aligned words of it end before to + 8. */
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
    if (c.byte < length)
        b = load(from + c.byte);
    if (lane < c.n_words)
        store(reinterpret_cast<uint64_t *>(to + c.head) + lane, v);
    if (c.byte < length)
        store(to + c.byte, b);
}

/* collective.  A distance of 1, 2, 4 or 8: all words are the same. */
WHARF_DEVICE void fill_words(uint8_t *to, uint32_t distance, uint32_t length)
{
    uint32_t lane = lane_id();
    cut c;
    c.init(to, length);
    /* Lane i, up to 7, has byte i of the pattern that begins at `to`. */
    uint32_t b = load(to - distance + (lane & (distance - 1)));
    uint32_t lo = reduce_or(lane < 4 ? b << 8 * lane : 0);
    uint32_t hi = reduce_or(lane >= 4 && lane < 8 ? b << 8 * (lane - 4) : 0);
    uint64_t v = (uint64_t)hi << 32 | lo;
    unsigned turn = 8 * c.head; /* the words' first byte is byte `head` of the pattern */
    uint64_t word = turn ? v >> turn | v << (64 - turn) : v;
    if (lane < c.n_words)
        store(reinterpret_cast<uint64_t *>(to + c.head) + lane, word);
    if (c.byte < length)
        store(to + c.byte, (uint8_t)(v >> 8 * (c.byte & 7)));
}

/* collective.  Any distance less than the length. */
WHARF_DEVICE void repeat_bytes(uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    uint32_t i = lane_id() % distance;
    uint32_t step = 32 % distance;
    for (uint32_t o = lane_id(); o < length; o += 32) {
        store(to + o, load(from + i));
        i += step;
        i -= i >= distance ? distance : 0;
    }
}

/*
 * collective, the same arguments in all lanes.  Copies a match of up to 258 bytes to out[at],
 * which must fit; distance is 1 to `at`.  What it reads must be there (syncwarp).
 */
WHARF_DEVICE void copy_long(uint8_t *out, uint32_t at, uint32_t distance, uint32_t length)
{
    if (distance >= length)
        copy_apart(out, out + at, distance, length);
    else if (distance <= 8 && (distance & (distance - 1)) == 0)
        fill_words(out + at, distance, length);
    else
        repeat_bytes(out + at, distance, length);
}

} // namespace flate
} // namespace wharf

#endif
