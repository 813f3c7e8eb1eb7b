/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_decode.cuh: decodes rle2 (encoders/rle2/rle2_format.h) on the device.
 *
 * Most runs go through rle2_batch.cuh, up to 32 at once.  Runs whose values depend on each other go
 * through rle2_special.cuh, one at a time.  rle2_exact.cuh takes over at anything unusual, and it
 * alone reports errors.  rle_device.cuh has the loop that joins them.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_DECODE_CUH
#define WHARF_KERNELS_RLE2_RLE2_DECODE_CUH

#include "kernels/rle2/rle2_special.cuh"

namespace wharf
{

struct rle2_shared {
    rle2::window window;
    input_registers::shared input;
};
constexpr size_t RLE2_SCRATCH_NBYTES = 0;
constexpr unsigned RLE2_WARPS_PER_SM = 32;

namespace rle2
{

/* The decoder as rle_device.cuh's loops need it.  A step is a special run, or a batch of others. */
template <typename T>
struct decoder : number_source, serial_decoder<T> {
    using shared = window;
    /* What a step charges: a run takes at least two bytes of input. */
    static constexpr uint32_t STEP_STEPS = 8;
    uint32_t at;

    WHARF_DEVICE_MEMBER bool step(window &w, output_stream &out, bool is_signed)
    {
        return decode_special<T>(*this, at, out, is_signed) ||
               decode_batch<T>(w, *this, at, out, is_signed);
    }
    WHARF_DEVICE_MEMBER void rewind(output_stream &) const {}
};

} // namespace rle2

/* collective. */
WHARF_DEVICE verdict rle2_decode(rle2_shared &s, const chunk_job &job)
{
    return rle::decode<rle2::decoder>(s, job);
}

} // namespace wharf

#endif
