/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_decode.cuh: decodes rle1 (encoders/rle1/rle1_format.h) on the device.
 *
 * rle1_window.cuh finds the groups of 128 bytes of input, and rle1_values.cuh writes their values,
 * 32 at a time.  rle1_exact.cuh takes over at the first window with anything unusual, and it alone
 * reports errors.  rle_device.cuh has the loop that joins the two.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_DECODE_CUH
#define WHARF_KERNELS_RLE1_RLE1_DECODE_CUH

#include "kernels/rle1/rle1_values.cuh"

namespace wharf
{

struct rle1_shared {
    rle1::window window;
    input_registers::shared input;
};
constexpr size_t RLE1_SCRATCH_NBYTES = 0;
constexpr unsigned RLE1_WARPS_PER_SM = 32;

namespace rle1
{

/* The decoder as rle_device.cuh's loops need it.  A step is a window. */
template <typename T>
struct decoder : stream, serial_decoder<T> {
    using shared = window;
    /* What a step charges.  rewind() goes back to the start of a pending group, so the exact path
     * repeats at most 1281 bytes: a control byte and 128 literals of 10 bytes. */
    static constexpr uint32_t STEP_STEPS = BYTE_STEPS;

    WHARF_DEVICE_MEMBER bool step(window &w, output_stream &out, bool is_signed)
    {
        return decode_window<T>(w, *this, out, is_signed);
    }
    WHARF_DEVICE_MEMBER void rewind(output_stream &out)
    {
        if (n_pending) {
            at = group_at;
            out.position = group_position;
        }
    }
};

} // namespace rle1

/* collective. */
WHARF_DEVICE verdict rle1_decode(rle1_shared &s, const chunk_job &job)
{
    return rle::decode<rle1::decoder>(s, job);
}

} // namespace wharf

#endif
