/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: rings, regions and jobs of one connection.
 *
 * The loop thread creates and frees it; in between the core lock guards it.  The connection owns
 * its descriptors.
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

/* Memory that submissions can name while is_there is set.  GPU memory that the worker has not yet
 * imported has a region, but is not there. */
struct wharf_region {
    uint16_t number; /* 0: the arena, which is regions[0] or does not exist */
    bool is_there;
    bool read_only;
    bool write_only;  /* GPU memory without agreed sources, or a file that is not open for
                         reading */
    bool is_device;   /* a client's GPU memory, which only the worker can access */
    bool has_starts;  /* it can hold start words: read-only, sealed against holes, present */
    bool is_file;     /* a file of file_io; `segment` has only the size */
    uint32_t file;    /* its number in file_io */
    uint32_t n_users; /* jobs in flight that name it */
    struct wharf_segment segment;    /* for GPU memory only the size */
    struct wharf_gpu_memory *memory; /* NULL: no GPU can use it */
};

/* Whether only the GPU worker can run a chunk.  NULL: no such region. */
static inline bool wharf_regions_need_gpu(const struct wharf_region *source,
                                          const struct wharf_region *destination)
{
    return (source && source->is_device) || (destination && destination->is_device);
}

/* Whether a chunk has a file.  NULL: no such region. */
static inline bool wharf_regions_have_file(const struct wharf_region *source,
                                           const struct wharf_region *destination)
{
    return (source && source->is_file) || (destination && destination->is_file);
}

/* Whether some source of a job, or of its opened batch, is a file. */
static inline bool wharf_job_has_file_source(const struct wharf_job *job)
{
    return job->batch ? job->batch->has_file_source : job->source && job->source->is_file;
}

struct wharf_file_io;
struct wharf_gpu_memory;
struct wharf_lease;

enum wharf_session_state {
    WHARF_SESSION_LIVE,
    WHARF_SESSION_DRAINING, /* takes nothing more */
    WHARF_SESSION_DEAD,     /* publishes nothing more; waits until pieces and pins are gone */
};

/* A cancel in progress: it visits the jobs in several steps. */
struct wharf_session_cancel {
    bool is_under_way;
    uint32_t next_job;
    uint32_t n_found;
    uint64_t user_data;     /* of the jobs */
    uint64_t own_user_data; /* of the cancel itself */
};

/* When its ring is polled: activity.h and intake.h. */
struct wharf_session_activity {
    uint64_t active_ns;  /* when a submission was last taken, or a job done */
    uint64_t watch_ns;   /* how long after that its ring stays watched */
    bool comes_back;     /* its last pause was within the longest time that rings stay watched */
    bool is_interactive; /* its last job was in the interactive lane */
    bool is_watched;
    bool lingers;   /* stays watched longer than watch_ns, because all workers are busy */
    bool is_active; /* its tenant counts it as active */
    struct wharf_list stale_link; /* in the list of sessions that still count, but are not active */
    struct wharf_list watch_link;
};

/* Jobs that placement has not finished with: place.h. */
struct wharf_session_placing {
    struct wharf_list waiting; /* jobs whose memory is not registered yet */
    struct wharf_list due; /* of those, jobs for which that may have changed, and all later ones */
    struct wharf_list due_link; /* in the core's list of sessions that have such jobs */
    struct wharf_list held;     /* jobs that wait for their start words: starts.h */
    uint32_t n_held;
    struct wharf_list held_link; /* in its tenant's list of sessions that have such jobs */
    uint64_t whole_until_ns;     /* until then its chunks are not decoded in parts: place_parts.h */
};

struct wharf_session {
    uint64_t id;
    struct wharf_tenant *tenant;
    uint8_t state;         /* enum wharf_session_state */
    uint8_t default_class; /* a lane's class, never DEFAULT */
    uint8_t engine;        /* enum wharf_engine */
    bool is_broken;        /* the client broke the order of indices */
    uint8_t told;          /* bit i: the loop thread was told of enum wharf_session_news i */

    struct wharf_ring_daemon ring;
    struct wharf_segment c, d;
    bool ring_is_whole;  /* result of wharf_session_ring_is_whole; loop thread only */
    uint32_t ring_flags; /* as in D */
    int socket;          /* for wake-up packets */

    struct wharf_region *regions;
    uint32_t n_regions;        /* size of `regions` */
    uint32_t n_device_regions; /* regions that are GPU memory */
    bool has_decided;          /* the loop thread does not yet know the result of an import */

    struct wharf_file_io *file_io; /* NULL until a file is registered */

    struct wharf_session_model *models; /* number WHARF_FIRST_MODEL first */
    uint32_t n_models;                  /* size of `models` */

