/* SPDX-License-Identifier: Apache-2.0 */
/* The portable form of the decoder, and the choice of the form to run. */
#include "encoders/rle1/rle1.h"
#include "encoders/rle_fill.h"
#include "encoders/rle_values.h"

/* Eight varints of one byte each. */
WHARF_RLE_INLINE void put_eight(uint8_t *out, uint64_t word, unsigned nbytes, int is_signed)
{
    if (nbytes > 1) {
        for (unsigned i = 0; i < 8; i++) {
            uint64_t u = word >> (8 * i) & 0x7f;
            wharf_rle_store(out + i * nbytes, wharf_rle_value(u, is_signed), nbytes);
        }
        return;
    }
    /* Zigzag in each byte: inverts all bits of the odd ones. */
    if (is_signed)
        word = (word >> 1 & 0x3f3f3f3f3f3f3f3fu) ^ (word & 0x0101010101010101u) * 0xff;
    memcpy(out, &word, 8);
}

/*
 * Reads a varint at `in`, where 8 bytes are readable.  Returns its size, or 0 if it is longer.
 * Branches detect sizes 1 and 2: they predict well where sizes follow a pattern, and then no later
 * instruction waits for the size.
 */
WHARF_RLE_INLINE unsigned read_varint(const uint8_t *in, uint64_t *ret_u)
{
    if (in[0] < 0x80) {
        *ret_u = in[0];
        return 1;
    }
    if (in[1] < 0x80) {
        *ret_u = (in[0] & 0x7fu) | (uint64_t)in[1] << 7;
        return 2;
    }
    uint64_t word = wharf_rle_load_word(in);
    uint64_t ends = ~word & WHARF_RLE_TOPS;
    if (ends == 0)
        return 0;
    /* All bits up to the last byte's top. */
    *ret_u = wharf_rle_close_gaps(word & (ends ^ (ends - 1)));
    return (unsigned)__builtin_ctzll(ends) / 8 + 1;
}

/* Decodes as long as 8 bytes are readable. */
WHARF_RLE_INLINE unsigned take_quickly(struct wharf_rle_input *in, uint8_t *out,
                                       const uint8_t *out_end, unsigned n, unsigned nbytes,
                                       int is_signed, uint64_t *all)
{
    const uint8_t *next = in->next;
    uint64_t u;
    (void)out_end;

    while (n > 0 && in->end - next >= 8) {
        uint64_t word = wharf_rle_load_word(next);
        if (n >= 8 && !(word & WHARF_RLE_TOPS)) {
            put_eight(out, word, nbytes, is_signed);
            next += 8;
            out += 8 * nbytes;
            n -= 8;
            continue;
        }
        unsigned length = read_varint(next, &u);
        if (length == 0)
            break;
        *all |= u;
        wharf_rle_store(out, wharf_rle_value(u, is_signed), nbytes);
        next += length;
        out += nbytes;
        n--;
    }
    in->next = next;
    return n;
}

WHARF_RLE_INLINE void fill(uint8_t *out, const uint8_t *out_end, uint64_t base, uint64_t delta,
                           unsigned n, unsigned nbytes)
{
    wharf_rle_fill(out, out_end, base, delta, n, nbytes);
}

#define LOOP_NAME wharf_rle1_decode_plain
#define LOOP_TARGET
#include "encoders/rle1/rle1_loop_body.h"

void wharf_rle1_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx2")) {
        wharf_rle1_decode_bmi2(in, in_nbytes, out, out_avail, setting, ret_outcome);
        return;
    }
#endif
    wharf_rle1_decode_plain(in, in_nbytes, out, out_avail, setting, ret_outcome);
}
