/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_frame.h: splits files of framed Snappy into pieces, with the rules of frame_piece.h.  The
 * format is described in snappy_frame_format.h.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_H

#include <stdint.h>

#include "encoders/frame_piece.h"
#include "encoders/snappy/snappy_frame_format.h"

/* The first bytes of every file. */
extern const uint8_t wharf_snappy_frame_identifier[WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES];

/* The stored form of a CRC-32C. */
static inline uint32_t wharf_snappy_frame_mask(uint32_t crc32c)
{
    return (crc32c >> 15 | crc32c << 17) + 0xa282ead8u;
}

/* A stream identifier gives WHARF_FRAME_BEGIN.  There is no WHARF_FRAME_FINISH. */
wharf_frame_next_fn wharf_snappy_frame_next;

#endif
