/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_header.cuh: reads the headers of chunks and of bitshuffle's framing, and checks them in the
 * steps of HEADER in encoders/blosc/blosc_format.h.
 *
 * All lanes do the same: a header is a few bytes.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_HEADER_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_HEADER_CUH

#include "kernels/blosc/blosc_plan.cuh"

namespace wharf
{
namespace blosc
{

constexpr uint32_t INT32_MOST = 0x7fffffff; /* the fields of 4 bytes are signed */

/* Offsets in the last 16 bytes of the extended header. */
constexpr uint32_t METAS_AT = 8, FLAGS_2_AT = 14, FLAGS_3_AT = 15;

/* What only the checks of a header need. */
struct header {
    uint32_t version, flags, flags_3;
    uint32_t chunk_nbytes;
    bool is_extended, is_copy;
    uint32_t special;
};

/* The filters of the extended header, and what undoes each: a reason. */
WHARF_DEVICE uint32_t read_filters(const uint8_t *extension, const header &h, plan &p)
{
    uint32_t reason = WHARF_REASON_NONE;
    WHARF_UNROLL
    for (unsigned i = 0; i < WHARF_BLOSC_N_FILTERS; i++) {
        uint32_t filter = load_nc(extension + i), meta = load_nc(extension + METAS_AT + i);
        /* The first writers of this version left the last filter undefined. */
        if (h.version == WHARF_BLOSC_VERSION_1 + 1 && i == WHARF_BLOSC_N_FILTERS - 1)
            filter = WHARF_BLOSC_FILTER_NONE;
        if (filter > WHARF_BLOSC_FILTER_TRUNCATE)
            reason = WHARF_REASON_BLOSC_FILTER;
        uint64_t operation = filter == WHARF_BLOSC_FILTER_TRUNCATE ? NOTHING : filter;
        uint64_t unit = operation == ORDER_BYTES && meta ? meta : p.element_nbytes;
        p.operations |= operation << 8 * i;
        p.units |= unit << 8 * i;
    }
    return reason;
}

WHARF_DEVICE uint32_t read_extension(const uint8_t *extension, header &h, plan &p)
{
    uint32_t flags_2 = load_nc(extension + FLAGS_2_AT);
    h.flags_3 = load_nc(extension + FLAGS_3_AT);
    h.special = h.flags_3 >> WHARF_BLOSC_SPECIAL_SHIFT & 7;
    if (flags_2 || h.flags_3 & (WHARF_BLOSC_LAZY | WHARF_BLOSC_INSTRUMENTED) ||
        h.special > WHARF_BLOSC_UNINITIALISED)
        return WHARF_REASON_BLOSC_FLAGS;
    return read_filters(extension, h, p);
}

/* The filters that flags stand for, in the last two places. */
WHARF_DEVICE void filters_of_flags(const header &h, plan &p)
{
    constexpr unsigned LAST = 8 * (WHARF_BLOSC_N_FILTERS - 1);
    uint64_t order = h.flags & WHARF_BLOSC_SHUFFLED        ? ORDER_BYTES
                     : h.flags & WHARF_BLOSC_BITS_SHUFFLED ? ORDER_BITS
                                                           : NOTHING;
    uint64_t deltas = h.flags & WHARF_BLOSC_DELTA ? ADD_DELTAS : NOTHING;
    uint64_t unit = p.element_nbytes;
    p.operations = order << LAST | deltas << (LAST - 8);
    p.units = unit << LAST | unit << (LAST - 8);
}

/* Step 5, except for the starts. */
WHARF_DEVICE bool is_special_right(const header &h, const plan &p)
{
    uint32_t value_nbytes = h.chunk_nbytes - p.header_nbytes;
    switch (h.special) {
    case WHARF_BLOSC_NOT_SPECIAL:
        return !h.is_copy || value_nbytes == p.out_nbytes;
    case WHARF_BLOSC_ZEROS:
        return true;
    case WHARF_BLOSC_VALUES:
        return value_nbytes > 0 && p.out_nbytes % value_nbytes == 0;
    case WHARF_BLOSC_NANS:
        return (p.element_nbytes == 4 || p.element_nbytes == 8) &&
               p.out_nbytes % p.element_nbytes == 0;
    default:
        return p.out_nbytes % p.element_nbytes == 0;
    }
}

/* Streams of a block of nbytes; first_nbytes is the size of blocks that the header gives. */
WHARF_DEVICE uint32_t count_streams(const header &h, const plan &p, uint32_t nbytes)
{
    if (h.flags & WHARF_BLOSC_NOT_SPLIT || nbytes < p.block_nbytes)
        return 1;
    bool is_old = h.version == WHARF_BLOSC_VERSION_1 && !h.is_extended;
    if (is_old && (p.element_nbytes > WHARF_BLOSC_SPLITS_MAX ||
                   p.block_nbytes / p.element_nbytes < WHARF_BLOSC_SPLIT_LEAST))
        return 1;
    return p.element_nbytes;
}

/* Steps 1 and 2: a reason. */
WHARF_DEVICE uint32_t read_fields(const chunk_job &job, header &h, plan &p)
{
    constexpr uint32_t BOTH = WHARF_BLOSC_SHUFFLED | WHARF_BLOSC_BITS_SHUFFLED;
    if (job.in_nbytes < WHARF_BLOSC_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    h.version = load_nc(job.in);
    h.flags = load_nc(job.in + 2);
    p.element_nbytes = load_nc(job.in + 3);
    p.out_nbytes = load_le32(job.in + 4);
    p.block_nbytes = load_le32(job.in + 8);
    h.chunk_nbytes = load_le32(job.in + 12);
    p.inside = h.flags >> WHARF_BLOSC_CODEC_SHIFT;
    h.is_copy = (h.flags & WHARF_BLOSC_COPY) != 0;
    h.is_extended = (h.flags & BOTH) == BOTH;
    p.header_nbytes = h.is_extended ? WHARF_BLOSC_EXTENDED_NBYTES : WHARF_BLOSC_HEADER_NBYTES;
    if (h.version < WHARF_BLOSC_VERSION_1 || h.version > WHARF_BLOSC_VERSION_MAX)
        return WHARF_REASON_BLOSC_VERSION;
    if (job.in_nbytes < p.header_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    bool is_wrong = p.element_nbytes == 0 || p.out_nbytes > INT32_MOST ||
                    p.block_nbytes > INT32_MOST || h.chunk_nbytes > INT32_MOST ||
                    (p.out_nbytes > 0 && p.block_nbytes == 0) || h.chunk_nbytes < p.header_nbytes;
    return is_wrong ? WHARF_REASON_BLOSC_HEADER : WHARF_REASON_NONE;
}

/* Steps 3 to 7: a reason. */
WHARF_DEVICE uint32_t check_chunk(const chunk_job &job, header &h, plan &p)
{
    uint32_t reason = WHARF_REASON_NONE;
    if (h.is_extended)
        reason = read_extension(job.in + WHARF_BLOSC_HEADER_NBYTES, h, p);
    else
        filters_of_flags(h, p);
    if (reason != WHARF_REASON_NONE)
        return reason;
    bool has_streams = !h.is_copy && h.special == WHARF_BLOSC_NOT_SPECIAL;
    if (has_streams &&
        (p.inside >= WHARF_BLOSC_N_INSIDE || (h.is_extended && p.inside == WHARF_BLOSC_SNAPPY)))
        return WHARF_REASON_BLOSC_CODEC;
    if (h.chunk_nbytes > job.in_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    p.block_nbytes = p.block_nbytes < p.out_nbytes ? p.block_nbytes : p.out_nbytes;
    p.n_blocks = p.out_nbytes > 0 ? (p.out_nbytes - 1) / p.block_nbytes + 1 : 0;
    if (!is_special_right(h, p) ||
        (has_streams && p.n_blocks > (h.chunk_nbytes - p.header_nbytes) / SIZE_NBYTES))
        return WHARF_REASON_BLOSC_HEADER;
    if (p.out_nbytes > job.out_avail)
        return WHARF_REASON_OUTPUT_FULL;
    bool has_dictionary = h.flags_3 & WHARF_BLOSC_HAS_DICTIONARY;
    return has_streams && p.out_nbytes > 0 && has_dictionary ? WHARF_REASON_BLOSC_FLAGS
                                                             : WHARF_REASON_NONE;
}

/* One lane.  A chunk's header.  Of a chunk of streams the walk has still to find n_good; of one
 * value, block_nbytes is its size, or 0 for a value that is not in the chunk. */
WHARF_DEVICE void read_chunk(const chunk_job &job, plan &p)
{
    header h = {};
    uint32_t reason = read_fields(job, h, p);
    if (reason == WHARF_REASON_NONE)
        reason = check_chunk(job, h, p);
    if (reason != WHARF_REASON_NONE) {
        p.failure = fail(reason, 0);
        return;
    }
    p.in_nbytes = p.end = h.chunk_nbytes;
    p.whole_eights = h.version == WHARF_BLOSC_VERSION_1;
    if (p.out_nbytes == 0)
        return;
    if (h.special != WHARF_BLOSC_NOT_SPECIAL) {
        p.kind = OF_VALUES;
        p.inside = h.special;
        p.block_nbytes = h.special == WHARF_BLOSC_VALUES ? h.chunk_nbytes - p.header_nbytes
                         : h.special == WHARF_BLOSC_NANS ? p.element_nbytes
                                                         : 1;
    } else if (h.is_copy) {
        p.kind = OF_A_COPY;
    } else {
        p.kind = OF_STREAMS;
        p.n_splits = count_streams(h, p, p.block_nbytes);
        p.n_last = count_streams(h, p, nbytes_of_block(p, p.n_blocks - 1));
    }
}

/* One lane.  The same of bitshuffle's framing. */
WHARF_DEVICE void read_frame(const chunk_job &job, plan &p)
{
    p.element_nbytes = job.parameter % WHARF_BLOSC_PARAMETER_LZ4;
    p.inside = job.parameter < WHARF_BLOSC_PARAMETER_ZSTD ? WHARF_BLOSC_LZ4 : WHARF_BLOSC_ZSTD;
    if (job.in_nbytes < WHARF_BLOSC_FRAME_NBYTES) {
        p.failure = fail(WHARF_REASON_INPUT_TRUNCATED, 0);
        return;
    }
    uint64_t out_nbytes = (uint64_t)load_be32(job.in) << 32 | load_be32(job.in + 4);
    uint32_t block_nbytes = load_be32(job.in + 8), eight = 8 * p.element_nbytes;
    if (out_nbytes > (uint64_t)1 << 62 || out_nbytes % p.element_nbytes || block_nbytes == 0 ||
        block_nbytes > INT32_MOST || block_nbytes % eight) {
        p.failure = fail(WHARF_REASON_BLOSC_HEADER, 0);
        return;
    }
    if (out_nbytes > job.out_avail) {
        p.failure = fail(WHARF_REASON_OUTPUT_FULL, 0);
        return;
    }
    p.kind = OF_STREAMS;
    p.is_frame = 1;
    p.header_nbytes = WHARF_BLOSC_FRAME_NBYTES;
    p.end = job.in_nbytes;
    p.out_nbytes = (uint32_t)out_nbytes;
    uint32_t blocked = p.out_nbytes - p.out_nbytes % eight;
    p.block_nbytes = block_nbytes < blocked ? block_nbytes : blocked;
    p.n_blocks = blocked ? (blocked - 1) / block_nbytes + 1 : 0;
    p.n_splits = p.n_last = 1;
    p.operations = ORDER_BITS;
    p.units = p.element_nbytes;
}

} // namespace blosc
} // namespace wharf

#endif
