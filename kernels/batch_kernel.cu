/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_kernel.cu: batches on a GPU: one kernel for each decoder, and their launch.
 *
 * A block has warps with a chunk each (batch_kernel), or one chunk for all (block_kernel).  What a
 * warp does is batch_warp.cuh; here are the shapes of the kernels, asked of the GPU once.
 */
#include <errno.h>
#include <stdio.h>

#include <new>

#include "kernels/batch_warp.cuh"
#include "kernels/cuda_batch.h"
#include "kernels/kernel_shape.cuh"

using namespace wharf;

namespace
{

template <typename Codec>
__global__ void __launch_bounds__(kernel_shape<Codec>::THREADS, kernel_shape<Codec>::BLOCKS_PER_SM)
    batch_kernel(wharf_device_batch batch, batch_control *control, uint8_t *scratch)
{
    using shape = kernel_shape<Codec>;
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    auto &s =
        *reinterpret_cast<typename Codec::shared *>(s_memory + in_block * shape::SHARED_NBYTES);
    /* The first chunks go to the first warps of all blocks, so that few chunks spread over all
     * multiprocessors. */
    uint32_t warp = in_block * gridDim.x + blockIdx.x;
    run_batch_warp<Codec>(s, batch, control, warp, gridDim.x * shape::WARPS,
                          scratch + warp * shape::SCRATCH_NBYTES);
}

/* All warps of a block on one chunk. */
template <typename Codec>
__global__ void __launch_bounds__(Codec::WARPS * 32, Codec::BLOCKS_PER_SM)
    block_kernel(wharf_device_batch batch, batch_control *control, uint8_t *scratch)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    auto &s = *reinterpret_cast<typename Codec::shared *>(s_memory);
    run_batch_block<Codec>(s, batch, control, blockIdx.x, gridDim.x, threadIdx.x / 32,
                           scratch + blockIdx.x * round_up(Codec::SCRATCH_NBYTES, 256));
}

/* One kernel, as the host needs to know it. */
struct kernel_row {
    uint32_t codec;
    const void *function;
    unsigned n_warps;                     /* a block */
    unsigned n_chunks;                    /* a block, at a time */
    size_t shared_nbytes, scratch_nbytes; /* for each of these */
    unsigned most_chunks;                 /* of a block of warps for each */
    unsigned blocks_per_sm;               /* that this GPU holds */
};

template <typename Codec>
kernel_row row_of(uint32_t codec)
{
    using shape = kernel_shape<Codec>;
    return {codec,
            reinterpret_cast<const void *>(batch_kernel<Codec>),
            shape::WARPS,
            shape::WARPS,
            shape::SHARED_NBYTES,
            shape::SCRATCH_NBYTES,
            0,
            0};
}

template <typename Codec>
kernel_row block_row_of(uint32_t codec)
{
    return {codec,
            reinterpret_cast<const void *>(block_kernel<Codec>),
            Codec::WARPS,
            1,
            round_up(sizeof(typename Codec::shared), 128),
            round_up(Codec::SCRATCH_NBYTES, 256),
            Codec::MOST_CHUNKS,
            0};
}

#define X(ID, name) 1 +
#define X_SERIAL(ID, name) 3 +
constexpr unsigned N_KERNELS = WHARF_DEVICE_CODEC_LIST(X) WHARF_SERIAL_CODEC_LIST(X_SERIAL)
    WHARF_BLOCK_CODEC_LIST(X) WHARF_INDEXED_CODEC_LIST(X) 1;
#undef X_SERIAL
#undef X

} // namespace

struct wharf_cuda_decoder {
    unsigned n_sms;
    kernel_row kernels[N_KERNELS];
    batch_control *d_control;
    uint8_t *d_scratch;
};

static const kernel_row *find_kernel(const wharf_cuda_decoder *decoder, uint32_t codec)
{
    for (const kernel_row &row : decoder->kernels)
        if (row.codec == codec)
            return &row;
    return nullptr;
}

/* Asks the GPU how many blocks of this kernel it holds. */
static int fit_kernel(kernel_row *row)
{
    int n = 0;
    size_t shared = row->n_chunks * row->shared_nbytes;
    WHARF_CUDA_TRY(cudaFuncSetAttribute(row->function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)shared));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, row->function,
                                                                 (int)row->n_warps * 32, shared));
    if (n < 1)
        return wharf_cuda_fail(cudaErrorInvalidConfiguration, "fitting a kernel into this GPU");
    row->blocks_per_sm = (unsigned)n;
    return 0;
}

