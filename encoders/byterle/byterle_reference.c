/* SPDX-License-Identifier: Apache-2.0 */
/* The reference decoder of byterle: one byte at a time, with a count of the present group. */
#include "encoders/byterle/byterle.h"
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

void wharf_byterle_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                    size_t out_avail, const struct wharf_codec_setting *setting,
                                    struct wharf_outcome *ret_outcome)
{
    size_t n_out = 0;
    size_t group = 0;
    size_t next;

    for (; group < in_nbytes; group = next) {
        uint32_t stopped = wharf_decode_poll(setting);
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        int8_t control = (int8_t)in[group];
        int n = control < 0 ? -control : control + 3;
        int fits = (size_t)n <= out_avail - n_out;
        next = group + 1;
        for (int i = 0; i < n; i++) {
            if (next == in_nbytes) {
                wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED,
                                   8 * (uint64_t)group);
                return;
            }
            if (fits)
                out[n_out++] = in[next];
            if (control < 0 || i == n - 1)
                next++;
        }
        if (!fits) {
            wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL,
                               8 * (uint64_t)group);
            return;
        }
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, n_out);
}
