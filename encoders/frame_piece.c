/* SPDX-License-Identifier: Apache-2.0 */
/* frame_piece.c: what the splitters of frames share. */
#include "encoders/frame_piece.h"

#include "proto/wharf_result.h"

bool wharf_frame_has(uint64_t nbytes, size_t in_nbytes, bool at_end,
                     struct wharf_frame_piece *ret_piece)
{
    if (nbytes <= in_nbytes)
        return true;
    if (at_end)
        wharf_frame_bad(ret_piece, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED);
    else
        *ret_piece = (struct wharf_frame_piece){.kind = WHARF_FRAME_MORE, .nbytes = nbytes};
    return false;
}
