/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_decode.cuh: zlib (RFC 1950) on a warp: Deflate between a header and the Adler-32 of the
 * output.  Checks in the order of encoders/zlib/zlib_format.h.
 */
#ifndef WHARF_KERNELS_ZLIB_ZLIB_DECODE_CUH
#define WHARF_KERNELS_ZLIB_ZLIB_DECODE_CUH

#include "encoders/zlib/zlib_format.h"
#include "kernels/checksum.cuh"
#include "kernels/deflate/deflate_decode.cuh"

namespace wharf
{

using zlib_shared = deflate_shared;
constexpr size_t ZLIB_SCRATCH_NBYTES = 0;
constexpr unsigned ZLIB_WARPS_PER_SM = DEFLATE_WARPS_PER_SM;

/* The header's verdict: good, with the bytes that it takes, or bad. */
WHARF_DEVICE verdict zlib_read_header(const chunk_job &job)
{
    if (job.in_nbytes < WHARF_ZLIB_HEADER_NBYTES)
        return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0);
    uint32_t method = load_nc(job.in);
    uint32_t flags = load_nc(job.in + 1);
    if ((method << 8 | flags) % WHARF_ZLIB_HEADER_MODULUS)
        return bad(WHARF_BAD_DATA, WHARF_REASON_ZLIB_HEADER, 0);
    if ((method & 15) != WHARF_ZLIB_METHOD_DEFLATE)
        return bad(WHARF_BAD_DATA, WHARF_REASON_ZLIB_METHOD, 0);
    if (method >> 4 > WHARF_ZLIB_MAX_WINDOW)
        return bad(WHARF_BAD_DATA, WHARF_REASON_ZLIB_WINDOW, 0);
    if (flags & WHARF_ZLIB_FLAG_DICTIONARY) {
        if (job.in_nbytes < WHARF_ZLIB_HEADER_NBYTES + WHARF_ZLIB_DICTIONARY_NBYTES)
            return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0);
        return bad(WHARF_UNSUPPORTED, WHARF_REASON_ZLIB_DICTIONARY, 0);
    }
    return good(WHARF_ZLIB_HEADER_NBYTES, 0);
}

/* collective.  St is flate::state or what stands in its place. */
template <typename St, typename Shared>
WHARF_DEVICE verdict zlib_decode_with(Shared &s, const chunk_job &job)
{
    verdict v = zlib_read_header(job);
    if (v.result != WHARF_OK)
        return v;
    St st;
    adler32_sum sum;
    step_counter steps;
    steps.init(job);
    start(st, s, job, v.in_nbytes, 0);
    sum.init(job.out);
    uint32_t reason = flate::decode_stream(st, sum, steps);
    if (reason != WHARF_REASON_NONE)
        return flate::bad_stream(reason, st.bit_offset());
    uint32_t trailer = st.bit_offset() / 8;
    if (job.in_nbytes - trailer < WHARF_ZLIB_TRAILER_NBYTES)
        return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 8 * trailer);
    uint32_t want = 0;
    for (unsigned i = 0; i < WHARF_ZLIB_TRAILER_NBYTES; i++)
        want = want << 8 | load_nc(job.in + trailer + i);
    if (sum.finish(st.out.position) != want)
        return bad(WHARF_BAD_CHECKSUM, WHARF_REASON_ZLIB_CHECKSUM, 8 * trailer);
    return good(trailer + WHARF_ZLIB_TRAILER_NBYTES, st.out.position);
}

/* collective. */
WHARF_DEVICE verdict zlib_decode(zlib_shared &s, const chunk_job &job)
{
    return zlib_decode_with<flate::state<flate::tuning>>(s, job);
}

} // namespace wharf

#endif
