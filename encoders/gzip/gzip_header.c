/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_header.c: reads headers and trailers of gzip members (RFC 1952, section 2.3).
 *
 * A header may come in pieces of any size.  Its fields are read one after the other; `field` keeps
 * an incomplete one until the next piece.  The header's own CRC is computed meanwhile.
 */
#include "encoders/gzip/gzip_header.h"

#include <string.h>

#include "encoders/checksum.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/little_endian.h"

/* The fields of a header, in order. */
enum step { MAGIC, METHOD, TIME, EXTRA_LENGTH, EXTRA, NAME, COMMENT, CRC, END };

void wharf_gzip_header_init(struct wharf_gzip_header *header)
{
    *header = (struct wharf_gzip_header){.crc = WHARF_CRC32_INIT, .step = MAGIC};
}

/* Collects a field of nbytes, at most sizeof(header->field).  Whether it is complete. */
static int collect(struct wharf_gzip_header *header, unsigned nbytes, const uint8_t **in,
                   const uint8_t *in_end)
{
    size_t n = nbytes - header->field_nbytes;

    if (n > (size_t)(in_end - *in))
        n = (size_t)(in_end - *in);
    if (n)
        memcpy(header->field + header->field_nbytes, *in, n);
    if (header->step != CRC)
        header->crc = wharf_crc32(header->crc, *in, n);
    *in += n;
    header->field_nbytes += n;
    return header->field_nbytes == nbytes;
}

/* Skips the extra field.  Whether it is complete. */
static int skip_extra(struct wharf_gzip_header *header, const uint8_t **in, const uint8_t *in_end)
{
    size_t n = header->extra_left;

    if (n > (size_t)(in_end - *in))
        n = (size_t)(in_end - *in);
    header->crc = wharf_crc32(header->crc, *in, n);
    *in += n;
    header->extra_left -= n;
    return header->extra_left == 0;
}

/* Skips a zero-terminated text.  Whether it is complete. */
static int skip_text(struct wharf_gzip_header *header, const uint8_t **in, const uint8_t *in_end)
{
    size_t n = (size_t)(in_end - *in);
    const uint8_t *zero = n ? memchr(*in, 0, n) : NULL;

    if (zero)
        n = (size_t)(zero + 1 - *in);
    header->crc = wharf_crc32(header->crc, *in, n);
    *in += n;
    return zero != NULL;
}

/* Reads the next field, if the flags say that the header has it.  Whether it is complete. */
static int read_field(struct wharf_gzip_header *header, const uint8_t **in, const uint8_t *in_end)
{
    switch ((enum step)header->step) {
    case MAGIC:
    case METHOD:
        return collect(header, 2, in, in_end);
    case TIME: /* with XFL and OS */
        return collect(header, 6, in, in_end);
    case EXTRA_LENGTH:
        return !(header->flags & WHARF_GZIP_FLAG_EXTRA) || collect(header, 2, in, in_end);
    case EXTRA:
        return !(header->flags & WHARF_GZIP_FLAG_EXTRA) || skip_extra(header, in, in_end);
    case NAME:
        return !(header->flags & WHARF_GZIP_FLAG_NAME) || skip_text(header, in, in_end);
    case COMMENT:
        return !(header->flags & WHARF_GZIP_FLAG_COMMENT) || skip_text(header, in, in_end);
    case CRC:
        return !(header->flags & WHARF_GZIP_FLAG_HCRC) || collect(header, 2, in, in_end);
    case END:
        break;
    }
    return 1;
}

/* Checks the field that has just been read. */
static uint32_t check_field(struct wharf_gzip_header *header)
{
    const uint8_t *field = header->field;

    switch ((enum step)header->step) {
    case MAGIC:
        if (field[0] != WHARF_GZIP_MAGIC_0 || field[1] != WHARF_GZIP_MAGIC_1)
            return WHARF_REASON_GZIP_MAGIC;
        break;
    case METHOD:
        header->flags = field[1];
        if (field[0] != WHARF_GZIP_METHOD_DEFLATE)
            return WHARF_REASON_GZIP_METHOD;
        if (header->flags & WHARF_GZIP_FLAGS_RESERVED)
            return WHARF_REASON_GZIP_FLAGS;
        break;
    case EXTRA_LENGTH:
        if (header->flags & WHARF_GZIP_FLAG_EXTRA)
            header->extra_left = (uint16_t)wharf_load_le16(field);
        break;
    case CRC:
        if ((header->flags & WHARF_GZIP_FLAG_HCRC) &&
            wharf_load_le16(field) != (header->crc & 0xffff))
            return WHARF_REASON_GZIP_HEADER_CRC;
        break;
    default:
        break;
    }
    return WHARF_REASON_NONE;
}

uint32_t wharf_gzip_header_read(struct wharf_gzip_header *header, const uint8_t *in,
                                size_t in_nbytes, size_t *ret_taken)
{
    const uint8_t *in_next = in;
    const uint8_t *in_end = in_nbytes ? in + in_nbytes : in;

    while (header->step != END) {
        if (!read_field(header, &in_next, in_end))
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t reason = check_field(header);
        if (reason != WHARF_REASON_NONE)
            return reason;
        header->field_nbytes = 0;
        header->step++;
    }
    *ret_taken = (size_t)(in_next - in);
    return WHARF_REASON_NONE;
}

uint32_t wharf_gzip_trailer(const uint8_t *in, size_t in_nbytes, uint32_t crc, uint32_t out_nbytes)
{
    if (in_nbytes < 4)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (wharf_load_le32(in) != crc)
        return WHARF_REASON_GZIP_CHECKSUM;
    if (in_nbytes < WHARF_GZIP_TRAILER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    return wharf_load_le32(in + 4) == out_nbytes ? WHARF_REASON_NONE : WHARF_REASON_GZIP_LENGTH;
}

int wharf_gzip_member_follows(const uint8_t *in, size_t in_nbytes)
{
    return in_nbytes >= 1 && in[0] == WHARF_GZIP_MAGIC_0 &&
           (in_nbytes == 1 || in[1] == WHARF_GZIP_MAGIC_1);
}
