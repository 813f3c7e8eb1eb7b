/* SPDX-License-Identifier: Apache-2.0 */
/* The reference decoder of boolrle: that of byterle makes the bits, which are then checked. */
#include "encoders/boolrle/boolrle.h"

#include <stdlib.h>

#include "encoders/byterle/byterle.h"
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

void wharf_boolrle_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                    size_t out_avail, const struct wharf_codec_setting *setting,
                                    struct wharf_outcome *ret_outcome)
{
    size_t packed_avail = (out_avail >> 3) + ((out_avail & 7) > 0);
    uint8_t *packed = malloc(packed_avail + 1);
    size_t n = 0;

    if (!packed) {
        wharf_outcome_fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
        return;
    }
    wharf_byterle_decode_reference(in, in_nbytes, packed, packed_avail, setting, ret_outcome);
    if (ret_outcome->result == WHARF_OK) {
        uint32_t stopped = WHARF_OK;
        for (; n < out_avail && n < 8 * ret_outcome->out_nbytes && !stopped; n++) {
            out[n] = packed[n / 8] >> (7 - n % 8) & 1;
            if (n % WHARF_POLL_OUT_NBYTES == WHARF_POLL_OUT_NBYTES - 1)
                stopped = wharf_decode_poll(setting);
        }
        ret_outcome->out_nbytes = n;
        if (stopped)
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    }
    free(packed);
}
