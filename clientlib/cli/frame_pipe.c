/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_pipe.c: a slot holds pieces in the file's order; the last one may be the file's end or an
 * error.  Draining passes over them twice: first to verify, then to write what was verified.
 */
#include "clientlib/cli/frame_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    SLOT_PIECES = 256,
    /* More workers outrun the one thread that verifies and writes, and their slots would take much
       memory. */
    MAX_WORKERS = 16,
};

struct buffer {
    uint8_t *bytes;
    size_t avail;
};

struct piece {
    struct wharf_frame_piece piece;
    uint64_t at;       /* in the input */
    size_t in_offset;  /* in the slot's `in` */
    size_t out_offset; /* of a block, in the slot's `out` */
    size_t out_avail;
    bool is_linked;               /* a block that was decoded when the slot was filled */
    bool is_lost;                 /* a linked block behind a bad one */
    struct wharf_outcome outcome; /* of a block, its bit counted from the piece */
};

struct slot {
    struct buffer in;
    struct buffer out;
    size_t in_nbytes; /* read: pieces, and what the next slot begins with */
    size_t taken_nbytes;
    size_t out_nbytes;
    struct piece pieces[SLOT_PIECES];
    unsigned n_pieces;
    int error; /* -errno of reading or of memory, behind the pieces, or 0 */
};

struct frame_pipe {
    struct wharf_cli_task *task;
    struct wharf_cli_salvage *salvage; /* or NULL */
    wharf_frame_next_fn *next;
    int is_reference;

    /* The reader's. */
    struct wharf_frame_splitter splitter;
    const struct slot *before; /* the slot filled last */
    uint64_t offset;           /* how far the input was read */
    bool at_end;
    bool is_done;
    bool has_lost; /* a block that those of the same frame reach back into */
    /* What the next linked block may reach back into: it ends where the slot's output does. */
    size_t history_nbytes;
    uint8_t history[WHARF_LZ4_HISTORY_NBYTES]; /* from one slot to the next */

    /* The writer's. */
    struct wharf_frame_header frame;
    struct wharf_xxh32 hash;   /* of the frame's output */
    uint64_t frame_out_nbytes; /* of the frame's output */
    bool is_broken;            /* the frame lacks a block: with `salvage` alone */
    bool has_unchecked;        /* an earlier frame had no check at all */
    uint64_t n_verified;       /* bytes of output */
    uint64_t n_vouched;        /* the first ones of these, which checks stand for */
    uint64_t n_written;
    uint64_t in_end; /* up to here the input is done */
    int status;
};

/* ---- reading --------------------------------------------------------------------------- */

/* Makes room for nbytes.  0 or -ENOMEM. */
static int reserve(struct buffer *buffer, size_t nbytes)
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

static void end_by_error(struct frame_pipe *pipe, struct slot *slot, int error)
{
    slot->error = error;
    pipe->is_done = true;
}

/* Begins a slot with what the one before had read and not taken, and with what its blocks may reach
 * back into. */
