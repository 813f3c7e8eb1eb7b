/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pywharf_driver.h: memory of a GPU that another process can be given, by CUDA's driver, which is
 * loaded when it is first asked for.  Nothing here needs the GIL; any thread may call.
 */
#ifndef WHARF_PYWHARF_DRIVER_H
#define WHARF_PYWHARF_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYWHARF_DRIVER_TEXT_NBYTES = 200 };

struct pywharf_gpu_piece {
    uint64_t address;
    size_t nbytes;
    int device; /* its ordinal for this process */
};

/*
 * Makes a piece of at least piece->nbytes on piece->device, by cuMemCreate, and *ret_fd by which it
 * is given to another process; the caller closes it, unless it is -1.  0, -ENODEV, -ENOMEM,
 * -EOPNOTSUPP or -EIO with the reason in `text`.
 */
int pywharf_driver_make(struct pywharf_gpu_piece *piece, int *ret_fd, char *text);
void pywharf_driver_free(const struct pywharf_gpu_piece *piece);

/* Waits for all work in a stream, or in the device's primary context.  0 or -errno as above. */
int pywharf_driver_wait(int device, bool has_stream, uintptr_t stream, char *text);

#endif
