/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_header.h: reads the header and the trailer of a zlib stream.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_HEADER_H
#define WHARF_ENCODERS_ZLIB_ZLIB_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/zlib/zlib_format.h"
#include "proto/wharf_result.h"

/* The result for a reason of the two functions below. */
static inline uint32_t wharf_zlib_result(uint32_t reason)
{
    if (reason == WHARF_REASON_NONE)
        return WHARF_OK;
    if (reason == WHARF_REASON_ZLIB_DICTIONARY)
        return WHARF_UNSUPPORTED;
    return reason == WHARF_REASON_ZLIB_CHECKSUM ? WHARF_BAD_CHECKSUM : WHARF_BAD_DATA;
}

/* Checks the header at `in`.  Returns NONE, and the data begin WHARF_ZLIB_HEADER_NBYTES further on;
 * or the reason of an error. */
static inline uint32_t wharf_zlib_header(const uint8_t *in, size_t in_nbytes)
{
    if (in_nbytes < WHARF_ZLIB_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    if ((in[0] << 8 | in[1]) % WHARF_ZLIB_HEADER_MODULUS)
        return WHARF_REASON_ZLIB_HEADER;
    if ((in[0] & 15) != WHARF_ZLIB_METHOD_DEFLATE)
        return WHARF_REASON_ZLIB_METHOD;
    if (in[0] >> 4 > WHARF_ZLIB_MAX_WINDOW)
        return WHARF_REASON_ZLIB_WINDOW;
    if (!(in[1] & WHARF_ZLIB_FLAG_DICTIONARY))
        return WHARF_REASON_NONE;
    if (in_nbytes < WHARF_ZLIB_HEADER_NBYTES + WHARF_ZLIB_DICTIONARY_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    return WHARF_REASON_ZLIB_DICTIONARY;
}

/* Verifies the trailer at `in` against the output's checksum. */
static inline uint32_t wharf_zlib_trailer(const uint8_t *in, size_t in_nbytes, uint32_t adler)
{
    if (in_nbytes < WHARF_ZLIB_TRAILER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t stored = (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
    return stored == adler ? WHARF_REASON_NONE : WHARF_REASON_ZLIB_CHECKSUM;
}

#endif