static int init(wharf_cuda_decoder *decoder, int device)
{
    cudaDeviceProp properties;
    WHARF_CUDA_TRY(cudaSetDevice(device));
    WHARF_CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    if (properties.major < 8)
        return wharf_cuda_fail(cudaErrorNoKernelImageForDevice,
                               "looking for compute capability 8.0 or later");
    decoder->n_sms = (unsigned)properties.multiProcessorCount;

#define X(ID, name) row_of<name##_codec>(WHARF_CODEC_##ID),
#define X_SERIAL(ID, name)                                                                         \
    row_of<name##_serial_codec<serial_ring>>(WHARF_DEVICE_SERIAL | WHARF_CODEC_##ID),              \
        row_of<name##_serial_codec<serial_registers>>(WHARF_DEVICE_SERIAL_REGISTERS |              \
                                                      WHARF_CODEC_##ID),                           \
        block_row_of<name##_prefetch_codec>(WHARF_DEVICE_SERIAL_PREFETCH | WHARF_CODEC_##ID),
#define X_BLOCK(ID, name) block_row_of<name##_block_codec>(WHARF_DEVICE_BLOCK | WHARF_CODEC_##ID),
#define X_INDEXED(ID, name) row_of<name##_indexed_codec>(WHARF_DEVICE_INDEXED | WHARF_CODEC_##ID),
    const kernel_row rows[] = {
        WHARF_DEVICE_CODEC_LIST(X) WHARF_SERIAL_CODEC_LIST(X_SERIAL) WHARF_BLOCK_CODEC_LIST(X_BLOCK)
            WHARF_INDEXED_CODEC_LIST(X_INDEXED) row_of<any_codec>(WHARF_DEVICE_ANY_CODEC)};
#undef X_INDEXED
#undef X_BLOCK
#undef X_SERIAL
#undef X
    size_t scratch_nbytes = 0;
    for (unsigned i = 0; i < N_KERNELS; i++) {
        kernel_row *row = &decoder->kernels[i];
        *row = rows[i];
        if (int rc = fit_kernel(row))
            return rc;
        size_t nbytes =
            (size_t)row->blocks_per_sm * decoder->n_sms * row->n_chunks * row->scratch_nbytes;
        scratch_nbytes = nbytes > scratch_nbytes ? nbytes : scratch_nbytes;
    }
    WHARF_CUDA_TRY(cudaMalloc(&decoder->d_control, sizeof(batch_control)));
    WHARF_CUDA_TRY(cudaMemset(decoder->d_control, 0, sizeof(batch_control)));
    if (scratch_nbytes)
        WHARF_CUDA_TRY(cudaMalloc(&decoder->d_scratch, scratch_nbytes));
    return 0;
}

int wharf_cuda_decoder_new(int device, struct wharf_cuda_decoder **ret_decoder)
{
    wharf_cuda_decoder *decoder = new (std::nothrow) wharf_cuda_decoder();
    if (!decoder)
        return -ENOMEM;
    if (int rc = init(decoder, device)) {
        wharf_cuda_decoder_free(decoder);
        return rc;
    }
    *ret_decoder = decoder;
    return 0;
}

void wharf_cuda_decoder_free(struct wharf_cuda_decoder *decoder)
{
    if (!decoder)
        return;
    /* A failure here is one that was reported when it happened. */
    (void)cudaFree(decoder->d_control);
    (void)cudaFree(decoder->d_scratch);
    delete decoder;
}

int wharf_cuda_decode_batch(struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_batch *batch, struct CUstream_st *stream)
{
    const kernel_row *row = find_kernel(decoder, batch->codec);
    if (!row)
        return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's kernel");
    if (batch->n_chunks == 0)
        return 0;
    unsigned n_blocks = row->blocks_per_sm * decoder->n_sms;
    n_blocks = batch->n_chunks < n_blocks ? batch->n_chunks : n_blocks;
    wharf_device_batch by_value = *batch;
    void *arguments[] = {&by_value, &decoder->d_control, &decoder->d_scratch};
    WHARF_CUDA_TRY(cudaLaunchKernel(row->function, n_blocks, row->n_warps * 32, arguments,
                                    row->n_chunks * row->shared_nbytes, stream));
    return 0;
}

uint32_t wharf_cuda_choose_kernel(const struct wharf_cuda_decoder *decoder, uint32_t codec,
                                  size_t n_chunks)
{
    const kernel_row *row = find_kernel(decoder, WHARF_DEVICE_BLOCK | codec);
    bool few = row && n_chunks <= (size_t)row->most_chunks * row->blocks_per_sm * decoder->n_sms;
    return few ? row->codec : codec;
}

int wharf_cuda_kernel_info(struct wharf_cuda_decoder *decoder, uint32_t codec,
                           struct wharf_cuda_kernel_info *ret_info)
{
    const kernel_row *row = find_kernel(decoder, codec);
    cudaFuncAttributes attributes;
    if (!row)
        return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's kernel");
    WHARF_CUDA_TRY(cudaFuncGetAttributes(&attributes, row->function));
    ret_info->n_registers = (unsigned)attributes.numRegs;
    ret_info->n_local_nbytes = (unsigned)attributes.localSizeBytes;
    ret_info->n_shared_nbytes = (unsigned)(row->shared_nbytes * row->n_chunks / row->n_warps);
    ret_info->n_scratch_nbytes = row->scratch_nbytes * row->n_chunks / row->n_warps;
    ret_info->n_warps_per_sm = row->blocks_per_sm * row->n_warps;
    return 0;
}
