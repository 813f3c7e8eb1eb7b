/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/done_words.h"

#include <errno.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "proto/ring_ops.h"

#define DONE_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS)

static int check_place(struct wharf *wharf, struct wharf_done *done, struct wharf_client_done *own)
{
    int r = wharf_client_regions_locate(&wharf->regions, done, sizeof(*done), 1,
                                        &own->words.done_region, &own->words.done_offset);
    const struct wharf_client_region *region = wharf->regions.by_number[own->words.done_region];

    if (r == 0 && region->number && region->kind != WHARF_MEMORY_MEMFD)
        r = -EFAULT;
    if (r < 0)
        return wharf_client_fail(r,
                                 "the done word at %p is in no memory that the processor and "
                                 "the daemon can write",
                                 (void *)done);
    if ((uintptr_t)done % sizeof(*done) || own->words.done_offset % sizeof(*done))
        return wharf_client_fail(-EINVAL, "the done word at %p is at no multiple of %zu bytes",
                                 (void *)done, sizeof(*done));
    return 0;
}

int wharf_client_done_find(struct wharf *wharf, struct wharf_done *done, uint32_t serial,
                           struct wharf_client_done *ret_done)
{
    struct wharf_client_done own = {.at = done, .words.done_serial = serial};

    if (!done) {
        *ret_done = own;
        return 0;
    }
    if (!wharf->is_daemon)
        return wharf_client_fail(-EOPNOTSUPP, "done words need a daemon");
    if (!(wharf->link.facts.features & DONE_WORDS))
        return wharf_client_fail(-EOPNOTSUPP, "the daemon at %s is too old for done words",
                                 wharf->link.address.sun_path);
    int r = check_place(wharf, done, &own);
    if (r < 0)
        return r;
    if (wharf_done_is_set(wharf_ring_load_done(&done->word), serial))
        return wharf_client_fail(-EINVAL,
                                 "the done word at %p has the serial number %u or a later "
                                 "one already",
                                 (void *)done, serial);
    *ret_done = own;
    return 0;
}

void wharf_client_done_tell(const struct wharf_client_job *job,
                            const struct wharf_completion *completion)
{
    struct wharf_done *done = job->done.at;
    uint32_t serial = job->done.words.done_serial;

    if (done && !wharf_done_is_set(wharf_ring_load_done(&done->word), serial))
        wharf_ring_write_done(done, serial, completion);
}

int wharf_client_done_read(const struct wharf_client_job *job,
                           struct wharf_completion *ret_completion)
{
    return job->done.at &&
           wharf_ring_read_done(job->done.at, job->done.words.done_serial, ret_completion);
}

static void lose(struct wharf_client_jobs *jobs, const struct wharf_client_job_list *list,
                 uint16_t reason)
{
    const struct wharf_completion lost = {.result = WHARF_CANCELLED, .reason = reason};
    struct wharf_client_job *job = wharf_client_list_first(jobs, list);

    for (; job; job = wharf_client_list_next(jobs, job))
        wharf_client_done_tell(job, &lost);
}

void wharf_client_done_lose(struct wharf *wharf, uint16_t reason)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;

    if (!jobs->table)
        return;
    lose(jobs, &jobs->in_ring, reason);
    lose(jobs, &jobs->queued[0], reason);
}
