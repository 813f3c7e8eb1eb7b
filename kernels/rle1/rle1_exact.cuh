/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_exact.cuh: the exact path of rle1 (encoders/rle1/rle1_format.h), one group at a time, the
 * same in all lanes.
 *
 * It makes every check of the format, in its order, and alone reports errors.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_EXACT_CUH
#define WHARF_KERNELS_RLE1_RLE1_EXACT_CUH

#include "kernels/rle_device.cuh"

namespace wharf
{
namespace rle1
{

constexpr uint32_t RUN_MIN = 3;

/* The cost of a byte in the step budget: a control byte or a literal takes at least eight bits of
 * input. */
constexpr uint32_t BYTE_STEPS = 8;

/* collective.  Decodes the rest of a run, after its control byte.  It has n values. */
template <typename T, typename Input>
WHARF_DEVICE uint32_t take_run(Input &in, output_stream &out, uint32_t n, bool is_signed)
{
    uint64_t u;
    if (in.bits_left() < 8)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t delta = (uint64_t)(int64_t)(int8_t)in.fetch_bits(8);
    uint32_t reason = rle::fetch_varint(in, u);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (n > rle::room_of<T>(out))
        return WHARF_REASON_OUTPUT_FULL;
    /* Only the first and the last value need a check, since values change in one direction.  A type
     * of 64 bits can wrap, but has no bad values. */
    uint64_t base = rle::value_of(u, is_signed);
    uint64_t excess =
        rle::excess_of<T>(base, is_signed) | rle::excess_of<T>(base + (n - 1) * delta, is_signed);
    if (rle::exceeds<T>(excess))
        return WHARF_REASON_RLE_VALUE;
    out.write_run<T>((T)base, (T)delta, n);
    return WHARF_REASON_NONE;
}

/* collective.  Decodes n literals after their control byte.  Literals beyond the output's room are
 * read too, since a truncated varint is the more important error. */
template <typename T, typename Input>
WHARF_DEVICE uint32_t take_literals(Input &in, output_stream &out, uint32_t n, bool is_signed,
                                    step_counter &steps)
{
    uint32_t room = rle::room_of<T>(out);
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t u;
        if (!steps.take(BYTE_STEPS))
            return WHARF_REASON_STEP_BUDGET;
        uint32_t reason = rle::fetch_varint(in, u);
        if (reason != WHARF_REASON_NONE)
            return reason;
        all |= u;
        if (i < room)
            rle::put_value<T>(out, rle::value_of(u, is_signed));
    }
    if (n > room)
        return WHARF_REASON_OUTPUT_FULL;
    return rle::exceeds<T>(all) ? WHARF_REASON_RLE_VALUE : WHARF_REASON_NONE;
}

/* collective.  Decodes a group whose control byte is in the input.  Returns a reason. */
template <typename T, typename Input>
WHARF_DEVICE uint32_t take_group(Input &in, output_stream &out, bool is_signed, step_counter &steps)
{
    if (!steps.take(BYTE_STEPS))
        return WHARF_REASON_STEP_BUDGET;
    uint32_t control = in.fetch_bits(8);
    if (control < 128)
        return take_run<T>(in, out, control + RUN_MIN, is_signed);
    return take_literals<T>(in, out, 256 - control, is_signed, steps);
}

/* The decoder for rle_device.cuh's serial loop. */
template <typename T>
struct serial_decoder {
    template <typename Input>
    static WHARF_DEVICE_MEMBER uint32_t take(Input &in, output_stream &out, bool is_signed,
                                             step_counter &steps)
    {
        return take_group<T>(in, out, is_signed, steps);
    }
};

} // namespace rle1
} // namespace wharf

#endif
