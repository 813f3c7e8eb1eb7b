/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done_word.h: the words by which clients' streams wait for jobs.
 *
 * A done word lies in the client's memory, so writing it can block, like writing an output.  It is
 * therefore written without the core lock:
 *
 *     a chunk     The thread that ran it writes the word from its outcome, and then hands the piece
 *                 back.  Nothing that stops the job later changes that outcome.
 *     all else    Batches, and cancelled, late and refused jobs, end under the lock.  Such a job
 *                 owes its word: it returns to the CPU's queue as a WHARF_PIECE_WORD, and is
 *                 completed when a worker has written the word.
 *
 * The word is written once, before the completion is published, and says the same.
 */
#ifndef WHARF_DAEMON_CORE_DONE_WORD_H
#define WHARF_DAEMON_CORE_DONE_WORD_H

#include <stdbool.h>

struct wharf_job;
struct wharf_piece;

/* Whether the job has a done word that is not written yet. */
bool wharf_done_word_is_due(const struct wharf_job *job);

/*
 * wharf_done_word_tell: writes the done word of a job from its piece, a CHUNK that has run or a
 * WORD.  The thread that has the piece calls it, without the lock.  It does nothing if no word is
 * due or the job is a batch.
 */
void wharf_done_word_tell(struct wharf_piece *piece);

#endif
