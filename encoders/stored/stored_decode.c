/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/stored/stored.h"

#include <string.h>

#include "encoders/outcome.h"

void wharf_stored_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                         const struct wharf_codec_setting *setting,
                         struct wharf_outcome *ret_outcome)
{
    (void)setting;
    if (in_nbytes > out_avail) {
        wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL,
                           8 * (uint64_t)out_avail);
        return;
    }
    if (in_nbytes)
        memcpy(out, in, in_nbytes);
    wharf_outcome_ok(ret_outcome, in_nbytes, in_nbytes);
}
