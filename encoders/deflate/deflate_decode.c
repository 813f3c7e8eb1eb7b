/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_decode.c: decodes raw Deflate (RFC 1951) by the inflater. */
#include "encoders/deflate/deflate.h"

#include "encoders/deflate/inflate.h"
#include "encoders/outcome.h"

void wharf_deflate_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    struct wharf_inflate inflate;
    uint32_t reason;

    wharf_inflate_init(&inflate, in, in_nbytes, 0, out, out_avail);
    uint32_t stopped = wharf_inflate_run_polled(&inflate, setting, &reason);
    if (stopped)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, wharf_inflate_result(reason), reason, inflate.bit_pos);
    else
        wharf_outcome_ok(ret_outcome, inflate.bit_pos / 8,
                         (uint64_t)(inflate.out_next - inflate.out_begin));
}
