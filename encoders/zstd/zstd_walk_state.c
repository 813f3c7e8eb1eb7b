/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_walk_state.c: failures of a walk. */
#include "encoders/zstd/zstd_walk_state.h"

bool wharf_zstd_fail(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at)
{
    walk->reason = reason;
    walk->bad_at = walk->in_base + at;
    walk->step = WHARF_ZSTD_STEP_END;
    return false;
}

bool wharf_zstd_fail_frame(struct wharf_zstd_walk *walk, enum wharf_reason reason)
{
    wharf_zstd_fail(walk, reason, walk->at);
    walk->bad_at = walk->frame_at;
    return false;
}

bool wharf_zstd_fail_room(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at)
{
    return reason == WHARF_REASON_ZSTD_CONTENT_SIZE ? wharf_zstd_fail_frame(walk, reason)
                                                    : wharf_zstd_fail(walk, reason, at);
}

struct wharf_zstd_room wharf_zstd_room_of_block(const struct wharf_zstd_walk *walk)
{
    struct wharf_zstd_room room = {walk->frame.block_max, WHARF_REASON_ZSTD_BLOCK_SIZE};
    uint64_t content = walk->frame.content_nbytes - wharf_zstd_frame_nbytes(walk);

    if (content < room.nbytes)
        room = (struct wharf_zstd_room){(size_t)content, WHARF_REASON_ZSTD_CONTENT_SIZE};
    if (walk->out_avail - walk->n_out < room.nbytes)
        room = (struct wharf_zstd_room){walk->out_avail - walk->n_out, WHARF_REASON_OUTPUT_FULL};
    return room;
}
