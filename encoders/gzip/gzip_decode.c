/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_decode.c: decodes gzip (RFC 1952), member after member, by the inflater of encoders/deflate.
 *
 * An error counts from the start of the source, although each member is decoded as a stream of its
 * own with an empty window.
 */
#include "encoders/gzip/gzip.h"

#include "encoders/decode_poll.h"
#include "encoders/deflate/inflate.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/outcome.h"

/* The end of a member in source and output, or its first error. */
struct member {
    uint32_t result; /* if not WHARF_OK, the decode ends; without a reason, a poll ended it */
    uint32_t reason;
    uint64_t bit_pos;
    uint8_t *out_next;
};

static void decode_trailer(struct member *member, struct wharf_inflate *inflate,
                           const struct wharf_codec_setting *setting)
{
    size_t at = inflate->bit_pos / 8;
    size_t out_nbytes = (size_t)(inflate->out_next - inflate->out_begin);
    uint32_t crc = WHARF_CRC32_INIT;

    member->result =
        wharf_poll_checksum(setting, wharf_crc32, inflate->out_begin, out_nbytes, &crc);
    if (member->result != WHARF_OK)
        return;
    member->reason =
        wharf_gzip_trailer(inflate->in + at, inflate->in_nbytes - at, crc, (uint32_t)out_nbytes);
    member->result = wharf_gzip_result(member->reason);
    member->bit_pos = inflate->bit_pos;
    if (member->reason == WHARF_REASON_NONE)
        member->bit_pos += 8 * WHARF_GZIP_TRAILER_NBYTES;
    member->out_next = inflate->out_next;
}

/* Reads the header at *at and moves *at past it.  Names may have any length, so polls are due. */
static void decode_header(struct member *member, const uint8_t *in, size_t in_nbytes, size_t *at,
                          const struct wharf_codec_setting *setting)
{
    struct wharf_gzip_header header;
    size_t taken;

    member->bit_pos = 8 * (uint64_t)*at;
    wharf_gzip_header_init(&header);
    for (;;) {
        size_t left = in_nbytes - *at;
        size_t n = left < WHARF_POLL_OUT_NBYTES ? left : WHARF_POLL_OUT_NBYTES;
        member->reason = wharf_gzip_header_read(&header, *at ? in + *at : in, n, &taken);
        member->result = wharf_gzip_result(member->reason);
        if (member->reason != WHARF_REASON_INPUT_TRUNCATED || n == left)
            break;
        *at += n;
        member->result = wharf_decode_poll(setting);
        if (member->result != WHARF_OK) {
            member->reason = WHARF_REASON_NONE;
            return;
        }
    }
    *at += member->reason == WHARF_REASON_NONE ? taken : 0;
}

/* Decodes the member at in + at. */
static void decode_member(struct member *member, const uint8_t *in, size_t in_nbytes, size_t at,
                          uint8_t *out, size_t out_avail, const struct wharf_codec_setting *setting)
{
    struct wharf_inflate inflate;

    decode_header(member, in, in_nbytes, &at, setting);
    if (member->result != WHARF_OK)
        return;
    wharf_inflate_init(&inflate, in, in_nbytes, 8 * (uint64_t)at, out, out_avail);
    member->result = wharf_inflate_run_polled(&inflate, setting, &member->reason);
    if (member->result != WHARF_OK)
        return;
    member->result = wharf_inflate_result(member->reason);
    member->bit_pos = inflate.bit_pos;
    if (member->reason == WHARF_REASON_NONE)
        decode_trailer(member, &inflate, setting);
}

void wharf_gzip_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct member member;
    size_t at = 0;
    size_t asked_at = 0;
    size_t out_nbytes = 0;

    do {
        decode_member(&member, in, in_nbytes, at, out ? out + out_nbytes : out,
                      out_avail - out_nbytes, setting);
        /* Also polls between members: they may be short and many. */
        if (member.result == WHARF_OK && member.bit_pos / 8 - asked_at > WHARF_POLL_IN_NBYTES) {
            asked_at = member.bit_pos / 8;
            member.result = wharf_decode_poll(setting);
        }
        if (member.result != WHARF_OK) {
            wharf_outcome_fail(ret_outcome, member.result, member.reason,
                               member.reason ? member.bit_pos : 0);
            return;
        }
        at = member.bit_pos / 8;
        out_nbytes = out ? (size_t)(member.out_next - out) : 0;
    } while (wharf_gzip_member_follows(in + at, in_nbytes - at));
    wharf_outcome_ok(ret_outcome, at, out_nbytes);
}
