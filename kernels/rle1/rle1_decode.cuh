/* SPDX-License-Identifier: Apache-2.0 */
/* rle1_decode.cuh: rle1, encoders/rle1/rle1_format.h, on the device. */
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

/* As rle_device.cuh's shells want it.  A step is a window. */
template <typename T>
struct decoder : stream, serial_decoder<T> {
    using shared = window;
    /* It may begin with a group whose literals are pending, so no more than 1281 bytes are taken a
     * second time. */
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
