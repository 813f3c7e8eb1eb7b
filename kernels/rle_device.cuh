/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle_device.cuh: what the device decoders of ORC's run lengths have in common; the counterpart of
 * encoders/rle_values.h.
 *
 * Values are uint64_t in registers and T, an unsigned integer of the type's size, in the output.
 */
#ifndef WHARF_KERNELS_RLE_DEVICE_CUH
#define WHARF_KERNELS_RLE_DEVICE_CUH

#include "encoders/wharf_codec.h"
#include "kernels/output_stream.cuh"

namespace wharf
{
namespace rle
{

WHARF_DEVICE bool is_signed_type(uint32_t type)
{
    return type >= WHARF_RLE_I8;
}

/* One lane.  Zigzag decoding: 0, 1, 2, 3, ... become 0, -1, 1, -2, ... */
WHARF_DEVICE uint64_t unzigzag(uint64_t u)
{
    return (u >> 1) ^ (0 - (u & 1));
}

/* One lane.  The value of a number in the stream: zigzag if signed. */
WHARF_DEVICE uint64_t value_of(uint64_t u, bool is_signed)
{
    return is_signed ? unzigzag(u) : u;
}

/* One lane.  Maps v so that v fits T if and only if the result does.  Results may be or-ed. */
template <typename T>
WHARF_DEVICE uint64_t excess_of(uint64_t v, bool is_signed)
{
    return is_signed ? v + ((uint64_t)1 << (8 * sizeof(T) - 1)) : v;
}

template <typename T>
WHARF_DEVICE bool exceeds(uint64_t excess)
{
    return sizeof(T) < 8 && (excess >> (8 * sizeof(T) & 63)) != 0;
}

/* One lane.  Stores v as a T at p, of any alignment. */
template <typename T>
WHARF_DEVICE void store_value(uint8_t *p, uint64_t v)
{
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T) == 0) {
        store(reinterpret_cast<T *>(p), (T)v);
        return;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < sizeof(T); k++)
        store(p + k, (uint8_t)(v >> 8 * k));
}

/* collective.  A value of another lane, in the bits of T alone. */
template <typename T>
WHARF_DEVICE uint64_t shfl_value(uint64_t v, uint32_t lane)
{
    return sizeof(T) == 8 ? shfl(v, lane) : (uint64_t)shfl((uint32_t)v, lane);
}

/* How many values still fit the output. */
template <typename T>
WHARF_DEVICE uint32_t room_of(const output_stream &out)
{
    return out.room() / (uint32_t)sizeof(T);
}

/* collective.  Lane 0 stores one value, which must fit. */
template <typename T>
WHARF_DEVICE void put_value(output_stream &out, uint64_t v)
{
    if (lane_id() == 0)
        store_value<T>(out.out + out.position, v);
    out.position += (uint32_t)sizeof(T);
}

/* A failure in the run or group that begins at a bit of the input. */
WHARF_DEVICE verdict failed(uint32_t reason, uint32_t at)
{
    uint32_t result = reason == WHARF_REASON_OUTPUT_FULL   ? WHARF_OUTPUT_TOO_SMALL
                      : reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL
                                                           : WHARF_BAD_DATA;
    return bad(result, reason, at);
}

/*
 * collective.  Reads a base-128 varint: 7 bits a byte, least significant first.  All lanes hold the
 * result.  Returns a reason.
 */
template <typename Input>
WHARF_DEVICE uint32_t fetch_varint(Input &in, uint64_t &u)
{
    u = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (in.bits_left() < 8)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t byte = in.fetch_bits(8);
        if (shift == 63 && byte > 1)
            return WHARF_REASON_RLE_VARINT;
        u |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return WHARF_REASON_NONE;
    }
}

/* Turns of a decoder's loop between two checks of the stop word.  A turn takes a few microseconds
 * and a check nearly as long. */
constexpr uint32_t TURNS_BETWEEN_LOOKS = 16;

/* collective.  Whether the job must stop.  Called in each turn, it checks in few of them. */
WHARF_DEVICE bool is_stopped_at_turn(const chunk_job &job, uint32_t turn)
{
    return turn % TURNS_BETWEEN_LOOKS == 0 && is_stopped(job.stop);
}

/*
 * collective.  Decodes from the position of `in` to the stream's end, one group at a time, by all
 * lanes alike.  group(in, out, steps) decodes one group, whose first byte exists, and returns a
 * reason.
 */
