/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_compressible.h"

#include <cerrno>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

namespace
{

/* Calls the driver, which programs do not link.  0 or -EIO. */
template <typename F, typename... Arguments>
int call(const char *name, F *, Arguments... arguments)
{
    cudaDriverEntryPointQueryResult found;
    void *function = nullptr;
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        function == nullptr)
        return -EIO;
    CUresult result = reinterpret_cast<F *>(function)(arguments...);
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "%s: error %d\n", name, (int)result);
    return result == CUDA_SUCCESS ? 0 : -EIO;
}

#define DRIVER(function, ...) call(#function, &function, __VA_ARGS__)

/* Of the current device. */
int is_supported(CUdevice device)
{
    int is = 0;
    int r = DRIVER(cuDeviceGetAttribute, &is, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
                   device);
    return r < 0 ? r : is ? 0 : -ENOTSUP;
}

int create(struct gpu_compressible *memory, size_t nbytes, int device)
{
    CUmemAllocationProp wanted = {}, got = {};
    CUmemGenericAllocationHandle handle;
    size_t granule = 0;
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = device;
    wanted.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    int r = DRIVER(cuMemGetAllocationGranularity, &granule, &wanted,
                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (r < 0)
        return r;
    memory->nbytes = (nbytes + granule - 1) / granule * granule;
    r = DRIVER(cuMemCreate, &handle, memory->nbytes, &wanted, 0ULL);
    if (r < 0)
        return r;
    memory->handle = handle;
    /* The driver may give plain memory instead. */
    r = DRIVER(cuMemGetAllocationPropertiesFromHandle, &got, handle);
    return r < 0                                                              ? r
           : got.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC ? 0
                                                                              : -ENOTSUP;
}

int map(struct gpu_compressible *memory, int device)
{
    CUdeviceptr at = 0;
    CUmemAccessDesc access = {};
    int r = DRIVER(cuMemAddressReserve, &at, memory->nbytes, (size_t)0, (CUdeviceptr)0, 0ULL);
    if (r < 0)
        return r;
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    r = DRIVER(cuMemMap, at, memory->nbytes, (size_t)0,
               (CUmemGenericAllocationHandle)memory->handle, 0ULL);
    if (r < 0) {
        (void)DRIVER(cuMemAddressFree, at, memory->nbytes);
        return r;
    }
    memory->data = reinterpret_cast<void *>(at);
    return DRIVER(cuMemSetAccess, at, memory->nbytes, &access, (size_t)1);
}

} // namespace

int gpu_compressible_init(struct gpu_compressible *memory, size_t nbytes)
{
    int device = 0;
    *memory = {};
    if (cudaFree(nullptr) != cudaSuccess || cudaGetDevice(&device) != cudaSuccess)
        return -EIO;
    int r = is_supported(device);
    if (r == 0)
        r = create(memory, nbytes, device);
    if (r == 0)
        r = map(memory, device);
    if (r < 0)
        gpu_compressible_deinit(memory);
    return r;
}

void gpu_compressible_deinit(struct gpu_compressible *memory)
{
    CUdeviceptr at = reinterpret_cast<CUdeviceptr>(memory->data);
    if (at != 0) {
        (void)DRIVER(cuMemUnmap, at, memory->nbytes);
        (void)DRIVER(cuMemAddressFree, at, memory->nbytes);
    }
    if (memory->handle != 0)
        (void)DRIVER(cuMemRelease, (CUmemGenericAllocationHandle)memory->handle);
    *memory = {};
}
