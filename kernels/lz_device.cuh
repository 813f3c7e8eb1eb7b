/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_device.cuh: what the exact paths of the device decoders of lz4 and snappy have in common;
 * the counterpart of encoders/lz_copy.h.
 */
#ifndef WHARF_KERNELS_LZ_DEVICE_CUH
#define WHARF_KERNELS_LZ_DEVICE_CUH

#include "kernels/output_stream.cuh"

namespace wharf
{
namespace lz
{

/* Tags and short literals are read through the ring, which holds several sequences of any data. */
using input = input_stream<512>;

/* Among reasons, within a decoder: the job was stopped. */
constexpr uint32_t STOPPED = 0xffff;

/* Turns of a decoder's loop between two checks of the stop word.  A turn takes a few microseconds
 * and a check nearly as long.  The exact path also checks after so many bytes within one turn. */
constexpr uint32_t TURNS_BETWEEN_LOOKS = 16;
constexpr uint32_t BYTES_BETWEEN_LOOKS = 1 << 18;

/*
 * The charge to the step budget.  Each turn completes a sequence of at least two bytes, and is
 * charged 8 steps, or 16 if the exact path takes the sequence.  STEPS_BESIDES covers the last
 * sequence, which may be one byte.
 */
constexpr uint32_t TURN_STEPS = 8;

/* The state of a decode.  The same in all lanes. */
struct stream {
    input in; /* its position is the exact path's */
    output_stream out;
    step_counter steps;
    const stop_word *stop; /* in shared memory */
};

WHARF_DEVICE verdict failed(uint32_t reason, uint32_t bit_offset)
{
    if (reason == STOPPED)
        return stopped();
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

/* collective.  n literals at the position, which are there and for which there is room.  Returns a
 * reason. */
WHARF_DEVICE uint32_t take_literals(stream &st, uint32_t n)
{
    if (n <= WARP_LANES) {
        st.in.ensure(8 * WARP_LANES);
        st.out.write_bytes((uint8_t)st.in.peek_32(8 * lane_id()), n);
        st.in.skip(8 * n);
        return WHARF_REASON_NONE;
    }
    uint32_t at = st.in.bit_position() / 8;
    for (uint32_t left = n; left > 0;) {
        uint32_t piece = left < BYTES_BETWEEN_LOOKS ? left : BYTES_BETWEEN_LOOKS;
        st.out.copy_input(st.in.source, at + (n - left), piece);
        left -= piece;
        if (left && is_stopped(*st.stop))
            return STOPPED;
    }
    st.in.seek(8 * (at + n));
    return WHARF_REASON_NONE;
}

/* collective.  A match whose distance is right.  Returns a reason, which is `full` if there is no
 * room for it. */
WHARF_DEVICE uint32_t copy_match(stream &st, uint32_t distance, uint32_t length, uint32_t full)
{
    if (length > st.out.room())
        return full;
    for (;;) {
        uint32_t piece = length < BYTES_BETWEEN_LOOKS ? length : BYTES_BETWEEN_LOOKS;
        st.out.copy_match(distance, piece);
        length -= piece;
        if (length == 0)
            return WHARF_REASON_NONE;
        if (is_stopped(*st.stop))
            return STOPPED;
    }
}

} // namespace lz
} // namespace wharf

#endif
