/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_device.cuh: what the device decoders of lz4 and snappy have in common; the counterpart of
 * encoders/lz_copy.h.
 */
#ifndef WHARF_KERNELS_LZ_DEVICE_CUH
#define WHARF_KERNELS_LZ_DEVICE_CUH

#include "kernels/output_stream.cuh"

namespace wharf
{
namespace lz
{

/* Tags and short literals come by the ring; it holds some elements of any data. */
using input = input_stream<512>;

WHARF_DEVICE verdict failed(uint32_t reason, uint32_t bit_offset)
{
    uint32_t result = reason == WHARF_REASON_OUTPUT_FULL   ? WHARF_OUTPUT_TOO_SMALL
                      : reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL
                                                           : WHARF_BAD_DATA;
    return bad(result, reason, bit_offset);
}

/* Bytes between the position, which is a whole byte, and the end. */
WHARF_DEVICE uint32_t bytes_left(const input &in)
{
    return in.bits_left() / 8;
}

/* collective.  n literals at the position, which are there and for which there is room. */
WHARF_DEVICE void take_literals(input &in, output_stream &out, uint32_t n)
{
    if (n <= WARP_LANES) {
        in.ensure(8 * WARP_LANES);
        out.write_bytes((uint8_t)in.peek_32(8 * lane_id()), n);
        in.skip(8 * n);
        return;
    }
    out.copy_input(in.source, in.bit_position() / 8, n);
    in.seek(in.bit_position() + 8 * n);
}

} // namespace lz
} // namespace wharf

#endif
