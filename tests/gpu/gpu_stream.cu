/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_stream.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include "kernels/cuda_error.h"
#include "proto/wharf_result.h"

namespace
{

template <typename F>
int find(const char *name, int version, F *ret_function)
{
    cudaDriverEntryPointQueryResult found;
    void *function = nullptr;
    WHARF_CUDA_TRY(
        cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found));
    *ret_function = reinterpret_cast<F>(function);
    return function ? 0 : wharf_cuda_refuse(-1, "the driver has no %s", name);
}

int try_driver(CUresult result, const char *call)
{
    return result == CUDA_SUCCESS ? 0 : wharf_cuda_fail(static_cast<cudaError_t>(result), call);
}

cudaStream_t stream_of(struct gpu_stream *stream)
{
    return reinterpret_cast<cudaStream_t>(stream);
}

template <typename T>
T *at(uint64_t address)
{
    return reinterpret_cast<T *>(address);
}

__global__ void look(const volatile wharf_done *done, uint32_t expected_result,
                     const uint8_t *output, const uint8_t *expected, size_t nbytes,
                     gpu_stream_counts *counts)
{
    const uint32_t result = WHARF_DONE_RESULT(done->word);
    unsigned long long n = 0;
    if (result == WHARF_OK && expected_result == WHARF_OK)
        for (size_t i = threadIdx.x; i < nbytes; i += blockDim.x)
            n += output[i] != expected[i];
    if (n)
        atomicAdd_system(reinterpret_cast<unsigned long long *>(&counts->n_bytes), n);
    if (threadIdx.x)
        return;
    if (result != expected_result || (result == WHARF_OK && done->out_nbytes != nbytes))
        atomicAdd_system(reinterpret_cast<unsigned long long *>(&counts->n_results), 1ull);
    atomicAdd_system(reinterpret_cast<unsigned long long *>(&counts->n_looks), 1ull);
}

__global__ void stamp(uint64_t *to)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *to = now;
}

__global__ void spin(const volatile uint32_t *stop)
{
    while (!*stop)
        __nanosleep(1000);
}

} // namespace

int gpu_stream_new(struct gpu_stream **ret_stream)
{
    cudaStream_t stream;
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    *ret_stream = reinterpret_cast<struct gpu_stream *>(stream);
    return 0;
}

int gpu_stream_free(struct gpu_stream *stream)
{
    WHARF_CUDA_TRY(cudaStreamDestroy(stream_of(stream)));
    return 0;
}

int gpu_stream_sync(struct gpu_stream *stream)
{
    WHARF_CUDA_TRY(cudaStreamSynchronize(stream_of(stream)));
    return 0;
}

int gpu_stream_is_done(struct gpu_stream *stream)
{
    cudaError_t error = cudaStreamQuery(stream_of(stream));
    if (error == cudaSuccess)
        return 1;
    return error == cudaErrorNotReady ? 0 : wharf_cuda_fail(error, "cudaStreamQuery");
}

int gpu_stream_pin(void *host, size_t nbytes, uint64_t *ret_device)
{
    void *device = nullptr;
    WHARF_CUDA_TRY(cudaHostRegister(host, nbytes, cudaHostRegisterMapped));
    WHARF_CUDA_TRY(cudaHostGetDevicePointer(&device, host, 0));
    *ret_device = reinterpret_cast<uint64_t>(device);
    return 0;
}

int gpu_stream_unpin(void *host)
{
    WHARF_CUDA_TRY(cudaHostUnregister(host));
    return 0;
}

int gpu_stream_make(size_t nbytes, uint8_t **ret_memory)
{
    WHARF_CUDA_TRY(cudaMalloc(ret_memory, nbytes));
    return 0;
}

int gpu_stream_set(struct gpu_stream *stream, uint8_t *to, int byte, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemsetAsync(to, byte, nbytes, stream_of(stream)));
    return 0;
}

int gpu_stream_copy(struct gpu_stream *stream, uint8_t *to, const uint8_t *from, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDeviceToDevice, stream_of(stream)));
    return 0;
}

int gpu_stream_write_start(struct gpu_stream *stream, uint64_t word, uint32_t serial)
{
    static decltype(&cuStreamWriteValue64) call;
    int r = call ? 0 : find("cuStreamWriteValue64", 11070, &call);
    return r ? r
             : try_driver(call(stream_of(stream), word, WHARF_START_VALUE(serial),
                               CU_STREAM_WRITE_VALUE_DEFAULT),
                          "cuStreamWriteValue64");
}

int gpu_stream_wait_done(struct gpu_stream *stream, uint64_t word, uint32_t serial)
{
    static decltype(&cuStreamWaitValue64) call;
    int r = call ? 0 : find("cuStreamWaitValue64", 11070, &call);
    return r ? r
             : try_driver(call(stream_of(stream), word, WHARF_DONE_VALUE(serial),
                               CU_STREAM_WAIT_VALUE_GEQ),
                          "cuStreamWaitValue64");
}

int gpu_stream_look(struct gpu_stream *stream, uint64_t word, uint32_t expected_result,
                    const uint8_t *output, const uint8_t *expected, size_t nbytes, uint64_t counts)
{
    look<<<1, 256, 0, stream_of(stream)>>>(at<const wharf_done>(word), expected_result, output,
                                           expected, nbytes, at<gpu_stream_counts>(counts));
    WHARF_CUDA_TRY(cudaGetLastError());
    return 0;
}

int gpu_stream_stamp(struct gpu_stream *stream, uint64_t to)
{
    stamp<<<1, 1, 0, stream_of(stream)>>>(at<uint64_t>(to));
    WHARF_CUDA_TRY(cudaGetLastError());
    return 0;
}

int gpu_stream_spin(struct gpu_stream *stream, uint64_t stop)
{
    cudaDeviceProp device;
    WHARF_CUDA_TRY(cudaGetDeviceProperties(&device, 0));
    spin<<<device.multiProcessorCount, 128, 0, stream_of(stream)>>>(at<const uint32_t>(stop));
    WHARF_CUDA_TRY(cudaGetLastError());
    return 0;
}
