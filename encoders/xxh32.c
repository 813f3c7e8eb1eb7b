/* SPDX-License-Identifier: Apache-2.0 */
/* xxh32.c: four lanes take a word each of every stripe of 16 bytes; what is less than a stripe
 * waits for the next piece, or is mixed in at the end. */
#include "encoders/xxh32.h"

#include <string.h>

#include "encoders/little_endian.h"

static const uint32_t prime_1 = 0x9e3779b1u;
static const uint32_t prime_2 = 0x85ebca77u;
static const uint32_t prime_3 = 0xc2b2ae3du;
static const uint32_t prime_4 = 0x27d4eb2fu;
static const uint32_t prime_5 = 0x165667b1u;

static uint32_t rotate(uint32_t value, unsigned n)
{
    return value << n | value >> (32 - n);
}

static uint32_t mix(uint32_t lane, const uint8_t *word)
{
    return rotate(lane + wharf_load_le32(word) * prime_2, 13) * prime_1;
}

void wharf_xxh32_init(struct wharf_xxh32 *hash)
{
    *hash = (struct wharf_xxh32){.lanes = {prime_1 + prime_2, prime_2, 0, 0 - prime_1}};
}

static void take_stripes(struct wharf_xxh32 *hash, const uint8_t *p, size_t n_stripes)
{
    uint32_t a = hash->lanes[0], b = hash->lanes[1], c = hash->lanes[2], d = hash->lanes[3];

    for (; n_stripes > 0; n_stripes--, p += WHARF_XXH32_STRIPE_NBYTES) {
        a = mix(a, p);
        b = mix(b, p + 4);
        c = mix(c, p + 8);
        d = mix(d, p + 12);
    }
    hash->lanes[0] = a;
    hash->lanes[1] = b;
    hash->lanes[2] = c;
    hash->lanes[3] = d;
}

void wharf_xxh32_update(struct wharf_xxh32 *hash, const uint8_t *data, size_t nbytes)
{
    size_t n_waiting = hash->nbytes % WHARF_XXH32_STRIPE_NBYTES;
    size_t n_missing = WHARF_XXH32_STRIPE_NBYTES - n_waiting;

    if (nbytes == 0)
        return;
    hash->nbytes += nbytes;
    if (nbytes < n_missing) {
        memcpy(hash->stripe + n_waiting, data, nbytes);
        return;
    }
    if (n_waiting) {
        memcpy(hash->stripe + n_waiting, data, n_missing);
        take_stripes(hash, hash->stripe, 1);
        data += n_missing;
        nbytes -= n_missing;
    }
    take_stripes(hash, data, nbytes / WHARF_XXH32_STRIPE_NBYTES);
    memcpy(hash->stripe, data + nbytes / WHARF_XXH32_STRIPE_NBYTES * WHARF_XXH32_STRIPE_NBYTES,
           nbytes % WHARF_XXH32_STRIPE_NBYTES);
}

uint32_t wharf_xxh32_value(const struct wharf_xxh32 *hash)
{
    const uint8_t *p = hash->stripe;
    size_t n = hash->nbytes % WHARF_XXH32_STRIPE_NBYTES;
    uint32_t sum = prime_5;

    if (hash->nbytes >= WHARF_XXH32_STRIPE_NBYTES)
        sum = rotate(hash->lanes[0], 1) + rotate(hash->lanes[1], 7) + rotate(hash->lanes[2], 12) +
              rotate(hash->lanes[3], 18);
    sum += (uint32_t)hash->nbytes;
    for (; n >= 4; n -= 4, p += 4)
        sum = rotate(sum + wharf_load_le32(p) * prime_3, 17) * prime_4;
    for (; n > 0; n--, p++)
        sum = rotate(sum + *p * prime_5, 11) * prime_1;
    sum = (sum ^ sum >> 15) * prime_2;
    sum = (sum ^ sum >> 13) * prime_3;
    return sum ^ sum >> 16;
}

uint32_t wharf_xxh32(const uint8_t *data, size_t nbytes)
{
    struct wharf_xxh32 hash;

    wharf_xxh32_init(&hash);
    wharf_xxh32_update(&hash, data, nbytes);
    return wharf_xxh32_value(&hash);
}
