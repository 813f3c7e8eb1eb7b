/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tenant.h: another process's use of the same GPU, with a context of its own.
 */
#ifndef WHARF_TESTS_GPU_TENANT_H
#define WHARF_TESTS_GPU_TENANT_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For so many seconds, one after the other: 64 KiB in, a kernel, 64 KiB out, synchronise.  Prints a
 * line of JSON members about the round trips: how many, p50, p99, max in microseconds.
 */
int gpu_tenant_round_trips(double seconds);

/* For so many seconds, keeps the GPU busy with kernels that copy 256 MiB in its memory. */
int gpu_tenant_saturate(double seconds);

#ifdef __cplusplus
}
#endif

#endif
