/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_partition.cu: a part of the multiprocessors, by a green context of the driver. */
#include "kernels/cuda_partition.h"

#include <cuda.h>
#include <errno.h>

#include <new>

#include "kernels/cuda_error.h"

/* Streams of green contexts came with CUDA 12.5. */
#if CUDA_VERSION >= 12050

namespace
{

/* The driver's library is not linked, so that the worker starts, and can say so, without it. */
struct driver {
    decltype(&cuDeviceGet) device;
    decltype(&cuDeviceGetDevResource) resource;
    decltype(&cuDevSmResourceSplitByCount) split;
    decltype(&cuDevResourceGenerateDesc) describe;
    decltype(&cuGreenCtxCreate) create;
    decltype(&cuGreenCtxDestroy) destroy;
    decltype(&cuGreenCtxStreamCreate) stream;
};

template <typename F>
int find(const char *name, F *ret_function)
{
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = nullptr;
    WHARF_CUDA_TRY(
        cudaGetDriverEntryPointByVersion(name, &function, 12050, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || !function)
        return wharf_cuda_fail(cudaErrorInsufficientDriver, name);
    *ret_function = reinterpret_cast<F>(function);
    return 0;
}

int find_driver(driver *d)
{
    int rc;
    if ((rc = find("cuDeviceGet", &d->device)) ||
        (rc = find("cuDeviceGetDevResource", &d->resource)) ||
        (rc = find("cuDevSmResourceSplitByCount", &d->split)) ||
        (rc = find("cuDevResourceGenerateDesc", &d->describe)) ||
        (rc = find("cuGreenCtxCreate", &d->create)) ||
        (rc = find("cuGreenCtxDestroy", &d->destroy)) ||
        (rc = find("cuGreenCtxStreamCreate", &d->stream)))
        return rc;
    return 0;
}

/* The driver's numbers are the runtime's. */
int result_of(CUresult result, const char *call)
{
    return result == CUDA_SUCCESS ? 0 : wharf_cuda_fail(static_cast<cudaError_t>(result), call);
}

} // namespace

struct wharf_cuda_partition {
    driver d;
    CUgreenCtx context;
};

static int make(wharf_cuda_partition *partition, int number, unsigned percent, unsigned *ret_n_sms)
{
    const driver &d = partition->d;
    CUdevResource all = {}, part = {};
    CUdevResourceDesc description;
    CUdevice device;
    unsigned n_parts = 1;
    int rc;

    if ((rc = find_driver(&partition->d)) ||
        (rc = result_of(d.device(&device, number), "cuDeviceGet")) ||
        (rc = result_of(d.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM),
                        "cuDeviceGetDevResource")))
        return rc;
    unsigned wanted = (all.sm.smCount * percent + 99) / 100;
    if ((rc = result_of(d.split(&part, &n_parts, &all, nullptr, 0, wanted),
                        "cuDevSmResourceSplitByCount")))
        return rc;
    if (n_parts != 1)
        return wharf_cuda_fail(cudaErrorNotSupported, "splitting the multiprocessors");
    if ((rc = result_of(d.describe(&description, &part, 1), "cuDevResourceGenerateDesc")) ||
        (rc = result_of(
             d.create(&partition->context, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
             "cuGreenCtxCreate")))
        return rc;
    *ret_n_sms = part.sm.smCount;
    return 0;
}

int wharf_cuda_partition_new(int device, unsigned percent, wharf_cuda_partition **ret_partition,
                             unsigned *ret_n_sms)
{
    wharf_cuda_partition *partition = new (std::nothrow) wharf_cuda_partition();
    if (!partition)
        return -ENOMEM;
    if (int rc = make(partition, device, percent, ret_n_sms)) {
        delete partition;
        return rc;
    }
    *ret_partition = partition;
    return 0;
}

int wharf_cuda_partition_stream(wharf_cuda_partition *partition, cudaStream_t *ret_stream)
{
    return result_of(partition->d.stream(ret_stream, partition->context, CU_STREAM_NON_BLOCKING, 0),
                     "cuGreenCtxStreamCreate");
}

void wharf_cuda_partition_free(wharf_cuda_partition *partition)
{
    if (!partition)
        return;
    (void)partition->d.destroy(partition->context);
    delete partition;
}

#else

int wharf_cuda_partition_new(int, unsigned, wharf_cuda_partition **, unsigned *)
{
    return wharf_cuda_fail(cudaErrorNotSupported, "a build with a toolkit from before CUDA 12.5");
}

int wharf_cuda_partition_stream(wharf_cuda_partition *, cudaStream_t *)
{
    return -EINVAL;
}

void wharf_cuda_partition_free(wharf_cuda_partition *) {}

#endif
