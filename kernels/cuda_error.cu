/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_error.h"

#include <errno.h>
#include <stdio.h>

static thread_local char error_text[512];

const char *wharf_cuda_error_text(void)
{
    return error_text;
}

int wharf_cuda_fail(cudaError_t error, const char *call)
{
    snprintf(error_text, sizeof(error_text), "%s (%s) from %s", cudaGetErrorString(error),
             cudaGetErrorName(error), call);
    /* Reading the last error clears it, unless it is sticky. */
    (void)cudaGetLastError();
    switch (error) {
    case cudaErrorMemoryAllocation:
        return -ENOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
    case cudaErrorSystemNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInitializationError:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return -ENODEV;
    default:
        return cudaPeekAtLastError() != cudaSuccess ? -EIO : -EINVAL;
    }
}
