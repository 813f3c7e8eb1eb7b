/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_kernel.cu: the kernels that decode one Deflate, zlib or gzip stream by the whole GPU, and
 * their launch: kernels/inflate_parts.h.
 */
#include "encoders/wharf_codec.h"
#include "kernels/cuda_error.h"
#include "kernels/inflate/inflate_chain.cuh"
#include "kernels/inflate/inflate_crc.cuh"
#include "kernels/inflate/inflate_deliver.cuh"
#include "kernels/inflate/inflate_find.cuh"
#include "kernels/inflate/inflate_measure.cuh"
#include "kernels/inflate/inflate_rest.cuh"
#include "kernels/inflate/inflate_windows.cuh"

using namespace wharf;
using namespace wharf::inflate;

namespace
{

/* Warps of a block that decodes, as of those that decode chunks (kernel_shape.cuh). */
constexpr unsigned WARPS = 4;
constexpr size_t MEASURE_NBYTES = (sizeof(measure_shared) + 127) / 128 * 128;
constexpr size_t DELIVER_NBYTES = (sizeof(deflate_shared) + 127) / 128 * 128;

__global__ void __launch_bounds__(FIND_WARPS * 32)
    inflate_find_kernel(const __grid_constant__ wharf_inflate_job job)
{
    __shared__ find_shared s;
    find_parts(s, uniform(threadIdx.x / 32), job);
}

__global__ void __launch_bounds__(WARPS * 32, MEASURE_WARPS_PER_SM / WARPS)
    inflate_measure_kernel(const __grid_constant__ wharf_inflate_job job)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    measure_parts(*reinterpret_cast<measure_shared *>(s_memory + in_block * MEASURE_NBYTES), job,
                  in_block * gridDim.x + blockIdx.x);
}

__global__ void __launch_bounds__(CHAIN_THREADS)
    inflate_chain_kernel(const __grid_constant__ wharf_inflate_job job)
{
    __shared__ chain_shared s;
    chain_parts(s, uniform(threadIdx.x / 32), job);
}

__global__ void __launch_bounds__(WINDOW_THREADS)
    inflate_compose_kernel(const __grid_constant__ wharf_inflate_job job)
{
    compose_group(job, uniform(threadIdx.x / 32), blockIdx.x);
}

__global__ void __launch_bounds__(WINDOW_THREADS)
    inflate_join_kernel(const __grid_constant__ wharf_inflate_job job)
{
    join_groups(job, uniform(threadIdx.x / 32));
}

__global__ void __launch_bounds__(WINDOW_THREADS)
    inflate_settle_kernel(const __grid_constant__ wharf_inflate_job job)
{
    settle_windows(job, uniform(threadIdx.x / 32), blockIdx.x, gridDim.x);
}

template <typename Sum>
__global__ void __launch_bounds__(WARPS * 32, DEFLATE_WARPS_PER_SM / WARPS)
    inflate_deliver_kernel(const __grid_constant__ wharf_inflate_job job)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    deliver_links<Sum>(*reinterpret_cast<deflate_shared *>(s_memory + in_block * DELIVER_NBYTES),
                       job);
}

template <typename Sum>
__global__ void __launch_bounds__(DEFLATE_BLOCK_WARPS * 32, 1)
    inflate_deliver_few_kernel(const __grid_constant__ wharf_inflate_job job)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    deliver_links_together<Sum>(*reinterpret_cast<deflate_block_shared *>(s_memory),
                                threadIdx.x / 32, job);
}

template <typename Sum>
__global__ void __launch_bounds__(REST_WARPS * 32, 1)
    inflate_rest_kernel(const __grid_constant__ wharf_inflate_job job)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    finish_stream<Sum>(*reinterpret_cast<rest_shared *>(s_memory), job, threadIdx.x / 32);
}

__global__ void __launch_bounds__(WARPS * 32)
    inflate_crc_kernel(const __grid_constant__ wharf_inflate_job job)
{
    add_crc(job, uniform(threadIdx.x / 32) * gridDim.x + blockIdx.x, WARPS * gridDim.x);
}

/* About the root of how many links there mostly are: they are followed one after the other within
 * groups, and so are groups. */
