/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_decode.cuh: the rans codec (encoders/rans/rans_format.h) on the device, one warp a stream.
 * Lane i decodes the symbols of coder i.
 *
 * A stream with enough splits is decoded as four chains, which take turns (rans_chains.cuh); any
 * other stream, and any that chains refuse, by one decoder (rans_groups.cuh), which alone reports
 * errors.  RANS.md explains the design.
 */
#ifndef WHARF_KERNELS_RANS_RANS_DECODE_CUH
#define WHARF_KERNELS_RANS_RANS_DECODE_CUH

#include "kernels/rans/rans_symbols.cuh"

namespace wharf
{

/* 12 KiB: decoders side by side. */
struct rans_shared {
    union {
        rans::model_tables<rans::PACKED_NBITS> tables;
        rans::index_buffers<rans::N_CHAINS> indexes; /* of models that have no tables here */
    };
    union {
        rans::chain_buffers<rans::N_CHAINS> buffers;
        rans::word_ring ring;
    };
};
/* 5 KiB and one decoder: no more than Deflate takes, for the kernel that has all decoders. */
struct rans_small_shared {
    rans::model_tables<rans::SMALL_PACKED_NBITS> tables;
    rans::word_ring ring;
};
template <>
struct shared_among_all<rans_shared> {
    using type = rans_small_shared;
    static constexpr unsigned WARPS_PER_SM = 32;
};
/* First slots of 65536 symbols, for models that do not fit shared memory. */
constexpr size_t RANS_SCRATCH_NBYTES = 2 * rans::INLINE_NSLOTS;
constexpr unsigned RANS_WARPS_PER_SM = 16;

namespace rans
{

/* encoders/rans/rans.h: the codec's parameter is one less than the bytes of a symbol. */
WHARF_DEVICE uint32_t unit_nbytes(uint32_t parameter)
{
    return parameter + 1;
}

/* Whether chains are for such a stream. */
template <lookup KIND>
WHARF_DEVICE bool has_chains(const stream &in, const model &m, const uint8_t *out)
{
    return KIND != lookup::GENERAL && in.n_splits >= N_CHAINS && has_aligned_symbols<KIND>(m, out);
}

/* collective.  As far as chains go, each from a quarter of the splits on: the walk is behind them;
 * or the reason why not. */
template <lookup KIND>
WHARF_DEVICE uint32_t walk_chains(const stream &in, const chain_setting<N_CHAINS> &s,
                                  watcher &watch, walk &ret_w)
{
    chains<N_CHAINS> c;
    split at[N_CHAINS + 1];
    at[0] = edge_split(in, 0);
    WHARF_UNROLL
    for (unsigned k = 1; k < N_CHAINS; k++)
        at[k] = in.quarters[k - 1];
    at[N_CHAINS] = edge_split(in, in.n_splits);
    if (!begin_chains(s, c, at))
        return REFUSED;
    uint32_t reason = run_chains<KIND>(s, c, at[N_CHAINS], watch, ret_w);
    syncwarp(); /* the buffers' memory may be used otherwise */
    return reason;
}

template <lookup KIND>
WHARF_DEVICE uint32_t walk_by_chains(const stream &in, const model &m, rans_shared &memory,
                                     const chunk_job &job, watcher &watch, walk &ret_w)
{
    if (!has_chains<KIND>(in, m, job.out))
        return REFUSED;
    chain_setting<N_CHAINS> s = make_setting(in, m, memory.buffers, job.out);
    s.tables.init(memory.tables);
    s.indexes.init(memory.indexes);
    return walk_chains<KIND>(in, s, watch, ret_w);
}

template <lookup KIND>
WHARF_DEVICE uint32_t walk_by_chains(const stream &, const model &, rans_small_shared &,
                                     const chunk_job &, watcher &, walk &)
{
    return REFUSED;
}

/* collective.  The tables of the stream's model, or of the registered one: false by rule 2.  Not
 * inlined: see rans_chains.cuh. */
template <typename Shared>
WHARF_DEVICE_NOINLINE bool prepare_model(const stream &in, shared_ref<Shared> memory,
                                         const chunk_job &job, model &m)
{
    Shared &s = memory.get();
    return take_model(in, s.tables, job.model, job.scratch, m);
}

/* collective.  walk_groups to the stream's end, from its beginning or from `there` on; not inlined:
 * see rans_chains.cuh. */
template <lookup KIND, typename Shared>
WHARF_DEVICE_NOINLINE uint32_t walk_rest(const stream &in, const model &m,
                                         shared_ref<Shared> memory, const chunk_job &job,
                                         watcher &watch, bool begins, const walk &there,
                                         uint32_t &ret_bit)
{
    Shared &s = memory.get();
    walk w = {};
    if (begins) {
        begin_walk(in, job.out, w);
        ret_bit = 8 * in.body_at;
        if (any_lane(w.state < WHARF_RANS_LOW))
            return WHARF_REASON_RANS_STATE;
    } else {
        w = there;
    }
    uint32_t reason =
        walk_groups<KIND>(in, with_tables(m, s.tables), s.ring, watch, w, in.n_groups, ret_bit);
    return reason == WHARF_REASON_NONE ? end_walk(in, w, ret_bit) : reason;
}

/* collective.  All groups of a stream, and its end. */
template <lookup KIND, typename Shared>
WHARF_DEVICE uint32_t walk_all(const stream &in, const model &m, Shared &memory,
                               const chunk_job &job, uint32_t &ret_bit)
{
    shared_ref<Shared> s;
    watcher watch;
    walk w;
    s.init(memory);
    watch.init(job.step_budget, job.stop);
    ret_bit = 8 * in.body_at;
    uint32_t reason = walk_by_chains<KIND>(in, m, memory, job, watch, w);
    if (reason == WHARF_REASON_NONE || reason == REFUSED)
        reason = walk_rest<KIND>(in, m, s, job, watch, reason == REFUSED, w, ret_bit);
    return reason;
}

/* collective.  The same for the kind of tables that the model has. */
template <typename Shared>
WHARF_DEVICE uint32_t walk_by_kind(const stream &in, const model &m, Shared &s,
                                   const chunk_job &job, uint32_t &ret_bit)
{
    switch (m.kind) {
    case lookup::PACKED:
        return walk_all<lookup::PACKED>(in, m, s, job, ret_bit);
    case lookup::BUCKET:
        return walk_all<lookup::BUCKET>(in, m, s, job, ret_bit);
    case lookup::REGISTERED:
        return walk_all<lookup::REGISTERED>(in, m, s, job, ret_bit);
    default:
        return walk_all<lookup::GENERAL>(in, m, s, job, ret_bit);
    }
}

} // namespace rans

/* collective.  With the one or the other shared memory. */
template <typename Shared>
WHARF_DEVICE verdict rans_decode(Shared &s, const chunk_job &job)
{
    rans::stream in;
    rans::model m;
    uint32_t at;
    uint32_t reason = rans::parse(in, job, at);
    if (reason == WHARF_REASON_RANS_VERSION)
        return bad(WHARF_UNSUPPORTED, reason, 0);
    if (reason == rans::STOPPED)
        return stopped();
    if (reason != WHARF_REASON_NONE)
        return bad(WHARF_BAD_DATA, reason, 8 * at);
    if (job.model ? !rans::image_fits(in, job.model)
                  : in.symbol_nbytes != rans::unit_nbytes(job.parameter))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_HEADER, 0);
    shared_ref<Shared> memory;
    memory.init(s);
    if (!rans::prepare_model(in, memory, job, m))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES);
    if (in.n_symbols > job.out_avail / in.symbol_nbytes)
        return bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * in.body_at);
    uint32_t bit;
    reason = rans::walk_by_kind(in, m, s, job, bit);
    if (reason == rans::STOPPED)
        return stopped();
    if (reason == WHARF_REASON_STEP_BUDGET)
        return bad(WHARF_INTERNAL, reason, bit);
    if (reason != WHARF_REASON_NONE)
        return bad(WHARF_BAD_DATA, reason, bit);
    return good(job.in_nbytes, in.n_symbols * in.symbol_nbytes);
}

} // namespace wharf

#endif
