/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_call.c: hands a call's output to the caller, and makes room for more. */
#include "encoders/zlib/zlib_call.h"

#include <string.h>

#include "encoders/checksum.h"

void wharf_zlib_call_flush(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    const uint8_t *from = steps->out + steps->flushed;
    const size_t n = steps->pos - steps->flushed;

    if (n == 0)
        return;
    memcpy(call->out, from, n);
    call->out += n;
    if (steps->wrap & WHARF_ZWRAP_CHECK) {
        steps->check = steps->flags ? wharf_crc32(steps->check, from, n)
                                    : wharf_adler32(steps->check, from, n);
        call->io->adler = steps->check;
    }
    steps->total += n;
    steps->flushed = steps->pos;
}

/* Moves the last 32 KiB to the front.  zlib's window is what it was before this call; a copy of it
 * is kept in `saved`, for a hand-over to zlib. */
void wharf_zlib_call_make_room(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    const size_t room = sizeof(steps->out) - steps->pos;

    if (room >= 2048)
        return;
    wharf_zlib_call_flush(call);
    if (steps->whave && !steps->has_saved) {
        memcpy(steps->saved, wharf_zlib_state_window(steps), steps->whave);
        steps->has_saved = true;
    }
    memmove(steps->out, steps->out + steps->pos - WHARF_DEFLATE_WINDOW_NBYTES,
            WHARF_DEFLATE_WINDOW_NBYTES);
    steps->pos = steps->flushed = WHARF_DEFLATE_WINDOW_NBYTES;
}
