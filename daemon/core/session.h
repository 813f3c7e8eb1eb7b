/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: rings, regions and jobs of one connection.
 *
 * Made and freed by the loop thread; between, guarded by the core lock.  Its descriptors are the
 * connection's.
 */
#ifndef WHARF_DAEMON_CORE_SESSION_H
#define WHARF_DAEMON_CORE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/segment.h"
#include "daemon/core/session_model.h"
#include "daemon/core/tenant.h"
#include "proto/ring_ops.h"
#include "proto/wharf_job.h"

/* Memory that submissions can name, once it is there; GPU memory that the worker has not imported
 * yet has a place, and is not. */
struct wharf_region {
    uint16_t number; /* 0: the arena, which is regions[0] or does not exist */
    bool is_there;
    bool read_only;
    bool write_only;              /* GPU memory of a client that did not agree on sources there, or
                                     a file that is not open for reading */
    bool is_device;               /* a client's own GPU memory: the worker alone can reach it */
    bool is_file;                 /* of the session's file_io; its segment has the size alone */
    uint32_t file;                /* which it is, there */
    uint32_t n_users;             /* jobs in flight that name it */
    struct wharf_segment segment; /* of GPU memory the size alone */
    struct wharf_gpu_memory *memory; /* NULL: the GPU cannot have it */
};

/* Whether a chunk is for the worker alone.  NULL: it has none. */
static inline bool wharf_regions_need_gpu(const struct wharf_region *source,
                                          const struct wharf_region *destination)
{
    return (source && source->is_device) || (destination && destination->is_device);
}

/* Whether a chunk is for the CPU's workers alone, which can wait for a file.  NULL: it has none. */
static inline bool wharf_regions_have_file(const struct wharf_region *source,
                                           const struct wharf_region *destination)
{
    return (source && source->is_file) || (destination && destination->is_file);
}

struct wharf_file_io;
struct wharf_gpu_memory;
struct wharf_lease;

enum wharf_session_state {
    WHARF_SESSION_LIVE,
    WHARF_SESSION_DRAINING, /* takes nothing more */
    WHARF_SESSION_DEAD,     /* publishes nothing more; waits for pieces and pins */
};

/* A cancel that goes through the jobs, some at a time. */
struct wharf_session_cancel {
    bool is_under_way;
    uint32_t next_job;
    uint32_t n_found;
    uint64_t user_data;     /* of the jobs */
    uint64_t own_user_data; /* of the cancel itself */
};

/* When its ring is looked at: activity.h and intake.h. */
struct wharf_session_activity {
    uint64_t active_ns;  /* when something was last taken or done */
    uint64_t watch_ns;   /* how long after that its ring is watched */
    bool comes_back;     /* the last time, within the longest time that rings are watched */
    bool is_interactive; /* the last job that it was given is in that lane */
    bool is_watched;
    bool lingers;                 /* is watched for longer than that, since all workers are busy */
    bool is_active;               /* counted as such by its tenant */
    struct wharf_list stale_link; /* still counted, though it is not active any more */
    struct wharf_list watch_link;
};

/* Its jobs on their way to engines: place.h. */
struct wharf_session_placing {
    struct wharf_list waiting;  /* jobs whose memory is not ready for the GPU yet */
    struct wharf_list due;      /* those of which that may have changed, and what came later */
    struct wharf_list due_link; /* in the core's list of sessions that have such jobs */
    uint64_t whole_until_ns;    /* its chunks are not decoded in parts: place_parts.h */
};

struct wharf_session {
    uint64_t id;
    struct wharf_tenant *tenant;
    uint8_t state;         /* enum wharf_session_state */
    uint8_t default_class; /* a lane's class, never DEFAULT */
    uint8_t engine;        /* enum wharf_engine */
    bool is_broken;        /* the client broke the order of indices */
    uint8_t told;          /* bit i: the loop thread knows of enum wharf_session_news i */

    struct wharf_ring_daemon ring;
    struct wharf_segment c, d;
    bool ring_is_whole;  /* what wharf_session_ring_is_whole found; the loop thread's */
    uint32_t ring_flags; /* as in D */
    int socket;          /* for wake-up packets */

    struct wharf_region *regions;
    uint32_t n_regions;        /* places there are, used or not */
    uint32_t n_device_regions; /* regions that are GPU memory */
    bool has_decided; /* of one of them, the loop thread does not know yet what became of it */

    struct wharf_file_io *file_io; /* once a file was registered; else NULL */

    struct wharf_session_model *models; /* number WHARF_FIRST_MODEL first */
    uint32_t n_models;                  /* places there are, used or not */

