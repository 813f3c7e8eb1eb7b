/* SPDX-License-Identifier: Apache-2.0 */
/* The plain decoder: a symbol at a time.  It says where an error is, and is what the others are
 * held against. */
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_block.h"
#include "encoders/zstd/zstd_walk.h"

void wharf_zstd_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    struct wharf_zstd_walk walk;

    wharf_zstd_walk_init(&walk, in, in_nbytes, out, out_avail, setting);
    wharf_zstd_walk_run(&walk, ret_outcome);
}
