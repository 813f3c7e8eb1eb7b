/* SPDX-License-Identifier: Apache-2.0 */
/*
 * little_endian.h: numbers in a format's bytes, least significant byte first, at any address.
 */
#ifndef WHARF_ENCODERS_LITTLE_ENDIAN_H
#define WHARF_ENCODERS_LITTLE_ENDIAN_H

#include <stdint.h>

/* The 2 bytes at p. */
static inline uint32_t wharf_load_le16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

/* The 4 bytes at p. */
static inline uint32_t wharf_load_le32(const uint8_t *p)
{
    return wharf_load_le16(p) | wharf_load_le16(p + 2) << 16;
}

/* The same, written.  One by one, which compilers make one store of, as they do not of a loop. */
static inline void wharf_store_le16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static inline void wharf_store_le32(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
    p[2] = (uint8_t)(value >> 16);
    p[3] = (uint8_t)(value >> 24);
}

#endif
