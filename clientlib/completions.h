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
 * wharf_client_reap: copies all completions of the session to their jobs.  Returns NULL, or what
 * the daemon did wrong, before which some were copied.  The rings are mapped.
 */
const char *wharf_client_reap(struct wharf *wharf);

/*
 * wharf_client_finish: a job that is on no list becomes DONE with this completion, whose user_data
 * is not looked at.
 */
void wharf_client_finish(struct wharf *wharf, struct wharf_client_job *job,
                         const struct wharf_completion *completion);

/* The same for one that nothing ran. */
void wharf_client_finish_unrun(struct wharf *wharf, struct wharf_client_job *job, uint16_t result);

/* wharf_client_drop_copy: memory of the arena that a call had for a copy; or NULL. */
void wharf_client_drop_copy(struct wharf *wharf, const void *copy);

/* wharf_client_free_private: a private job that is DONE goes, with its copies. */
void wharf_client_free_private(struct wharf *wharf, struct wharf_client_job *job);

/* wharf_client_take_done: the next completion that anybody may take.  Returns whether there was
 * one. */
int wharf_client_take_done(struct wharf *wharf, struct wharf_completion *ret_completion);

#endif
