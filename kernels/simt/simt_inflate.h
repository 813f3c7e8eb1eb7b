/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_inflate.h: kernels/inflate_parts.h on the SIMT layer: kernel after kernel, and each block
 * after block.  The source comes in two slices, and the output goes in two pieces.
 */
#ifndef WHARF_KERNELS_SIMT_INFLATE_H
#define WHARF_KERNELS_SIMT_INFLATE_H

#include "kernels/inflate_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A small GPU, whose parts are those of a large one. */
extern const struct wharf_inflate_shape wharf_simt_inflate_shape;

/*
 * Decodes a planned job, with a plan for a shape that differs from wharf_simt_inflate_shape in
 * lengths alone.  Lanes run in an order that depends on the stream's size.
 */
void wharf_simt_inflate(const struct wharf_inflate_job *job);

#ifdef __cplusplus
}
#endif

#endif
