/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rle1/rle1.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle_fill.h"
#include "encoders/rle_values.h"

struct state {
    struct wharf_rle_input in;
    uint8_t *out_next;
    uint8_t *out_end;
};

/* The tops of the bytes of a word. */
#define TOPS 0x8080808080808080u

WHARF_RLE_INLINE uint64_t load_word(const uint8_t *in)
{
    uint64_t word;

    memcpy(&word, in, 8);
    return word;
}

/* The 7 lower bits of each byte of a word, put together. */
WHARF_RLE_INLINE uint64_t close_gaps(uint64_t word)
{
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    return (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
}

/* Eight varints of one byte each. */
WHARF_RLE_INLINE void put_eight(uint8_t *out, uint64_t word, unsigned nbytes, int is_signed)
{
    for (unsigned i = 0; i < 8; i++) {
        uint64_t u = word >> (8 * i) & 0x7f;
        wharf_rle_store(out + i * nbytes, wharf_rle_value(u, is_signed), nbytes);
    }
}

/* A varint of up to 8 bytes at the start of a word of the source; 0 if it is longer. */
WHARF_RLE_INLINE unsigned split_varint(uint64_t word, uint64_t *ret_u)
{
    uint64_t ends = ~word & TOPS;

    if (ends == 0)
        return 0;
    /* All bits up to the last byte's top. */
    *ret_u = close_gaps(word & (ends ^ (ends - 1)));
    return (unsigned)__builtin_ctzll(ends) / 8 + 1;
}

/*
 * n varints to `out`, which has room for them, or, with room_nbytes less than they take, to
 * nowhere. Returns a reason.
 */
WHARF_RLE_INLINE uint32_t take_literals(struct state *state, unsigned n, unsigned nbytes,
                                        int is_signed)
{
    struct wharf_rle_input in = state->in;
    uint8_t *out = state->out_next;
    size_t room = (size_t)(state->out_end - out) / nbytes;
    int fits = n <= room;
    uint64_t all = 0;
    uint64_t u;

    for (unsigned i = 0; i < n;) {
        if (in.end - in.next >= 8) {
            uint64_t word = load_word(in.next);
            if (!(word & TOPS) && n - i >= 8) {
                if (fits)
                    put_eight(out + (size_t)i * nbytes, word, nbytes, is_signed);
                in.next += 8;
                i += 8;
                continue;
            }
            unsigned length = split_varint(word, &u);
            if (length) {
                in.next += length;
                all |= u;
                if (fits)
                    wharf_rle_store(out + (size_t)i * nbytes, wharf_rle_value(u, is_signed),
                                    nbytes);
                i++;
                continue;
            }
        }
        uint32_t reason = wharf_rle_take_varint(&in, &u);
        if (reason)
            return reason;
        all |= u;
        if (fits)
            wharf_rle_store(out + (size_t)i * nbytes, wharf_rle_value(u, is_signed), nbytes);
        i++;
    }
    if (!fits)
        return WHARF_REASON_OUTPUT_FULL;
    if (wharf_rle_exceeds(all, nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->in = in;
    state->out_next = out + (size_t)n * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE uint32_t take_run(struct state *state, unsigned n, unsigned nbytes, int is_signed)
{
    struct wharf_rle_input *in = &state->in;
    uint64_t u;

    if (in->next == in->end)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t delta = (uint64_t)(int8_t)*in->next++;
    uint32_t reason = wharf_rle_take_varint(in, &u);
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

WHARF_RLE_INLINE void decode(struct state *state, unsigned nbytes, int is_signed,
                             const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_pace pace = {setting, 0, 0};
    const uint8_t *in_begin = state->in.next;
    uint8_t *out_begin = state->out_next;

    while (state->in.next < state->in.end) {
        const uint8_t *group = state->in.next;
        uint32_t stopped = wharf_rle_keep_pace(&pace, (size_t)(group - in_begin),
                                               (size_t)(state->out_next - out_begin));
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        unsigned control = *state->in.next++;
        uint32_t reason = control < 128
                              ? take_run(state, control + WHARF_RLE1_RUN_MIN, nbytes, is_signed)
                              : take_literals(state, 256 - control, nbytes, is_signed);
        if (reason) {
            wharf_rle_fail(ret_outcome, reason, (size_t)(group - in_begin));
            return;
        }
    }
    wharf_outcome_ok(ret_outcome, (size_t)(state->in.end - in_begin),
                     (size_t)(state->out_next - out_begin));
}

void wharf_rle1_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct state state = {
        {in, in_nbytes ? in + in_nbytes : in}, out, out_avail ? out + out_avail : out};

    WHARF_RLE_FOR_TYPE(wharf_rle_type_of(setting), decode, &state, setting, ret_outcome);
}
