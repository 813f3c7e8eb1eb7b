/* SPDX-License-Identifier: Apache-2.0 */
/* rans_kernel.cu: a large rans stream by all warps of a GPU, which share a block's tables. */
#include <errno.h>

#include "kernels/cuda_error.h"
#include "kernels/rans/rans_pieces.cuh"

using namespace wharf;

namespace
{

constexpr unsigned WARPS = 8;
/* 40 warps a multiprocessor, 48 registers a thread. */
constexpr unsigned BLOCKS_PER_SM = 5;

struct block_memory {
    rans::model_tables<rans::PACKED_NBITS> tables;
    rans::word_ring rings[WARPS];
    rans::model m;
    bool good;
};

__global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_SM) rans_kernel(wharf_rans_stream_job job)
{
    __shared__ block_memory s;
    unsigned in_block = threadIdx.x / 32;
    rans::stream in = rans::stream_of(job);
    rans::model m;
    if (in_block == 0) {
        s.good = rans::make_model(in, s.tables, nullptr, m);
        if (lane_id() == 0)
            s.m = m;
    }
    __syncthreads();
    m = s.m;
    /* So that the compiler sees that they are in shared memory. */
    m.packed = s.tables.packed;
    m.ranges = s.tables.bucket.ranges;
    m.buckets = s.tables.bucket.buckets;
    m.distributions = &s.tables.distributions;
    for (uint32_t i = in_block * gridDim.x + blockIdx.x; i < job.n_pieces; i += gridDim.x * WARPS) {
        if (s.good)
            rans::decode_piece(in, m, s.rings[in_block], job, i);
        else if (lane_id() == 0)
            job.outcomes[i] = {WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES};
    }
}

/* Blocks that the current GPU holds at once. */
int count_blocks(unsigned *ret_n)
{
    int device, n_sms, n;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, device));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, rans_kernel, WARPS * 32, 0));
    *ret_n = (unsigned)(n * n_sms);
    return 0;
}

} // namespace

int wharf_cuda_rans_max_pieces(uint32_t *ret_n)
{
    unsigned n_blocks = 0;
    if (int rc = count_blocks(&n_blocks))
        return rc;
    *ret_n = n_blocks * WARPS;
    return 0;
}

int wharf_cuda_decode_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream)
{
    unsigned n_blocks = 0;
    if (int rc = count_blocks(&n_blocks))
        return rc;
    n_blocks = job->n_pieces < n_blocks ? job->n_pieces : n_blocks;
    wharf_rans_stream_job by_value = *job;
    void *arguments[] = {&by_value};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(rans_kernel), n_blocks,
                                    WARPS * 32, arguments, 0, stream));
    return 0;
}
