/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_steps.c: runs a call: its states in sequence, zlib's window, and the values that zlib
 * reports. */
#include "encoders/zlib/zlib_steps.h"

#include "encoders/zlib/zlib_steps_parts.h"

void wharf_zlib_steps_init(struct wharf_zlib_steps *steps, int wrap, unsigned wbits)
{
    steps->mode = WHARF_ZMODE_HEAD;
    steps->last = steps->is_fixed = false;
    steps->wrap = wrap;
    steps->flags = -1;
    steps->dmax = WHARF_DEFLATE_WINDOW_NBYTES;
    steps->check = 0;
    steps->total = 0;
    steps->wbits = wbits;
    steps->wsize = steps->whave = 0;
    steps->hold = 0;
    steps->bits = 0;
    steps->length = steps->offset = steps->was = 0;
    steps->extra = 0;
    steps->back = -1;
    steps->ncode = steps->nlen = steps->ndist = steps->have = 0;
    steps->n_headers = 0;
    steps->pos = steps->flushed = steps->window_end = 0;
    steps->has_saved = false;
    wharf_inflate_init(&steps->inflate, NULL, 0, 0, NULL, 0);
    steps->inflate.tables = wharf_inflate_tables_fixed();
}

/* Updates the window as zlib does.  Its output is what came since the trailer was reached: none, or
 * else all output of this call. */
static void update_window(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    const size_t n = call->out_mark - call->out_left;

    if (!steps->wsize && (n == 0 || steps->mode >= WHARF_ZMODE_BAD ||
                          (steps->mode >= WHARF_ZMODE_CHECK && call->flush == WHARF_Z_FINISH)))
        return;
    if (!steps->wsize)
        steps->wsize = 1u << steps->wbits;
    if (n == 0)
        return;
    steps->whave = n < steps->wsize - steps->whave ? steps->whave + (unsigned)n : steps->wsize;
    steps->window_end = steps->pos;
    steps->has_saved = false;
}

static enum wharf_zstep take_step(struct wharf_zlib_call *call)
{
    const uint32_t mode = call->steps->mode;

    if (mode >= WHARF_ZMODE_LEN_BEGIN && mode <= WHARF_ZMODE_LIT)
        return wharf_zlib_steps_body(call);
    if (mode >= WHARF_ZMODE_TYPE && mode <= WHARF_ZMODE_CODELENS)
        return wharf_zlib_steps_block(call);
    return wharf_zlib_steps_wrap(call);
}

static int data_type(const struct wharf_zlib_steps *steps)
{
    return (int)steps->bits + (steps->last ? 64 : 0) + (steps->mode == WHARF_ZMODE_TYPE ? 128 : 0) +
           (steps->mode == WHARF_ZMODE_LEN_BEGIN || steps->mode == WHARF_ZMODE_COPY_BEGIN ? 256
                                                                                          : 0);
}

int wharf_zlib_steps_run(struct wharf_zlib_steps *steps, struct wharf_zlib_io *io, int flush)
{
    struct wharf_zlib_call call = {
        .steps = steps,
        .io = io,
        .flush = flush,
        .begin = io->next_in,
        .in = io->next_in,
        .in_left = io->avail_in,
        .out_left = io->avail_out,
        .out_first = io->avail_out,
        .out_mark = io->avail_out,
        .out = io->next_out,
    };
    enum wharf_zstep step;
    int result = WHARF_Z_OK;

    if (!io->next_out || (!io->next_in && io->avail_in))
        return WHARF_Z_STREAM_ERROR;
    if (steps->mode == WHARF_ZMODE_TYPE)
        steps->mode = WHARF_ZMODE_TYPEDO;
    do
        step = take_step(&call);
    while (step == WHARF_ZSTEP_ON);
    wharf_zlib_call_flush(&call);
    const size_t in_nbytes = io->avail_in - call.in_left;
    io->next_in = call.in;
    io->avail_in = (uint32_t)call.in_left;
    io->next_out = call.out;
    io->avail_out = (uint32_t)call.out_left;
    if (step == WHARF_ZSTEP_NEED_DICT)
        return WHARF_Z_NEED_DICT; /* zlib leaves everything else as it was */
    update_window(&call);
    io->total_in += in_nbytes;
    io->total_out += call.out_first - call.out_left;
    io->data_type = data_type(steps);
    if (steps->mode == WHARF_ZMODE_DONE)
        result = WHARF_Z_STREAM_END;
    else if (steps->mode == WHARF_ZMODE_BAD)
        result = WHARF_Z_DATA_ERROR;
    if (result == WHARF_Z_OK &&
        ((in_nbytes == 0 && call.out_mark == call.out_left) || flush == WHARF_Z_FINISH))
        result = WHARF_Z_BUF_ERROR;
    return result;
}
