/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_indexed.cuh: the rans codec for a kernel of its own, for registered models of 16-bit symbols
 * or of several distributions, which chains decode.
 *
 * Such models need no tables in shared memory, so the first-level cache can hold more of the
 * model's image.  All other streams have one decoder a warp here.
 */
#ifndef WHARF_KERNELS_RANS_RANS_INDEXED_CUH
#define WHARF_KERNELS_RANS_RANS_INDEXED_CUH

#include "kernels/rans/rans_decode.cuh"

namespace wharf
{

/* 5 KiB. */
struct rans_indexed_shared {
    union {
        rans::model_tables<rans::SMALL_PACKED_NBITS> tables;
        rans::chain_buffers<rans::N_CHAINS> buffers;
    };
    union {
        rans::word_ring ring;
        rans::index_buffers<rans::N_CHAINS> indexes;
    };
};

namespace rans
{

template <lookup KIND>
WHARF_DEVICE uint32_t walk_by_chains(const stream &in, const model &m, rans_indexed_shared &memory,
                                     const chunk_job &job, watcher &watch, walk &ret_w)
{
    if (KIND != lookup::REGISTERED || !has_chains<KIND>(in, m, job.out))
        return REFUSED;
    chain_setting<N_CHAINS> s = make_setting(in, m, memory.buffers, job.out);
    s.indexes.init(memory.indexes);
    return walk_chains<lookup::REGISTERED>(in, s, watch, ret_w);
}

} // namespace rans
} // namespace wharf

#endif
