/* SPDX-License-Identifier: Apache-2.0 */
/* random_streams.h: random data, and what damages a stream that was packed from it. */
#ifndef WHARF_TESTS_PRELOAD_RANDOM_STREAMS_H
#define WHARF_TESTS_PRELOAD_RANDOM_STREAMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_RAW = 100000 };

static uint64_t random_state;

/* Less than `below`. */
static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(((random_state >> 32) * below) >> 32);
}

/* Runs, words and noise in turns. */
static size_t make_raw(uint8_t *raw)
{
    size_t nbytes = draw(8) ? draw(draw(2) ? 300 : MAX_RAW) : draw(3);

    for (size_t i = 0; i < nbytes;) {
        uint32_t kind = draw(3), n = 1 + draw(300), distance = i ? 1 + draw((uint32_t)i) : 1;

        for (; n-- && i < nbytes; i++)
            raw[i] = kind == 0 || i < distance ? (uint8_t)draw(256)
                     : kind == 1               ? raw[i - distance]
                                               : 'a';
    }
    return nbytes;
}

/* Returns how many bytes there are then; packed has room for 16 more. */
static size_t damage(uint8_t *packed, size_t nbytes)
{
    switch (draw(4)) {
    case 0:
        return nbytes ? draw((uint32_t)nbytes) : 0;
    case 1:
        for (uint32_t n = 1 + draw(3); n-- && nbytes;)
            packed[draw((uint32_t)nbytes)] ^= (uint8_t)(1u << draw(8));
        return nbytes;
    case 2: /* more behind it */
        memset(packed + nbytes, (int)draw(256), 9);
        return nbytes + draw(10);
    default:
        return nbytes;
    }
}

#endif
