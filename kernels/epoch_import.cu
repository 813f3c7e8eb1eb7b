/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_import.cu: another process's GPU memory, mapped by its descriptor. */
#include "kernels/epoch_import.h"

#include <cuda.h>
#include <errno.h>

#include "kernels/cuda_error.h"

namespace
{

/* The driver's library is not linked, so that the worker starts, and can say so, without it. */
struct driver {
    decltype(&cuMemImportFromShareableHandle) import;
    decltype(&cuMemGetAllocationPropertiesFromHandle) properties;
    decltype(&cuMemGetAllocationGranularity) granularity;
    decltype(&cuMemAddressReserve) reserve;
    decltype(&cuMemAddressFree) free;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) set_access;
    decltype(&cuMemRelease) release;
};

template <typename F>
int find(const char *name, F *ret_function)
{
    constexpr unsigned SINCE = 11020;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = nullptr;
#if CUDART_VERSION >= 12050
    WHARF_CUDA_TRY(
        cudaGetDriverEntryPointByVersion(name, &function, SINCE, cudaEnableDefault, &found));
#else
    WHARF_CUDA_TRY(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess || !function)
        return wharf_cuda_fail(cudaErrorInsufficientDriver, name);
    *ret_function = reinterpret_cast<F>(function);
    return 0;
}

int find_driver(driver *d)
{
    int rc;
    if ((rc = find("cuMemImportFromShareableHandle", &d->import)) ||
        (rc = find("cuMemGetAllocationPropertiesFromHandle", &d->properties)) ||
        (rc = find("cuMemGetAllocationGranularity", &d->granularity)) ||
        (rc = find("cuMemAddressReserve", &d->reserve)) ||
        (rc = find("cuMemAddressFree", &d->free)) || (rc = find("cuMemMap", &d->map)) ||
        (rc = find("cuMemUnmap", &d->unmap)) || (rc = find("cuMemSetAccess", &d->set_access)) ||
        (rc = find("cuMemRelease", &d->release)))
        return rc;
    return 0;
}

/* What a client's descriptor can bring about is the client's error, never the device's. */
int refuse(CUresult result, const char *call)
{
    /* The driver's numbers are the runtime's. */
    int rc = wharf_cuda_fail(static_cast<cudaError_t>(result), call);
    return rc == -ENOMEM ? rc : -EINVAL;
}

/* Whether the memory is this device's own, and nbytes can be a part of it. */
int check(const driver &d, CUmemGenericAllocationHandle memory, int device, size_t nbytes)
{
    CUmemAllocationProp properties = {};
    size_t granularity = 0;
    CUresult result = d.properties(&properties, memory);
    if (result != CUDA_SUCCESS)
        return refuse(result, "cuMemGetAllocationPropertiesFromHandle");
    if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return refuse(CUDA_ERROR_INVALID_DEVICE, "looking for memory of a GPU");
    if (properties.location.id != device) {
        (void)refuse(CUDA_ERROR_INVALID_DEVICE, "looking for memory of this GPU");
        return -EXDEV;
    }
    result = d.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS)
        return refuse(result, "cuMemGetAllocationGranularity");
    if (nbytes == 0 || nbytes % granularity != 0)
        return refuse(CUDA_ERROR_INVALID_VALUE, "looking for a multiple of the granularity");
    return 0;
}

/* At an address of its own; the driver refuses more than the memory has. */
int map(const driver &d, CUmemGenericAllocationHandle memory, int device, size_t nbytes,
        CUdeviceptr *ret_at)
{
    CUdeviceptr at = 0;
    CUresult result = d.reserve(&at, nbytes, 0, 0, 0);
    if (result != CUDA_SUCCESS)
        return refuse(result, "cuMemAddressReserve");
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = d.map(at, nbytes, 0, memory, 0);
    if (result == CUDA_SUCCESS && (result = d.set_access(at, nbytes, &access, 1)) != CUDA_SUCCESS)
        (void)d.unmap(at, nbytes);
    if (result != CUDA_SUCCESS) {
        (void)d.free(at, nbytes);
        return refuse(result, "cuMemMap");
    }
    *ret_at = at;
    return 0;
}

} // namespace

int wharf_cuda_import(int device, int fd, size_t nbytes, uint64_t *ret_address)
{
    driver d;
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at = 0;
    int rc = find_driver(&d);
    if (rc < 0)
        return rc;
    CUresult result = d.import(&memory, reinterpret_cast<void *>(static_cast<uintptr_t>(fd)),
                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS)
        return refuse(result, "cuMemImportFromShareableHandle");
    rc = check(d, memory, device, nbytes);
    if (rc == 0)
        rc = map(d, memory, device, nbytes, &at);
    /* The mapping keeps it. */
    (void)d.release(memory);
    if (rc == 0)
        *ret_address = at;
    return rc;
}

int wharf_cuda_unimport(uint64_t address, size_t nbytes)
{
    driver d;
    int rc = find_driver(&d);
    if (rc < 0)
        return rc;
    WHARF_CUDA_TRY(static_cast<cudaError_t>(d.unmap(address, nbytes)));
    WHARF_CUDA_TRY(static_cast<cudaError_t>(d.free(address, nbytes)));
    return 0;
}
