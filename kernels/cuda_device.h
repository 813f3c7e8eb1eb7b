/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device.h: which GPU, and whether it can be used.
 *
 * Functions return 0 or -errno as cuda_error.h says, and leave a text that tells people what to do.
 */
#ifndef WHARF_KERNELS_CUDA_DEVICE_H
#define WHARF_KERNELS_CUDA_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The number of the GPU that is called `name`: a number, "GPU-" and the first digits of its UUID,
 * or "MIG-" and the whole UUID of an instance, as nvidia-smi -L prints them.  -ENODEV if there is
 * none.  For the process's first call of CUDA: of an instance it says so in the environment.
 */
int wharf_cuda_find_device(const char *name, int *ret_device);

/* How many GPUs CUDA shows this process, as CUDA_VISIBLE_DEVICES says. */
int wharf_cuda_count_devices(int *ret_n_devices);

/* Whether kernels can do there what they are written for; -ENODEV if not. */
int wharf_cuda_check_device(int device);

/* wharf_cuda_has_mps: whether contexts of several processes share the device, by MPS. */
int wharf_cuda_has_mps(int device);

#ifdef __cplusplus
}
#endif

#endif
