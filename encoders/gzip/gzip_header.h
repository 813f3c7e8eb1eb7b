/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_header.h: reads the header and the trailer of gzip members.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_HEADER_H
#define WHARF_ENCODERS_GZIP_GZIP_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

/* The state of reading a header.  A header may have any size, so it is read in pieces. */
struct wharf_gzip_header {
    uint32_t crc; /* CRC-32 of the bytes so far */
    uint8_t step; /* the next field */
    uint8_t flags;
    uint8_t field_nbytes; /* bytes in `field` */
    uint8_t field[6];
    uint16_t extra_left;
};

/* Prepares for a member's first byte. */
void wharf_gzip_header_init(struct wharf_gzip_header *header);

/*
 * Reads the next in_nbytes of the header.  Returns NONE at its end, with the number of bytes taken
 * from `in` in *ret_taken; INPUT_TRUNCATED if all bytes were taken and the header continues; or the
 * reason of an error.
 */
uint32_t wharf_gzip_header_read(struct wharf_gzip_header *header, const uint8_t *in,
                                size_t in_nbytes, size_t *ret_taken);

/* Verifies the trailer at `in`.  crc and out_nbytes (modulo 2^32) are those of the member's
 * output. */
uint32_t wharf_gzip_trailer(const uint8_t *in, size_t in_nbytes, uint32_t crc, uint32_t out_nbytes);

/* Whether another member begins at `in`.  If in_nbytes is below two, the source ends there. */
int wharf_gzip_member_follows(const uint8_t *in, size_t in_nbytes);

/* The result for a reason of the functions above. */
static inline uint32_t wharf_gzip_result(uint32_t reason)
{
    if (reason == WHARF_REASON_NONE)
        return WHARF_OK;
    if (reason == WHARF_REASON_GZIP_CHECKSUM || reason == WHARF_REASON_GZIP_LENGTH)
        return WHARF_BAD_CHECKSUM;
    return WHARF_BAD_DATA;
}

#endif
