/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_kernel.cu: batches on a GPU: one kernel for each decoder, and their launch.
 *
 * A block has warps with a chunk each (batch_kernel), and perhaps one more that helps them
 * (crew_kernel), or one chunk for all (block_kernel).  What a
 * warp does is batch_warp.cuh; here are the shapes of the kernels, asked of the GPU once.  No block
 * waits for another, so it does not matter how many run at once.
 *
 * A batch's scratch: the counters of its warps, the chunks if they come from a program's arrays,
 * and the decoders' own.
 */
#include <errno.h>
#include <stdio.h>

#include <new>

#include "kernels/batch_warp.cuh"
#include "kernels/blosc_kernel.h"
#include "kernels/cuda_batch.h"
#include "kernels/gather_chunks.cuh"
#include "kernels/kernel_shape.cuh"
#include "kernels/line_kernel.h"

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
    unsigned n_warps = shape::WIDE_WARPS ? blockDim.x / 32 : shape::WARPS;
    run_batch_warp<Codec>(s, batch, control, warp, gridDim.x * n_warps,
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

/* Warps with a chunk each, and one that helps them. */
template <typename Codec>
__global__ void __launch_bounds__((Codec::WORKERS + 1) * 32, Codec::BLOCKS_PER_SM)
    crew_kernel(wharf_device_batch batch, batch_control *control, uint8_t *scratch)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    auto &s = *reinterpret_cast<typename Codec::all_shared *>(s_memory);
    run_batch_crew<Codec>(s, batch, control, blockIdx.x, gridDim.x, threadIdx.x / 32, scratch,
                          round_up(Codec::SCRATCH_NBYTES, 256));
}

constexpr unsigned GATHER_THREADS = 256;

/* A chunk a thread; and what warps count by begins anew. */
__global__ void __launch_bounds__(GATHER_THREADS)
    gather_kernel(const __grid_constant__ wharf_device_arrays arrays, batch_control *control,
                  wharf_device_chunk *chunks)
{
    uint32_t i = blockIdx.x * GATHER_THREADS + threadIdx.x;
    if (i == 0)
        *control = {};
    if (i < arrays.n_chunks)
        chunks[i] = gather_chunk(arrays, i);
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
    unsigned n_wide_warps;                /* a wide block; 0: there are none */
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
            0,
            shape::WIDE_WARPS};
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
            0,
            0};
}

template <typename Codec>
kernel_row crew_row_of(uint32_t codec)
{
    static_assert(sizeof(typename Codec::all_shared) <=
                  Codec::WORKERS * round_up(sizeof(typename Codec::shared), 128));
    return {codec,
            reinterpret_cast<const void *>(crew_kernel<Codec>),
            Codec::WORKERS + 1,
            Codec::WORKERS,
            round_up(sizeof(typename Codec::shared), 128),
            round_up(Codec::SCRATCH_NBYTES, 256),
            0,
            0,
            0};
}

#define X(ID, name) 1 +
#define X_SERIAL(ID, name) 3 +
constexpr unsigned N_KERNELS =
    WHARF_DEVICE_CODEC_LIST(X) WHARF_SERIAL_CODEC_LIST(X_SERIAL) WHARF_BLOCK_CODEC_LIST(X)
        WHARF_CREW_CODEC_LIST(X) WHARF_INDEXED_CODEC_LIST(X) WHARF_QUICK_CODEC_LIST(X) 1;
#undef X_SERIAL
#undef X

} // namespace

/* Where what lies in a batch's scratch, in bytes. */
constexpr size_t CHUNKS_AT = round_up(sizeof(batch_control), 256);

struct wharf_cuda_decoder {
    int device;
    unsigned n_sms;
    kernel_row kernels[N_KERNELS];
    unsigned line_blocks_per_sm;
    struct wharf_blosc_shape blosc;
};

static const kernel_row *find_kernel(const wharf_cuda_decoder *decoder, uint32_t codec)
{
    for (const kernel_row &row : decoder->kernels)
        if (row.codec == codec)
            return &row;
    return nullptr;
}

static unsigned grid_of(const wharf_cuda_decoder *decoder, const kernel_row *row, uint32_t n_chunks)
{
    unsigned n_blocks = row->blocks_per_sm * decoder->n_sms;
    return n_chunks < n_blocks ? n_chunks : n_blocks;
}

