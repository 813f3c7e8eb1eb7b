/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_client.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include "kernels/cuda_error.h"

namespace
{

template <typename F>
int find(const char *name, F *ret_function)
{
    cudaDriverEntryPointQueryResult found;
    void *function = nullptr;
    WHARF_CUDA_TRY(
        cudaGetDriverEntryPointByVersion(name, &function, 11020, cudaEnableDefault, &found));
    *ret_function = reinterpret_cast<F>(function);
    return function ? 0 : -1;
}

int try_driver(CUresult result, const char *call)
{
    return result == CUDA_SUCCESS ? 0 : wharf_cuda_fail(static_cast<cudaError_t>(result), call);
}

#define DRIVER(function, ...)                                                                      \
    do {                                                                                           \
        decltype(&function) call_ = nullptr;                                                       \
        int rc_ = find(#function, &call_);                                                         \
        if (rc_ || (rc_ = try_driver(call_(__VA_ARGS__), #function)))                              \
            return rc_;                                                                            \
    } while (0)

int used_device;

__global__ void count_differences(const uint8_t *a, const uint8_t *b, size_t nbytes, unsigned *n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < nbytes;
         i += (size_t)gridDim.x * blockDim.x)
        if (a[i] != b[i])
            atomicAdd(n, 1u);
}

} // namespace

int gpu_client_use(int device)
{
    WHARF_CUDA_TRY(cudaSetDevice(device));
    used_device = device;
    return 0;
}

int gpu_client_make(size_t nbytes, struct gpu_client_memory *ret_memory)
{
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp properties = {};
    CUmemAccessDesc access = {};
    CUdeviceptr at;
    int fd;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = used_device;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    WHARF_CUDA_TRY(cudaSetDevice(used_device));
    DRIVER(cuMemCreate, &memory, nbytes, &properties, 0);
    DRIVER(cuMemExportToShareableHandle, &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    DRIVER(cuMemAddressReserve, &at, nbytes, 0, 0, 0);
    DRIVER(cuMemMap, at, nbytes, 0, memory, 0);
    DRIVER(cuMemSetAccess, at, nbytes, &access, 1);
    /* The mapping and the descriptor keep it. */
    DRIVER(cuMemRelease, memory);
    *ret_memory = {reinterpret_cast<uint8_t *>(at), nbytes, fd};
    return gpu_client_set(ret_memory->at, 0xa5, nbytes);
}

int gpu_client_free(struct gpu_client_memory *memory)
{
    CUdeviceptr at = reinterpret_cast<CUdeviceptr>(memory->at);
    if (memory->fd >= 0)
        close(memory->fd);
    DRIVER(cuMemUnmap, at, memory->nbytes);
    DRIVER(cuMemAddressFree, at, memory->nbytes);
    return 0;
}

int gpu_client_set(uint8_t *to, int byte, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemset(to, byte, nbytes));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

int gpu_client_put(uint8_t *to, const void *from, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemcpy(to, from, nbytes, cudaMemcpyHostToDevice));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

int gpu_client_get(void *to, const uint8_t *from, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemcpy(to, from, nbytes, cudaMemcpyDeviceToHost));
    return 0;
}

int gpu_client_compare(const uint8_t *a, const uint8_t *b, size_t nbytes, unsigned *ret_n)
{
    static cudaStream_t stream;
    static unsigned *d_n;
    if (!stream) {
        WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        WHARF_CUDA_TRY(cudaMalloc(&d_n, sizeof(*d_n)));
    }
    WHARF_CUDA_TRY(cudaMemsetAsync(d_n, 0, sizeof(*d_n), stream));
    count_differences<<<64, 256, 0, stream>>>(a, b, nbytes, d_n);
    WHARF_CUDA_TRY(cudaGetLastError());
    WHARF_CUDA_TRY(cudaMemcpyAsync(ret_n, d_n, sizeof(*d_n), cudaMemcpyDeviceToHost, stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(stream));
    return 0;
}

int gpu_client_room(size_t *ret_nbytes)
{
    size_t all;
    WHARF_CUDA_TRY(cudaMemGetInfo(ret_nbytes, &all));
    return 0;
}