    struct wharf_job *jobs;    /* one for each entry of the ring */
    uint32_t free_job;         /* the first free one; UINT32_MAX: none */
    uint32_t n_in_flight;      /* jobs that are not free */
    uint32_t n_plain;          /* of these, is_plain */
    uint32_t n_owed;           /* submissions that its next looks take fewer, for jobs that ended
                                * before they were begun */
    uint64_t max_job_nbytes;   /* as its client was told */
    uint64_t max_batch_chunks; /* likewise */
    /* likewise; 0: jobs that compress were not agreed on */
    uint64_t max_compress_nbytes;
    struct wharf_lease *lease; /* the worker's that has it; NULL: none */
    struct wharf_lease *home;  /* the worker's that had it last, and refers to it */
    uint32_t n_recalls;        /* who needs it to have none */
    struct wharf_session_cancel cancel;

    /* The core's. */
    uint32_t n_pieces;              /* of its jobs, that engines have */
    uint32_t n_pins;                /* threads that still have to wake the client */
    struct wharf_list publish_link; /* completions are written, but not published */
    struct wharf_list event_link;   /* the loop thread has to look at it */
    struct wharf_list session_link; /* in the list of all */
    struct wharf_session_activity activity;
    struct wharf_session_placing placing;
    struct wharf_sched_session sched[WHARF_N_POOLS];

    struct wharf_use use; /* charged for it */
    void *connection;     /* the loop thread's */
};

/* Whether it is over, and no engine has a piece of it, nor any thread anything to do with it. */
static inline bool wharf_session_is_unused(const struct wharf_session *session)
{
    return session->state == WHARF_SESSION_DEAD && session->n_pieces == 0 && session->n_pins == 0;
}

/* The engine that a processor is for its jobs. */
static inline uint32_t wharf_session_cpu_engine(const struct wharf_session *session)
{
    return session->engine == WHARF_ENGINE_REFERENCE ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU;
}

/* What OpenQueueRequest asks for, after it was checked. */
struct wharf_session_options {
    uint64_t id;
    uint32_t n_entries;
    uint64_t arena_nbytes;        /* 0: no arena, or one that is brought */
    struct wharf_segment *pooled; /* NULL, or what becomes the arena, of exactly that size: taken
                                    over in any case */
    int brought_fd;               /* a memfd that becomes the arena; -1: none */
    uint64_t brought_nbytes;
    uint32_t n_regions; /* the most that can be registered, the arena not counted */
    uint32_t n_models;  /* likewise */
    uint64_t max_job_nbytes;
    uint64_t max_batch_chunks;
    uint64_t max_compress_nbytes;
    uint64_t generation;
    uint8_t default_class;
    uint8_t engine;
    bool has_marks; /* D tells what is begun */
};

/* The size of the arena that the daemon makes for it; 0: none. */
uint64_t wharf_session_arena_nbytes(const struct wharf_session_options *options);

/* What a session of these options costs before any other region is registered. */
struct wharf_use wharf_session_use(const struct wharf_session_options *options);

/*
 * wharf_session_new: makes the rings and the arena.  The tenant has been charged.  The descriptors
 * of C, D and an arena that it made are open for being sent.  Returns 0, -errno, or what
 * wharf_segment_adopt says of a memfd that is brought.
 */
int wharf_session_new(const struct wharf_session_options *options, struct wharf_tenant *tenant,
                      struct wharf_session **ret_session);

/* Frees the memory too: what the reaper does.  NULL and half-made ones are allowed. */
void wharf_session_free(struct wharf_session *session);

/*
 * Whether the client has sealed C, so that nobody can punch holes into it any more: a page fault in
 * memory that is being punched waits until that is done, and C is looked at under the core lock.
 * Before that nothing may look at it.  For the loop thread, without the lock.
 */
bool wharf_session_ring_is_whole(struct wharf_session *session);

/* What is charged for a region besides what its session cost at first. */
struct wharf_use wharf_region_use(const struct wharf_region *region);

/* The region of that number, or NULL. */
struct wharf_region *wharf_session_region(struct wharf_session *session, uint32_t number);

/* The model of that number, or NULL. */
struct wharf_session_model *wharf_session_model(struct wharf_session *session, uint32_t number);

/* A place for one more region, or NULL. */
struct wharf_region *wharf_session_region_place(struct wharf_session *session);

/* What is known of how long such jobs take. */
static inline struct wharf_estimates *wharf_job_estimates(const struct wharf_job *job)
{
    return wharf_tenant_estimates(job->session->tenant, job->submission.flags);
}

#endif
