/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand_over.c: moves a taken stream into its genuine state, which answers all calls from then on.
 *
 * Decoding tables are made by the genuine zlib itself, which reads the last dynamic header again;
 * so is its window, which it is given as a dictionary.  All else is written into the state.
 */
#include "clientlib/preload/genuine_state.h"
#include "clientlib/preload/preload.h"

/* Lets the genuine zlib read a block header. */
static void read_header(z_streamp strm, const struct wharf_zlib_log *log)
{
    struct wharf_genuine_state *state = wharf_genuine_state(strm);
    uint8_t out[1];

    state->mode = WHARF_ZMODE_TYPEDO;
    state->last = 0;
    state->hold = log->hold;
    state->bits = log->bits;
    strm->next_in = (Bytef *)(uintptr_t)log->in;
    strm->avail_in = log->nbytes;
    strm->next_out = out;
    strm->avail_out = 0;
    wharf_preload_genuine()->inflate(strm, Z_NO_FLUSH);
}

static int give_window(z_streamp strm, const struct wharf_zlib_steps *steps)
{
    struct wharf_genuine_state *state = wharf_genuine_state(strm);

    state->wbits = steps->wbits;
    state->wsize = state->whave = state->wnext = 0;
    if (steps->whave == 0)
        return Z_OK;
    state->wrap = 0;
    state->mode = WHARF_ZMODE_TYPE;
    return wharf_preload_genuine()->inflateSetDictionary(strm, wharf_zlib_state_window(steps),
                                                         steps->whave);
}

static void write_state(struct wharf_genuine_state *state, const struct wharf_zlib_steps *steps)
{
    state->mode = (int)steps->mode;
    state->last = steps->last;
    state->wrap = steps->wrap;
    state->havedict = 0;
    state->flags = steps->flags;
    state->dmax = steps->dmax;
    state->check = steps->check;
    state->total = steps->total;
    state->hold = steps->hold;
    state->bits = steps->bits;
    state->length = steps->length;
    state->offset = steps->offset;
    state->extra = steps->extra;
    state->back = steps->back;
    state->was = steps->was;
}

int wharf_preload_hand_over(z_streamp strm, struct wharf_shadow *shadow)
{
    static const struct wharf_zlib_log fixed = {.hold = WHARF_DEFLATE_FIXED << 1, .bits = 3};
    const struct wharf_zlib_steps *steps = &shadow->steps;
    const z_stream before = *strm;
    int result;

    wharf_preload_inside = strm;
    if (steps->n_headers > 1)
        read_header(strm, &steps->logs[(steps->n_headers - 1) & 1]);
    if (steps->n_headers)
        read_header(strm, &steps->logs[steps->n_headers & 1]);
    if (steps->is_fixed && steps->mode >= WHARF_ZMODE_LEN_BEGIN && steps->mode <= WHARF_ZMODE_LIT)
        read_header(strm, &fixed);
    result = give_window(strm, steps);
    write_state(wharf_genuine_state(strm), steps);
    wharf_preload_inside = NULL;
    *strm = before;
    wharf_preload_drop(strm);
    return result;
}
