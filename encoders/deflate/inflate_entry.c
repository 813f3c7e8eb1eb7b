/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_entry.c: the entries of all symbols of Deflate, which are the same for every code. */
#include "encoders/deflate/inflate_entry.h"

/* Entries without the bits of their codes: extra bits, kind and value. */
#define LITERAL(value) (WHARF_ENTRY_LITERAL | 1 << 8 | (uint32_t)(value) << 16)
#define LENGTH(base, extra) ((uint32_t)((base)-WHARF_DEFLATE_MIN_MATCH) << 24 | (extra))
#define DISTANCE(base, extra) ((uint32_t)(base) << 16 | (extra))

#define LITERALS_4(v) LITERAL(v), LITERAL((v) + 1), LITERAL((v) + 2), LITERAL((v) + 3)
#define LITERALS_16(v) LITERALS_4(v), LITERALS_4((v) + 4), LITERALS_4((v) + 8), LITERALS_4((v) + 12)
#define LITERALS_64(v)                                                                             \
    LITERALS_16(v), LITERALS_16((v) + 16), LITERALS_16((v) + 32), LITERALS_16((v) + 48)

const uint32_t wharf_inflate_litlen_templates[WHARF_DEFLATE_N_LITLEN_FIXED] = {
    LITERALS_64(0),         LITERALS_64(64),        LITERALS_64(128),
    LITERALS_64(192),       WHARF_ENTRY_OF_END,     WHARF_DEFLATE_LENGTH_LIST(LENGTH),
    WHARF_ENTRY_OF_INVALID, WHARF_ENTRY_OF_INVALID,
};

const uint32_t wharf_inflate_distances[64] = {
    WHARF_DEFLATE_DISTANCE_LIST(DISTANCE), WHARF_ENTRY_OF_INVALID, WHARF_ENTRY_OF_INVALID,
    WHARF_DEFLATE_DISTANCE_LIST(DISTANCE), WHARF_ENTRY_OF_INVALID, WHARF_ENTRY_OF_INVALID,
};
