/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_decode.cuh: gzip (RFC 1952) on a warp: members of Deflate between a header and CRC-32 and
 * length of the output.  Checks in the order of encoders/gzip/gzip_format.h.
 */
#ifndef WHARF_KERNELS_GZIP_GZIP_DECODE_CUH
#define WHARF_KERNELS_GZIP_GZIP_DECODE_CUH

#include "encoders/gzip/gzip_format.h"
#include "kernels/checksum.cuh"
#include "kernels/deflate/deflate_decode.cuh"

namespace wharf
{

using gzip_shared = deflate_shared;
constexpr size_t GZIP_SCRATCH_NBYTES = 0;
constexpr unsigned GZIP_WARPS_PER_SM = DEFLATE_WARPS_PER_SM;

namespace gzip
{

/* Bytes first to last of a word that is loaded as little-endian: whether one is zero. */
WHARF_DEVICE bool has_zero(uint32_t v)
{
    return ((v - 0x01010101u) & ~v & 0x80808080u) != 0;
}

/* collective.  The offset behind the first zero byte at or behind `at`, or 0: there is none.  512
 * bytes a step: names may be as long as the input. */
WHARF_DEVICE uint32_t find_zero(const chunk_job &job, uint32_t at)
{
    input_source source;
    source.init(job.in, job.in_nbytes);
    uint32_t from = source.begin + at;
    for (uint32_t quad = from >> 4; 16 * quad < source.end; quad += 32) {
        uint32_t mine = quad + lane_id();
        u32x4 v = source.load_quad(mine);
        bool any = has_zero(v.x) || has_zero(v.y) || has_zero(v.z) || has_zero(v.w);
        uint32_t end = source.end;
        if (any && 16 * mine < source.end) {
            /* Only bytes of the input from `at` on count, not the zeros that stand for others. */
            for (uint32_t i = 16 * mine; i < 16 * mine + 16; i++)
                if (i >= from && i < source.end && end == source.end &&
                    load_nc(source.aligned + i) == 0)
                    end = i;
        }
        uint32_t first = reduce_min(end);
        if (first < source.end)
            return first - source.begin + 1;
    }
    return 0;
}

/* collective.  The fields behind the fixed ten bytes, of the header that begins at `begin`; at is
 * moved on. */
WHARF_DEVICE uint32_t skip_fields(const chunk_job &job, uint32_t begin, uint32_t flags,
                                  uint32_t &at)
{
    if (flags & WHARF_GZIP_FLAG_EXTRA) {
        if (job.in_nbytes - at < 2)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t n = uniform(load_nc(job.in + at) | (uint32_t)load_nc(job.in + at + 1) << 8);
        at += 2;
        if (job.in_nbytes - at < n)
            return WHARF_REASON_INPUT_TRUNCATED;
        at += n;
    }
    for (uint32_t flag = WHARF_GZIP_FLAG_NAME; flag <= WHARF_GZIP_FLAG_COMMENT; flag *= 2) {
        if (!(flags & flag))
            continue;
        at = find_zero(job, at);
        if (at == 0)
            return WHARF_REASON_INPUT_TRUNCATED;
    }
    if (flags & WHARF_GZIP_FLAG_HCRC) {
        if (job.in_nbytes - at < 2)
            return WHARF_REASON_INPUT_TRUNCATED;
        crc32_sum sum;
        sum.init(job.in + begin);
        uint32_t want = load_nc(job.in + at) | (uint32_t)load_nc(job.in + at + 1) << 8;
        if ((sum.finish(at - begin) & 0xffff) != want)
            return WHARF_REASON_GZIP_HEADER_CRC;
        at += 2;
    }
    return WHARF_REASON_NONE;
}

/* The fixed ten bytes of a header, with `left` bytes from them on. */
WHARF_DEVICE uint32_t check_fixed(const uint8_t *p, uint32_t left)
{
    if (left < 2)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (load_nc(p) != WHARF_GZIP_MAGIC_0 || load_nc(p + 1) != WHARF_GZIP_MAGIC_1)
        return WHARF_REASON_GZIP_MAGIC;
    if (left < 4)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (load_nc(p + 2) != WHARF_GZIP_METHOD_DEFLATE)
        return WHARF_REASON_GZIP_METHOD;
    if (load_nc(p + 3) & WHARF_GZIP_FLAGS_RESERVED)
        return WHARF_REASON_GZIP_FLAGS;
    return left < WHARF_GZIP_FIXED_HEADER_NBYTES ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_NONE;
}

struct header {
    uint32_t reason;
    uint32_t end;
};

/* collective.  The header that begins at `begin`.  The job comes by value: a reference would keep
 * it in memory. */
WHARF_DEVICE_NOINLINE header read_header(chunk_job job, uint32_t begin)
{
    const uint8_t *p = job.in + begin;
    header h = {uniform(check_fixed(p, job.in_nbytes - begin)),
                begin + WHARF_GZIP_FIXED_HEADER_NBYTES};
    if (h.reason == WHARF_REASON_NONE)
        h.reason = skip_fields(job, begin, uniform(load_nc(p + 3)), h.end);
    return h;
}

WHARF_DEVICE uint32_t load_32(const uint8_t *p)
{
    return load_nc(p) | (uint32_t)load_nc(p + 1) << 8 | (uint32_t)load_nc(p + 2) << 16 |
           (uint32_t)load_nc(p + 3) << 24;
}

/* The trailer at `at`. */
WHARF_DEVICE uint32_t check_trailer(const chunk_job &job, uint32_t at, uint32_t crc,
                                    uint32_t nbytes)
{
    uint32_t left = job.in_nbytes - at;
    if (left < 4)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (load_32(job.in + at) != crc)
        return WHARF_REASON_GZIP_CHECKSUM;
    if (left < WHARF_GZIP_TRAILER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    return load_32(job.in + at + 4) == nbytes ? WHARF_REASON_NONE : WHARF_REASON_GZIP_LENGTH;
}

/* Whether another member begins at `at`: a last byte 1f is one that is cut off. */
WHARF_DEVICE bool another_member(const chunk_job &job, uint32_t at)
{
    uint32_t left = job.in_nbytes - at;
    return left >= 1 && load_nc(job.in + at) == WHARF_GZIP_MAGIC_0 &&
           (left == 1 || load_nc(job.in + at + 1) == WHARF_GZIP_MAGIC_1);
}

} // namespace gzip

/* collective.  St is flate::state or what stands in its place. */
template <typename St, typename Shared>
WHARF_DEVICE verdict gzip_decode_with(Shared &s, const chunk_job &job)
{
    uint32_t at = 0, n_out = 0;
    step_counter steps; /* a member has a block at least, so members need no count of their own */
    steps.init(job);
    do {
        gzip::header header = gzip::read_header(job, at);
        uint32_t reason = uniform(header.reason);
        if (reason != WHARF_REASON_NONE)
            return bad(WHARF_BAD_DATA, reason, 8 * at);
        at = uniform(header.end);
        St st;
        crc32_sum sum;
        start(st, s, job, at, n_out);
        sum.init(st.out.out);
        reason = flate::decode_stream(st, sum, steps);
        if (reason != WHARF_REASON_NONE)
            return flate::bad_stream(reason, st.bit_offset());
        at = st.bit_offset() / 8;
        reason =
            uniform(gzip::check_trailer(job, at, sum.finish(st.out.position), st.out.position));
        if (reason != WHARF_REASON_NONE)
            return bad(reason == WHARF_REASON_INPUT_TRUNCATED ? WHARF_BAD_DATA : WHARF_BAD_CHECKSUM,
                       reason, 8 * at);
        at += WHARF_GZIP_TRAILER_NBYTES;
        n_out += st.out.position;
    } while (any_lane(gzip::another_member(job, at)));
    return good(at, n_out);
}

/* collective. */
WHARF_DEVICE verdict gzip_decode(gzip_shared &s, const chunk_job &job)
{
    return gzip_decode_with<flate::state<flate::tuning>>(s, job);
}

} // namespace wharf

#endif
