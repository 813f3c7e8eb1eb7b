/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rle1/rle1.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle1/rle1_pairs.h"
#include "encoders/rle_fill.h"
#include "encoders/rle_shell.h"
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
    /* Bytes of their own: for those that are odd, all bits turned over. */
    if (is_signed)
        word = (word >> 1 & 0x3f3f3f3f3f3f3f3fu) ^ (word & 0x0101010101010101u) * 0xff;
    memcpy(out, &word, 8);
}

/*
 * A varint at `in`, where 8 bytes are; 0 if it is longer.  Those of one and two bytes are told by
 * branches, which are right where lengths follow a pattern, and then nothing waits for them.
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

/* As many of n varints as can be taken where there are 8 bytes.  Returns how many are left. */
WHARF_RLE_INLINE unsigned take_words(struct wharf_rle_input *in, uint8_t *out, unsigned n,
                                     unsigned nbytes, int is_signed, uint64_t *all)
{
    const uint8_t *next = in->next;
    uint64_t u;

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

/* Literals from which on it is worth a call to take them by eights. */
enum { CALL_MIN = 6 };

/* As many of n varints as begin a group and are of one or two bytes, if not all of one.  Returns
 * how many are left. */
WHARF_RLE_INLINE unsigned take_pairs(struct wharf_rle_state *state, unsigned n, unsigned nbytes,
                                     int is_signed, uint64_t *all)
{
    /* Of its own, so that the state can stay in registers. */
    struct wharf_rle_input in = state->in;
    uint64_t numbers = 0;

    if (n < CALL_MIN || in.end - in.next < WHARF_RLE1_PAIRS_NBYTES ||
        !(wharf_rle_load_word(in.next) & WHARF_RLE_TOPS))
        return n;
    n -=
        wharf_rle1_take_pairs(&in, state->out_next, state->out_end, n, nbytes, is_signed, &numbers);
    *all |= numbers;
    state->in = in;
    return n;
}

/* n varints, of which those are stored that there is room for: one that is cut off is worse than a
 * lack of room.  Returns a reason. */
WHARF_RLE_INLINE uint32_t take_literals(struct wharf_rle_state *state, unsigned n, unsigned nbytes,
                                        int is_signed)
{
    size_t room = (size_t)(state->out_end - state->out_next) / nbytes;
    uint8_t *out = state->out_next;
    unsigned n_left = n;
    uint64_t all = 0;
    uint64_t u;

    if (n <= room) {
        n_left = take_pairs(state, n, nbytes, is_signed, &all);
        n_left = take_words(&state->in, out + (size_t)(n - n_left) * nbytes, n_left, nbytes,
                            is_signed, &all);
    }
    for (unsigned i = n - n_left; i < n; i++) {
        uint32_t reason = wharf_rle_take_varint(&state->in, &u);
        if (reason)
            return reason;
        all |= u;
        if (n <= room)
            wharf_rle_store(out + (size_t)i * nbytes, wharf_rle_value(u, is_signed), nbytes);
    }
    if (n > room)
        return WHARF_REASON_OUTPUT_FULL;
    if (wharf_rle_exceeds(all, nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->out_next = out + (size_t)n * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE uint32_t take_run(struct wharf_rle_state *state, unsigned n, unsigned nbytes,
                                   int is_signed)
{
    struct wharf_rle_input *in = &state->in;
    uint64_t u;

    if (in->next == in->end)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t delta = (uint64_t)(int8_t)*in->next++;
    uint32_t reason = wharf_rle_take_number(in, &u);
    if (reason)
        return reason;
    if (n > (size_t)(state->out_end - state->out_next) / nbytes)
        return WHARF_REASON_OUTPUT_FULL;
    uint64_t base = wharf_rle_value(u, is_signed);
    /* Of a narrower type than 64 bits, what lies between two of its values is one of them. */
    uint64_t excess = wharf_rle_excess(base, nbytes, is_signed) |
                      wharf_rle_excess(base + (n - 1) * delta, nbytes, is_signed);
    if (wharf_rle_exceeds(excess, nbytes))
        return WHARF_REASON_RLE_VALUE;
    wharf_rle_fill(state->out_next, state->out_end, base, delta, n, nbytes);
    state->out_next += (size_t)n * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE uint32_t take_group(struct wharf_rle_state *state, unsigned nbytes, int is_signed)
{
    unsigned control = *state->in.next++;

    return control < 128 ? take_run(state, control + WHARF_RLE1_RUN_MIN, nbytes, is_signed)
                         : take_literals(state, 256 - control, nbytes, is_signed);
}

void wharf_rle1_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_state state = wharf_rle_begin(in, in_nbytes, out, out_avail);

    WHARF_RLE_FOR_TYPE(wharf_rle_type_of(setting), wharf_rle_decode, &state, take_group, setting,
                       ret_outcome);
}
