/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_copy.h: copies matches in wide pieces.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_COPY_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "encoders/deflate/deflate_format.h"

/*
 * wharf_copy_match writes up to so many bytes from `to` on, whatever the length: the longest match
 * rounded up to a multiple of 64 behind a first piece of 32.
 */
#define WHARF_COPY_NBYTES (32 + (WHARF_DEFLATE_MAX_MATCH - 32 + 63) / 64 * 64)

/* Equal words that are stored at once; who includes this may know of a machine that stores more. */
#ifndef WHARF_COPY_VECTOR_NBYTES
#define WHARF_COPY_VECTOR_NBYTES 16
#endif
typedef uint64_t wharf_copy_vector __attribute__((vector_size(WHARF_COPY_VECTOR_NBYTES)));

#define WHARF_COPY_ALWAYS_INLINE static inline __attribute__((always_inline))

WHARF_COPY_ALWAYS_INLINE void wharf_copy_16(uint8_t *to, const uint8_t *from)
{
    uint64_t words[2];

    memcpy(words, from, sizeof(words));
    memcpy(to, words, sizeof(words));
}

/*
 * A period of 1, 2, 4 or 8 bytes, repeated without looking at what has been written.  Beyond 64
 * bytes all that a match can need are written: a loop would end at a different place each time,
 * which costs more than the stores.
 */
WHARF_COPY_ALWAYS_INLINE void wharf_copy_period(uint8_t *to, const uint8_t *from, size_t length,
                                                size_t period)
{
    static const struct {
        uint64_t mask;
        uint64_t factor;
    } repeats[] = {
        [1] = {0xff, 0x0101010101010101},
        [2] = {0xffff, 0x0001000100010001},
        [4] = {0xffffffff, 0x0000000100000001},
        [8] = {0xffffffffffffffff, 1},
    };
    uint64_t word;

    memcpy(&word, from, sizeof(word));
    word = (word & repeats[period].mask) * repeats[period].factor;
    const wharf_copy_vector vector = (wharf_copy_vector){0} + word;
    for (unsigned i = 0; i < 64; i += sizeof(vector))
        memcpy(to + i, &vector, sizeof(vector));
    if (length > 64)
        for (unsigned i = 64; i < WHARF_DEFLATE_MAX_MATCH; i += sizeof(vector))
            memcpy(to + i, &vector, sizeof(vector));
}

/*
 * Copies a match of `length` bytes to `to`, where from = to - distance: each byte is that which is
 * `distance` before it, be it old or just written.  There is room for WHARF_COPY_NBYTES at `to`,
 * and what is behind the match there is undefined afterwards.
 */
WHARF_COPY_ALWAYS_INLINE void wharf_copy_match(uint8_t *to, const uint8_t *from, size_t length,
                                               size_t distance)
{
    const uint8_t *end = to + length;

    if (__builtin_expect(distance >= 16, 1)) {
        wharf_copy_16(to, from);
        wharf_copy_16(to + 16, from + 16);
        for (to += 32, from += 32; __builtin_expect(to < end, 0); to += 64, from += 64)
            for (unsigned i = 0; i < 64; i += 16)
                wharf_copy_16(to + i, from + i);
    } else if ((distance & (distance - 1)) == 0) {
        wharf_copy_period(to, from, length, distance);
    } else {
        const size_t step = distance < 8 ? distance : 8;
        for (; to < end; to += step, from += step) {
            uint64_t word;
            memcpy(&word, from, sizeof(word));
            memcpy(to, &word, sizeof(word));
        }
    }
}

#endif
