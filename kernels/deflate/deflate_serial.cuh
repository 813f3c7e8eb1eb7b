/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_serial.cuh: decodes raw Deflate by CODAG's scheme, as a baseline for measurements.  All
 * lanes decode the same symbol, one a step, from an input stream to an output stream.  Headers, the
 * exact path and verdicts are shared with deflate_decode.cuh; only the parallel path is missing.
 */
#ifndef WHARF_KERNELS_DEFLATE_DEFLATE_SERIAL_CUH
#define WHARF_KERNELS_DEFLATE_DEFLATE_SERIAL_CUH

#include "kernels/deflate/deflate_decode.cuh"

namespace wharf
{
namespace flate
{

/* Input is input_stream or input_registers. */
template <typename Input>
struct alignas(16) serial_shared {
    typename Input::shared input;
    code_table<tuning::LITLEN_ROOT, 288, 288> litlen;
    code_table<tuning::DISTANCE_ROOT, 32, 128> distance;
    header_scratch header;
};

/* The counterpart of `state`. */
template <typename Input>
struct serial_state {
    shared_ref<serial_shared<Input>> ref;
    Input in;
    uint32_t at; /* skewed position of the next bit */
    output_stream out;

    WHARF_DEVICE_MEMBER serial_shared<Input> &s() const { return ref.get(); }
    WHARF_DEVICE_MEMBER const input_source &input() const { return in.source; }
    WHARF_DEVICE_MEMBER uint32_t end() const { return 8 * in.source.end; }
    WHARF_DEVICE_MEMBER uint32_t bit_offset() const { return at - in.source.skew_nbits(); }
    WHARF_DEVICE_MEMBER bool is_stopped() const { return false; }
};

/* collective.  Moves the stream to position `at`.  Returns the 64 bits from there on. */
template <typename Input>
WHARF_DEVICE uint64_t peek_64(serial_state<Input> &st, uint32_t at)
{
    /* Above 512: far ahead, over a stored block; or back for another try, which wraps around. */
    uint32_t n = at - st.in.position;
    if (n <= 512)
        st.in.skip(n);
    else
        st.in.seek(at - st.in.source.skew_nbits());
    st.in.ensure(64);
    return (uint64_t)st.in.peek_32(32) << 32 | st.in.peek_32(0);
}

template <typename Input>
WHARF_DEVICE block read_header(serial_state<Input> &st)
{
    return parse_header(st);
}

template <typename Input, typename Sum>
WHARF_DEVICE uint32_t decode_body(serial_state<Input> &st, Sum &, step_counter &steps)
{
    return decode_units(st, steps);
}

template <typename Input>
WHARF_DEVICE void start(serial_state<Input> &st, serial_shared<Input> &s, const chunk_job &job,
                        uint32_t in_begin, uint32_t out_begin)
{
    st.ref.init(s);
    if (lane_id() == 0)
        store(&s.litlen.how, 0u); /* not FIXED_CODES */
    syncwarp();
    st.in.init(s.input, job.in, job.in_nbytes);
    st.at = 8 * (st.in.source.begin + in_begin);
    st.out.init(uniform_global(job.out + out_begin), job.out_avail - out_begin);
}

} // namespace flate

template <typename Input>
using deflate_serial_shared = flate::serial_shared<Input>;
constexpr unsigned DEFLATE_SERIAL_WARPS_PER_SM = 32;

/* collective. */
template <typename Input>
WHARF_DEVICE verdict deflate_serial_decode(deflate_serial_shared<Input> &s, const chunk_job &job)
{
    return flate::decode<flate::serial_state<Input>>(s, job);
}

} // namespace wharf

#endif