static void begin_slot(struct frame_pipe *pipe, struct slot *slot)
{
    const struct slot *before = pipe->before;
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

static void end_slot(struct frame_pipe *pipe, const struct slot *slot)
{
    if (pipe->history_nbytes > WHARF_LZ4_HISTORY_NBYTES)
        pipe->history_nbytes = WHARF_LZ4_HISTORY_NBYTES;
    if (pipe->history_nbytes)
        memcpy(pipe->history, slot->out.bytes + slot->out_nbytes - pipe->history_nbytes,
               pipe->history_nbytes);
}

/* Reads until nbytes of the next piece, or as much as one read gives, are in the slot. */
static void read_more(struct frame_pipe *pipe, struct slot *slot, uint64_t nbytes)
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
static uint64_t piece_at(const struct frame_pipe *pipe, const struct slot *slot)
{
    return pipe->offset - (slot->in_nbytes - slot->taken_nbytes);
}

/* Adds a piece: there is room. */
static struct piece *add_piece(const struct frame_pipe *pipe, struct slot *slot,
                               const struct wharf_frame_piece *from)
{
    struct piece *piece = &slot->pieces[slot->n_pieces++];

    *piece = (struct piece){
        .piece = *from,
        .at = piece_at(pipe, slot),
        .in_offset = slot->taken_nbytes,
    };
    slot->taken_nbytes += (size_t)from->nbytes;
    return piece;
}

static void add_bad(struct frame_pipe *pipe, struct slot *slot, uint32_t result, uint32_t reason)
{
    struct wharf_frame_piece bad;

    wharf_frame_bad(&bad, result, reason);
    add_piece(pipe, slot, &bad);
    pipe->is_done = true;
}

/* Skips nbytes of input, which may be unread or lie behind the input's end. */
static void pass_over(struct frame_pipe *pipe, struct slot *slot, uint64_t nbytes)
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

static void fail_check(struct piece *piece, uint32_t reason)
{
    wharf_outcome_fail(&piece->outcome, WHARF_BAD_CHECKSUM, reason,
                       8 * (uint64_t)piece->piece.check_offset);
}

static uint8_t *block_out(const struct slot *slot, const struct piece *piece)
{
    return slot->out.bytes + piece->out_offset;
}

static void decode(const struct frame_pipe *pipe, const struct slot *slot, struct piece *piece,
                   size_t history_nbytes)
{
    const struct wharf_frame_piece *from = &piece->piece;
    struct wharf_outcome *outcome = &piece->outcome;
    const struct wharf_decode_job job = {
        .codec = from->codec,
        .flags = WHARF_JOB_EXACT_INPUT,
        .setting.history_nbytes = history_nbytes,
        .in = slot->in.bytes + piece->in_offset + from->data_offset,
        .in_nbytes = from->data_nbytes,
        .out = block_out(slot, piece),
        .out_avail = piece->out_avail,
    };

    if (from->check == WHARF_FRAME_CHECK_XXH32_IN && !check_is_right(from, job.in, job.in_nbytes)) {
        fail_check(piece, WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM);
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
        fail_check(piece, WHARF_REASON_SNAPPY_FRAME_CHECKSUM);
    }
}

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct frame_pipe *pipe = context;
    struct slot *slot = slot_memory;

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

static bool has_room(const struct slot *slot, const struct wharf_frame_piece *piece)
{
    /* The last place is for what may follow a piece that cannot be passed over. */
    if (slot->n_pieces == SLOT_PIECES - 1)
        return false;
    return slot->n_pieces == 0 || piece->kind != WHARF_FRAME_BLOCK ||
           slot->out_nbytes + most_out_nbytes(piece) <= SLOT_OUT_NBYTES;
}

/* Decodes a block that refers to earlier output at once: earlier blocks are done. */
static void decode_linked(struct frame_pipe *pipe, struct slot *slot, struct piece *block)
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

static void add_block(struct frame_pipe *pipe, struct slot *slot,
                      const struct wharf_frame_piece *from)
{
    size_t out_avail = most_out_nbytes(from);
    int r = reserve(&slot->out, slot->out_nbytes + out_avail);
    struct piece *block;

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

static void take(struct frame_pipe *pipe, struct slot *slot, const struct wharf_frame_piece *piece)
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
static bool take_next(struct frame_pipe *pipe, struct slot *slot)
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
    struct frame_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->is_done)
        return false;
    begin_slot(pipe, slot);
    while (!pipe->is_done && take_next(pipe, slot))
        ;
    end_slot(pipe, slot);
    return true;
}

/* ---- verifying -------------------------------------------------------------------------- */

static void vouch(struct frame_pipe *pipe)
{
    if (!pipe->has_unchecked)
        pipe->n_vouched = pipe->n_verified;
}

