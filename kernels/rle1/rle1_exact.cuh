/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_exact.cuh: a group of rle1, encoders/rle1/rle1_format.h, at a time, by all lanes alike.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_EXACT_CUH
#define WHARF_KERNELS_RLE1_RLE1_EXACT_CUH

#include "kernels/rle_device.cuh"

namespace wharf
{
namespace rle1
{

constexpr uint32_t RUN_MIN = 3;

/* Of the step budget: a control byte, or a literal of a byte, is eight bits of input. */
constexpr uint32_t BYTE_STEPS = 8;

/* collective.  A run of n values behind its control byte. */
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
    /* Between two values of a type narrower than 64 bits lies nothing that is not of it. */
    uint64_t base = rle::value_of(u, is_signed);
    uint64_t excess =
        rle::excess_of<T>(base, is_signed) | rle::excess_of<T>(base + (n - 1) * delta, is_signed);
    if (rle::exceeds<T>(excess))
        return WHARF_REASON_RLE_VALUE;
    out.write_run<T>((T)base, (T)delta, n);
    return WHARF_REASON_NONE;
}

/* collective.  n literals behind their control byte.  Those that there is no room for are looked
 * at as well: a varint that is cut off is worse. */
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

/* collective.  A group, of which the control byte is there.  Returns a reason. */
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

/* The decoder of rle_device.cuh's serial shell. */
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
