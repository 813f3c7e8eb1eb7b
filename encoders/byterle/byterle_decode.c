/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/byterle/byterle.h"

#include <string.h>

#include "encoders/byterle/byterle_format.h"
#include "encoders/rle_values.h"

/* A group of n bytes. */
static void put(uint8_t *out, const uint8_t *from, size_t n, int is_run)
{
    if (is_run)
        memset(out, *from, n);
    else
        memcpy(out, from, n);
}

void wharf_byterle_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_pace pace = {setting, 0, 0};
    size_t at = 0;
    size_t out_nbytes = 0;

    while (at < in_nbytes) {
        uint32_t stopped = wharf_rle_keep_pace(&pace, at, out_nbytes);
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
        if (n > out_avail - out_nbytes) {
            wharf_rle_fail(ret_outcome, WHARF_REASON_OUTPUT_FULL, at);
            return;
        }
        put(out + out_nbytes, in + at + 1, n, is_run);
        out_nbytes += n;
        at += 1 + body_nbytes;
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, out_nbytes);
}
