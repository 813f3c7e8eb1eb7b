/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_walk.h: goes through a stream's frames and their blocks, a step at a time.
 *
 * A source that is there as a whole is walked by wharf_zstd_walk_run.  zstd_stream.h walks one that
 * comes in pieces: between two steps it may move what is left of the source, and the last bytes of
 * the output, to the beginning of their buffers.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_WALK_H
#define WHARF_ENCODERS_ZSTD_ZSTD_WALK_H

#include "encoders/zstd/zstd_walk_state.h"

/*
 * Takes a step.  False: there is not enough of the source, and more will come.  For a block there
 * must be room for frame.block_max bytes, or for all that the caller has room for.
 */
bool wharf_zstd_walk_step(struct wharf_zstd_walk *walk);

/* What came of it, once its step is END; of what failed in_nbytes and out_nbytes are 0. */
void wharf_zstd_walk_outcome(const struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome);

/* Goes through all of it; fills *ret_outcome. */
void wharf_zstd_walk_run(struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome);

/* To be called before. */
void wharf_zstd_walk_init(struct wharf_zstd_walk *walk, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting);

#endif
