/* SPDX-License-Identifier: Apache-2.0 */
/* rle2_numbers.cuh: random access to big-endian numbers of the input, each lane at its own. */
#ifndef WHARF_KERNELS_RLE2_RLE2_NUMBERS_CUH
#define WHARF_KERNELS_RLE2_RLE2_NUMBERS_CUH

#include "kernels/rle2/rle2_exact.cuh"

namespace wharf
{
namespace rle2
{

/* The input.  Byte offsets count from its first byte. */
struct number_source {
    input_source source;

    WHARF_DEVICE_MEMBER uint32_t nbytes() const { return source.end - source.begin; }

    /* Whether all words that number() may load for bytes `at` to `end` - 1 are within the input. */
    WHARF_DEVICE_MEMBER bool is_inside(uint32_t at, uint32_t end) const
    {
        return at >= 4 && end + 12 <= nbytes();
    }

    /* One lane.  Word i of the source.  Without CHECKED, the caller has made sure by is_inside. */
    template <bool CHECKED>
    WHARF_DEVICE_MEMBER uint32_t word(uint32_t i) const
    {
        return CHECKED ? source.load_word(i)
                       : load_nc(reinterpret_cast<const uint32_t *>(source.aligned) + i);
    }

    /* One lane.  The four bytes at `at`, big-endian; 0 past the end. */
    template <bool CHECKED>
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t at) const
    {
        uint32_t p = source.begin + at;
        uint32_t v = funnel_right(word<CHECKED>(p >> 2), word<CHECKED>((p >> 2) + 1), 8 * (p & 3));
        return byte_perm(v, 0, 0x0123);
    }

    /* One lane.  The eight bytes at `at`, likewise. */
    template <bool CHECKED>
    WHARF_DEVICE_MEMBER uint64_t peek_64(uint32_t at) const
    {
        uint32_t p = source.begin + at;
        uint32_t middle = word<CHECKED>((p >> 2) + 1);
        uint32_t hi = funnel_right(word<CHECKED>(p >> 2), middle, 8 * (p & 3));
        uint32_t lo = funnel_right(middle, word<CHECKED>((p >> 2) + 2), 8 * (p & 3));
        return (uint64_t)byte_perm(hi, 0, 0x0123) << 32 | byte_perm(lo, 0, 0x0123);
    }

    /*
     * One lane.  The number of `width` bits at `bit`.  For the widths that rle2 has, a number is
     * within the eight bytes from the byte where it begins, and one of up to 24 bits within four.
     */
    template <bool CHECKED>
    WHARF_DEVICE_MEMBER uint64_t number(uint32_t bit, uint32_t width) const
    {
        if (width <= 24)
            return peek_32<CHECKED>(bit >> 3) << (bit & 7) >> (32 - width);
        return peek_64<CHECKED>(bit >> 3) << (bit & 7) >> (64 - width);
    }

    /* One lane.  Reads a varint at `at` and moves `at` past it.  False if it has more than 64 bits
     * or is cut off. */
    WHARF_DEVICE_MEMBER bool take_varint(uint32_t &at, uint64_t &u) const
    {
        const uint8_t *in = source.aligned + source.begin;
        u = 0;
        for (uint32_t shift = 0; at < nbytes(); shift += 7) {
            uint32_t byte = load_nc(in + at++);
            if (shift == 63 && byte > 1)
                return false;
            u |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80)
                return true;
        }
        return false;
    }
};

/* collective.  The sum of v over this lane and all lanes below it, modulo 2^64. */
WHARF_DEVICE uint64_t inclusive_add_64(uint64_t v)
{
    for (unsigned delta = 1; delta < WARP_LANES; delta *= 2) {
        uint64_t below = shfl_up(v, delta);
        v += lane_id() >= delta ? below : 0;
    }
    return v;
}

} // namespace rle2
} // namespace wharf

#endif
