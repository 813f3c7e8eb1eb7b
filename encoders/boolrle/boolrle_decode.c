/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/boolrle/boolrle.h"

#include <string.h>

#include "encoders/byterle/byterle_format.h"
#include "encoders/rle_values.h"

struct state {
    uint8_t *out;
    size_t out_avail;
    size_t n_values;
};

/* Eight bits as eight bytes, the most significant first. */
static uint64_t spread(uint8_t bits)
{
    /* A copy of the byte for every value, of which each keeps its own bit. */
    uint64_t own = bits * 0x0101010101010101u & 0x0102040810204080u;
    /* One bit or none in a byte: to the byte's top, to its bottom. */
    return (own + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

static void put_byte(struct state *state, uint8_t bits)
{
    uint64_t values = spread(bits);
    size_t room = state->out_avail - state->n_values;
    size_t n = room < 8 ? room : 8;

    memcpy(state->out + state->n_values, &values, n);
    state->n_values += n;
}

/* The values of n bytes of bits, of which all but the last byte's fit. */
static void put_group(struct state *state, const uint8_t *bits, size_t n, int is_run)
{
    if (n == 0)
        return;
    if (is_run && (*bits == 0x00 || *bits == 0xff)) {
        size_t most = 8 * (n - 1);
        memset(state->out + state->n_values, *bits & 1, most);
        state->n_values += most;
    } else {
        for (size_t i = 0; i < n - 1; i++, state->n_values += 8) {
            uint64_t values = spread(bits[is_run ? 0 : i]);
            memcpy(state->out + state->n_values, &values, 8);
        }
    }
    put_byte(state, bits[is_run ? 0 : n - 1]);
}

void wharf_boolrle_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    struct state state = {out, out_avail, 0};
    size_t room = out_avail / 8 + (out_avail % 8 != 0);
    struct wharf_rle_pace pace = {setting, 0, 0};
    size_t at = 0;

    while (at < in_nbytes) {
        uint32_t stopped = wharf_rle_keep_pace(&pace, at, state.n_values);
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
        put_group(&state, in + at + 1, n, is_run);
        room -= n;
        at += 1 + body_nbytes;
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, state.n_values);
}
