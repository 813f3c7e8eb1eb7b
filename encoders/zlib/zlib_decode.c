/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_decode.c: decodes zlib streams (RFC 1950) by the inflater of encoders/deflate. */
#include "encoders/zlib/zlib.h"

#include "encoders/decode_poll.h"
#include "encoders/deflate/inflate.h"
#include "encoders/outcome.h"
#include "encoders/zlib/zlib_header.h"

void wharf_zlib_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct wharf_inflate inflate;
    uint32_t reason = wharf_zlib_header(in, in_nbytes);
    uint32_t checksum = WHARF_ADLER32_INIT;

    if (reason != WHARF_REASON_NONE) {
        wharf_outcome_fail(ret_outcome, wharf_zlib_result(reason), reason, 0);
        return;
    }
    wharf_inflate_init(&inflate, in, in_nbytes, 8 * WHARF_ZLIB_HEADER_NBYTES, out, out_avail);
    uint32_t stopped = wharf_inflate_run_polled(&inflate, setting, &reason);
    if (!stopped && reason == WHARF_REASON_NONE)
        stopped = wharf_poll_checksum(setting, wharf_adler32, inflate.out_begin,
                                      (size_t)(inflate.out_next - inflate.out_begin), &checksum);
    if (stopped) {
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
        return;
    }
    if (reason != WHARF_REASON_NONE) {
        wharf_outcome_fail(ret_outcome, wharf_inflate_result(reason), reason, inflate.bit_pos);
        return;
    }
    size_t at = inflate.bit_pos / 8;
    size_t out_nbytes = (size_t)(inflate.out_next - inflate.out_begin);
    reason = wharf_zlib_trailer(in + at, in_nbytes - at, checksum);
    if (reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, wharf_zlib_result(reason), reason, inflate.bit_pos);
    else
        wharf_outcome_ok(ret_outcome, at + WHARF_ZLIB_TRAILER_NBYTES, out_nbytes);
}
