/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh64.h: the checksum of zstd frames, XXH64 with seed 0, of data that comes little by little,
 * each piece behind the one before.  (Specification: github.com/Cyan4973/xxHash,
 * doc/xxhash_spec.md.)
 */
#ifndef WHARF_ENCODERS_XXH64_H
#define WHARF_ENCODERS_XXH64_H

#include <stddef.h>
#include <stdint.h>

struct wharf_xxh64 {
    const uint8_t *next; /* data that is not taken yet: less than 32 bytes after an update */
    uint64_t nbytes;     /* that are taken: a multiple of 32 */
    uint64_t lanes[4];
};

void wharf_xxh64_init(struct wharf_xxh64 *hash, const uint8_t *begin);

/* Takes what it can of the data, which is there up to `end` now. */
void wharf_xxh64_update(struct wharf_xxh64 *hash, const uint8_t *end);

/* The data was moved so many bytes towards lower addresses. */
void wharf_xxh64_move(struct wharf_xxh64 *hash, size_t nbytes);

/* The checksum of all data, which ends at `end`. */
uint64_t wharf_xxh64_finish(struct wharf_xxh64 *hash, const uint8_t *end);

#endif