constexpr unsigned N_GROUPS = 96;
/* As soon as one block of warps, which takes no detours, the whole GPU decodes a stream of about
 * this size; a part has a block or two of most encoders; and one of theirs is found in any stream.
 */
constexpr uint64_t LEAST_NBYTES = 384 << 10, LEAST_PART_NBYTES = 16 << 10,
                   LEAST_MOST_NBYTES = 256 << 10;

/* A kernel and its shape. */
struct kernel {
    const void *function;
    unsigned n_threads;
    size_t shared_nbytes; /* dynamic */
};

#define KERNEL(function, n_threads, shared_nbytes)                                                 \
    {                                                                                              \
        reinterpret_cast<const void *>(function), n_threads, shared_nbytes                         \
    }
const kernel FIND = KERNEL(inflate_find_kernel, FIND_WARPS * 32, 0);
const kernel MEASURE = KERNEL(inflate_measure_kernel, WARPS * 32, WARPS *MEASURE_NBYTES);
const kernel CHAIN = KERNEL(inflate_chain_kernel, CHAIN_THREADS, 0);
const kernel COMPOSE = KERNEL(inflate_compose_kernel, WINDOW_THREADS, 0);
const kernel JOIN = KERNEL(inflate_join_kernel, WINDOW_THREADS, 0);
const kernel SETTLE = KERNEL(inflate_settle_kernel, WINDOW_THREADS, 0);
const kernel CRC = KERNEL(inflate_crc_kernel, WARPS * 32, 0);

template <typename Sum>
const kernel DELIVER = KERNEL(inflate_deliver_kernel<Sum>, WARPS * 32, WARPS *DELIVER_NBYTES);
template <typename Sum>
const kernel DELIVER_FEW = KERNEL(inflate_deliver_few_kernel<Sum>, DEFLATE_BLOCK_WARPS * 32,
                                  sizeof(deflate_block_shared));
template <typename Sum>
const kernel REST = KERNEL(inflate_rest_kernel<Sum>, REST_WARPS * 32, sizeof(rest_shared));
#undef KERNEL

/* Loads a kernel; how many blocks of it the GPU holds at once. */
int fit(const kernel &k, unsigned *ret_n_blocks)
{
    int device, n_sms, n;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, device));
    WHARF_CUDA_TRY(cudaFuncSetAttribute(k.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)k.shared_nbytes));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, (int)k.n_threads,
                                                                 k.shared_nbytes));
    if (n < 1)
        return wharf_cuda_fail(cudaErrorInvalidConfiguration, "fitting a kernel into this GPU");
    *ret_n_blocks = (unsigned)(n * n_sms);
    return 0;
}

int launch(const kernel &k, unsigned n_blocks, const wharf_inflate_job &job, CUstream_st *stream)
{
    wharf_inflate_job by_value = job;
    void *arguments[] = {&by_value};
    WHARF_CUDA_TRY(
        cudaLaunchKernel(k.function, n_blocks, k.n_threads, arguments, k.shared_nbytes, stream));
    return 0;
}

/* Few parts are spread over all multiprocessors. */
unsigned decoding_blocks(const wharf_inflate_job &job)
{
    unsigned n_held = job.n_warps / WARPS;
    return job.n_rings < n_held ? job.n_rings : n_held;
}

template <typename Sum>
int launch_deliver(const wharf_inflate_job &job, CUstream_st *stream)
{
    if (job.n_parts == 1)
        return 0;
    if (job.first_link > 0)
        WHARF_CUDA_TRY(cudaMemsetAsync(&job.control->n_delivered, 0,
                                       sizeof(job.control->n_delivered), stream));
    return job.n_blocks > 0 ? launch(DELIVER_FEW<Sum>, job.n_blocks, job, stream)
                            : launch(DELIVER<Sum>, decoding_blocks(job), job, stream);
}

template <typename Sum>
int launch_rest(const wharf_inflate_job &job, CUstream_st *stream)
{
    if (int rc = launch(REST<Sum>, 1, job, stream))
        return rc;
    return job.wants_crc ? launch(CRC, job.n_warps / WARPS, job, stream) : 0;
}

} // namespace

