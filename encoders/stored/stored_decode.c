/* SPDX-License-Identifier: Apache-2.0 */
/* stored_decode.c: copies a chunk, with polls. */
#include "encoders/stored/stored.h"

#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

void wharf_stored_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                         const struct wharf_codec_setting *setting,
                         struct wharf_outcome *ret_outcome)
{
    uint64_t end = in_nbytes;

    if (in_nbytes > out_avail) {
        wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL,
                           8 * (uint64_t)out_avail);
        return;
    }
    for (; in_nbytes > WHARF_POLL_OUT_NBYTES; in_nbytes -= WHARF_POLL_OUT_NBYTES) {
        memcpy(out, in, WHARF_POLL_OUT_NBYTES);
        in += WHARF_POLL_OUT_NBYTES;
        out += WHARF_POLL_OUT_NBYTES;
        uint32_t stopped = wharf_decode_poll(setting);
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
    }
    if (in_nbytes)
        memcpy(out, in, in_nbytes);
    wharf_outcome_ok(ret_outcome, end, end);
}
