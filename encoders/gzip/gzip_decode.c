/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/gzip/gzip.h"

#include "encoders/checksum.h"
#include "encoders/deflate/inflate.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/outcome.h"

/* A member's end in source and output, or where its first error stands. */
struct member {
    uint32_t result;
    uint32_t reason;
    uint64_t bit_pos;
    uint8_t *out_next;
};

static void decode_trailer(struct member *member, struct wharf_inflate *inflate)
{
    size_t at = inflate->bit_pos / 8;
    size_t out_nbytes = (size_t)(inflate->out_next - inflate->out_begin);
    uint32_t crc = wharf_crc32(WHARF_CRC32_INIT, inflate->out_begin, out_nbytes);

    member->reason =
        wharf_gzip_trailer(inflate->in + at, inflate->in_nbytes - at, crc, (uint32_t)out_nbytes);
    member->result = wharf_gzip_result(member->reason);
    member->bit_pos = inflate->bit_pos;
    if (member->reason == WHARF_REASON_NONE)
        member->bit_pos += 8 * WHARF_GZIP_TRAILER_NBYTES;
    member->out_next = inflate->out_next;
}

/* Decodes the member at in + at. */
static void decode_member(struct member *member, const uint8_t *in, size_t in_nbytes, size_t at,
                          uint8_t *out, size_t out_avail)
{
    struct wharf_gzip_header header;
    struct wharf_inflate inflate;
    size_t header_nbytes;

    wharf_gzip_header_init(&header);
    member->bit_pos = 8 * (uint64_t)at;
    member->reason =
        wharf_gzip_header_read(&header, at ? in + at : in, in_nbytes - at, &header_nbytes);
    member->result = wharf_gzip_result(member->reason);
    if (member->reason != WHARF_REASON_NONE)
        return;
    wharf_inflate_init(&inflate, in, in_nbytes, 8 * (uint64_t)(at + header_nbytes), out, out_avail);
    member->reason = wharf_inflate_run(&inflate);
    member->result = wharf_inflate_result(member->reason);
    member->bit_pos = inflate.bit_pos;
    if (member->reason == WHARF_REASON_NONE)
        decode_trailer(member, &inflate);
}

void wharf_gzip_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct member member;
    size_t at = 0;
    size_t out_nbytes = 0;

    (void)setting;
    do {
        decode_member(&member, in, in_nbytes, at, out ? out + out_nbytes : out,
                      out_avail - out_nbytes);
        if (member.reason != WHARF_REASON_NONE) {
            wharf_outcome_fail(ret_outcome, member.result, member.reason, member.bit_pos);
            return;
        }
        at = member.bit_pos / 8;
        out_nbytes = out ? (size_t)(member.out_next - out) : 0;
    } while (wharf_gzip_member_follows(in + at, in_nbytes - at));
    wharf_outcome_ok(ret_outcome, at, out_nbytes);
}
