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
    /* So that the next call is not blamed for it. */
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
    /* After these the process can use the GPU no more, says cudaError's documentation, or the
     * device itself has failed.  There is no asking: cudaGetLastError has set its note to success.
     */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
#endif
        return -EIO;
    default:
        return -EINVAL;
    }
}
