/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h: jobs and the death of daemons: PROTOCOL.md section 5, and proto/models/replay.pml.
 *
 * When a connection ends, completions that are there count; all other jobs are queued again, in
 * their old order, before those that were not submitted yet.  Nothing is done with their memory
 * until the next daemon has answered Hello: only then can nobody write there.
 *
 * A job that the daemon had begun, or was looking at, at SUSPECT_DEATHS deaths may have caused
 * them: it goes into the ring alone, before all others.  So none of this handle's other jobs has
 * part in a further death, and at GIVE_UP_DEATHS it is given up.  What the daemon had not begun
 * does not count (of daemons that do not tell by marks, all that was submitted does), nor do
 * daemons that end in good order (draining).
 *
 * A job whose done word is set has ended, whoever wrote that: it completes as the word says.
 *
 * A job whose destination is in a file is not submitted again once it was begun: it ends as
 * FILE_ERROR, FILE_ABANDONED.
 */
#ifndef WHARF_CLIENT_REPLAY_H
#define WHARF_CLIENT_REPLAY_H

#include "clientlib/job_table.h"

struct wharf;

/* wharf_client_replay_prepare: queues the jobs of an ended session again; its rings are still
 * mapped. */
void wharf_client_replay_prepare(struct wharf *wharf);

/*
 * wharf_client_replay_next: the next queued job for the ring, or NULL.  Ends jobs on the way that
 * were cancelled, are late or are given up.
 */
struct wharf_client_job *wharf_client_replay_next(struct wharf *wharf);

#endif
