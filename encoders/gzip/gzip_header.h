/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_header.h: reads the header and the trailer of gzip members.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_HEADER_H
#define WHARF_ENCODERS_GZIP_GZIP_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

/* A header on its way in: it has no longest size, so it is read piece by piece. */
struct wharf_gzip_header {
    uint32_t crc; /* of the bytes so far */
    uint8_t step; /* which field comes next */
    uint8_t flags;
    uint8_t field_nbytes; /* of the field, as far as it is there */
    uint8_t field[6];
    uint16_t extra_left;
};

/* Ready for a member's first byte. */
void wharf_gzip_header_init(struct wharf_gzip_header *header);

/*
 * Reads on, from in_nbytes more of the header.  Returns NONE at its end, with the number of bytes
 * taken from `in` in *ret_taken; INPUT_TRUNCATED when it goes on behind them, all of them taken;
 * or what is wrong with it.
 */
uint32_t wharf_gzip_header_read(struct wharf_gzip_header *header, const uint8_t *in,
                                size_t in_nbytes, size_t *ret_taken);

/* Judges the trailer at `in`; crc and out_nbytes (modulo 2^32) are those of the member's output. */
uint32_t wharf_gzip_trailer(const uint8_t *in, size_t in_nbytes, uint32_t crc, uint32_t out_nbytes);

/* Whether another member starts at `in`, whose in_nbytes are all that is left of the source if
 * they are fewer than two. */
int wharf_gzip_member_follows(const uint8_t *in, size_t in_nbytes);

/* The result that belongs to a reason of the functions above. */
static inline uint32_t wharf_gzip_result(uint32_t reason)
{
    if (reason == WHARF_REASON_NONE)
        return WHARF_OK;
    if (reason == WHARF_REASON_GZIP_CHECKSUM || reason == WHARF_REASON_GZIP_LENGTH)
        return WHARF_BAD_CHECKSUM;
    return WHARF_BAD_DATA;
}

#endif
