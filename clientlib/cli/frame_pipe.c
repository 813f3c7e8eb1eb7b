/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_pipe.c: reads slots of pieces and decodes them.  The last piece of a slot may be the file's
 * end or an error.  frame_write.c has what comes behind that.
 */
#include "clientlib/cli/frame_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/frame_write.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/crc32c.h"
#include "encoders/decode_job.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/outcome.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/xxh32.h"

enum {
    /* Small blocks are gathered up to so much of either, so that handing a slot on costs nothing
     * beside decoding it. */
    SLOT_IN_NBYTES = 512 << 10,
    SLOT_OUT_NBYTES = 1 << 20,
    /* More workers outrun the one thread that verifies and writes, and their slots would take much
       memory. */
    MAX_WORKERS = 16,
};

/* ---- reading --------------------------------------------------------------------------- */

/* Makes room for nbytes.  0 or -ENOMEM. */
static int reserve(struct wharf_cli_frame_buffer *buffer, size_t nbytes)
{
    uint8_t *bytes;

    if (nbytes <= buffer->avail)
        return 0;
    bytes = realloc(buffer->bytes, nbytes);
    if (!bytes)
        return -ENOMEM;
    buffer->bytes = bytes;
    buffer->avail = nbytes;
    return 0;
}

static void end_by_error(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                         int error)
{
    slot->error = error;
    pipe->is_done = true;
}

/* Begins a slot with what the one before had read and not taken, and with what its blocks may reach
 * back into. */
static void begin_slot(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot)
{
    const struct wharf_cli_frame_slot *before = pipe->before;
    size_t nbytes = before ? before->in_nbytes - before->taken_nbytes : 0;
    int r = reserve(&slot->in, nbytes > SLOT_IN_NBYTES ? nbytes : SLOT_IN_NBYTES);

    slot->in_nbytes = 0;
    slot->taken_nbytes = 0;
    slot->out_nbytes = 0;
    slot->n_pieces = 0;
    slot->error = 0;
    if (r == 0)
        r = reserve(&slot->out, WHARF_LZ4_HISTORY_NBYTES);
    if (r < 0) {
        end_by_error(pipe, slot, r);
        return;
    }
    if (nbytes)
        memmove(slot->in.bytes, before->in.bytes + before->taken_nbytes, nbytes);
    slot->in_nbytes = nbytes;
    memcpy(slot->out.bytes, pipe->history, pipe->history_nbytes);
    slot->out_nbytes = pipe->history_nbytes;
    pipe->before = slot;
}

static void end_slot(struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot)
{
    if (pipe->history_nbytes > WHARF_LZ4_HISTORY_NBYTES)
        pipe->history_nbytes = WHARF_LZ4_HISTORY_NBYTES;
    if (pipe->history_nbytes)
        memcpy(pipe->history, slot->out.bytes + slot->out_nbytes - pipe->history_nbytes,
               pipe->history_nbytes);
}

/* Reads until nbytes of the next piece, or as much as one read gives, are in the slot. */
static void read_more(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                      uint64_t nbytes)
{
    size_t wanted = nbytes > SLOT_IN_NBYTES ? (size_t)nbytes : SLOT_IN_NBYTES;
    int64_t n;
    int r;

    /* Nothing was taken yet, or only what is passed over. */
    memmove(slot->in.bytes, slot->in.bytes + slot->taken_nbytes,
            slot->in_nbytes - slot->taken_nbytes);
    slot->in_nbytes -= slot->taken_nbytes;
    slot->taken_nbytes = 0;
    r = reserve(&slot->in, wanted);
    n = r < 0
            ? r
            : wharf_cli_input_read_some(pipe->task->input, pipe->offset,
                                        slot->in.bytes + slot->in_nbytes, wanted - slot->in_nbytes);
    if (n < 0) {
        end_by_error(pipe, slot, (int)n);
        return;
    }
    pipe->at_end = n == 0;
    pipe->offset += (uint64_t)n;
    slot->in_nbytes += (size_t)n;
}

/* Where in the input the next piece begins. */
static uint64_t piece_at(const struct wharf_cli_frames *pipe,
                         const struct wharf_cli_frame_slot *slot)
{
    return pipe->offset - (slot->in_nbytes - slot->taken_nbytes);
}

/* Adds a piece: there is room. */
static struct wharf_cli_frame_item *add_piece(const struct wharf_cli_frames *pipe,
                                              struct wharf_cli_frame_slot *slot,
                                              const struct wharf_frame_piece *from)
{
    struct wharf_cli_frame_item *piece = &slot->pieces[slot->n_pieces++];

    *piece = (struct wharf_cli_frame_item){
        .piece = *from,
        .at = piece_at(pipe, slot),
        .in_offset = slot->taken_nbytes,
    };
    slot->taken_nbytes += (size_t)from->nbytes;
    return piece;
}

