/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_loop_body.h: what is the same in all forms of the decoder.  A form's file defines, both
 * inlined,
 *
 *   take_quickly    some of n varints, from the first one on, and stores them as values of a type
 * at `out`: from there to out_end is room for n, all of which may be written to.  Returns how many
 * are left; or-s to *all their numbers, or others that exceed the type just when they do fill as
 * wharf_rle_fill
 *
 * and LOOP_NAME, and LOOP_TARGET, the function's attributes, and then includes this file.
 */
#include "encoders/rle1/rle1.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle_shell.h"

/* n varints, of which those are stored that there is room for: one that is cut off is worse than a
 * lack of room.  Returns a reason. */
WHARF_RLE_INLINE LOOP_TARGET uint32_t take_literals(struct wharf_rle_state *state, unsigned n,
                                                    unsigned nbytes, int is_signed)
{
    size_t room = (size_t)(state->out_end - state->out_next) / nbytes;
    uint8_t *out = state->out_next;
    unsigned n_left = n;
    uint64_t all = 0;
    uint64_t u;

    if (n <= room)
        n_left = take_quickly(&state->in, out, state->out_end, n, nbytes, is_signed, &all);
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

WHARF_RLE_INLINE LOOP_TARGET uint32_t take_run(struct wharf_rle_state *state, unsigned n,
                                               unsigned nbytes, int is_signed)
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
    fill(state->out_next, state->out_end, base, delta, n, nbytes);
    state->out_next += (size_t)n * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE LOOP_TARGET uint32_t take_group(struct wharf_rle_state *state, unsigned nbytes,
                                                 int is_signed)
{
    unsigned control = *state->in.next++;

    return control < 128 ? take_run(state, control + WHARF_RLE1_RUN_MIN, nbytes, is_signed)
                         : take_literals(state, 256 - control, nbytes, is_signed);
}

LOOP_TARGET void LOOP_NAME(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                           const struct wharf_codec_setting *setting,
                           struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_state state = wharf_rle_begin(in, in_nbytes, out, out_avail);

    WHARF_RLE_FOR_TYPE(wharf_rle_type_of(setting), wharf_rle_decode, &state, take_group, setting,
                       ret_outcome);
}