/* Whether the GPU can hold a wide block of it, which then may have that much shared memory. */
static int fit_wide(kernel_row *row)
{
    int device = 0, most = 0, shared = (int)(row->n_wide_warps * row->shared_nbytes);
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (shared > most)
        row->n_wide_warps = 0;
    else
        WHARF_CUDA_TRY(cudaFuncSetAttribute(row->function,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    return 0;
}

/* Loads the kernel and asks the GPU how many blocks of it it holds. */
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
    return row->n_wide_warps ? fit_wide(row) : 0;
}

static int fit_kernels(wharf_cuda_decoder *decoder)
{
#define X(ID, name) row_of<name##_codec>(WHARF_CODEC_##ID),
#define X_SERIAL(ID, name)                                                                         \
    row_of<name##_serial_codec<serial_ring>>(WHARF_DEVICE_SERIAL | WHARF_CODEC_##ID),              \
        row_of<name##_serial_codec<serial_registers>>(WHARF_DEVICE_SERIAL_REGISTERS |              \
                                                      WHARF_CODEC_##ID),                           \
        block_row_of<name##_prefetch_codec>(WHARF_DEVICE_SERIAL_PREFETCH | WHARF_CODEC_##ID),
#define X_BLOCK(ID, name) block_row_of<name##_block_codec>(WHARF_DEVICE_BLOCK | WHARF_CODEC_##ID),
#define X_CREW(ID, name) crew_row_of<name##_crew_codec>(WHARF_DEVICE_CREW | WHARF_CODEC_##ID),
#define X_INDEXED(ID, name) row_of<name##_indexed_codec>(WHARF_DEVICE_INDEXED | WHARF_CODEC_##ID),
#define X_QUICK(ID, name) row_of<name##_quick_codec>(WHARF_DEVICE_QUICK | WHARF_CODEC_##ID),
    const kernel_row rows[] = {
        WHARF_DEVICE_CODEC_LIST(X) WHARF_SERIAL_CODEC_LIST(X_SERIAL) WHARF_BLOCK_CODEC_LIST(X_BLOCK)
            WHARF_CREW_CODEC_LIST(X_CREW) WHARF_INDEXED_CODEC_LIST(X_INDEXED)
                WHARF_QUICK_CODEC_LIST(X_QUICK) row_of<any_codec>(WHARF_DEVICE_ANY_CODEC)};
#undef X_QUICK
#undef X_INDEXED
#undef X_CREW
#undef X_BLOCK
#undef X_SERIAL
#undef X
    for (unsigned i = 0; i < N_KERNELS; i++) {
        decoder->kernels[i] = rows[i];
        if (int rc = fit_kernel(&decoder->kernels[i]))
            return rc;
    }
    return 0;
}

static int init(wharf_cuda_decoder *decoder)
{
    cudaFuncAttributes attributes;
    int major = 0, n_sms = 0;
    WHARF_CUDA_TRY(cudaGetDevice(&decoder->device));
    WHARF_CUDA_TRY(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, decoder->device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, decoder->device));
    if (major < 8)
        return wharf_cuda_fail(cudaErrorNoKernelImageForDevice,
                               "looking for compute capability 8.0 or later");
    decoder->n_sms = (unsigned)n_sms;
    WHARF_CUDA_TRY(
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(gather_kernel)));
    if (int rc = fit_kernels(decoder))
        return rc;
    if (int rc = wharf_cuda_load_blosc(&decoder->blosc))
        return rc;
    return wharf_cuda_load_line_kernels(&decoder->line_blocks_per_sm);
}

int wharf_cuda_decoder_new(struct wharf_cuda_decoder **ret_decoder)
{
    wharf_cuda_decoder *decoder = new (std::nothrow) wharf_cuda_decoder();
    if (!decoder)
        return -ENOMEM;
    if (int rc = init(decoder)) {
        wharf_cuda_decoder_free(decoder);
        return rc;
    }
    *ret_decoder = decoder;
    return 0;
}

void wharf_cuda_decoder_free(struct wharf_cuda_decoder *decoder)
{
    delete decoder;
}

int wharf_cuda_check_current(const struct wharf_cuda_decoder *decoder)
{
    int device = 0;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    return device == decoder->device
               ? 0
               : wharf_cuda_refuse(-EINVAL, "the current GPU is number %d, not number %d", device,
                                   decoder->device);
}

bool wharf_cuda_has_decoder(uint32_t codec)
{
    switch (codec) {
#define X(ID, name) case WHARF_CODEC_##ID:
        WHARF_DEVICE_CODEC_LIST(X)
#undef X
    case WHARF_CODEC_BLOSC:
        return true;
    default:
        return false;
    }
}

