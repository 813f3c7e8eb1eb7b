/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_open.h: a batch's chunk table, copied and checked.
 */
#ifndef WHARF_DAEMON_DISPATCH_BATCH_OPEN_H
#define WHARF_DAEMON_DISPATCH_BATCH_OPEN_H

struct wharf_core;
struct wharf_piece;

/*
 * wharf_batch_open: does a piece of kind WHARF_PIECE_OPEN.  Fills piece->batch, or piece->outcome
 * with what is wrong and piece->bad_chunk.  Takes the core lock for some entries at a time:
 * regions are looked up, and each that the table names is counted as used, under it.
 */
void wharf_batch_open(struct wharf_core *core, struct wharf_piece *piece);

#endif
