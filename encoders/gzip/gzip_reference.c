/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_reference.c: the reference decoder of gzip: member after member by zlib
 * (inflate_reference.h). */
#include "encoders/decode_poll.h"
#include "encoders/deflate/inflate_reference.h"
#include "encoders/gzip/gzip.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/outcome.h"

void wharf_gzip_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    struct wharf_outcome member;
    size_t at = 0;
    size_t asked_at = 0;
    size_t out_nbytes = 0;

    do {
        wharf_inflate_reference(WHARF_REFERENCE_GZIP, at ? in + at : in, in_nbytes - at,
                                out_nbytes ? out + out_nbytes : out, out_avail - out_nbytes,
                                setting, &member);
        if (member.result == WHARF_OK && at + member.in_nbytes - asked_at > WHARF_POLL_IN_NBYTES) {
            asked_at = at + member.in_nbytes;
            uint32_t stopped = wharf_decode_poll(setting);
            if (stopped)
                wharf_outcome_fail(&member, stopped, WHARF_REASON_NONE, 0);
        }
        if (member.result != WHARF_OK) {
            /* The place in the source, not in the member. */
            if (member.reason != WHARF_REASON_NONE)
                member.bit_offset += 8 * (uint64_t)at;
            *ret_outcome = member;
            return;
        }
        at += member.in_nbytes;
        out_nbytes += member.out_nbytes;
    } while (wharf_gzip_member_follows(in + at, in_nbytes - at));
    *ret_outcome = member;
    ret_outcome->in_nbytes = at;
    ret_outcome->out_nbytes = out_nbytes;
}
