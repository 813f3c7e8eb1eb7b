/* SPDX-License-Identifier: Apache-2.0 */
/* job_end.c: ends jobs. */
#include "daemon/dispatch/job_end.h"

#include "daemon/base/heap.h"
#include "daemon/core/core.h"
#include "daemon/core/done_word.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/dispatch/chains.h"
#include "daemon/placement/place.h"

void wharf_core_end_job(struct wharf_core *core, struct wharf_job *job,
                        const struct wharf_job_end *end)
{
    if (!wharf_done_word_is_due(job)) {
        wharf_chains_let_go(core, job);
        wharf_core_complete_job(core, job, end);
        return;
    }
    job->words->end = *end;
    job->words->is_owed = true;
    /* Neither a cancel nor its deadline changes the outcome now. */
    wharf_heap_remove(&core->deadlines, &job->deadline);
    job->state = WHARF_JOB_RUNNING;
    wharf_place_push_word(core, job);
}
