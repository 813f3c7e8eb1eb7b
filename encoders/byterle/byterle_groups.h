/* SPDX-License-Identifier: Apache-2.0 */
/* byterle_groups.h: the groups of byterle, for its decoder and boolrle's. */
#ifndef WHARF_ENCODERS_BYTERLE_BYTERLE_GROUPS_H
#define WHARF_ENCODERS_BYTERLE_BYTERLE_GROUPS_H

#include "encoders/byterle/byterle_format.h"
#include "encoders/rle_values.h"

/* Makes something of a group: of n bytes, or of the one there n times.  `out_at` is what the calls
 * before returned together; returns how much output this one gives. */
typedef size_t wharf_byterle_put_fn(void *to, size_t out_at, const uint8_t *bytes, size_t n,
                                    int is_run);

/* All groups of a source, of which at most `room` bytes come. */
WHARF_RLE_INLINE void wharf_byterle_take_groups(const uint8_t *in, size_t in_nbytes, size_t room,
                                                const struct wharf_codec_setting *setting,
                                                wharf_byterle_put_fn *put, void *to,
                                                struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_pace pace = {setting, 0, 0};
    size_t out_at = 0;
    size_t at = 0;

    while (at < in_nbytes) {
        uint32_t stopped = wharf_rle_keep_pace(&pace, at, out_at);
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        unsigned control = in[at];
        int is_run = control < 128;
        size_t n = is_run ? control + WHARF_BYTERLE_RUN_MIN : 256 - control;
        size_t body_nbytes = is_run ? 1 : n;
        if (body_nbytes >= in_nbytes - at) {
            wharf_rle_fail(ret_outcome, WHARF_REASON_INPUT_TRUNCATED, at);
            return;
        }
        if (n > room) {
            wharf_rle_fail(ret_outcome, WHARF_REASON_OUTPUT_FULL, at);
            return;
        }
        out_at += put(to, out_at, in + at + 1, n, is_run);
        room -= n;
        at += 1 + body_nbytes;
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, out_at);
}

#endif
