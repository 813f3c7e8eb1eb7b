/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_copy.cuh: one long match copied by the whole warp, 8 bytes a lane.
 */
#ifndef WHARF_KERNELS_LZ_COPY_CUH
#define WHARF_KERNELS_LZ_COPY_CUH

#include "kernels/warp.cuh"

namespace wharf
{
namespace lz
{

/* How a destination of 8 bytes or more is cut: `head` bytes up to a multiple of 8, n_words words
 * of 8, the rest. */
struct cut {
    uint32_t head;
    uint32_t n_words;
    /* This lane's byte of head (lanes 0 to 7) or rest (8 to 15), if it has one. */
    bool has_byte;
    uint32_t byte;

    WHARF_DEVICE_MEMBER void init(const uint8_t *to, uint32_t length)
    {
        uint32_t lane = lane_id();
        head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 7;
        n_words = (length - head) / 8;
        byte = lane < 8 ? lane : head + 8 * n_words + lane - 8;
        has_byte = (lane < 16) & (byte < (lane < 8 ? head : length));
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

/* collective.  8 bytes or more.  The source ends at or before `to`, so aligned words of it end
 * before to + 8. */
WHARF_DEVICE void copy_apart(const uint8_t *first, uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    cut c;
    c.init(to, length);
    if (c.has_byte)
        store(to + c.byte, load(from + c.byte));
    for (uint32_t i = lane_id(); i < c.n_words; i += 32)
        store(reinterpret_cast<uint64_t *>(to + c.head) + i, load_8(from + c.head + 8 * i, first));
}

/* collective.  A distance of 1, 2, 4 or 8, which the eight bytes before `to` repeat: all words are
 * the same. */
WHARF_DEVICE void fill_words(const uint8_t *first, uint8_t *to, uint32_t distance, uint32_t length)
{
    cut c;
    c.init(to, length);
    uint64_t v = load_8(to - 8, first);
    uint32_t lo = (uint32_t)v, hi = (uint32_t)(v >> 32);
    if (distance < 4)
        hi = distance == 1 ? (hi >> 24) * 0x01010101u : (hi >> 16) * 0x00010001u;
    lo = distance == 8 ? lo : hi;
    v = (uint64_t)hi << 32 | lo;
    /* Whose first byte is byte `head` of the pattern. */
    uint64_t word = c.head ? v >> 8 * c.head | v << (64 - 8 * c.head) : v;
    if (c.has_byte)
        store(to + c.byte, (uint8_t)(v >> 8 * (c.byte & 7)));
    for (uint32_t i = lane_id(); i < c.n_words; i += 32)
        store(reinterpret_cast<uint64_t *>(to + c.head) + i, word);
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

/* What a match must be for copy_long(). */
constexpr uint32_t MIN_COPY_POSITION = 8;
constexpr uint32_t MIN_COPY_LENGTH = 8;

/*
 * collective, the same arguments in all lanes.  Copies a match of MIN_COPY_LENGTH or more to
 * out[at], where it must fit; distance is 1 to `at`, and that MIN_COPY_POSITION or more.  What it
 * reads must be there (syncwarp).
 */
WHARF_DEVICE void copy_long(uint8_t *out, uint32_t at, uint32_t distance, uint32_t length)
{
    if (distance >= length) {
        copy_apart(out, out + at, distance, length);
    } else if (distance <= 8 && (distance & (distance - 1)) == 0) {
        fill_words(out, out + at, distance, length);
    } else if (distance < MIN_COPY_LENGTH || length - distance < 64) {
        repeat_bytes(out + at, distance, length);
    } else {
        /* What is there is the period, then two of them, and so on. */
        uint32_t done = 0, n = distance;
        for (; length - done > n; n *= 2) {
            copy_apart(out, out + at + done, n, n);
            syncwarp();
            done += n;
        }
        if (length - done < MIN_COPY_LENGTH)
            repeat_bytes(out + at + done, n, length - done);
        else
            copy_apart(out, out + at + done, n, length - done);
    }
}

} // namespace lz
} // namespace wharf

#endif
