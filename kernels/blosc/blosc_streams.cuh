/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_streams.cuh: decodes streams of a planned chunk, each to its part of its block, where it
 * stays as it was before compression, with its bytes or bits shuffled.
 *
 * The plan has checked where streams begin and end; sizes are compared again, since a bound must
 * not come from memory.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_STREAMS_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_STREAMS_CUH

#include "kernels/blosc/blosc_walk.cuh"
#include "kernels/lz_device.cuh"

namespace wharf
{
namespace blosc
{

/* One stream.  The same in all lanes. */
struct place {
    uint32_t at;   /* of its size, in the input */
    uint32_t to;   /* of its output, in the chunk's */
    uint32_t part; /* bytes that come out of it */
};

/* What a stream's size says. */
struct content {
    bool is_run, is_copy;
    uint8_t value; /* of a run */
    uint32_t size;
};

/* collective.  The size at `at`, and what it means for so many bytes of output. */
WHARF_DEVICE content read_size(const chunk_job &job, const plan &p, const place &pl)
{
    if (p.is_frame) {
        uint32_t size = uniform(load_be32(job.in + pl.at));
        return {false, false, 0, size};
    }
    uint32_t size = uniform(load_le32(job.in + pl.at));
    bool is_run = size > INT32_MOST || size == 0;
    return {is_run, size == pl.part, (uint8_t)(0 - size), is_run ? size != 0 : size};
}

/* Where the stream behind one with this content begins. */
WHARF_DEVICE uint32_t behind(const plan &p, const place &pl, const content &c)
{
    uint32_t left = p.end - pl.at - SIZE_NBYTES;
    return pl.at + SIZE_NBYTES + (c.size < left ? c.size : left);
}

/* collective.  Stream number s, by way of those before it in its block. */
WHARF_DEVICE place find_stream(const chunk_job &job, const plan &p, uint32_t s)
{
    uint32_t block = s / p.n_splits, k = s % p.n_splits;
    uint32_t n = block == p.n_blocks - 1 ? p.n_last : p.n_splits;
    place pl = {0, block * p.block_nbytes, nbytes_of_block(p, block) / n};
    uint32_t start = p.is_frame ? load_note(job.out + pl.to)
                                : load_le32(job.in + p.header_nbytes + SIZE_NBYTES * block);
    uint32_t most = p.end - SIZE_NBYTES;
    pl.at = uniform(start < most ? start : most);
    for (uint32_t i = 0; i < k; i++) {
        uint32_t next = behind(p, pl, read_size(job, p, pl));
        pl.at = next < most ? next : most;
    }
    pl.to += k * pl.part;
    return pl;
}

/* collective.  n bytes of one value. */
WHARF_DEVICE verdict fill(output_stream &out, uint8_t value, uint32_t n, const stop_word &stop)
{
    while (n > 0) {
        uint32_t piece = n < lz::BYTES_BETWEEN_LOOKS ? n : lz::BYTES_BETWEEN_LOOKS;
        out.write_run<uint8_t>(value, 0, piece);
        n -= piece;
        if (n > 0 && is_stopped(stop))
            return stopped();
    }
    return good(0, 0);
}

/* collective.  n bytes of input. */
WHARF_DEVICE verdict copy(output_stream &out, const chunk_job &job, uint32_t at, uint32_t n)
{
    input_source source;
    source.init(uniform_global(job.in), uniform(job.in_nbytes));
    while (n > 0) {
        uint32_t piece = n < lz::BYTES_BETWEEN_LOOKS ? n : lz::BYTES_BETWEEN_LOOKS;
        out.copy_input(source, at, piece);
        at += piece;
        n -= piece;
        if (n > 0 && is_stopped(job.stop))
            return stopped();
    }
    return good(0, 0);
}

/* The job of the codec inside. */
WHARF_DEVICE chunk_job job_inside(const chunk_job &job, const place &pl, uint32_t size)
{
    uint32_t budget = step_budget(size, pl.part);
    chunk_job inner = job;
    inner.in += pl.at + SIZE_NBYTES;
    inner.in_nbytes = size;
    inner.out += pl.to;
    inner.out_avail = pl.part;
    inner.parameter = 0;
    inner.step_budget = budget < job.step_budget ? budget : job.step_budget;
    return inner;
}

/* What the verdict of the codec inside means for the chunk. */
WHARF_DEVICE verdict verdict_of_stream(const verdict &v, const place &pl, uint32_t size)
{
    if (v.result == WHARF_OK)
        return v.in_nbytes == size && v.out_nbytes == pl.part
                   ? v
                   : fail(WHARF_REASON_BLOSC_STREAM, pl.at);
    if (v.reason == WHARF_REASON_OUTPUT_FULL)
        return fail(WHARF_REASON_BLOSC_STREAM, pl.at);
    uint32_t skipped = v.reason == WHARF_REASON_NONE ? 0 : 8 * (pl.at + SIZE_NBYTES);
    return bad(v.result, v.reason, skipped + v.bit_offset);
}

/* A way through streams, at number s of those before `end`.  The same in all lanes. */
struct cursor {
    uint32_t s, end;
    place pl;      /* of stream s */
    uint32_t size; /* of its content */
    uint32_t next; /* where the input goes on */
};

/* Begins at stream `first`. */
WHARF_DEVICE cursor begin_streams(const chunk_job &job, const plan &p, uint32_t first, uint32_t end)
{
    cursor c = {first, end, {0, 0, 0}, 0, 0};
    if (first < end && first < p.n_good)
        c.pl = find_stream(job, p, first);
    return c;
}

/* Goes on behind stream c.s, which is done. */
WHARF_DEVICE void leave_stream(const chunk_job &job, const plan &p, cursor &c)
{
    c.s++;
    if (c.s >= c.end || c.s >= p.n_good)
        return;
    if (p.is_frame)
        c.pl = {c.next, c.s * p.block_nbytes, nbytes_of_block(p, c.s)};
    else if (c.s % p.n_splits == 0)
        c.pl = find_stream(job, p, c.s);
    else
        c.pl = {c.next, c.pl.to + c.pl.part, c.pl.part};
}

/*
 * collective.  Decodes streams up to the next one that is compressed, for which is_compressed is
 * set: verdict_of_stream() and leave_stream() come behind what the codec inside says.  Otherwise it
 * returns the verdict of them all.
 */
WHARF_DEVICE verdict find_compressed(const chunk_job &job, const plan &p, cursor &c,
                                     bool &is_compressed)
{
    is_compressed = false;
    for (; c.s < c.end; leave_stream(job, p, c)) {
        if (c.s >= p.n_good)
            return p.failure;
        content now = read_size(job, p, c.pl);
        c.next = behind(p, c.pl, now);
        c.size = c.next - c.pl.at - SIZE_NBYTES;
        is_compressed = !now.is_run && !now.is_copy;
        if (is_compressed)
            break;
        output_stream out;
        out.init(uniform_global(job.out + c.pl.to), c.pl.part);
        verdict v = now.is_run ? fill(out, now.value, c.pl.part, job.stop)
                               : copy(out, job, c.pl.at + SIZE_NBYTES, c.size);
        if (uniform(v.result) != WHARF_OK)
            return v;
    }
    return good(0, 0);
}

/*
 * collective.  Streams first to end - 1, of which Inside::decode(s, which, job) decodes those that
 * are compressed; which is an enum wharf_blosc_inside.
 */
template <typename Inside>
WHARF_DEVICE verdict decode_streams(typename Inside::shared &s, const chunk_job &job, const plan &p,
                                    uint32_t first, uint32_t end)
{
    cursor c = begin_streams(job, p, first, end);
    for (;;) {
        bool is_compressed;
        verdict v = find_compressed(job, p, c, is_compressed);
        if (!is_compressed)
            return v;
        v = Inside::decode(s, p.inside, job_inside(job, c.pl, c.size));
        v = verdict_of_stream(v, c.pl, c.size);
        if (uniform(v.result) != WHARF_OK)
            return v;
        leave_stream(job, p, c);
    }
}

/* collective.  Bytes first to first + n - 1 of a chunk of one value, or all of them. */
WHARF_DEVICE verdict repeat_value(const chunk_job &job, const plan &p, uint32_t first, uint32_t n)
{
    uint32_t nbytes = p.block_nbytes;
    output_stream out;
    out.init(uniform_global(job.out + first), n);
    if (nbytes > 8 || (nbytes & (nbytes - 1)) != 0) {
        verdict v = copy(out, job, p.header_nbytes, nbytes);
        for (uint32_t left = n - nbytes; left > 0 && uniform(v.result) == WHARF_OK;) {
            uint32_t piece = left < lz::BYTES_BETWEEN_LOOKS ? left : lz::BYTES_BETWEEN_LOOKS;
            out.copy_match(nbytes, piece);
            left -= piece;
            if (is_stopped(job.stop))
                v = stopped();
        }
        return v;
    }
    uint64_t value = 0;
    if (p.inside == WHARF_BLOSC_NANS)
        value = nbytes == 4 ? 0x7fc00000 : (uint64_t)0x7ff80000 << 32;
    else if (p.inside == WHARF_BLOSC_VALUES)
        for (uint32_t i = 0; i < nbytes; i++)
            value |= (uint64_t)load_nc(job.in + p.header_nbytes + i) << 8 * i;
    while (n > 0) {
        uint32_t piece = n < lz::BYTES_BETWEEN_LOOKS ? n : lz::BYTES_BETWEEN_LOOKS;
        if (nbytes == 1)
            out.write_run<uint8_t>((uint8_t)value, 0, piece);
        else if (nbytes == 2)
            out.write_run<uint16_t>((uint16_t)value, 0, piece / 2);
        else if (nbytes == 4)
            out.write_run<uint32_t>((uint32_t)value, 0, piece / 4);
        else
            out.write_run<uint64_t>(value, 0, piece / 8);
        n -= piece;
        if (n > 0 && is_stopped(job.stop))
            return stopped();
    }
    return good(0, 0);
}

/* collective.  Item i of a plan of a copy or of one value. */
WHARF_DEVICE verdict put_piece(const chunk_job &job, const plan &p, uint32_t i)
{
    uint32_t first = i * p.per_item;
    uint32_t left = p.out_nbytes - first, n = left < p.per_item ? left : p.per_item;
    if (p.kind == OF_VALUES)
        return repeat_value(job, p, first, n);
    output_stream out;
    out.init(uniform_global(job.out + first), n);
    return copy(out, job, p.header_nbytes + first, n);
}

/* collective.  Item i of a plan. */
template <typename Inside>
WHARF_DEVICE verdict decode_item(typename Inside::shared &s, const chunk_job &job, const plan &p,
                                 uint32_t i)
{
    if (p.kind != OF_STREAMS)
        return put_piece(job, p, i);
    uint32_t first = i * p.per_item, left = count_planned(p) - first;
    uint32_t n = left < p.per_item ? left : p.per_item;
    return decode_streams<Inside>(s, job, p, first, first + n);
}

} // namespace blosc
} // namespace wharf

#endif
