/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_open.h: a batch's chunk table, copied and checked.
 */
#ifndef WHARF_DAEMON_DISPATCH_BATCH_OPEN_H
#define WHARF_DAEMON_DISPATCH_BATCH_OPEN_H

struct wharf_core;
struct wharf_piece;

/*
 * wharf_batch_open: runs a piece of kind WHARF_PIECE_OPEN.  Sets piece->batch; or, for a bad table,
 * piece->outcome and piece->bad_chunk.  Takes the core lock for a few entries at a time, to look up
 * regions and count them as used.
 */
void wharf_batch_open(struct wharf_core *core, struct wharf_piece *piece);

#endif
