/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_write.c: passes over a slot's pieces twice: first to verify, then to write what was
 * verified.
 */
#include "clientlib/cli/frame_write.h"

#include <errno.h>

/* ---- verifying -------------------------------------------------------------------------- */

static void vouch(struct wharf_cli_frames *pipe)
{
    if (!pipe->has_unchecked)
        pipe->n_vouched = pipe->n_verified;
}

static void verify_begin(struct wharf_cli_frames *pipe, const struct wharf_frame_header *frame)
{
    pipe->frame = *frame;
    pipe->frame_out_nbytes = 0;
    pipe->is_broken = false;
    wharf_xxh32_init(&pipe->hash);
}

static void verify_block(struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot,
                         struct wharf_cli_frame_item *block)
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
        wharf_xxh32_update(&pipe->hash, wharf_cli_frame_block_out(slot, block), (size_t)nbytes);
    if (pipe->frame.has_block_checks)
        vouch(pipe);
}

static void verify_finish(struct wharf_cli_frames *pipe, struct wharf_cli_frame_item *finish)
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
        wharf_cli_frame_fail_check(finish, WHARF_REASON_LZ4_FRAME_CHECKSUM);
    else if (frame->has_content_check)
        vouch(pipe);
    else if (pipe->salvage)
        vouch(pipe); /* nothing says that it is in doubt */
    else if (!frame->has_block_checks)
        pipe->has_unchecked = pipe->has_unchecked || pipe->frame_out_nbytes > 0;
}

/* Whether a piece is good.  If not, its outcome has the error. */
static bool verify(struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot,
                   struct wharf_cli_frame_item *piece)
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
static bool may_be_written(const struct wharf_cli_frames *pipe,
                           const struct wharf_cli_frame_item *piece)
{
    return piece->piece.kind == WHARF_FRAME_FINISH ||
           (piece->piece.kind == WHARF_FRAME_BLOCK && pipe->frame.has_block_checks);
}

/* ---- writing --------------------------------------------------------------------------- */

static bool has_output(const struct wharf_cli_frame_item *piece)
{
    return piece->piece.kind == WHARF_FRAME_BLOCK && !piece->is_lost &&
           piece->outcome.result == WHARF_OK;
}

static int write_out(struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot,
                     size_t offset, size_t nbytes)
{
    if (nbytes == 0)
        return WHARF_CLI_GOOD;
    pipe->n_written += nbytes;
    return wharf_cli_task_write(pipe->task, pipe->in_end, slot->out.bytes + offset, nbytes);
}

/* Writes the output of pieces: of blocks that fill their places, all at once. */
static int write_pieces(struct wharf_cli_frames *pipe, const struct wharf_cli_frame_slot *slot,
                        unsigned first, unsigned end)
{
    size_t offset = 0;
    size_t nbytes = 0;

    for (unsigned i = first; i < end; i++) {
        const struct wharf_cli_frame_item *piece = &slot->pieces[i];

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

static struct wharf_cli_fault fault_of(const struct wharf_cli_frame_item *piece)
{
    return (struct wharf_cli_fault){
        .result = piece->outcome.result,
        .reason = piece->outcome.reason,
        .bit_offset = 8 * piece->at + piece->outcome.bit_offset,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
}

static uint64_t n_doubtful(const struct wharf_cli_frames *pipe)
{
    return pipe->n_written > pipe->n_vouched ? pipe->n_written - pipe->n_vouched : 0;
}

/* Writes everything up to the first bad piece, or less if no checksum covers it. */
static int write_verified(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot)
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
static int write_good(struct wharf_cli_frames *pipe, struct wharf_cli_frame_slot *slot)
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

bool wharf_cli_frame_drain(void *context, void *slot_memory)
{
    struct wharf_cli_frames *pipe = context;
    struct wharf_cli_frame_slot *slot = slot_memory;

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