    struct wharf_job *jobs;        /* one for each entry of the ring */
    struct wharf_job_words *words; /* likewise, with done words; else NULL */
    uint32_t *slots;               /* of the last job of each entry, with chains; else NULL */
    uint32_t free_job;             /* index of the first free one; UINT32_MAX: none */
    uint32_t n_in_flight;          /* jobs that are not free */
    uint32_t n_plain;              /* of these: those with is_plain */
    uint32_t n_owed;               /* submissions by which its next looks are reduced, for jobs that
                                    * ended before they started */
    uint64_t max_job_nbytes;       /* as announced to its client */
    uint64_t max_batch_chunks;     /* likewise */
    /* likewise; 0: the client did not agree on compressing jobs */
    uint64_t max_compress_nbytes;
    uint64_t max_start_ns;     /* likewise; 0: the client did not agree on start words */
    uint64_t starts_nbytes;    /* of regions that can hold start words; the loop thread's */
    struct wharf_lease *lease; /* the current lease; NULL: none */
    struct wharf_lease *home;  /* the lease that had it last, and refers to it */
    uint32_t n_recalls;        /* callers that need it without a lease */
    struct wharf_session_cancel cancel;

    /* For the core. */
    uint32_t n_pieces;              /* pieces of its jobs that engines have */
    uint32_t n_pins;                /* threads that still have to wake the client, and places
                                     * that were left to reads of its files */
    struct wharf_list publish_link; /* completions are written, but not published */
    struct wharf_list event_link;   /* the loop thread has to look at it */
    struct wharf_list session_link; /* in the list of all */
    struct wharf_session_activity activity;
    struct wharf_session_placing placing;
    struct wharf_sched_session sched[WHARF_N_POOLS];

    struct wharf_use use; /* charged for it */
    void *connection;     /* for the loop thread */
};

/* Whether it is dead, and no engine or thread uses it. */
static inline bool wharf_session_is_unused(const struct wharf_session *session)
{
    return session->state == WHARF_SESSION_DEAD && session->n_pieces == 0 && session->n_pins == 0;
}

/* The engine that a CPU worker is for its jobs. */
static inline uint32_t wharf_session_cpu_engine(const struct wharf_session *session)
{
    return session->engine == WHARF_ENGINE_REFERENCE ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU;
}

/* A checked OpenQueueRequest. */
struct wharf_session_options {
    uint64_t id;
    uint32_t n_entries;
    uint64_t arena_nbytes;        /* 0: no arena, or the client brings one */
    struct wharf_segment *pooled; /* NULL, or the segment that becomes the arena, of exactly that
                                    size; its ownership passes in any case */
    int brought_fd;               /* a memfd that becomes the arena; -1: none */
    uint64_t brought_nbytes;
    uint32_t n_regions; /* the most regions, without the arena */
    uint32_t n_models;  /* the most models */
    uint64_t max_job_nbytes;
    uint64_t max_batch_chunks;
    uint64_t max_compress_nbytes;
    uint64_t max_start_ns;
    uint64_t generation;
    uint8_t default_class;
    uint8_t engine;
    bool has_marks;  /* D has marks of started jobs */
    bool has_words;  /* C has words of submissions */
    bool has_chains; /* batches can have outputs of earlier ones as sources */
};

/* The size of the arena that the daemon makes; 0: none. */
uint64_t wharf_session_arena_nbytes(const struct wharf_session_options *options);

/* The charge for a session with these options, without further regions. */
struct wharf_use wharf_session_use(const struct wharf_session_options *options);

/*
 * wharf_session_new: creates the rings and the arena.  The tenant has been charged.  The
 * descriptors of C, D and a new arena are open, to be sent.  Returns 0, -errno, or the result of
 * wharf_segment_adopt for a client's memfd.
 */
int wharf_session_new(const struct wharf_session_options *options, struct wharf_tenant *tenant,
                      struct wharf_session **ret_session);

/* Frees the session and its memory; for the reaper.  NULL and half-built sessions are allowed. */
void wharf_session_free(struct wharf_session *session);

/*
 * Whether the client has sealed C, so that nobody can punch holes into it.  A page fault in memory
 * that is being punched waits, and C is read under the core lock; so nothing may read C before it
 * is sealed.  For the loop thread, without the lock.
 */
bool wharf_session_ring_is_whole(struct wharf_session *session);

/* The charge for a region, in addition to its session's. */
struct wharf_use wharf_region_use(const struct wharf_region *region);

/* The region of that number, or NULL. */
struct wharf_region *wharf_session_region(struct wharf_session *session, uint32_t number);

/* The model of that number, or NULL. */
struct wharf_session_model *wharf_session_model(struct wharf_session *session, uint32_t number);

/* A free region, or NULL. */
struct wharf_region *wharf_session_region_place(struct wharf_session *session);

/* The estimates for such jobs. */
static inline struct wharf_estimates *wharf_job_estimates(const struct wharf_job *job)
{
    return wharf_tenant_estimates(job->session->tenant, job->submission.flags);
}

#endif