template <typename Input, typename Group>
WHARF_DEVICE verdict decode_groups(Input &in, const chunk_job &job, output_stream &out,
                                   step_counter &steps, Group group)
{
    for (uint32_t turn = 1; in.bits_left() >= 8; turn++) {
        uint32_t at = in.bit_position();
        uint32_t reason = group(in, out, steps);
        if (reason != WHARF_REASON_NONE)
            return failed(reason, at);
        if (is_stopped_at_turn(job, turn))
            return stopped();
    }
    return good(in.bit_position() / 8, out.position);
}

/*
 * THE TWO MAIN LOOPS of rle1 and rle2, around a Decoder for values of one type, T:
 *
 *   take(in, out, is_signed, steps)   collective, static.  Decodes one group or run, as
 *                                     decode_groups requires
 *
 * The first loop also needs these members, initially zero:
 *
 *   shared                    its shared memory
 *   STEP_STEPS                what a step charges to the step budget
 *   source                    the input
 *   at                        bytes of the input that are consumed
 *   step(s, out, is_signed)   collective.  Decodes as much as fits one step; at least one byte of
 *                             input is left.  False: nothing changed but output behind the position
 *   rewind(out)               returns to the start of the current group or run
 */

/* Decodes by steps while they succeed, then group by group.  The second loop finds and reports the
 * error, so only the failed step is decoded twice. */
template <typename Decoder>
WHARF_DEVICE verdict decode_by_steps(typename Decoder::shared &s, input_registers::shared &s_input,
                                     const chunk_job &job)
{
    bool is_signed = is_signed_type(job.parameter);
    Decoder decoder = {};
    output_stream out;
    step_counter steps;
    decoder.source.init(job.in, job.in_nbytes);
    out.init(job.out, job.out_avail);
    steps.init(job);
    for (uint32_t turn = 1; decoder.at < job.in_nbytes && decoder.step(s, out, is_signed); turn++) {
        if (!steps.take(Decoder::STEP_STEPS))
            return failed(WHARF_REASON_STEP_BUDGET, 8 * decoder.at);
        if (is_stopped_at_turn(job, turn))
            return stopped();
    }
    decoder.rewind(out);
    syncwarp(); /* what the last step stored behind the position, others now store anew */
    if (decoder.at == job.in_nbytes)
        return good(job.in_nbytes, out.position);
    input_registers in;
    in.init(s_input, job.in, job.in_nbytes);
    in.seek(8 * decoder.at);
    return decode_groups(in, job, out, steps,
                         [=](input_registers &i, output_stream &o, step_counter &left) {
                             return Decoder::take(i, o, is_signed, left);
                         });
}
/* collective.  Decodes one group or run after the other from the stream's start: CODAG's scheme. */
template <typename Decoder, typename Input>
WHARF_DEVICE verdict decode_serially(typename Input::shared &s, const chunk_job &job)
{
    bool is_signed = is_signed_type(job.parameter);
    Input in;
    output_stream out;
    step_counter steps;
    in.init(s, job.in, job.in_nbytes);
    out.init(job.out, job.out_avail);
    steps.init(job);
    return decode_groups(in, job, out, steps, [=](Input &i, output_stream &o, step_counter &left) {
        return Decoder::take(i, o, is_signed, left);
    });
}

/* collective.  The two loops, with the Decoder for the value type that the job names. */
template <template <typename> class Decoder, typename Shared>
WHARF_DEVICE verdict decode(Shared &s, const chunk_job &job)
{
    switch (job.parameter % 4) {
    case 0:
        return decode_by_steps<Decoder<uint8_t>>(s.window, s.input, job);
    case 1:
        return decode_by_steps<Decoder<uint16_t>>(s.window, s.input, job);
    case 2:
        return decode_by_steps<Decoder<uint32_t>>(s.window, s.input, job);
    default:
        return decode_by_steps<Decoder<uint64_t>>(s.window, s.input, job);
    }
}

template <typename Input>
struct serial_shared {
    typename Input::shared input;
};

template <template <typename> class Decoder, typename Input>
WHARF_DEVICE verdict decode_serial(serial_shared<Input> &s, const chunk_job &job)
{
    switch (job.parameter % 4) {
    case 0:
        return decode_serially<Decoder<uint8_t>, Input>(s.input, job);
    case 1:
        return decode_serially<Decoder<uint16_t>, Input>(s.input, job);
    case 2:
        return decode_serially<Decoder<uint32_t>, Input>(s.input, job);
    default:
        return decode_serially<Decoder<uint64_t>, Input>(s.input, job);
    }
}

} // namespace rle
} // namespace wharf

#endif
