/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_tenant.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda_error.h"

namespace
{

constexpr size_t SMALL_NBYTES = 64 << 10;
constexpr size_t LARGE_NBYTES = (size_t)256 << 20;

__global__ void copy_kernel(uint4 *to, const uint4 *from, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct tenant {
    cudaStream_t stream;
    uint8_t *h_in, *h_out;
    uint4 *d_in, *d_out;
};

int open(tenant *t, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaSetDevice(0));
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
    WHARF_CUDA_TRY(cudaHostAlloc(&t->h_in, SMALL_NBYTES, cudaHostAllocDefault));
    WHARF_CUDA_TRY(cudaHostAlloc(&t->h_out, SMALL_NBYTES, cudaHostAllocDefault));
    WHARF_CUDA_TRY(cudaMalloc(&t->d_in, nbytes));
    WHARF_CUDA_TRY(cudaMalloc(&t->d_out, nbytes));
    WHARF_CUDA_TRY(cudaMemset(t->d_in, 1, nbytes));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

int round_trip(const tenant &t)
{
    WHARF_CUDA_TRY(cudaMemcpyAsync(t.d_in, t.h_in, SMALL_NBYTES, cudaMemcpyHostToDevice, t.stream));
    copy_kernel<<<16, 256, 0, t.stream>>>(t.d_out, t.d_in, SMALL_NBYTES / sizeof(uint4));
    WHARF_CUDA_TRY(cudaGetLastError());
    WHARF_CUDA_TRY(
        cudaMemcpyAsync(t.h_out, t.d_out, SMALL_NBYTES, cudaMemcpyDeviceToHost, t.stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(t.stream));
    return 0;
}

int measure(double seconds)
{
    tenant t;
    std::vector<double> us;
    if (int rc = open(&t, SMALL_NBYTES))
        return rc;
    for (unsigned i = 0; i < 100; i++)
        if (int rc = round_trip(t))
            return rc;
    double end = now_s() + seconds;
    for (double start = now_s(), stop; start < end; start = stop) {
        if (int rc = round_trip(t))
            return rc;
        stop = now_s();
        us.push_back((stop - start) * 1e6);
    }
    std::sort(us.begin(), us.end());
    printf("\"tenant_latencies\":%zu,\"tenant_p50_us\":%.1f,\"tenant_p99_us\":%.1f,"
           "\"tenant_max_us\":%.1f\n",
           us.size(), us[us.size() / 2], us[us.size() * 99 / 100], us.back());
    return 0;
}

/* Two kernels under way at any time. */
int saturate(double seconds)
{
    tenant t;
    cudaEvent_t events[2];
    if (int rc = open(&t, LARGE_NBYTES))
        return rc;
    for (cudaEvent_t &event : events)
        WHARF_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    double end = now_s() + seconds;
    for (unsigned i = 0; now_s() < end; i++) {
        if (i >= 2)
            WHARF_CUDA_TRY(cudaEventSynchronize(events[i % 2]));
        copy_kernel<<<2048, 256, 0, t.stream>>>(t.d_out, t.d_in, LARGE_NBYTES / sizeof(uint4));
        WHARF_CUDA_TRY(cudaGetLastError());
        WHARF_CUDA_TRY(cudaEventRecord(events[i % 2], t.stream));
    }
    WHARF_CUDA_TRY(cudaStreamSynchronize(t.stream));
    return 0;
}

int report(int rc)
{
    if (rc)
        fprintf(stderr, "tenant: %s\n", wharf_cuda_error_text());
    return rc ? 3 : 0;
}

} // namespace

int gpu_tenant_round_trips(double seconds)
{
    return report(measure(seconds));
}

int gpu_tenant_saturate(double seconds)
{
    return report(saturate(seconds));
}
