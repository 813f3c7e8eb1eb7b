/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_compressible.h: memory that the hardware itself compresses (cuMemCreate with generic
 * compression): reads of zeros and small differences take less of the memory's bandwidth.  It saves
 * no capacity.
 */
#ifndef WHARF_TESTS_GPU_COMPRESSIBLE_H
#define WHARF_TESTS_GPU_COMPRESSIBLE_H

#include <stddef.h>

struct gpu_compressible {
    void *data;
    size_t nbytes; /* of the mapping, whole granules */
    unsigned long long handle;
};

/* 0; -ENOTSUP where the device has no such memory, or gives memory that it does not compress; or
 * another -errno after an error of CUDA's, of which a line is printed. */
int gpu_compressible_init(struct gpu_compressible *memory, size_t nbytes);
void gpu_compressible_deinit(struct gpu_compressible *memory);

#endif
