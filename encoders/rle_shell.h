/* SPDX-License-Identifier: Apache-2.0 */
/* rle_shell.h: what the decoders of rle1 and rle2 do around their groups and runs. */
#ifndef WHARF_ENCODERS_RLE_SHELL_H
#define WHARF_ENCODERS_RLE_SHELL_H

#include "encoders/rle_values.h"

struct wharf_rle_state {
    struct wharf_rle_input in;
    uint8_t *out_next;
    uint8_t *out_end;
};

static inline struct wharf_rle_state wharf_rle_begin(const uint8_t *in, size_t in_nbytes,
                                                     uint8_t *out, size_t out_avail)
{
    return (struct wharf_rle_state){
        {in, in_nbytes ? in + in_nbytes : in}, out, out_avail ? out + out_avail : out};
}

/* Takes one group or run, of which the first byte is there.  Returns a reason. */
typedef uint32_t wharf_rle_take_fn(struct wharf_rle_state *state, unsigned nbytes, int is_signed);

/* All of them to the end of the source, with constants for all but the state. */
WHARF_RLE_INLINE void wharf_rle_decode(struct wharf_rle_state *state, unsigned nbytes,
                                       int is_signed, wharf_rle_take_fn *take,
                                       const struct wharf_codec_setting *setting,
                                       struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_pace pace = {setting, 0, 0};
    const uint8_t *in_begin = state->in.next;
    uint8_t *out_begin = state->out_next;

    while (state->in.next < state->in.end) {
        size_t at = (size_t)(state->in.next - in_begin);
        uint32_t stopped = wharf_rle_keep_pace(&pace, at, (size_t)(state->out_next - out_begin));
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        uint32_t reason = take(state, nbytes, is_signed);
        if (reason) {
            wharf_rle_fail(ret_outcome, reason, at);
            return;
        }
    }
    wharf_outcome_ok(ret_outcome, (size_t)(state->in.end - in_begin),
                     (size_t)(state->out_next - out_begin));
}

#endif
