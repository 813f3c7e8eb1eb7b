/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_error.h: CUDA's errors as wharf's system results.
 *
 *     WHARF_CUDA_TRY(cudaMalloc(&p, n));     in a function that returns int, 0 or -errno
 *
 * Every CUDA call stands in this macro.  What it tells apart:
 *
 *   -ENOMEM   the device (or pinned memory) is full; the context is fine
 *   -ENODEV   there is no device, no driver, or one that is too old
 *   -EBUSY    the device is another process's, or MPS cannot take one more now
 *   -EIO      the error is sticky: this process can use the GPU no more and must end
 *   -EINVAL   anything else: a fault of the caller's or of ours
 */
#ifndef WHARF_KERNELS_CUDA_ERROR_H
#define WHARF_KERNELS_CUDA_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the last failed CUDA call of this thread was and what CUDA said of it, "" if none failed.
 * The string is the thread's own and changes with its next failure.
 */
const char *wharf_cuda_error_text(void);

/* Notes this text, in printf's form, and returns rc. */
int wharf_cuda_refuse(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include <cuda_runtime_api.h>

/* Notes the failure for wharf_cuda_error_text and returns its -errno. */
int wharf_cuda_fail(cudaError_t error, const char *call);

#define WHARF_CUDA_TRY(call)                                                                       \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            return wharf_cuda_fail(error_, #call);                                                 \
    } while (0)
#endif

#endif
