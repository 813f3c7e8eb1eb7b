/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match_copy.cuh: what copies of one match by the whole warp, 8 bytes a lane, are made of.
 */
#ifndef WHARF_KERNELS_MATCH_COPY_CUH
#define WHARF_KERNELS_MATCH_COPY_CUH

#include "kernels/warp.cuh"

namespace wharf
{

/* Matches before it are not copied by words, which takes a look at the eight bytes before them. */
constexpr uint32_t MIN_COPY_POSITION = 8;

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

/* One lane.  8 bytes from any address; those of aligned words from `first` on may be read, and
 * others may be storing those of them that are not wanted. */
WHARF_DEVICE uint64_t load_8(const uint8_t *from, const uint8_t *first)
{
    unsigned skew = reinterpret_cast<uintptr_t>(from) & 7;
    const uint64_t *w = reinterpret_cast<const uint64_t *>(from - skew);
    if (skew == 0)
        return load(w);
    if (from - skew >= first)
        return load_part(w, skew, 8 - skew) >> 8 * skew | load_part(w + 1, 0, skew)
                                                              << (64 - 8 * skew);
    uint64_t v = 0;
    for (unsigned k = 0; k < 8; k++)
        v |= (uint64_t)load(from + k) << 8 * k;
    return v;
}

/* The last `distance` of eight bytes, 1, 2, 4 or 8, over and over. */
WHARF_DEVICE uint64_t repeated(uint64_t bytes, uint32_t distance)
{
    uint32_t lo = (uint32_t)bytes, hi = (uint32_t)(bytes >> 32);
    if (distance < 4)
        hi = distance == 1 ? (hi >> 24) * 0x01010101u : (hi >> 16) * 0x00010001u;
    return (uint64_t)hi << 32 | (distance == 8 ? lo : hi);
}

/* Byte n of v after v after v ... */
WHARF_DEVICE uint8_t byte_of(uint64_t v, uint32_t n)
{
    return (uint8_t)byte_perm((uint32_t)v, (uint32_t)(v >> 32), n & 7);
}

/* Bytes n to n + 7 of v after v; n & 7 counts. */
WHARF_DEVICE uint64_t rotate_right(uint64_t v, uint32_t n)
{
    uint32_t choice = (0x3210 + 0x1111 * (n & 7)) & 0x7777;
    uint32_t lo = byte_perm((uint32_t)v, (uint32_t)(v >> 32), choice);
    uint32_t hi = byte_perm((uint32_t)v, (uint32_t)(v >> 32), choice ^ 0x4444);
    return (uint64_t)hi << 32 | lo;
}

/* One lane.  The last eight bytes of output by their addresses: byte r is the last one whose
 * address is r modulo 8.  `to` is 16 bytes or more behind the output's first, and 8 bytes from
 * there on fit. */
WHARF_DEVICE uint64_t load_cycle(const uint8_t *to)
{
    unsigned skew = reinterpret_cast<uintptr_t>(to) & 7;
    const uint64_t *word = reinterpret_cast<const uint64_t *>(to - skew);
    uint64_t low = ((uint64_t)1 << 8 * skew) - 1;
    uint64_t last = load_part(skew ? word : word - 1, 0, skew);
    return (last & low) | (load_part(word - 1, skew, 8 - skew) & ~low);
}
constexpr uint32_t MIN_CYCLE_POSITION = 16;

/*
 * Where all matches are at distance 8, as in columns of 8-byte values, each byte is the last
 * literal at an address of the same residue modulo 8.  So aligned words of output are a state that
 * literals change and matches do not.
 */

/* Bytes by the residues of their addresses: those that `mask` has are in `bytes`. */
struct cycle_state {
    uint64_t bytes, mask;
};

/* collective.  The state after each lane's literals, `own`, of those of all lanes up to it. */
WHARF_DEVICE cycle_state scan_cycle(cycle_state own)
{
    WHARF_UNROLL
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        /* A lane without another below gets its own, which changes nothing. */
        uint64_t below = shfl_up(own.bytes, delta), below_mask = shfl_up(own.mask, delta);
        own.bytes |= below & ~own.mask;
        own.mask |= below_mask;
    }
    return own;
}

/* collective.  The last lane whose `begins`, which do not fall from lane to lane, is at most i;
 * lane 0 if there is none. */
WHARF_DEVICE unsigned find_cycle(uint32_t begins, uint32_t i)
{
    unsigned finder = 0;
    WHARF_UNROLL
    for (unsigned step = 16; step; step /= 2)
        if (shfl(begins, finder + step) <= i)
            finder += step;
    return finder;
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

} // namespace wharf

#endif