static void verify_begin(struct frame_pipe *pipe, const struct wharf_frame_header *frame)
{
    pipe->frame = *frame;
    pipe->frame_out_nbytes = 0;
    pipe->is_broken = false;
    wharf_xxh32_init(&pipe->hash);
}

static void verify_block(struct frame_pipe *pipe, const struct slot *slot, struct piece *block)
{
    uint64_t nbytes = block->outcome.out_nbytes;

    if (block->outcome.result != WHARF_OK)
        return;
    if (nbytes > pipe->frame.content_nbytes - pipe->frame_out_nbytes) {
        wharf_outcome_fail(&block->outcome, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE, 0);
        return;
    }
    pipe->frame_out_nbytes += nbytes;
    pipe->n_verified += nbytes;
    if (pipe->frame.has_content_check)
        wharf_xxh32_update(&pipe->hash, block_out(slot, block), (size_t)nbytes);
    if (pipe->frame.has_block_checks)
        vouch(pipe);
}

static void verify_finish(struct frame_pipe *pipe, struct piece *finish)
{
    const struct wharf_frame_header *frame = &pipe->frame;

    if (pipe->is_broken) {
        pipe->salvage->n_doubtful += pipe->n_verified - pipe->n_vouched;
        pipe->n_vouched = pipe->n_verified;
        return;
    }
    if (frame->content_nbytes != WHARF_FRAME_SIZE_UNKNOWN &&
        pipe->frame_out_nbytes != frame->content_nbytes)
        wharf_outcome_fail(&finish->outcome, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE,
                           0);
    else if (frame->has_content_check &&
             wharf_xxh32_value(&pipe->hash) != finish->piece.check_value)
        fail_check(finish, WHARF_REASON_LZ4_FRAME_CHECKSUM);
    else if (frame->has_content_check)
        vouch(pipe);
    else if (pipe->salvage)
        vouch(pipe); /* nothing says that it is in doubt */
    else if (!frame->has_block_checks)
        pipe->has_unchecked = pipe->has_unchecked || pipe->frame_out_nbytes > 0;
}

/* Whether a piece is good.  If not, its outcome has the error. */
static bool verify(struct frame_pipe *pipe, const struct slot *slot, struct piece *piece)
{
    switch (piece->piece.kind) {
    case WHARF_FRAME_BEGIN:
        verify_begin(pipe, &piece->piece.frame);
        break;
    case WHARF_FRAME_BLOCK:
        verify_block(pipe, slot, piece);
        break;
    case WHARF_FRAME_FINISH:
        verify_finish(pipe, piece);
        break;
    case WHARF_FRAME_BAD:
        wharf_outcome_fail(&piece->outcome, piece->piece.result, piece->piece.reason, 0);
        break;
    default:
        break;
    }
    return piece->outcome.result == WHARF_OK;
}

/* Whether all up to the end of a good piece may be written, whatever is wrong behind it. */
static bool may_be_written(const struct frame_pipe *pipe, const struct piece *piece)
{
    return piece->piece.kind == WHARF_FRAME_FINISH ||
           (piece->piece.kind == WHARF_FRAME_BLOCK && pipe->frame.has_block_checks);
}

/* ---- writing --------------------------------------------------------------------------- */

static bool has_output(const struct piece *piece)
{
    return piece->piece.kind == WHARF_FRAME_BLOCK && !piece->is_lost &&
           piece->outcome.result == WHARF_OK;
}

static int write_out(struct frame_pipe *pipe, const struct slot *slot, size_t offset, size_t nbytes)
{
    if (nbytes == 0)
        return WHARF_CLI_GOOD;
    pipe->n_written += nbytes;
    return wharf_cli_task_write(pipe->task, pipe->in_end, slot->out.bytes + offset, nbytes);
}

