/* SPDX-License-Identifier: Apache-2.0 */
/* rle2_decode.cuh: rle2, encoders/rle2/rle2_format.h, on the device. */
#ifndef WHARF_KERNELS_RLE2_RLE2_DECODE_CUH
#define WHARF_KERNELS_RLE2_RLE2_DECODE_CUH

#include "kernels/rle2/rle2_special.cuh"

namespace wharf
{

struct rle2_shared {
    input_registers::shared input;
};
constexpr size_t RLE2_SCRATCH_NBYTES = 0;
constexpr unsigned RLE2_WARPS_PER_SM = 32;

namespace rle2
{

/*
 * collective.  Batches of runs and single special ones, as long as they are good, then runs one
 * after the other, which find what is wrong in the batch at hand: only that is taken a second time.
 */
template <typename T>
WHARF_DEVICE verdict decode(rle2_shared &s, const chunk_job &job)
{
    bool is_signed = rle::is_signed_type(job.parameter);
    number_source numbers;
    output_stream out;
    step_counter steps;
    uint32_t at = 0;
    numbers.init(job);
    out.init(job.out, job.out_avail);
    steps.init(job);
    for (uint32_t turn = 1; at < job.in_nbytes && (decode_batch<T>(numbers, at, out, is_signed) ||
                                                   decode_special<T>(numbers, at, out, is_signed));
         turn++) {
        /* A run is two bytes of input at least. */
        if (!steps.take(8))
            return rle::failed(WHARF_REASON_STEP_BUDGET, 8 * at);
        if (rle::is_stopped_at_turn(job, turn))
            return stopped();
    }
    if (at == job.in_nbytes)
        return good(job.in_nbytes, out.position);
    input_registers in;
    in.init(s.input, job.in, job.in_nbytes);
    in.seek(8 * at);
    return rle::decode_groups(in, out, steps,
                              [=](input_registers &i, output_stream &o, step_counter &left) {
                                  return take_run<T>(i, o, is_signed, left);
                              });
}

} // namespace rle2

/* collective. */
WHARF_DEVICE verdict rle2_decode(rle2_shared &s, const chunk_job &job)
{
    return WHARF_RLE_BY_SIZE(job.parameter, rle2::decode, s, job);
}

} // namespace wharf

#endif
