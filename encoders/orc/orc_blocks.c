/* SPDX-License-Identifier: Apache-2.0 */
/* orc_blocks.c: reads parts of ORC files block by block; see orc_blocks.h. */
#include "encoders/orc/orc_blocks.h"

#include <errno.h>
#include <stdlib.h>

/* A block should yield at least a WORTHth of its size.  All blocks of a part together may take this
 * many bytes more.  The limit is small, because each column below a structure reads the structure's
 * stream again. */
enum { MOST_LOST_NBYTES = 1024, WORTH = 4 };

void wharf_orc_blocks_init(struct wharf_orc_blocks *blocks, const struct wharf_orc_bytes *of,
                           uint64_t offset, uint64_t nbytes)
{
    *blocks = (struct wharf_orc_blocks){
        .of = of,
        .at = offset,
        .end = offset + nbytes,
        .block_at = offset,
    };
}

void wharf_orc_blocks_deinit(struct wharf_orc_blocks *blocks)
{
    if (blocks->ahead.first)
        wharf_orc_team_drop(blocks->of, &blocks->ahead);
    free(blocks->packed.bytes);
    blocks->packed.bytes = NULL;
}

static int decode_next(struct wharf_orc_blocks *blocks, struct wharf_orc_block *block, uint8_t *out,
                       size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    if (blocks->of->team && wharf_orc_team_next(blocks->of, &blocks->ahead, blocks->at, blocks->end,
                                                block, out, ret_nbytes, ret_error))
        return ret_error->trouble ? -1 : 0;
    if (wharf_orc_block_find(blocks->of, blocks->at, blocks->end, block, ret_error) < 0)
        return -1;
    return wharf_orc_block_decode(blocks->of, block, &blocks->packed, out, ret_nbytes, ret_error);
}

int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error)
{
    struct wharf_orc_block block;

    blocks->block_at = blocks->at;
    if (decode_next(blocks, &block, out, ret_nbytes, ret_error) < 0)
        return -1;
    blocks->at = block.body + block.nbytes;
    uint64_t taken = blocks->at - block.at, held = WORTH * (uint64_t)*ret_nbytes;
    blocks->lost_nbytes += taken > held ? taken - held : 0;
    if (blocks->lost_nbytes > MOST_LOST_NBYTES)
        return wharf_orc_fail(WHARF_ORC_DAMAGED, "its blocks hold far less than they take",
                              block.at, ret_error);
    return 0;
}

int wharf_orc_blocks_all(struct wharf_orc_blocks *blocks, size_t most_nbytes, uint8_t **ret_bytes,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    uint8_t *bytes = NULL;
    size_t nbytes = 0, avail = 0, more;

    while (wharf_orc_blocks_have_more(blocks)) {
        if (avail - nbytes < blocks->of->block_nbytes) {
            avail = 2 * avail + blocks->of->block_nbytes;
            uint8_t *larger = realloc(bytes, avail);
            if (!larger) {
                free(bytes);
                return wharf_orc_fail_system(-ENOMEM, blocks->block_at, ret_error);
            }
            bytes = larger;
        }
        if (wharf_orc_blocks_next(blocks, bytes + nbytes, &more, ret_error) < 0) {
            free(bytes);
            return -1;
        }
        nbytes += more;
        if (nbytes > most_nbytes) {
            free(bytes);
            return wharf_orc_fail(WHARF_ORC_UNKNOWN, "it is larger than any writer makes it",
                                  blocks->block_at, ret_error);
        }
    }
    *ret_bytes = bytes;
    *ret_nbytes = nbytes;
    return 0;
}
