/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_write.h: the slots of a file of frames, and the stage that verifies and writes them.
 *
 * A slot holds pieces in the file's order.  Each stage of frame_pipe.c has a slot to itself; the
 * reader's and the writer's own state lie side by side in one struct.
 */
#ifndef WHARF_CLI_FRAME_WRITE_H
#define WHARF_CLI_FRAME_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/salvage_note.h"
#include "clientlib/cli/task.h"
#include "encoders/frame_piece.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/outcome.h"
#include "encoders/xxh32.h"

enum { WHARF_CLI_FRAME_ITEMS = 256 };

struct wharf_cli_frame_buffer {
    uint8_t *bytes;
    size_t avail;
};

struct wharf_cli_frame_item {
    struct wharf_frame_piece piece;
    uint64_t at;       /* in the input */
    size_t in_offset;  /* in the slot's `in` */
    size_t out_offset; /* of a block, in the slot's `out` */
    size_t out_avail;
    bool is_linked;               /* a block that was decoded when the slot was filled */
    bool is_lost;                 /* a linked block behind a bad one */
    struct wharf_outcome outcome; /* of a block, its bit counted from the piece */
};

struct wharf_cli_frame_slot {
    struct wharf_cli_frame_buffer in;
    struct wharf_cli_frame_buffer out;
    size_t in_nbytes; /* read: pieces, and what the next slot begins with */
    size_t taken_nbytes;
    size_t out_nbytes;
    struct wharf_cli_frame_item pieces[WHARF_CLI_FRAME_ITEMS];
    unsigned n_pieces;
    int error; /* -errno of reading or of memory, behind the pieces, or 0 */
};

struct wharf_cli_frames {
    struct wharf_cli_task *task;
    struct wharf_cli_salvage *salvage; /* or NULL */
    wharf_frame_next_fn *next;
    int is_reference;

    /* The reader's. */
    struct wharf_frame_splitter splitter;
    const struct wharf_cli_frame_slot *before; /* the slot filled last */
    uint64_t offset;                           /* how far the input was read */
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

/* A good piece whose checksum is not that of its data. */
static inline void wharf_cli_frame_fail_check(struct wharf_cli_frame_item *piece, uint32_t reason)
{
    wharf_outcome_fail(&piece->outcome, WHARF_BAD_CHECKSUM, reason,
                       8 * (uint64_t)piece->piece.check_offset);
}

static inline uint8_t *wharf_cli_frame_block_out(const struct wharf_cli_frame_slot *slot,
                                                 const struct wharf_cli_frame_item *piece)
{
    return slot->out.bytes + piece->out_offset;
}

/*
 * The pipeline's last stage: verifies a slot's pieces in order, and writes those that are good.
 * Output that no checksum stands for yet is held back only from the first bad piece on.  Returns
 * whether more slots are wanted.
 */
bool wharf_cli_frame_drain(void *context, void *slot_memory);

#endif
