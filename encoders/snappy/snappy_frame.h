/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_frame.h: takes files of framed Snappy apart, as frame_piece.h says; what is in them is in
 * snappy_frame_format.h.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_H

#include <stdint.h>

#include "encoders/frame_piece.h"
#include "encoders/snappy/snappy_frame_format.h"

/* The first bytes of every file. */
extern const uint8_t wharf_snappy_frame_identifier[WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES];

/* What is stored as the check of a chunk whose output has this CRC-32C. */
static inline uint32_t wharf_snappy_frame_mask(uint32_t crc32c)
{
    return (crc32c >> 15 | crc32c << 17) + 0xa282ead8u;
}

/* A stream identifier is BEGIN; there is no FINISH. */
wharf_frame_next_fn wharf_snappy_frame_next;

#endif
