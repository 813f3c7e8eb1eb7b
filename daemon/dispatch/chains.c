/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dispatch/chains.h"

#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_queue.h"
#include "daemon/placement/place.h"

/* The job in flight that was the submission of this index, before `job`; or NULL. */
static struct wharf_job *find(const struct wharf_job *job, uint32_t index)
{
    struct wharf_session *session = job->session;
    struct wharf_job *found = &session->jobs[session->slots[index % session->ring.n_entries]];

    return found != job && found->state != WHARF_JOB_FREE && found->index == index ? found : NULL;
}

void wharf_chain_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_job *before = find(job, job->submission.checksum);

    job->submission.checksum = 0;
    if (!before) {
        wharf_core_queue_job(core, job, now_ns);
        return;
    }
    wharf_core_ready_job(core, job, now_ns);
    wharf_list_append(&before->chains, &job->link);
    core->n_waiting++;
}

void wharf_chains_let_go(struct wharf_core *core, struct wharf_job *job)
{
    struct wharf_session_placing *placing = &job->session->placing;

    if (wharf_list_is_empty(&job->chains))
        return;
    wharf_list_splice(&placing->due, &job->chains);
    if (!wharf_list_is_linked(&placing->due_link))
        wharf_list_append(&core->due, &placing->due_link);
}

void wharf_chain_forget(struct wharf_core *core, struct wharf_job *job)
{
    if (!job->is_chain || job->pool != WHARF_POOL_NONE || !wharf_list_is_linked(&job->link))
        return;
    wharf_list_remove(&job->link);
    core->n_waiting--;
}
