/* SPDX-License-Identifier: Apache-2.0 */
/* xxh64.c: XXH64 in four lanes of 8 bytes each, joined at the end. */
#include "encoders/xxh64.h"

#include <string.h>

#include "encoders/little_endian.h"

static const uint64_t prime_1 = 0x9e3779b185ebca87u;
static const uint64_t prime_2 = 0xc2b2ae3d27d4eb4fu;
static const uint64_t prime_3 = 0x165667b19e3779f9u;
static const uint64_t prime_4 = 0x85ebca77c2b2ae63u;
static const uint64_t prime_5 = 0x27d4eb2f165667c5u;

static uint64_t rotate(uint64_t value, unsigned n)
{
    return value << n | value >> (64 - n);
}

static uint64_t load_64(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * prime_2, 31) * prime_1;
}

void wharf_xxh64_init(struct wharf_xxh64 *hash, const uint8_t *begin)
{
    *hash = (struct wharf_xxh64){
        .next = begin,
        .lanes = {prime_1 + prime_2, prime_2, 0, 0 - prime_1},
    };
}

void wharf_xxh64_update(struct wharf_xxh64 *hash, const uint8_t *end)
{
    uint64_t a = hash->lanes[0], b = hash->lanes[1], c = hash->lanes[2], d = hash->lanes[3];
    const uint8_t *p = hash->next;

    for (; end - p >= 32; p += 32) {
        a = mix(a, load_64(p));
        b = mix(b, load_64(p + 8));
        c = mix(c, load_64(p + 16));
        d = mix(d, load_64(p + 24));
    }
    hash->nbytes += (size_t)(p - hash->next);
    hash->next = p;
    hash->lanes[0] = a;
    hash->lanes[1] = b;
    hash->lanes[2] = c;
    hash->lanes[3] = d;
}

static uint64_t join_lanes(const uint64_t *lanes)
{
    uint64_t sum =
        rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);

    for (unsigned i = 0; i < 4; i++)
        sum = (sum ^ mix(0, lanes[i])) * prime_1 + prime_4;
    return sum;
}

static uint64_t take_rest(uint64_t sum, const uint8_t *p, size_t nbytes)
{
    for (; nbytes >= 8; nbytes -= 8, p += 8)
        sum = rotate(sum ^ mix(0, load_64(p)), 27) * prime_1 + prime_4;
    if (nbytes >= 4) {
        sum = rotate(sum ^ wharf_load_le32(p) * prime_1, 23) * prime_2 + prime_3;
        nbytes -= 4;
        p += 4;
    }
    for (; nbytes > 0; nbytes--, p++)
        sum = rotate(sum ^ *p * prime_5, 11) * prime_1;
    return sum;
}

void wharf_xxh64_move(struct wharf_xxh64 *hash, size_t nbytes)
{
    hash->next -= nbytes;
}

uint64_t wharf_xxh64_finish(struct wharf_xxh64 *hash, const uint8_t *end)
{
    uint64_t sum;

    wharf_xxh64_update(hash, end);
    sum = hash->nbytes > 0 ? join_lanes(hash->lanes) : prime_5;
    sum += hash->nbytes + (size_t)(end - hash->next);
    sum = take_rest(sum, hash->next, (size_t)(end - hash->next));
    sum = (sum ^ sum >> 33) * prime_2;
    sum = (sum ^ sum >> 29) * prime_3;
    return sum ^ sum >> 32;
}
