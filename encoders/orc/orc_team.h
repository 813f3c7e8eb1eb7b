/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_team.h: threads without columns of their own decode the next blocks of other threads'
 * streams.
 *
 * A reader that has nobody to help it decodes each block when it needs it.  While others help, it
 * gives them blocks that it will need next.  A block that nobody has begun when it is needed, the
 * reader decodes itself.  While somebody else has the block that it needs, it works on later ones.
 * So rows and failures are the same, in the same order, with any number of threads.
 *
 * Memory: WHARF_ORC_TEAM_SLOTS blocks for each thread, compressed and not.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_TEAM_H
#define WHARF_ENCODERS_ORC_ORC_TEAM_H

#include "encoders/orc/orc_block.h"

enum { WHARF_ORC_TEAM_SLOTS = 4 };

/* For so many threads, readers and helpers together.  0 or -ENOMEM. */
int wharf_orc_team_new(unsigned n_threads, struct wharf_orc_team **ret_team);
/* No thread uses it any more.  Takes NULL. */
void wharf_orc_team_free(struct wharf_orc_team *team);

/* From now on n_items pieces of work are to be done, */
void wharf_orc_team_begin(struct wharf_orc_team *team, size_t n_items);
/* and one of them is done. */
void wharf_orc_team_finish(struct wharf_orc_team *team);
/* Helps until all of them are. */
void wharf_orc_team_help(struct wharf_orc_team *team);

/* What the team has of a reader's blocks, in order.  All zeros at first. */
struct wharf_orc_ahead {
    struct wharf_orc_slot *first, *last;
    uint64_t at; /* in the file, of the next block to give away */
};

/* Of a reader that needs the block at `at`, before `end`.  Gives blocks to the team, of->team;
 * whether it had that one, which is filled in with *ret_nbytes, or *ret_error, whose trouble is
 * WHARF_ORC_GOOD else. */
bool wharf_orc_team_next(const struct wharf_orc_bytes *of, struct wharf_orc_ahead *ahead,
                         uint64_t at, uint64_t end, struct wharf_orc_block *ret_block, uint8_t *out,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error);
/* Takes back what the team has of these blocks, and waits for what is begun. */
void wharf_orc_team_drop(const struct wharf_orc_bytes *of, struct wharf_orc_ahead *ahead);

#endif
