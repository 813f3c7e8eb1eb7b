/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_exact.cuh: the exact path of rle2 (encoders/rle2/rle2_format.h), one run at a time, the same
 * in all lanes.
 *
 * It makes every check of the format, in its order, and alone reports errors.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_EXACT_CUH
#define WHARF_KERNELS_RLE2_RLE2_EXACT_CUH

#include "encoders/rle2/rle2_format.h"
#include "kernels/rle_device.cuh"

namespace wharf
{
namespace rle2
{

/* One lane.  wharf_rle2_width and wharf_rle2_width_code (rle2_format.h) for the device. */
WHARF_DEVICE uint32_t width_of(uint32_t code)
{
    return code < 24 ? code + 1 : code < 28 ? 2 * code - 22 : 8 * code - 184;
}

WHARF_DEVICE uint32_t widened(uint32_t nbits)
{
    return nbits <= 24 ? nbits : nbits <= 32 ? (nbits + 1) & ~1u : (nbits + 7) & ~7u;
}

WHARF_DEVICE uint32_t packed_nbytes(uint32_t n, uint32_t width)
{
    return (n * width + 7) / 8;
}

/* Converts sign and magnitude, of nbits bits in all, to two's complement. */
WHARF_DEVICE uint64_t of_sign_and_size(uint64_t v, uint32_t nbits)
{
    uint64_t sign = (uint64_t)1 << (nbits - 1);
    return v & sign ? 0 - (v ^ sign) : v;
}

/* Takes packed numbers one after the other.  They begin at the highest bit of a byte. */
template <typename Input>
struct unpacker {
    uint32_t rest;   /* its lower n_rest bits come next */
    uint32_t n_rest; /* 0 to 7 */

    WHARF_DEVICE_MEMBER void init() { rest = n_rest = 0; }