/* A batch's scratch without what decoders take. */
static size_t chunks_nbytes(uint32_t n_chunks)
{
    return round_up(n_chunks * sizeof(wharf_device_chunk), 256);
}

size_t wharf_cuda_scratch_nbytes(const struct wharf_cuda_decoder *decoder, uint32_t kernel,
                                 uint32_t n_chunks, bool has_models)
{
    const kernel_row *row = find_kernel(decoder, kernel);
    if (kernel == WHARF_CODEC_BLOSC)
        return wharf_cuda_blosc_scratch_nbytes(&decoder->blosc, n_chunks);
    if (!row)
        return 0;
    /* A warp with a higher number than there are chunks has none. */
    size_t n = (size_t)grid_of(decoder, row, n_chunks) * row->n_chunks;
    n = n_chunks < n ? n_chunks : n;
    return CHUNKS_AT + chunks_nbytes(n_chunks) + (has_models ? 0 : n * row->scratch_nbytes);
}

static int launch(const wharf_cuda_decoder *decoder, const kernel_row *row,
                  wharf_device_batch batch, uint8_t *d_scratch, CUstream_st *stream)
{
    void *d_own = d_scratch + CHUNKS_AT + chunks_nbytes(batch.n_chunks);
    void *arguments[] = {&batch, &d_scratch, &d_own};
    unsigned n_blocks = grid_of(decoder, row, batch.n_chunks), n_warps = row->n_warps;
    unsigned n_chunks = row->n_chunks;
    /* As many warps in wide blocks, where each has more than a chunk. */
    if (row->n_wide_warps && row->blocks_per_sm * n_warps == row->n_wide_warps &&
        batch.n_chunks > n_blocks * n_warps) {
        n_blocks = decoder->n_sms;
        n_warps = n_chunks = row->n_wide_warps;
    }
    WHARF_CUDA_TRY(cudaLaunchKernel(row->function, n_blocks, n_warps * 32, arguments,
                                    n_chunks * row->shared_nbytes, stream));
    return 0;
}

/* The quick kernel in front of a codec's own, or NULL. */
static const kernel_row *find_quick(const wharf_cuda_decoder *decoder, uint32_t kernel)
{
    bool is_own = (kernel & WHARF_DEVICE_KERNEL_BITS) == 0;
    return is_own ? find_kernel(decoder, WHARF_DEVICE_QUICK | kernel) : nullptr;
}

/* The kernel for what blocks leave, or NULL.  Up to one block a multiprocessor they leave nothing.
 */
static const kernel_row *find_rest(const wharf_cuda_decoder *decoder, const kernel_row *row,
                                   uint32_t n_chunks)
{
    return (row->codec & WHARF_DEVICE_KERNEL_BITS) == WHARF_DEVICE_BLOCK &&
                   n_chunks > decoder->n_sms
               ? find_kernel(decoder, row->codec & ~WHARF_DEVICE_KERNEL_BITS)
               : nullptr;
}

/* Two kernels where one leaves chunks to the other: the codec's quick decoder, if it has one, or
 * blocks, and the codec's own. */
static int launch_both(const wharf_cuda_decoder *decoder, const kernel_row *row,
                       wharf_device_batch batch, uint8_t *d_scratch, CUstream_st *stream)
{
    const kernel_row *quick = find_quick(decoder, row->codec);
    const kernel_row *rest = quick ? row : find_rest(decoder, row, batch.n_chunks);
    if (!rest)
        return launch(decoder, row, batch, d_scratch, stream);
    wharf_device_batch first = batch;
    first.codec |= quick ? 0 : WHARF_DEVICE_LEAVING;
    if (int rc = launch(decoder, quick ? quick : row, first, d_scratch, stream))
        return rc;
    batch.codec = rest->codec | WHARF_DEVICE_REST;
    return launch(decoder, rest, batch, d_scratch, stream);
}

int wharf_cuda_decode_batch(const struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_batch *batch, void *d_scratch,
                            struct CUstream_st *stream)
{
    const kernel_row *row = find_kernel(decoder, batch->codec);
    bool is_blosc = batch->codec == WHARF_CODEC_BLOSC;
    if (!row && !is_blosc)
        return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's kernel");
    if (batch->n_chunks == 0)
        return 0;
    if (is_blosc)
        return wharf_cuda_launch_blosc(&decoder->blosc, nullptr, batch, d_scratch, stream);
    WHARF_CUDA_TRY(cudaMemsetAsync(d_scratch, 0, sizeof(batch_control), stream));
    return launch_both(decoder, row, *batch, static_cast<uint8_t *>(d_scratch), stream);
}

