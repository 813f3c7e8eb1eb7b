/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_error.cu: what CUDA's errors mean for the caller: try again, give up, or end the process.
 */
#include "kernels/cuda_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static thread_local char error_text[512];

const char *wharf_cuda_error_text(void)
{
    return error_text;
}

int wharf_cuda_refuse(int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof(error_text), format, args);
    va_end(args);
    return rc;
}

/* What its administrator can do about it, for errors of a machine's set-up. */
static const char *advice_on(cudaError_t error)
{
    int version = 0;
    switch (error) {
    case cudaErrorInsufficientDriver:
        (void)cudaDriverGetVersion(&version);
        return version ? ": the driver is older than the CUDA that wharfd-gpu was built with"
                       : ": no libcuda.so.1 of a driver is found";
    case cudaErrorNoDevice:
        return ": the driver shows no GPU here; see nvidia-smi -L and CUDA_VISIBLE_DEVICES";
    case cudaErrorDevicesUnavailable:
        return ": another process has the GPU for itself, or nobody may; see nvidia-smi -q -d "
               "COMPUTE";
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
        return ": the driver is not ready; see nvidia-smi";
    case cudaErrorSystemDriverMismatch:
        return ": libcuda.so.1 is not the kernel module's; in a container both are the host's";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return ": wharfd-gpu has no code for this GPU; see CUDA_ARCHS in the Makefile";
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
        return ": MPS does not answer; see nvidia-cuda-mps-control";
    default:
        return "";
    }
}

int wharf_cuda_fail(cudaError_t error, const char *call)
{
    snprintf(error_text, sizeof(error_text), "%s (%s) from %s%s", cudaGetErrorString(error),
             cudaGetErrorName(error), call, advice_on(error));
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
    case cudaErrorInitializationError:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return -ENODEV;
    case cudaErrorDevicesUnavailable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
        return -EBUSY;
    /* After these the process can use the GPU no more, says cudaError's documentation, or the
     * device itself has failed.  There is no asking: cudaGetLastError has set its note to
     * success. */
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
