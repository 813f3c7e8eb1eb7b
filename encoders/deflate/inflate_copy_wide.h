/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_copy_wide.h: copies matches in output of 16-bit units.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_COPY_WIDE_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_COPY_WIDE_H

#include "encoders/deflate/inflate_copy.h"

/*
 * wharf_copy_match in units of 16 bits: `length` and `distance` count units, and there is room for
 * WHARF_COPY_NBYTES of them at `to`.
 */
WHARF_COPY_ALWAYS_INLINE void wharf_copy_match_wide(uint16_t *to, const uint16_t *from,
                                                    size_t length, size_t distance)
{
    uint8_t *next = (uint8_t *)to;
    const uint8_t *source = (const uint8_t *)from;
    const uint8_t *end = (const uint8_t *)(to + length);
    uint64_t word;

    if (__builtin_expect(distance >= 8, 1)) {
        wharf_copy_16(next, source);
        wharf_copy_16(next + 16, source + 16);
        for (next += 32, source += 32; __builtin_expect(next < end, 0); next += 64, source += 64)
            for (unsigned i = 0; i < 64; i += 16)
                wharf_copy_16(next + i, source + i);
        return;
    }
    const size_t step = distance < 4 ? distance : 4;
    if (distance & (distance - 1)) {
        for (; next < end; next += 2 * step, source += 2 * step) {
            memcpy(&word, source, sizeof(word));
            memcpy(next, &word, sizeof(word));
        }
        return;
    }
    /* A period of 1, 2 or 4 units. */
    memcpy(&word, source, sizeof(word));
    if (distance == 1)
        word = (word & 0xffff) * 0x0001000100010001;
    else if (distance == 2)
        word = (word & 0xffffffff) * 0x0000000100000001;
    const wharf_copy_vector vector = (wharf_copy_vector){0} + word;
    for (; next < end; next += sizeof(vector))
        memcpy(next, &vector, sizeof(vector));
}

#endif