/* Writes the output of pieces: of blocks that fill their places, all at once. */
static int write_pieces(struct frame_pipe *pipe, const struct slot *slot, unsigned first,
                        unsigned end)
{
    size_t offset = 0;
    size_t nbytes = 0;

    for (unsigned i = first; i < end; i++) {
        const struct piece *piece = &slot->pieces[i];

        pipe->in_end = piece->at + piece->piece.nbytes;
        if (!has_output(piece))
            continue;
        pipe->task->tally->n_chunks++;
        if (nbytes && piece->out_offset != offset + nbytes) {
            int status = write_out(pipe, slot, offset, nbytes);

            if (status != WHARF_CLI_GOOD)
                return status;
            nbytes = 0;
        }
        if (nbytes == 0)
            offset = piece->out_offset;
        nbytes += (size_t)piece->outcome.out_nbytes;
    }
    return write_out(pipe, slot, offset, nbytes);
}

static struct wharf_cli_fault fault_of(const struct piece *piece)
{
    return (struct wharf_cli_fault){
        .result = piece->outcome.result,
        .reason = piece->outcome.reason,
        .bit_offset = 8 * piece->at + piece->outcome.bit_offset,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
}

static uint64_t n_doubtful(const struct frame_pipe *pipe)
{
    return pipe->n_written > pipe->n_vouched ? pipe->n_written - pipe->n_vouched : 0;
}

/* Writes everything up to the first bad piece, or less if no checksum covers it. */
static int write_verified(struct frame_pipe *pipe, struct slot *slot)
{
    struct wharf_cli_fault fault;
    unsigned n_good = 0;
    unsigned i = 0;
    int status;

    while (i < slot->n_pieces && verify(pipe, slot, &slot->pieces[i])) {
        i++;
        if (may_be_written(pipe, &slot->pieces[i - 1]))
            n_good = i;
    }
    if (i == slot->n_pieces)
        return write_pieces(pipe, slot, 0, i);
    status = write_pieces(pipe, slot, 0, n_good);
    if (status != WHARF_CLI_GOOD)
        return status;
    fault = fault_of(&slot->pieces[i]);
    return wharf_cli_task_fault(pipe->task, &fault, n_doubtful(pipe));
}

/* Writes all pieces that decode. */
static int write_good(struct frame_pipe *pipe, struct slot *slot)
{
    unsigned first = 0;

    for (unsigned i = 0; i < slot->n_pieces; i++) {
        struct wharf_cli_fault fault;
        int status;

        if (verify(pipe, slot, &slot->pieces[i]))
            continue;
        status = write_pieces(pipe, slot, first, i);
        if (status != WHARF_CLI_GOOD)
            return status;
        fault = fault_of(&slot->pieces[i]);
        wharf_cli_salvage_note(pipe->salvage, &fault, n_doubtful(pipe), 0);
        pipe->n_vouched = pipe->n_verified;
        pipe->is_broken = true;
        first = i + 1;
    }
    return write_pieces(pipe, slot, first, slot->n_pieces);
}

static bool drain(void *context, void *slot_memory)
{
    struct frame_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = pipe->salvage ? write_good(pipe, slot) : write_verified(pipe, slot);
    if (pipe->status == WHARF_CLI_GOOD && slot->error)
        pipe->status = slot->error == -ENOMEM
                           ? wharf_cli_task_error(pipe->task, "cannot decode", slot->error)
                           : wharf_cli_task_read_error(pipe->task, slot->error);
    if (pipe->status != WHARF_CLI_GOOD)
        return false;
    /* Of a range the rest need not be read, unless a checksum at the frame's end stands for it. */
    return !wharf_cli_output_is_full(pipe->task->output) ||
           (pipe->frame.has_content_check && n_doubtful(pipe));
}

/* ---- all together ---------------------------------------------------------------------- */

static void stop(void *context)
{
    struct frame_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

static void run_slots(struct frame_pipe *pipe, struct slot *slots, unsigned n_slots,
                      unsigned n_workers)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
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
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    struct frame_pipe *pipe = calloc(1, sizeof(*pipe));
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
