/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf_write.h: makes BGZF (bgzf.h), block by block; blocks are independent, so that many threads
 * can make them.  A file is its blocks and wharf_bgzf_marker behind them.
 */
#ifndef WHARF_ENCODERS_GZIP_BGZF_WRITE_H
#define WHARF_ENCODERS_GZIP_BGZF_WRITE_H

#include "encoders/codec.h"
#include "encoders/gzip/bgzf.h"

/* What bgzip puts into a block: whatever that is, it fits one when it is stored. */
enum { WHARF_BGZF_PACK_NBYTES = 65280 };

/*
 * Makes a block of 1 to WHARF_BGZF_PACK_NBYTES.
 *   encoder      wharf_deflate_encoder's: of raw Deflate.  What it does not make smaller is stored.
 *   out          WHARF_BGZF_MAX_NBYTES
 *   ret_nbytes   the block's size
 * Returns 0 or -EINVAL for a size that is none of a block.
 */
int wharf_bgzf_pack(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                    uint8_t *out, size_t *ret_nbytes);

#endif
