/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_table.h: what the library knows of each job in flight, in private memory.
 *
 * A job has a slot from wharf_submit until its completion has been taken, and is on one list at
 * a time:
 *
 *     FREE -> QUEUED -> IN_RING -> DONE -> FREE           through a daemon
 *               ^----------' the daemon has died
 *     FREE -> QUEUED -> RUNNING -> DONE -> FREE           embedded
 *
 * Guarded by the handle's lock, but for a RUNNING job: only the thread that runs it looks at it.
 */
#ifndef WHARF_CLIENT_JOB_TABLE_H
#define WHARF_CLIENT_JOB_TABLE_H

#include <stdint.h>

#include "clientlib/region_table.h"
#include "proto/wharf_ring.h"

enum wharf_client_job_state {
    WHARF_CLIENT_JOB_FREE,
    WHARF_CLIENT_JOB_QUEUED, /* the daemon does not have it, or not any more */
    WHARF_CLIENT_JOB_IN_RING,
    WHARF_CLIENT_JOB_RUNNING,
    WHARF_CLIENT_JOB_DONE,
};

/* A batch's own data, on the heap. */
struct wharf_client_batch {
    struct wharf_chunk_result *results; /* the program's, or NULL */
    void *table;                        /* in the arena: chunks, then results */
    uint32_t n_chunks;
    struct wharf_chunk chunks[]; /* the table as it was submitted */
};

/* A job's words: done_words.h, start_words.h. */
struct wharf_client_words {
    struct wharf_done *done; /* NULL: it has none */
    int has_start;           /* a start word */
    struct wharf_submission_words in_ring;
};

#define WHARF_CLIENT_NO_JOB UINT32_MAX

struct wharf_client_model;

struct wharf_client_job {
    struct wharf_submission submission; /* its user_data is the tag */
    struct wharf_completion completion; /* of a DONE one, with the program's user_data */
    struct wharf_client_batch *batch;   /* of a batch, or NULL */
    struct wharf_client_model *model;   /* that its parameter names, or NULL */
    struct wharf_client_words words;
    uint64_t user_data;  /* the program's */
    uint64_t queued_ns;  /* when it was handed in, with a timeout or embedded */
    uint32_t timeout_us; /* as submitted */
    uint32_t use;        /* how often the slot was used: half of the tag */
    uint32_t previous;   /* on its list */
    uint32_t next;
    uint32_t ring_index;      /* in the ring, of its submission */
    uint32_t n_deaths;        /* of daemons that had begun it */
    uint8_t state;            /* enum wharf_client_job_state */
    uint8_t is_private;       /* a call waits for this one itself: nobody else may take it */
    uint8_t was_published;    /* a daemon may have seen it */
    uint8_t is_unwanted;      /* to be cancelled */
    uint8_t is_cancel_sent;   /* and the running daemon has the CANCEL */
    uint8_t is_write_unknown; /* a daemon that is gone may have begun to write its file */
    /* The waiting call has returned: when the job ends, it is freed with its copies. */
    uint8_t is_abandoned;
    void *in_copy; /* of a private job: its copy in the arena, or NULL */
    void *out_copy;
};

/* A list of jobs, linked by slot numbers. */
struct wharf_client_job_list {
    uint32_t first;
    uint32_t last;
    uint32_t n;
};

/* The most calls of wharf_decompress at a time; others wait. */
enum { WHARF_CLIENT_MAX_PRIVATE = 64 };

struct wharf_client_jobs {
    struct wharf_client_job *table;
    uint32_t n_slots;
    uint32_t max_public; /* the most jobs that programs may have in flight */
    struct wharf_client_job_list free;
    struct wharf_client_job_list queued[4]; /* embedded: by enum wharf_class; else only [0] */
    struct wharf_client_job_list in_ring;   /* in the order of submission */
    struct wharf_client_job_list running;
    struct wharf_client_job_list done; /* finished public jobs */
    uint32_t n_public;                 /* not FREE and not private */
    uint32_t n_unwanted; /* jobs in the ring that have to be cancelled, without a CANCEL yet */
    uint32_t n_suspects; /* see replay.h */
};

/* Allocates slots for public and private jobs.  Returns 0 or -ENOMEM. */
int wharf_client_jobs_init(struct wharf_client_jobs *jobs, uint32_t max_public);

/* Frees the table with its jobs.  Takes a zeroed struct too. */
void wharf_client_jobs_deinit(struct wharf_client_jobs *jobs);

/* The number of a job's slot. */
static inline uint32_t wharf_client_job_slot(const struct wharf_client_jobs *jobs,
                                             const struct wharf_client_job *job)
{
    return (uint32_t)(job - jobs->table);
}

/* The first job of a list, or NULL. */
static inline struct wharf_client_job *
wharf_client_list_first(const struct wharf_client_jobs *jobs, const struct wharf_client_job_list *l)
{
    return l->n ? &jobs->table[l->first] : NULL;
}

/* The job after `job` on its list, or NULL. */
static inline struct wharf_client_job *wharf_client_list_next(const struct wharf_client_jobs *jobs,
                                                              const struct wharf_client_job *job)
{
    return job->next == WHARF_CLIENT_NO_JOB ? NULL : &jobs->table[job->next];
}

/* Appends a job, which is on no list. */
void wharf_client_list_append(struct wharf_client_jobs *jobs, struct wharf_client_job_list *list,
                              struct wharf_client_job *job);
void wharf_client_list_remove(struct wharf_client_jobs *jobs, struct wharf_client_job_list *list,
                              struct wharf_client_job *job);
/* Moves all of `from` to the front of `list`, in their order. */
void wharf_client_list_prepend_all(struct wharf_client_jobs *jobs,
                                   struct wharf_client_job_list *list,
                                   struct wharf_client_job_list *from);

/*
 * wharf_client_job_new: a zeroed job with a new tag, on no list.  NULL if all slots of its kind are
 * in use.
 */
struct wharf_client_job *wharf_client_job_new(struct wharf_client_jobs *jobs, int is_private);

/* wharf_client_job_free: frees the slot of a job that is on no list. */
void wharf_client_job_free(struct wharf_client_jobs *jobs, struct wharf_client_job *job);

/* The job with this tag, or NULL: a number from a daemon is not a trusted index. */
struct wharf_client_job *wharf_client_job_find(const struct wharf_client_jobs *jobs, uint64_t tag);

/* A tag that no job has. */
#define WHARF_CLIENT_CANCEL_TAG UINT64_MAX

/* After how many deaths of daemons a job is suspected, and is given up: see replay.h. */
enum { WHARF_CLIENT_SUSPECT_DEATHS = 3, WHARF_CLIENT_GIVE_UP_DEATHS = 8 };

static inline int wharf_client_is_suspect(const struct wharf_client_job *job)
{
    return job->n_deaths >= WHARF_CLIENT_SUSPECT_DEATHS;
}

#endif