    /* collective.  The next number, of 1 to 64 bits, which must be in the input. */
    WHARF_DEVICE_MEMBER uint64_t next(Input &in, uint32_t nbits)
    {
        uint64_t v = 0;
        while (nbits > 0) {
            if (n_rest == 0) {
                rest = in.fetch_bits(8);
                n_rest = 8;
            }
            uint32_t n = nbits < n_rest ? nbits : n_rest;
            v = v << n | low_bits(rest >> (n_rest - n), n);
            n_rest -= n;
            nbits -= n;
        }
        return v;
    }
};

/* collective.  Takes nbytes of the input, 1 to 8, as one big-endian number.  They must be there. */
template <typename Input>
WHARF_DEVICE uint64_t fetch_number(Input &in, uint32_t nbytes)
{
    unpacker<Input> bytes;
    bytes.init();
    return bytes.next(in, 8 * nbytes);
}

template <typename T, typename Input>
WHARF_DEVICE uint32_t take_short_repeat(Input &in, output_stream &out, uint32_t head,
                                        bool is_signed)
{
    uint32_t nbytes = (head >> 3 & 7) + 1;
    uint32_t n = (head & 7) + WHARF_RLE2_REPEAT_MIN;
    if (in.bits_left() < 8 * nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t u = fetch_number(in, nbytes);
    if (n > rle::room_of<T>(out))
        return WHARF_REASON_OUTPUT_FULL;
    if (rle::exceeds<T>(u))
        return WHARF_REASON_RLE_VALUE;
    out.write_run<T>((T)rle::value_of(u, is_signed), 0, n);
    return WHARF_REASON_NONE;
}

/* collective.  Writes n values: value(number, i) of packed numbers, which must be in the input.
 * `excess` is the or of earlier values' excesses.  Returns a reason. */
template <typename T, typename Input, typename Value>
WHARF_DEVICE uint32_t put_packed(Input &in, output_stream &out, uint32_t n, uint32_t width,
                                 bool is_signed, step_counter &steps, uint64_t excess, Value value)
{
    unpacker<Input> numbers;
    numbers.init();
    for (uint32_t i = 0; i < n; i++) {
        /* A number takes at least one bit of input. */
        if (!steps.take(1))
            return WHARF_REASON_STEP_BUDGET;
        uint64_t v = value(numbers.next(in, width), i);
        excess |= rle::excess_of<T>(v, is_signed);
        rle::put_value<T>(out, v);
    }
    return rle::exceeds<T>(excess) ? WHARF_REASON_RLE_VALUE : WHARF_REASON_NONE;
}

template <typename T, typename Input>
WHARF_DEVICE uint32_t take_direct(Input &in, output_stream &out, uint32_t width, uint32_t n,
                                  bool is_signed, step_counter &steps)
{
    if (in.bits_left() < 8 * packed_nbytes(n, width))
        return WHARF_REASON_INPUT_TRUNCATED;
    if (n > rle::room_of<T>(out))
        return WHARF_REASON_OUTPUT_FULL;
    return put_packed<T>(in, out, n, width, is_signed, steps, 0,
                         [=](uint64_t u, uint32_t) { return rle::value_of(u, is_signed); });
}

/* Lane i holds patch i of a run, if the run has one. */
struct patch {
    uint32_t at;   /* index of the value to patch; 0xffffffff: no patch */
    uint64_t bits; /* shifted to their place in the value */
};

/* collective.  Reads n patches at the input's position, for n_values values of `width` bits.
 * Returns whether they are good. */
template <typename Input>
WHARF_DEVICE bool take_patches(Input &in, patch &mine, uint32_t n, uint32_t gap_width,
                               uint32_t patch_width, uint32_t n_values, uint32_t width)
{
    uint32_t entry_width = widened(gap_width + patch_width);
    unpacker<Input> entries;
    uint32_t at = 0;
    mine = {0xffffffff, 0};
    entries.init();
    for (uint32_t i = 0; i < n; i++) {
        uint64_t entry = entries.next(in, entry_width);
        /* A gap has at least one bit, so a patch has at most 63, and the shift is defined. */
        uint32_t gap = low_bits((uint32_t)(entry >> patch_width), gap_width);
        at += gap;
        if (at >= n_values || (gap == 0 && i > 0))
            return false;
        if (lane_id() == i) {
            mine.at = at;
            mine.bits = width < 64 ? (entry & (((uint64_t)1 << patch_width) - 1)) << width : 0;
        }
    }
    return true;
}

template <typename T, typename Input>
WHARF_DEVICE uint32_t take_patched_base(Input &in, output_stream &out, uint32_t width, uint32_t n,
                                        bool is_signed, step_counter &steps)
{
    if (in.bits_left() < 16)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t head = (uint32_t)fetch_number(in, 2);
    uint32_t base_nbytes = (head >> 13) + 1;
    uint32_t patch_width = width_of(head >> 8 & 31);
    uint32_t gap_width = (head >> 5 & 7) + 1;
    uint32_t n_patches = head & 31;
    if (in.bits_left() < 8 * base_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (n_patches == 0 || gap_width + patch_width > 64)
        return WHARF_REASON_RLE_PATCHES;
    uint64_t base = of_sign_and_size(fetch_number(in, base_nbytes), 8 * base_nbytes);
    uint32_t offsets = in.bit_position();
    uint32_t offsets_nbytes = packed_nbytes(n, width);
    uint32_t list_nbytes = packed_nbytes(n_patches, widened(gap_width + patch_width));
    if (in.bits_left() < 8 * (offsets_nbytes + list_nbytes))
        return WHARF_REASON_INPUT_TRUNCATED;
    patch mine;
    in.seek(offsets + 8 * offsets_nbytes);
    if (!take_patches(in, mine, n_patches, gap_width, patch_width, n, width))
        return WHARF_REASON_RLE_PATCHES;
    if (n > rle::room_of<T>(out))
        return WHARF_REASON_OUTPUT_FULL;
    in.seek(offsets);
    uint32_t reason =
        put_packed<T>(in, out, n, width, is_signed, steps, 0, [=](uint64_t u, uint32_t i) {
            uint32_t patched = ballot(mine.at == i);
            if (patched)
                u |= shfl(mine.bits, ffs(patched) - 1);
            return base + u;
        });
    in.seek(offsets + 8 * (offsets_nbytes + list_nbytes));
    return reason;
}

/* collective.  Writes n values that differ by `delta`, for which there is room.  Checks each value,
 * since those between the first and the last may have wrapped past 2^64. */
template <typename T>
WHARF_DEVICE uint32_t put_evenly(output_stream &out, uint64_t base, uint64_t delta, uint32_t n,
                                 bool is_signed)
{
    uint64_t excess = 0;
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
        excess |= rle::excess_of<T>(base + i * delta, is_signed);
    if (any_lane(rle::exceeds<T>(excess)))
        return WHARF_REASON_RLE_VALUE;
    out.write_run<T>((T)base, (T)delta, n);
    return WHARF_REASON_NONE;
}

template <typename T, typename Input>
WHARF_DEVICE uint32_t take_delta(Input &in, output_stream &out, uint32_t code, uint32_t n,
                                 bool is_signed, step_counter &steps)
{
    uint64_t u;
    uint32_t reason = rle::fetch_varint(in, u);
    if (reason != WHARF_REASON_NONE)
        return reason;
    uint64_t base = rle::value_of(u, is_signed);
    reason = rle::fetch_varint(in, u);
    if (reason != WHARF_REASON_NONE)
        return reason;
    uint64_t delta = rle::unzigzag(u);
    uint32_t width = width_of(code);
    bool is_even = code == 0 || n <= 2;
    if (!is_even && in.bits_left() < 8 * packed_nbytes(n - 2, width))
        return WHARF_REASON_INPUT_TRUNCATED;
    if (n > rle::room_of<T>(out))
        return WHARF_REASON_OUTPUT_FULL;
    if (is_even)
        return put_evenly<T>(out, base, delta, n, is_signed);
    uint64_t v = base + delta;
    bool is_down = (int64_t)delta < 0;
    rle::put_value<T>(out, base);
    rle::put_value<T>(out, v);
    return put_packed<T>(
        in, out, n - 2, width, is_signed, steps,
        rle::excess_of<T>(base, is_signed) | rle::excess_of<T>(v, is_signed),
        [=](uint64_t step, uint32_t) mutable { return v += is_down ? 0 - step : step; });
}

/* collective.  Decodes a run whose first byte is in the input.  Returns a reason. */
template <typename T, typename Input>
WHARF_DEVICE uint32_t take_run(Input &in, output_stream &out, bool is_signed, step_counter &steps)
{
    if (!steps.take(8))
        return WHARF_REASON_STEP_BUDGET;
    uint32_t head = in.fetch_bits(8);
    if (head >> 6 == WHARF_RLE2_SHORT_REPEAT)
        return take_short_repeat<T>(in, out, head, is_signed);
    if (in.bits_left() < 8)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t code = head >> 1 & 31;
    uint32_t n = ((head & 1) << 8 | in.fetch_bits(8)) + 1;
    if (head >> 6 == WHARF_RLE2_DIRECT)
        return take_direct<T>(in, out, width_of(code), n, is_signed, steps);
    if (head >> 6 == WHARF_RLE2_PATCHED_BASE)
        return take_patched_base<T>(in, out, width_of(code), n, is_signed, steps);
    return take_delta<T>(in, out, code, n, is_signed, steps);
}

/* The decoder for rle_device.cuh's serial loop. */
template <typename T>
struct serial_decoder {
    template <typename Input>
    static WHARF_DEVICE_MEMBER uint32_t take(Input &in, output_stream &out, bool is_signed,
                                             step_counter &steps)
    {
        return take_run<T>(in, out, is_signed, steps);
    }
};

} // namespace rle2
} // namespace wharf

#endif
