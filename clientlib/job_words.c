/* SPDX-License-Identifier: Apache-2.0 */
/* job_words.c: finds, checks and writes jobs' start and done words (job_words.h). */
#include "clientlib/job_words.h"

#include <errno.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "proto/ring_ops.h"

#define DONE_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS)

#define START_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_START_WORDS)

static int check_feature(const struct wharf *wharf, uint64_t feature, const char *what)
{
    if (!wharf->is_daemon)
        return wharf_client_fail(-EOPNOTSUPP, "%s words need a daemon", what);
    if (!(wharf->link.facts.features & feature))
        return wharf_client_fail(-EOPNOTSUPP, "the daemon at %s has no %s words",
                                 wharf->link.address.sun_path, what);
    return 0;
}

static int find_done(struct wharf *wharf, const struct wharf_client_wanted_words *wanted,
                     struct wharf_submission_words *words)
{
    struct wharf_done *done = wanted->done;
    int r = check_feature(wharf, DONE_WORDS, "done");

    if (r < 0)
        return r;
    r = wharf_client_regions_locate(&wharf->regions, done, sizeof(*done), 1, &words->done_region,
                                    &words->done_offset);
    const struct wharf_client_region *region = wharf->regions.by_number[words->done_region];
    if (r == 0 && region->number && region->kind != WHARF_MEMORY_MEMFD)
        r = -EFAULT;
    if (r < 0)
        return wharf_client_fail(r,
                                 "the done word at %p is in no memory that the processor and "
                                 "the daemon can write",
                                 (void *)done);
    if ((uintptr_t)done % sizeof(*done) || words->done_offset % sizeof(*done))
        return wharf_client_fail(-EINVAL, "the done word at %p is at no multiple of %zu bytes",
                                 (void *)done, sizeof(*done));
    if (wharf_done_is_set(wharf_ring_load_done(&done->word), wanted->done_serial))
        return wharf_client_fail(-EINVAL,
                                 "the done word at %p has the serial number %u or a later "
                                 "one already",
                                 (void *)done, wanted->done_serial);
    words->done_serial = wanted->done_serial;
    return 0;
}

static int find_start(struct wharf *wharf, const struct wharf_client_wanted_words *wanted,
                      struct wharf_submission_words *words)
{
    const uint64_t *start = wanted->start;
    int r = check_feature(wharf, START_WORDS, "start");

    if (r < 0)
        return r;
    r = wharf_client_regions_locate(&wharf->regions, start, sizeof(*start), 0, &words->start_region,
                                    &words->start_offset);
    if (r == 0 && !wharf->regions.by_number[words->start_region]->is_own)
        r = -EFAULT;
    if (r < 0)
        return wharf_client_fail(r, "the start word at %p is none of wharf_make_start_words",
                                 (const void *)start);
    if (words->start_offset % sizeof(*start))
        return wharf_client_fail(-EINVAL, "the start word at %p is at no multiple of %zu bytes",
                                 (const void *)start, sizeof(*start));
    words->start_serial = wanted->start_serial;
    words->start_timeout_us = wanted->start_timeout_us;
    return 0;
}

int wharf_client_words_find(struct wharf *wharf, const struct wharf_client_wanted_words *wanted,
                            struct wharf_client_words *ret_words)
{
    struct wharf_client_words own = {.done = wanted->done, .has_start = wanted->start != NULL};
    int r = 0;

    if (own.done)
        r = find_done(wharf, wanted, &own.in_ring);
    if (r == 0 && own.has_start)
        r = find_start(wharf, wanted, &own.in_ring);
    if (r == 0)
        *ret_words = own;
    return r;
}

void wharf_client_done_tell(const struct wharf_client_job *job,
                            const struct wharf_completion *completion)
{
    struct wharf_done *done = job->words.done;
    uint32_t serial = job->words.in_ring.done_serial;

    if (done && !wharf_done_is_set(wharf_ring_load_done(&done->word), serial))
        wharf_ring_write_done(done, serial, completion);
}

int wharf_client_done_read(const struct wharf_client_job *job,
                           struct wharf_completion *ret_completion)
{
    return job->words.done &&
           wharf_ring_read_done(job->words.done, job->words.in_ring.done_serial, ret_completion);
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
