/* SPDX-License-Identifier: Apache-2.0 */
/* line_kernel.cu: encoders of lines, a warp for each chunk, and their launch. */
#include "kernels/line_kernel.h"

#include "encoders/wharf_codec.h"
#include "kernels/cuda_error.h"
#include "kernels/line_warp.cuh"

using namespace wharf;

namespace
{

/* Four warps a block; a multiprocessor's registers let in 32 warps of 64 registers a lane. */
constexpr unsigned WARPS = 4, BLOCKS_PER_SM = 8;

template <uint32_t CODEC, uint32_t TYPE>
struct block_memory {
    line_encode_shared<CODEC, TYPE> of_warp[WARPS];
};

template <uint32_t CODEC, uint32_t TYPE>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_SM)
    line_encode_kernel(const __grid_constant__ wharf_device_arrays arrays,
                       const __grid_constant__ wharf_device_lines lines)
{
    __shared__ __align__(128) block_memory<CODEC, TYPE> memory;
    unsigned in_block = uniform(threadIdx.x / 32);
    run_line_warp<CODEC, TYPE>(memory.of_warp[in_block], arrays, lines,
                               in_block * gridDim.x + blockIdx.x, gridDim.x * WARPS);
}

struct line_row {
    uint32_t codec;
    uint32_t type;
    const void *function;
};

template <uint32_t CODEC, uint32_t TYPE = 0>
line_row row_of()
{
    return {CODEC, TYPE, reinterpret_cast<const void *>(line_encode_kernel<CODEC, TYPE>)};
}

const line_row ROWS[] = {row_of<WHARF_CODEC_BDI>(),
                         row_of<WHARF_CODEC_FPC>(),
                         row_of<WHARF_CODEC_CPACK>(),
                         row_of<WHARF_CODEC_BEST>(),
                         row_of<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(),
                         row_of<WHARF_CODEC_PALETTE, WHARF_LINE_F16>(),
                         row_of<WHARF_CODEC_PALETTE, WHARF_LINE_E4M3>(),
                         row_of<WHARF_CODEC_PALETTE, WHARF_LINE_E5M2>()};

} // namespace

int wharf_cuda_load_line_kernels(unsigned *ret_blocks_per_sm)
{
    int least = BLOCKS_PER_SM;
    for (const line_row &row : ROWS) {
        int n = 0;
        WHARF_CUDA_TRY(
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, row.function, WARPS * 32, 0));
        least = n < least ? n : least;
    }
    *ret_blocks_per_sm = (unsigned)(least > 0 ? least : 1);
    return 0;
}

int wharf_cuda_launch_lines(const struct wharf_device_arrays *arrays,
                            const struct wharf_device_lines *lines, unsigned max_blocks,
                            struct CUstream_st *stream)
{
    wharf_device_arrays arrays_by_value = *arrays;
    wharf_device_lines lines_by_value = *lines;
    void *arguments[] = {&arrays_by_value, &lines_by_value};
    for (const line_row &row : ROWS)
        if (row.codec == arrays->codec && row.type == lines->type) {
            WHARF_CUDA_TRY(cudaLaunchKernel(
                row.function, arrays->n_chunks < max_blocks ? arrays->n_chunks : max_blocks,
                WARPS * 32, arguments, 0, stream));
            return 0;
        }
    return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's encoder");
}
