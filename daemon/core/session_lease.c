/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/session_lease.h"

#include "daemon/base/list.h"
#include "daemon/core/session.h"

void wharf_lease_forget(struct wharf_lease *lease)
{
    if (lease->session)
        lease->session->home = NULL;
    lease->session = NULL;
}

void wharf_lease_keep(struct wharf_lease *lease, struct wharf_job *job,
                      const struct wharf_completion *completion)
{
    /* What it was asked for is of no use any more. */
    job->completion = *completion;
    wharf_list_append(&lease->ended, &job->link);
}
