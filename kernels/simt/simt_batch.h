/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_batch.h: a batch on the SIMT layer; C and C++.  The device's own code, on the CPU, slowly:
 * for tests, fuzzers and machines without a GPU.
 */
#ifndef WHARF_KERNELS_SIMT_SIMT_BATCH_H
#define WHARF_KERNELS_SIMT_SIMT_BATCH_H

#include "kernels/device_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which lanes run between two collectives; kernels/simt/simt.h says why. */
enum wharf_simt_order {
    WHARF_SIMT_ASCENDING = 0,
    WHARF_SIMT_DESCENDING = 1,
    WHARF_SIMT_RANDOM = 2,
};

/*
 * Decodes all chunks of a batch, one after the other as one warp (with WHARF_DEVICE_BLOCK, as the
 * warps of one block; of Blosc, phase after phase), and fills the outcomes.  seed is that of the
 * random order and of what shared memory and scratch hold at the start. ret_n_steps, if not NULL:
 * how many collectives the (first) warp met in. Returns 0, -ENOMEM, or -EINVAL for a batch.codec or
 * an order that there is not; then nothing was touched.  Ends the program with a message when
 * device code breaks the rules of warp.cuh. Any number of threads may call it at once.
 */
int wharf_simt_decode_batch(const struct wharf_device_batch *batch, enum wharf_simt_order order,
                            uint64_t seed, uint64_t *ret_n_steps);

/* The step budget of a chunk of these sizes: kernels/decoder.cuh. */
uint32_t wharf_simt_step_budget(uint32_t in_nbytes, uint32_t out_avail);

/* Whether there is a device decoder for codec number `codec`, or a serial one for it and
 * WHARF_DEVICE_SERIAL or WHARF_DEVICE_SERIAL_REGISTERS, or one of a block's warps together for it
 * and WHARF_DEVICE_BLOCK. */
int wharf_simt_can_decode(uint32_t codec);

#ifdef __cplusplus
}
#endif

#endif
