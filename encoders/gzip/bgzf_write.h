/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf_write.h: makes BGZF (bgzf.h) block by block.  Blocks are independent, so that threads can
 * make them in parallel.  A file is its blocks, followed by wharf_bgzf_marker.
 */
#ifndef WHARF_ENCODERS_GZIP_BGZF_WRITE_H
#define WHARF_ENCODERS_GZIP_BGZF_WRITE_H

#include "encoders/codec.h"
#include "encoders/gzip/bgzf.h"

/* The input of a block, as in bgzip: any data of this size fits a block, if need be stored. */
enum { WHARF_BGZF_PACK_NBYTES = 65280 };

/*
 * Makes a block of 1 to WHARF_BGZF_PACK_NBYTES of input.
 *   encoder      wharf_deflate_encoder's, for raw Deflate; what it does not shrink is stored
 *   out          room for WHARF_BGZF_MAX_NBYTES
 *   ret_nbytes   the block's size
 * Returns 0, or -EINVAL for an in_nbytes out of this range.
 */
int wharf_bgzf_pack(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                    uint8_t *out, size_t *ret_nbytes);

#endif
