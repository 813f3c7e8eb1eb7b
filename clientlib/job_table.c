/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_table.c: slots and lists of jobs; a tag names a slot and its generation.
 */
#include "clientlib/job_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct wharf_client_job_list no_jobs = {WHARF_CLIENT_NO_JOB, WHARF_CLIENT_NO_JOB, 0};

int wharf_client_jobs_init(struct wharf_client_jobs *jobs, uint32_t max_public)
{
    uint32_t n_slots = max_public + WHARF_CLIENT_MAX_PRIVATE;

    memset(jobs, 0, sizeof(*jobs));
    jobs->table = calloc(n_slots, sizeof(*jobs->table));
    if (!jobs->table)
        return -ENOMEM;
    jobs->n_slots = n_slots;
    jobs->max_public = max_public;
    jobs->free = jobs->in_ring = jobs->running = jobs->done = no_jobs;
    for (unsigned i = 0; i < 4; i++)
        jobs->queued[i] = no_jobs;
    for (uint32_t slot = 0; slot < n_slots; slot++)
        wharf_client_list_append(jobs, &jobs->free, &jobs->table[slot]);
    return 0;
}

void wharf_client_jobs_deinit(struct wharf_client_jobs *jobs)
{
    for (uint32_t slot = 0; slot < jobs->n_slots; slot++)
        free(jobs->table[slot].batch);
    free(jobs->table);
    memset(jobs, 0, sizeof(*jobs));
}

void wharf_client_list_append(struct wharf_client_jobs *jobs, struct wharf_client_job_list *list,
                              struct wharf_client_job *job)
{
    uint32_t slot = wharf_client_job_slot(jobs, job);

    job->previous = list->last;
    job->next = WHARF_CLIENT_NO_JOB;
    if (list->n)
        jobs->table[list->last].next = slot;
    else
        list->first = slot;
    list->last = slot;
    list->n++;
}

/* At the front; the job is on no list. */
static void prepend(struct wharf_client_jobs *jobs, struct wharf_client_job_list *list,
                    struct wharf_client_job *job)
{
    uint32_t slot = wharf_client_job_slot(jobs, job);

    job->previous = WHARF_CLIENT_NO_JOB;
    job->next = list->first;
    if (list->n)
        jobs->table[list->first].previous = slot;
    else
        list->last = slot;
    list->first = slot;
    list->n++;
}

void wharf_client_list_remove(struct wharf_client_jobs *jobs, struct wharf_client_job_list *list,
                              struct wharf_client_job *job)
{
    if (job->previous == WHARF_CLIENT_NO_JOB)
        list->first = job->next;
    else
        jobs->table[job->previous].next = job->next;
    if (job->next == WHARF_CLIENT_NO_JOB)
        list->last = job->previous;
    else
        jobs->table[job->next].previous = job->previous;
    list->n--;
}

void wharf_client_list_prepend_all(struct wharf_client_jobs *jobs,
                                   struct wharf_client_job_list *list,
                                   struct wharf_client_job_list *from)
{
    if (from->n && list->n) {
        jobs->table[from->last].next = list->first;
        jobs->table[list->first].previous = from->last;
        from->last = list->last;
    }
    if (from->n) {
        from->n += list->n;
        *list = *from;
        *from = no_jobs;
    }
}

struct wharf_client_job *wharf_client_job_new(struct wharf_client_jobs *jobs, int is_private)
{
    struct wharf_client_job *job = wharf_client_list_first(jobs, &jobs->free);
    uint32_t n_private = jobs->n_slots - jobs->free.n - jobs->n_public;
    uint32_t use;

    if (is_private ? n_private == WHARF_CLIENT_MAX_PRIVATE : jobs->n_public == jobs->max_public)
        return NULL;
    wharf_client_list_remove(jobs, &jobs->free, job);
    use = job->use + 1;
    memset(job, 0, sizeof(*job));
    job->use = use;
    job->is_private = (uint8_t)(is_private != 0);
    job->submission.user_data = (uint64_t)use << 32 | wharf_client_job_slot(jobs, job);
    jobs->n_public += !job->is_private;
    return job;
}

void wharf_client_job_free(struct wharf_client_jobs *jobs, struct wharf_client_job *job)
{
    free(job->batch);
    job->batch = NULL;
    job->state = WHARF_CLIENT_JOB_FREE;
    jobs->n_public -= !job->is_private;
    /* The one that is still in the cache is used next. */
    prepend(jobs, &jobs->free, job);
}

struct wharf_client_job *wharf_client_job_find(const struct wharf_client_jobs *jobs, uint64_t tag)
{
    uint32_t slot = (uint32_t)tag;

    if (slot >= jobs->n_slots || jobs->table[slot].use != tag >> 32)
        return NULL;
    return &jobs->table[slot];
}
