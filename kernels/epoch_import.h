/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_import.h: GPU memory of other processes, by descriptors as cuMemExportToShareableHandle
 * makes them.
 */
#ifndef WHARF_KERNELS_EPOCH_IMPORT_H
#define WHARF_KERNELS_EPOCH_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * wharf_cuda_import: maps memory of nbytes that a process made with cuMemCreate on this
 * device, a multiple of its granularity (2 MiB).  The device is the thread's current one.  The
 * descriptor stays the caller's, and the memory stays there until it is unmapped here, whatever
 * becomes of the process.  Returns 0, -ENOMEM, -ENODEV (no such driver), or -EINVAL for a
 * descriptor of anything else, for another device's memory and for a size that it has not; none
 * of that harms the process.
 */
int wharf_cuda_import(int device, int fd, size_t nbytes, uint64_t *ret_address);

/* wharf_cuda_unimport: no kernel may use it any more.  0 or -errno. */
int wharf_cuda_unimport(uint64_t address, size_t nbytes);

#ifdef __cplusplus
}
#endif

#endif
