/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU engine: the plain decoder with quick loops in front of it. */
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_block.h"
#include "encoders/zstd/zstd_loops.h"
#include "encoders/zstd/zstd_walk.h"

void wharf_zstd_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct wharf_zstd_walk walk;

    wharf_zstd_walk_init(&walk, in, in_nbytes, out, out_avail, setting);
    walk.loops = wharf_zstd_best_loops();
    wharf_zstd_walk_run(&walk, ret_outcome);
}
