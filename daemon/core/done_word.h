/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done_word.h: the words by which clients' streams wait for jobs.
 *
 * A done word lies in memory of the client's that the daemon can write, so writing it can wait, as
 * writing an output can: it is done without the core lock, by whoever could write the output.
 *
 *     a chunk     whoever ran it writes the word by its outcome, and then hands it back.  That
 *                 outcome is the job's, whatever stops the job from then on.
 *     all else    (batches, what was cancelled, late or refused) has ended under the lock.  The job
 *                 is owed its word: it goes back into the queue of the CPU, as a piece that is
 *                 WHARF_PIECE_WORD, and is completed when a worker has written that.
 *
 * In both ways the word is written before the completion is published, once, and says the same.
 */
#ifndef WHARF_DAEMON_CORE_DONE_WORD_H
#define WHARF_DAEMON_CORE_DONE_WORD_H

#include <stdbool.h>

struct wharf_job;
struct wharf_piece;

/* Whether the job still has to write a done word. */
bool wharf_done_word_is_due(const struct wharf_job *job);

/*
 * wharf_done_word_tell: writes the word of a job by the outcome of its piece, which is a CHUNK that
 * was run, or a WORD.  Whoever has the piece calls it, without the lock.  Does nothing where there
 * is no word to write, or the piece is of a batch.
 */
void wharf_done_word_tell(struct wharf_piece *piece);

#endif
