/* SPDX-License-Identifier: Apache-2.0 */
/* rle1_decode.cuh: rle1, encoders/rle1/rle1_format.h, on the device. */
#ifndef WHARF_KERNELS_RLE1_RLE1_DECODE_CUH
#define WHARF_KERNELS_RLE1_RLE1_DECODE_CUH

#include "kernels/rle1/rle1_window.cuh"

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

/*
 * collective.  Windows, as long as they are good, then groups one after the other, which find what
 * is wrong in the window at hand.  That begins with the group whose literals are pending, if there
 * are any: so a window takes steps for a byte, though it is many, and no more than 1281 bytes are
 * taken a second time.
 */
template <typename T>
WHARF_DEVICE verdict decode(rle1_shared &s, const chunk_job &job)
{
    bool is_signed = rle::is_signed_type(job.parameter);
    output_stream out;
    step_counter steps;
    stream st = {};
    st.source.init(job.in, job.in_nbytes);
    out.init(job.out, job.out_avail);
    steps.init(job);
    for (uint32_t turn = 1; st.at < job.in_nbytes && decode_window<T>(s.window, st, out, is_signed);
         turn++) {
        if (!steps.take(BYTE_STEPS))
            return rle::failed(WHARF_REASON_STEP_BUDGET, 8 * st.at);
        if (rle::is_stopped_at_turn(job, turn))
            return stopped();
    }
    if (st.n_pending) {
        st.at = st.group_at;
        out.position = st.group_position;
    }
    if (st.at == job.in_nbytes)
        return good(job.in_nbytes, out.position);
    input_registers in;
    in.init(s.input, job.in, job.in_nbytes);
    in.seek(8 * st.at);
    return rle::decode_groups(in, out, steps,
                              [=](input_registers &i, output_stream &o, step_counter &left) {
                                  return take_group<T>(i, o, is_signed, left);
                              });
}

} // namespace rle1

/* collective. */
WHARF_DEVICE verdict rle1_decode(rle1_shared &s, const chunk_job &job)
{
    return WHARF_RLE_BY_SIZE(job.parameter, rle1::decode, s, job);
}

} // namespace wharf

#endif