int wharf_cuda_load_inflate(struct wharf_inflate_shape *ret_shape)
{
    unsigned n_measure = 0, n_few = 0, n = 0;
    for (const kernel &k :
         {FIND, CHAIN, COMPOSE, JOIN, SETTLE, CRC, DELIVER<flate::no_sum>, DELIVER<adler32_sum>,
          DELIVER<crc32_sum>, DELIVER_FEW<flate::no_sum>, DELIVER_FEW<adler32_sum>,
          REST<flate::no_sum>, REST<adler32_sum>, REST<crc32_sum>})
        if (int rc = fit(k, &n))
            return rc;
    if (int rc = fit(DELIVER_FEW<crc32_sum>, &n_few))
        return rc;
    if (int rc = fit(MEASURE, &n_measure))
        return rc;
    *ret_shape = {n_measure * WARPS, n_few,           N_GROUPS, LEAST_NBYTES, LEAST_PART_NBYTES,
                  LEAST_MOST_NBYTES, MAX_CHUNK_NBYTES};
    return 0;
}

int wharf_cuda_start_inflate_find(const struct wharf_inflate_job *job, struct CUstream_st *stream)
{
    wharf_inflate_control *control = job->control;
    uint32_t n = job->end_part - job->first_part;
    if (job->first_part == 0)
        WHARF_CUDA_TRY(cudaMemsetAsync(control, 0, sizeof(*control), stream));
    else
        WHARF_CUDA_TRY(
            cudaMemsetAsync(&control->n_searched, 0, sizeof(control->n_searched), stream));
    if (job->n_parts == 1 || n == 0)
        return 0;
    return launch(FIND, (n + FIND_WARPS - 1) / FIND_WARPS, *job, stream);
}

int wharf_cuda_start_inflate_measure(const struct wharf_inflate_job *job,
                                     struct CUstream_st *stream)
{
    wharf_inflate_control *control = job->control;
    if (job->n_parts == 1 || job->first_part == job->end_part)
        return 0;
    if (job->first_part > 0)
        WHARF_CUDA_TRY(
            cudaMemsetAsync(&control->n_measured, 0, sizeof(control->n_measured), stream));
    wharf_inflate_job measured = *job;
    measured.slice_nbytes = wharf_inflate_measured_slice(job);
    return launch(MEASURE, decoding_blocks(measured), measured, stream);
}

int wharf_cuda_start_inflate_chain(const struct wharf_inflate_job *job, struct CUstream_st *stream)
{
    struct {
        const kernel &k;
        unsigned n_blocks;
    } const steps[] = {
        {CHAIN, 1},
        {COMPOSE, job->n_groups},
        {JOIN, 1},
        {SETTLE, decoding_blocks(*job)},
    };
    if (job->n_parts == 1)
        return 0;
    for (const auto &step : steps)
        if (int rc = launch(step.k, step.n_blocks, *job, stream))
            return rc;
    return 0;
}

int wharf_cuda_start_inflate_deliver(const struct wharf_inflate_job *job,
                                     struct CUstream_st *stream)
{
    switch (job->codec) {
    case WHARF_CODEC_GZIP:
        return launch_deliver<crc32_sum>(*job, stream);
    case WHARF_CODEC_ZLIB:
        return launch_deliver<adler32_sum>(*job, stream);
    default:
        return launch_deliver<flate::no_sum>(*job, stream);
    }
}

int wharf_cuda_start_inflate_rest(const struct wharf_inflate_job *job, struct CUstream_st *stream)
{
    switch (job->codec) {
    case WHARF_CODEC_GZIP:
        return launch_rest<crc32_sum>(*job, stream);
    case WHARF_CODEC_ZLIB:
        return launch_rest<adler32_sum>(*job, stream);
    default:
        return launch_rest<flate::no_sum>(*job, stream);
    }
}

int wharf_cuda_start_inflate(const struct wharf_inflate_job *job, struct CUstream_st *stream)
{
    int rc = wharf_cuda_start_inflate_find(job, stream);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_measure(job, stream);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_chain(job, stream);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_deliver(job, stream);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_rest(job, stream);
    return rc;
}
