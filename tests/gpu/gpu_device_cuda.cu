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
    void *d_scratch;
    size_t scratch_nbytes;
    bool use_graphs;
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
    WHARF_CUDA_TRY(cudaSetDevice(0));
    if (int rc = wharf_cuda_decoder_new(&gpu.decoder))
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
    WHARF_CUDA_TRY(cudaFree(gpu.d_scratch));
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

static const uint8_t *cuda_add_model(const void *image, size_t nbytes)
{
    void *d_image = cuda_alloc(nbytes);
    cuda_copy(d_image, image, nbytes);
    return static_cast<const uint8_t *>(d_image);
}

static void cuda_remove_model(const uint8_t *d_image)
{
    cuda_free(const_cast<uint8_t *>(d_image));
}

/* Captured as strictly as can be: what would synchronise or allocate fails. */
static int make_graph(gpu_start_fn *start, void *argument, cudaGraphExec_t *ret_graph)
{
    cudaGraph_t graph;
    WHARF_CUDA_TRY(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeGlobal));
    int rc = start(argument, gpu.stream);
    WHARF_CUDA_TRY(cudaStreamEndCapture(gpu.stream, &graph));
    if (rc < 0)
        return rc;
    WHARF_CUDA_TRY(cudaGraphInstantiate(ret_graph, graph, 0));
    WHARF_CUDA_TRY(cudaGraphDestroy(graph));
    WHARF_CUDA_TRY(cudaGraphLaunch(*ret_graph, gpu.stream));
    return 0;
}

static int try_run(gpu_start_fn *start, void *argument, float *ret_ms)
{
    cudaGraphExec_t graph = nullptr;
    if (gpu.use_graphs)
        if (int rc = make_graph(start, argument, &graph))
            return rc;
    WHARF_CUDA_TRY(cudaEventRecord(gpu.start, gpu.stream));
    if (graph)
        WHARF_CUDA_TRY(cudaGraphLaunch(graph, gpu.stream));
    else if (int rc = start(argument, gpu.stream))
        return rc;
    WHARF_CUDA_TRY(cudaEventRecord(gpu.stop, gpu.stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(gpu.stream));
    WHARF_CUDA_TRY(cudaEventElapsedTime(ret_ms, gpu.start, gpu.stop));
    if (graph)
        WHARF_CUDA_TRY(cudaGraphExecDestroy(graph));
    return 0;
}

static float cuda_run(gpu_start_fn *start, void *argument)
{
    float ms;
    must(try_run(start, argument, &ms));
    return ms;
}

static int start_decode(void *argument, CUstream_st *stream)
{
    return wharf_cuda_decode_batch(gpu.decoder, static_cast<wharf_device_batch *>(argument),
                                   gpu.d_scratch, stream);
}

static float cuda_decode(const struct wharf_device_batch *batch)
{
    wharf_device_batch own = *batch;
    size_t nbytes = wharf_cuda_scratch_nbytes(gpu.decoder, batch->codec, batch->n_chunks, false);
    if (nbytes > gpu.scratch_nbytes) {
        cuda_free(gpu.d_scratch);
        gpu.d_scratch = cuda_alloc(nbytes);
        gpu.scratch_nbytes = nbytes;
    }
    return cuda_run(start_decode, &own);
}

static uint32_t cuda_choose_kernel(uint32_t codec, size_t n_chunks)
{
    return wharf_cuda_choose_kernel(gpu.decoder, codec, n_chunks);
}

static const char *cuda_kernel_facts(uint32_t codec)
{
    static char facts[200];
    struct wharf_cuda_kernel_info info;
    must(wharf_cuda_get_kernel_info(gpu.decoder, codec, &info));
    snprintf(facts, sizeof(facts),
             ",\"registers\":%u,\"local_nbytes\":%u,\"shared_nbytes\":%u,\"scratch_nbytes\":%zu,"
             "\"warps_per_sm\":%u",
             info.n_registers, info.n_local_nbytes, info.n_shared_nbytes, info.n_scratch_nbytes,
             info.n_warps_per_sm);
    return facts;
}

void gpu_device_use_graphs(void)
{
    gpu.use_graphs = true;
}

const struct gpu_device_ops gpu_device_cuda = {
    "cuda",
    cuda_open,
    cuda_close,
    cuda_name,
    cuda_alloc,
    cuda_free,
    cuda_host_alloc,
    cuda_host_free,
    cuda_copy,
    cuda_copy,
    cuda_set,
    cuda_add_model,
    cuda_remove_model,
    cuda_run,
    cuda_decode,
    cuda_choose_kernel,
    cuda_kernel_facts,
};