static void add_bad(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                    uint32_t result, uint32_t reason)
{
    struct wharf_frame_piece bad;

    wharf_frame_bad(&bad, result, reason);
    add_piece(pipe, slot, &bad);
    pipe->is_done = true;
}

/* Skips nbytes of input, which may be unread or lie behind the input's end. */
static void pass_over(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                      uint64_t nbytes)
{
    uint64_t end = piece_at(pipe, slot) + nbytes;
    uint8_t last;
    int64_t n;

    if (nbytes <= slot->in_nbytes - slot->taken_nbytes) {
        slot->taken_nbytes += (size_t)nbytes;
        return;
    }
    n = wharf_cli_input_read_at(pipe->task->input, end - 1, &last, 1);
    if (n < 0) {
        end_by_error(pipe, slot, (int)n);
    } else if (n == 0) {
        add_bad(pipe, slot, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED);
    } else {
        slot->taken_nbytes = slot->in_nbytes;
        pipe->offset = end;
    }
}

/* ---- decoding -------------------------------------------------------------------------- */

static bool check_is_right(const struct wharf_frame_piece *piece, const uint8_t *data,
                           size_t nbytes)
{
    if (piece->check == WHARF_FRAME_CHECK_CRC32C_OUT)
        return wharf_snappy_frame_mask(wharf_crc32c(data, nbytes)) == piece->check_value;
    return wharf_xxh32(data, nbytes) == piece->check_value;
}

static void decode(const struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot,
                   struct wharf_cli_frame_item *piece, size_t history_nbytes)
{
    const struct wharf_frame_piece *from = &piece->piece;
    struct wharf_outcome *outcome = &piece->outcome;
    const struct wharf_decode_job job = {
        .codec = from->codec,
        .flags = WHARF_JOB_EXACT_INPUT,
        .setting.history_nbytes = history_nbytes,
        .in = slot->in.bytes + piece->in_offset + from->data_offset,
        .in_nbytes = from->data_nbytes,
        .out = wharf_cli_frame_block_out(slot, piece),
        .out_avail = piece->out_avail,
    };

    if (from->check == WHARF_FRAME_CHECK_XXH32_IN && !check_is_right(from, job.in, job.in_nbytes)) {
        wharf_cli_frame_fail_check(piece, WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM);
        return;
    }
    wharf_decode_job_run(&job, pipe->is_reference, outcome);
    if (outcome->result != WHARF_OK) {
        /* The format says how much there may be: it is no matter of room. */
        if (outcome->result == WHARF_OUTPUT_TOO_SMALL)
            outcome->result = WHARF_BAD_DATA;
        outcome->bit_offset += 8 * (uint64_t)from->data_offset;
    } else if (from->check == WHARF_FRAME_CHECK_CRC32C_OUT &&
               !check_is_right(from, job.out, (size_t)outcome->out_nbytes)) {
        wharf_cli_frame_fail_check(piece, WHARF_REASON_SNAPPY_FRAME_CHECKSUM);
    }
}

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct wharf_cli_frames *pipe = context;
    struct wharf_cli_frame_slot *slot = slot_memory;

    (void)worker;
    for (unsigned i = 0; i < slot->n_pieces; i++)
        if (slot->pieces[i].piece.kind == WHARF_FRAME_BLOCK && !slot->pieces[i].is_linked)
            decode(pipe, slot, &slot->pieces[i], 0);
}

/* ---- filling --------------------------------------------------------------------------- */

/* How much a block can give. */
static size_t most_out_nbytes(const struct wharf_frame_piece *block)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(block->codec)->ops;

    if (wharf_codec_may_yield(ops, block->data_nbytes, block->out_max_nbytes))
        return block->out_max_nbytes;
    return (size_t)block->data_nbytes * ops->max_ratio + ops->max_constant;
}

static bool has_room(const struct wharf_cli_frame_slot *slot, const struct wharf_frame_piece *piece)
{
    /* The last place is for what may follow a piece that cannot be passed over. */
    if (slot->n_pieces == WHARF_CLI_FRAME_ITEMS - 1)
        return false;
    return slot->n_pieces == 0 || piece->kind != WHARF_FRAME_BLOCK ||
           slot->out_nbytes + most_out_nbytes(piece) <= SLOT_OUT_NBYTES;
}