int wharf_cuda_decode_arrays(const struct wharf_cuda_decoder *decoder, uint32_t kernel,
                             const struct wharf_device_arrays *arrays, void *d_scratch,
                             struct CUstream_st *stream)
{
    const kernel_row *row = find_kernel(decoder, kernel);
    uint8_t *scratch = static_cast<uint8_t *>(d_scratch);
    auto *d_chunks = reinterpret_cast<wharf_device_chunk *>(scratch + CHUNKS_AT);
    wharf_device_arrays by_value = *arrays;
    void *arguments[] = {&by_value, &scratch, &d_chunks};
    if (kernel == WHARF_CODEC_BLOSC)
        return wharf_cuda_launch_blosc(&decoder->blosc, arrays, nullptr, d_scratch, stream);
    if (!row)
        return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's kernel");
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(gather_kernel),
                                    (arrays->n_chunks - 1) / GATHER_THREADS + 1, GATHER_THREADS,
                                    arguments, 0, stream));
    wharf_device_batch batch = {d_chunks, arrays->outcomes, arrays->n_chunks, kernel};
    /* Quick decoders leave what has a registered model or a parameter. */
    bool is_plain = !arrays->model && arrays->parameter == 0;
    return is_plain ? launch_both(decoder, row, batch, scratch, stream)
                    : launch(decoder, row, batch, scratch, stream);
}

int wharf_cuda_encode_lines(const struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_arrays *arrays,
                            const struct wharf_device_lines *lines, struct CUstream_st *stream)
{
    return wharf_cuda_launch_lines(arrays, lines, decoder->line_blocks_per_sm * decoder->n_sms,
                                   stream);
}

uint32_t wharf_cuda_choose_kernel(const struct wharf_cuda_decoder *decoder, uint32_t codec,
                                  size_t n_chunks)
{
    const kernel_row *row = find_kernel(decoder, WHARF_DEVICE_BLOCK | codec);
    bool few = row && n_chunks <= (size_t)row->most_chunks * row->blocks_per_sm * decoder->n_sms;
    const kernel_row *crew = find_kernel(decoder, WHARF_DEVICE_CREW | codec);
    return few ? row->codec : crew ? crew->codec : codec;
}

int wharf_cuda_get_kernel_info(const struct wharf_cuda_decoder *decoder, uint32_t codec,
                               struct wharf_cuda_kernel_info *ret_info)
{
    const kernel_row *row = find_kernel(decoder, codec);
    cudaFuncAttributes attributes;
    if (codec == WHARF_CODEC_BLOSC)
        return wharf_cuda_get_blosc_info(&decoder->blosc, decoder->n_sms, ret_info);
    if (!row)
        return wharf_cuda_fail(cudaErrorInvalidValue, "finding the codec's kernel");
    const kernel_row *quick = find_quick(decoder, codec);
    ret_info->n_scratch_nbytes = row->scratch_nbytes * row->n_chunks / row->n_warps;
    row = quick ? quick : row;
    WHARF_CUDA_TRY(cudaFuncGetAttributes(&attributes, row->function));
    ret_info->n_registers = (unsigned)attributes.numRegs;
    ret_info->n_local_nbytes = (unsigned)attributes.localSizeBytes;
    ret_info->n_shared_nbytes = (unsigned)(row->shared_nbytes * row->n_chunks / row->n_warps);
    ret_info->n_warps_per_sm = row->blocks_per_sm * row->n_warps;
    return 0;
}

static int copy_in(const void *from, size_t nbytes, void *d_copy)
{
    WHARF_CUDA_TRY(
        cudaMemcpyAsync(d_copy, from, nbytes, cudaMemcpyHostToDevice, cudaStreamPerThread));
    WHARF_CUDA_TRY(cudaStreamSynchronize(cudaStreamPerThread));
    return 0;
}

int wharf_cuda_copy_in(const struct wharf_cuda_decoder *decoder, const void *from, size_t nbytes,
                       void **ret_d_copy)
{
    void *d_copy = nullptr;
    if (int rc = wharf_cuda_check_current(decoder))
        return rc;
    WHARF_CUDA_TRY(cudaMalloc(&d_copy, nbytes));
    if (int rc = copy_in(from, nbytes, d_copy)) {
        wharf_cuda_copy_free(d_copy);
        return rc;
    }
    *ret_d_copy = d_copy;
    return 0;
}

void wharf_cuda_copy_free(void *d_copy)
{
    /* A failure here is one that was reported when it happened. */
    (void)cudaFree(d_copy);
}
