/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_decode.cuh: a complete device decoder to copy from, in the form that kernels/decoder.cuh
 * asks for.  No product has it; example_decoder_simt_test.cc runs it.
 *
 * A stream is pairs (count, value), a byte each, up to the input's end.  A pair gives `count` bytes
 * `value`.  An odd byte is INPUT_TRUNCATED, a pair without room OUTPUT_FULL, at the pair's first
 * bit.
 */
#ifndef WHARF_TESTS_EXAMPLE_DECODE_CUH
#define WHARF_TESTS_EXAMPLE_DECODE_CUH

#include "kernels/output_stream.cuh"

namespace wharf
{

struct example_shared {
    input_ring<512> ring;
};
constexpr size_t EXAMPLE_SCRATCH_NBYTES = 0;
constexpr unsigned EXAMPLE_WARPS_PER_SM = 32;

/* A pair in the stream, and the pairs that the lanes take together. */
constexpr uint32_t EXAMPLE_PAIR_NBITS = 16;
constexpr uint32_t EXAMPLE_PAIRS_NBITS = EXAMPLE_PAIR_NBITS * WARP_LANES;

/*
 * collective.  The parallel path: the next 32 pairs.  It guesses that all of them are there and
 * fit; false, with nothing done, where they do not.
 */
WHARF_DEVICE bool example_take_32(input_stream<512> &in, output_stream &out)
{
    if (in.bits_left() < EXAMPLE_PAIRS_NBITS)
        return false;
    in.ensure(EXAMPLE_PAIRS_NBITS);
    /* Find: lane i has pair i.  Place: a scan gives where each pair's bytes end. */
    uint32_t pair = in.peek_32(EXAMPLE_PAIR_NBITS * lane_id());
    uint32_t end = inclusive_add(pair & 255);
    uint32_t nbytes = from_lane<31>(end);
    if (nbytes > out.room())
        return false;
    /* Write: rounds of 32 bytes, a byte a lane, whatever pair it belongs to. */
    for (uint32_t first = 0; first < nbytes; first += WARP_LANES) {
        uint32_t at = first + lane_id();
        uint32_t owner = 0; /* the first pair that ends behind the byte */
        for (uint32_t step = WARP_LANES / 2; step > 0; step /= 2)
            owner += shfl(end, owner + step - 1) <= at ? step : 0;
        uint32_t value = shfl(pair >> 8, owner);
        if (at < nbytes)
            store(out.out + out.position + at, (uint8_t)value);
        syncwarp(); /* one lane's branch would end the loop: KERNELS.md, rule 9 */
    }
    out.position += nbytes;
    in.skip(EXAMPLE_PAIRS_NBITS);
    return true;
}

/* collective.  The exact path: one pair, the same in all lanes.  Returns its result's reason.  It
 * alone reports errors. */
WHARF_DEVICE uint32_t example_take_one(input_stream<512> &in, output_stream &out)
{
    if (in.bits_left() < EXAMPLE_PAIR_NBITS)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t count = in.fetch_bits(8);
    uint32_t value = in.fetch_bits(8);
    return out.write_run<uint8_t>((uint8_t)value, 0, count) ? WHARF_REASON_NONE
                                                            : WHARF_REASON_OUTPUT_FULL;
}

/* collective. */
WHARF_DEVICE verdict example_decode(example_shared &s, const chunk_job &job)
{
    constexpr uint32_t TURNS_BETWEEN_LOOKS = 16;
    input_stream<512> in;
    output_stream out;
    step_counter steps;
    steps.init(job);
    in.init(s.ring, uniform_global(job.in), uniform(job.in_nbytes));
    out.init(uniform_global(job.out), uniform(job.out_avail));
    for (uint32_t turn = 0; in.bits_left() > 0; turn++) {
        uint32_t at = in.bit_position();
        /* Each turn takes a pair or more. */
        if (!steps.take(EXAMPLE_PAIR_NBITS))
            return bad(WHARF_INTERNAL, WHARF_REASON_STEP_BUDGET, at);
        if (turn % TURNS_BETWEEN_LOOKS == 0 && is_stopped(job.stop))
            return stopped();
        if (example_take_32(in, out))
            continue;
        uint32_t reason = example_take_one(in, out);
        if (reason == WHARF_REASON_OUTPUT_FULL)
            return bad(WHARF_OUTPUT_TOO_SMALL, reason, at);
        if (reason != WHARF_REASON_NONE)
            return bad(WHARF_BAD_DATA, reason, at);
    }
    return good(in.bit_position() / 8, out.position);
}

} // namespace wharf

#endif
