/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh32.h: the checksum of LZ4 frames, XXH32 with seed 0, of data that comes in pieces.
 * (Specification: github.com/Cyan4973/xxHash, doc/xxhash_spec.md.)
 */
#ifndef WHARF_ENCODERS_XXH32_H
#define WHARF_ENCODERS_XXH32_H

#include <stddef.h>
#include <stdint.h>

enum { WHARF_XXH32_STRIPE_NBYTES = 16 };

struct wharf_xxh32 {
    uint32_t lanes[4];
    uint64_t nbytes;                           /* so far */
    uint8_t stripe[WHARF_XXH32_STRIPE_NBYTES]; /* the last nbytes % 16, which no lane has yet */
};

void wharf_xxh32_init(struct wharf_xxh32 *hash);

/* Takes nbytes more.  `data` may be NULL when there are none. */
void wharf_xxh32_update(struct wharf_xxh32 *hash, const uint8_t *data, size_t nbytes);

/* The checksum of all so far; more may follow. */
uint32_t wharf_xxh32_value(const struct wharf_xxh32 *hash);

/* That of data in one piece. */
uint32_t wharf_xxh32(const uint8_t *data, size_t nbytes);

#endif
