/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_export.h: a process that offers GPU memory to another by descriptor, as a client does. */
#ifndef WHARF_TESTS_GPU_EXPORT_H
#define WHARF_TESTS_GPU_EXPORT_H

#ifdef __cplusplus
extern "C" {
#endif

enum { GPU_EXPORT_NBYTES = 64 << 20 };

/*
 * On a socket: sends a descriptor of GPU_EXPORT_NBYTES of GPU memory, waits for a byte, and sends
 * what the memory then holds.  The program's status.
 */
int gpu_export_serve(int socket);

#ifdef __cplusplus
}
#endif

#endif
