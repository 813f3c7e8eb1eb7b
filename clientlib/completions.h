/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.h: jobs that end, and completions out of the daemon's ring.  Guarded by the handle's
 * lock; nothing here sleeps.
 */
#ifndef WHARF_CLIENT_COMPLETIONS_H
#define WHARF_CLIENT_COMPLETIONS_H

#include "clientlib/job_table.h"

struct wharf;

/*
 * wharf_client_reap: copies all completions of the session to their jobs.  The rings are mapped.
 * Returns NULL; or, perhaps after some completions, a text about the daemon's error.
 */
const char *wharf_client_reap(struct wharf *wharf);

/* wharf_client_take_done_word: whether the job has ended by its done word, and how. */
int wharf_client_take_done_word(const struct wharf_client_job *job,
                                struct wharf_completion *ret_completion);

/*
 * wharf_client_finish: makes a job that is on no list DONE with this completion, whose user_data is
 * ignored.
 */
void wharf_client_finish(struct wharf *wharf, struct wharf_client_job *job,
                         const struct wharf_completion *completion);

/* The same for a job that did not run. */
void wharf_client_finish_unrun(struct wharf *wharf, struct wharf_client_job *job, uint16_t result);

/* wharf_client_drop_copy: frees a call's copy in the arena; NULL is allowed. */
void wharf_client_drop_copy(struct wharf *wharf, const void *copy);

/* wharf_client_free_private: frees a private job that is DONE, with its copies. */
void wharf_client_free_private(struct wharf *wharf, struct wharf_client_job *job);

/* wharf_client_take_done: takes the next completion of a public job.  Returns whether there was
 * one. */
int wharf_client_take_done(struct wharf *wharf, struct wharf_completion *ret_completion);

#endif