/* Decodes a block that refers to earlier output at once: earlier blocks are done. */
static void decode_linked(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                          struct wharf_cli_frame_item *block)
{
    size_t history_nbytes = pipe->history_nbytes < WHARF_LZ4_HISTORY_NBYTES
                                ? pipe->history_nbytes
                                : WHARF_LZ4_HISTORY_NBYTES;

    block->is_linked = true;
    block->is_lost = pipe->has_lost;
    if (block->is_lost)
        return;
    decode(pipe, slot, block, history_nbytes);
    if (block->outcome.result == WHARF_OK) {
        slot->out_nbytes += (size_t)block->outcome.out_nbytes;
        pipe->history_nbytes += (size_t)block->outcome.out_nbytes;
        return;
    }
    pipe->has_lost = true;
    pipe->is_done = !pipe->salvage;
}

static void add_block(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                      const struct wharf_frame_piece *from)
{
    size_t out_avail = most_out_nbytes(from);
    int r = reserve(&slot->out, slot->out_nbytes + out_avail);
    struct wharf_cli_frame_item *block;

    if (r < 0) {
        end_by_error(pipe, slot, r);
        return;
    }
    block = add_piece(pipe, slot, from);
    block->out_offset = slot->out_nbytes;
    block->out_avail = out_avail;
    if (pipe->splitter.frame.is_linked)
        decode_linked(pipe, slot, block);
    else
        slot->out_nbytes += out_avail;
}

static void take(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot,
                 const struct wharf_frame_piece *piece)
{
    switch (piece->kind) {
    case WHARF_FRAME_SKIP:
        pass_over(pipe, slot, piece->nbytes);
        break;
    case WHARF_FRAME_BLOCK:
        add_block(pipe, slot, piece);
        break;
    case WHARF_FRAME_BEGIN:
        pipe->has_lost = false;
        pipe->history_nbytes = 0;
        add_piece(pipe, slot, piece);
        break;
    case WHARF_FRAME_FINISH:
        pipe->history_nbytes = 0;
        add_piece(pipe, slot, piece);
        break;
    default:
        add_piece(pipe, slot, piece);
        pipe->is_done = true;
        break;
    }
}

/* Takes the next piece.  False: the slot is ready to be handed on. */
static bool take_next(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot)
{
    struct wharf_frame_splitter splitter = pipe->splitter;
    struct wharf_frame_piece piece;

    pipe->next(&splitter, slot->in.bytes + slot->taken_nbytes, slot->in_nbytes - slot->taken_nbytes,
               pipe->at_end, &piece);
    if (piece.kind == WHARF_FRAME_MORE) {
        if (slot->n_pieces)
            return false;
        read_more(pipe, slot, piece.nbytes);
        return true;
    }
    if (!has_room(slot, &piece))
        return false;
    pipe->splitter = splitter;
    take(pipe, slot, &piece);
    return true;
}

static bool fill(void *context, void *slot_memory)
{
    struct wharf_cli_frames *pipe = context;
    struct wharf_cli_frame_slot *slot = slot_memory;

    if (pipe->is_done)
        return false;
    begin_slot(pipe, slot);
    while (!pipe->is_done && take_next(pipe, slot))
        ;
    end_slot(pipe, slot);
    return true;
}

/* ---- all together ---------------------------------------------------------------------- */

static void stop(void *context)
{
    struct wharf_cli_frames *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

static void run_slots(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slots,
                      unsigned n_slots, unsigned n_workers)
{
    const struct wharf_cli_stages stages = {fill, work, wharf_cli_frame_drain, stop, pipe};
    int r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots, n_workers);

    if (r < 0)
        pipe->status = wharf_cli_task_error(pipe->task, "cannot decode", r);
    wharf_cli_input_resume(pipe->task->input);
    for (unsigned i = 0; i < n_slots; i++) {
        free(slots[i].in.bytes);
        free(slots[i].out.bytes);
    }
}

int wharf_cli_frame_pipe(struct wharf_cli_task *task, wharf_frame_next_fn *next,
                         struct wharf_cli_salvage *salvage)
{
    unsigned n_threads = task->options->n_threads;
    unsigned n_workers = n_threads < MAX_WORKERS ? n_threads : MAX_WORKERS;
    unsigned n_slots = wharf_cli_pipeline_n_slots(n_workers);
    struct wharf_cli_frame_slot *slots = calloc(n_slots, sizeof(*slots));
    struct wharf_cli_frames *pipe = calloc(1, sizeof(*pipe));
    int status;

    if (!slots || !pipe) {
        free(slots);
        free(pipe);
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    }
    pipe->task = task;
    pipe->salvage = salvage;
    pipe->next = next;
    pipe->is_reference = task->options->engine == WHARF_ENGINE_REFERENCE;
    run_slots(pipe, slots, n_slots, n_workers);
    task->tally->in_nbytes += pipe->in_end;
    task->tally->engines |= 1u << (pipe->is_reference ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU);
    status = pipe->status;
    free(pipe);
    free(slots);
    return status;
}
