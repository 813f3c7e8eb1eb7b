/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_device_cuda: a GPU, the first one that CUDA shows. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_batch.h"
#include "tests/gpu/gpu_device.h"

static struct {
    struct wharf_cuda_decoder *decoder;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    cudaDeviceProp properties;
} gpu;

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "GPU: %s: %s\n", strerror(-rc), wharf_cuda_error_text());
    exit(3);
}

static int try_open(void)
{
    WHARF_CUDA_TRY(cudaGetDeviceProperties(&gpu.properties, 0));
    if (int rc = wharf_cuda_decoder_new(0, &gpu.decoder))
        return rc;
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
    WHARF_CUDA_TRY(cudaEventCreate(&gpu.start));
    WHARF_CUDA_TRY(cudaEventCreate(&gpu.stop));
    return 0;
}

static void cuda_open(void)
{
    must(try_open());
}

static int try_close(void)
{
    wharf_cuda_decoder_free(gpu.decoder);
    WHARF_CUDA_TRY(cudaEventDestroy(gpu.start));
    WHARF_CUDA_TRY(cudaEventDestroy(gpu.stop));
    WHARF_CUDA_TRY(cudaStreamDestroy(gpu.stream));
    return 0;
}

static void cuda_close(void)
{
    must(try_close());
}

static const char *cuda_name(void)
{
    return gpu.properties.name;
}

static int try_alloc(void **ret, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMalloc(ret, nbytes));
    return 0;
}

static void *cuda_alloc(size_t nbytes)
{
    void *p;
    must(try_alloc(&p, nbytes ? nbytes : 1));
    return p;
}

static int try_free(void *p)
{
    WHARF_CUDA_TRY(cudaFree(p));
    return 0;
}

static void cuda_free(void *p)
{
    must(try_free(p));
}

static int try_host_alloc(void **ret, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaHostAlloc(ret, nbytes, cudaHostAllocDefault));
    return 0;
}

static void *cuda_host_alloc(size_t nbytes)
{
    void *p;
    must(try_host_alloc(&p, nbytes ? nbytes : 1));
    return p;
}

static int try_host_free(void *p)
{
    WHARF_CUDA_TRY(cudaFreeHost(p));
    return 0;
}

static void cuda_host_free(void *p)
{
    must(try_host_free(p));
}

static int try_copy(void *to, const void *from, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, gpu.stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(gpu.stream));
    return 0;
}

static void cuda_copy(void *to, const void *from, size_t nbytes)
{
    if (nbytes)
        must(try_copy(to, from, nbytes));
}

static int try_set(void *to, int byte, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemsetAsync(to, byte, nbytes, gpu.stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(gpu.stream));
    return 0;
}

static void cuda_set(void *to, int byte, size_t nbytes)
{
    if (nbytes)
        must(try_set(to, byte, nbytes));
}

static int try_decode(const struct wharf_device_batch *batch, float *ret_ms)
{
    WHARF_CUDA_TRY(cudaEventRecord(gpu.start, gpu.stream));
    if (int rc = wharf_cuda_decode_batch(gpu.decoder, batch, gpu.stream))
        return rc;
    WHARF_CUDA_TRY(cudaEventRecord(gpu.stop, gpu.stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(gpu.stream));
    WHARF_CUDA_TRY(cudaEventElapsedTime(ret_ms, gpu.start, gpu.stop));
    return 0;
}

static float cuda_decode(const struct wharf_device_batch *batch)
{
    float ms;
    must(try_decode(batch, &ms));
    return ms;
}

static uint32_t cuda_choose_kernel(uint32_t codec, size_t n_chunks)
{
    return wharf_cuda_choose_kernel(gpu.decoder, codec, n_chunks);
}

static const char *cuda_kernel_facts(uint32_t codec)
{
    static char facts[200];
    struct wharf_cuda_kernel_info info;
    must(wharf_cuda_kernel_info(gpu.decoder, codec, &info));
    snprintf(facts, sizeof(facts),
             ",\"registers\":%u,\"local_nbytes\":%u,\"shared_nbytes\":%u,\"scratch_nbytes\":%zu,"
             "\"warps_per_sm\":%u",
             info.n_registers, info.n_local_nbytes, info.n_shared_nbytes, info.n_scratch_nbytes,
             info.n_warps_per_sm);
    return facts;
}

const struct gpu_device_ops gpu_device_cuda = {
    "cuda",    cuda_open,       cuda_close,         cuda_name,         cuda_alloc,
    cuda_free, cuda_host_alloc, cuda_host_free,     cuda_copy,         cuda_copy,
    cuda_set,  cuda_decode,     cuda_choose_kernel, cuda_kernel_facts,
};
