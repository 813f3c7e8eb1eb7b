/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_decode.cuh: the rans codec, encoders/rans/rans_format.h, on the device: one warp a stream,
 * coder i's symbols by lane i.  Splits are passed and verified, not used.
 */
#ifndef WHARF_KERNELS_RANS_RANS_DECODE_CUH
#define WHARF_KERNELS_RANS_RANS_DECODE_CUH

#include "kernels/rans/rans_groups.cuh"

namespace wharf
{

/* 5 KiB: no more than Deflate takes, for the kernel that has all decoders. */
struct rans_shared {
    rans::model_tables<rans::WARP_PACKED_NBITS> tables;
    rans::word_ring ring;
};
/* First slots of 65536 symbols, for models that do not fit shared memory. */
constexpr size_t RANS_SCRATCH_NBYTES = 2 * rans::INLINE_NSLOTS;
constexpr unsigned RANS_WARPS_PER_SM = 32;

namespace rans
{

/* encoders/rans/rans.h: the codec's parameter is one less than the bytes of a symbol. */
WHARF_DEVICE uint32_t unit_nbytes(uint32_t parameter)
{
    return parameter + 1;
}

/* collective.  All groups of a stream, and its end. */
template <lookup KIND>
WHARF_DEVICE uint32_t walk_all(const stream &in, const model &m, word_ring &ring,
                               const chunk_job &job, uint32_t &ret_bit)
{
    step_counter steps;
    walk w;
    steps.init(job);
    w.out = job.out;
    w.next_word = in.n_words - 1;
    w.group = 0;
    w.state =
        le16_at(in, in.body_at + 4 * lane_id()) << 16 | le16_at(in, in.body_at + 4 * lane_id() + 2);
    first_split(in, w.next);
    ret_bit = 8 * in.body_at;
    if (any_lane(w.state < WHARF_RANS_LOW))
        return WHARF_REASON_RANS_STATE;
    uint32_t reason = walk_groups<KIND>(in, m, ring, steps, w, in.n_groups, ret_bit);
    return reason == WHARF_REASON_NONE ? end_walk(in, w, ret_bit) : reason;
}

} // namespace rans

/* collective. */
WHARF_DEVICE verdict rans_decode(rans_shared &s, const chunk_job &job)
{
    rans::stream in;
    rans::model m;
    uint32_t at;
    uint32_t reason = rans::parse(in, job, at);
    if (reason == WHARF_REASON_RANS_VERSION)
        return bad(WHARF_UNSUPPORTED, reason, 0);
    if (reason != WHARF_REASON_NONE)
        return bad(WHARF_BAD_DATA, reason, 8 * at);
    if (in.symbol_nbytes != rans::unit_nbytes(job.parameter))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_HEADER, 0);
    if (!rans::make_model(in, s.tables, job.scratch, m))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES);
    if (in.n_symbols > job.out_avail / in.symbol_nbytes)
        return bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * in.body_at);
    uint32_t bit;
    if (m.kind == rans::lookup::PACKED)
        reason = rans::walk_all<rans::lookup::PACKED>(in, m, s.ring, job, bit);
    else if (m.kind == rans::lookup::BUCKET)
        reason = rans::walk_all<rans::lookup::BUCKET>(in, m, s.ring, job, bit);
    else
        reason = rans::walk_all<rans::lookup::GENERAL>(in, m, s.ring, job, bit);
    if (reason == WHARF_REASON_STEP_BUDGET)
        return bad(WHARF_INTERNAL, reason, bit);
    if (reason != WHARF_REASON_NONE)
        return bad(WHARF_BAD_DATA, reason, bit);
    return good(job.in_nbytes, in.n_symbols * in.symbol_nbytes);
}

} // namespace wharf

#endif
