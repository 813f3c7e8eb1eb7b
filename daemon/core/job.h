/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h: a submission that was taken and found good, and the pieces in which engines do it.
 *
 * Jobs are guarded by the core lock.  While pieces of a job are with engines, these read its
 * submission, regions and batch without the lock: nobody changes them then.
 */
#ifndef WHARF_DAEMON_CORE_JOB_H
#define WHARF_DAEMON_CORE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/batch.h"
#include "daemon/core/queues.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

struct wharf_session_model;
struct wharf_region;
struct wharf_session;

enum wharf_job_state {
    WHARF_JOB_FREE,
    WHARF_JOB_QUEUED,
    WHARF_JOB_RUNNING,
};

struct wharf_job {
    union {
        struct wharf_submission submission;
        struct wharf_completion completion; /* of one that has ended during a lease of others */
    };
    struct wharf_session *session;
    struct wharf_list link;            /* in a queue, or in none */
    struct wharf_heap_node deadline;   /* in the core's heap, if it has one */
    struct wharf_region *source;       /* of a batch, where its table is */
    struct wharf_region *destination;  /* likewise, its results; NULL if they are not wanted */
    struct wharf_session_model *model; /* that its parameter stands for; NULL: none */
    struct wharf_batch *batch;         /* once it was opened */
    uint64_t taken_ns;                 /* when the submission was taken */
    uint64_t begun_ns;                 /* when an engine began it */
    uint64_t estimate_ns;              /* of the next piece */
    uint64_t backlog_ns;               /* of all that is queued of it */
    uint32_t index;                    /* of the submission, in its ring */
    uint32_t next_free;                /* slot of the next free job of the session */
    uint32_t n_pieces;                 /* that engines have */
    uint8_t state;                     /* enum wharf_job_state */
    uint8_t job_class;                 /* enum wharf_class, never DEFAULT */
    uint8_t lane;                      /* enum wharf_lane */
    uint8_t pool;                      /* enum wharf_pool, or NONE while it waits for memory */
    uint8_t why;                       /* enum wharf_placement, of pools CPU and GPU */
    uint8_t attempt;                   /* how often it was begun anew; stays at 255 */
    bool is_plain;                     /* lease.h: a worker may have it without the core lock */
    uint8_t stopped; /* WHARF_CANCELLED or WHARF_DEADLINE: nothing more of it is begun; else 0.
                        Read without the lock too. */
};

static inline bool wharf_job_compresses(const struct wharf_job *job)
{
    return job->submission.flags & WHARF_JOB_COMPRESS;
}

/* What an engine gets to do at once. */
enum wharf_piece_kind {
    WHARF_PIECE_CHUNK, /* the whole job */
    WHARF_PIECE_OPEN,  /* copy and check a batch's table */
    WHARF_PIECE_SLICE, /* some chunks of a batch */
};

struct wharf_piece {
    enum wharf_piece_kind kind;
    struct wharf_job *job;
    uint32_t first_chunk; /* of a slice */
    uint32_t n_chunks;    /* 1 if it is no slice */
    uint8_t pool;         /* enum wharf_pool that it came from */
    uint8_t attempt;      /* how often it was begun anew because an engine died */
    uint64_t estimate_ns;
    uint64_t charged_ns; /* so far */
    /* Filled by the engine. */
    uint32_t engine; /* enum wharf_engine; AUTO if nothing was run */
    uint64_t begun_ns;
    uint64_t ended_ns;
    uint64_t others_ns; /* of the time between, what other pieces and programs have had */
    uint64_t helped_ns; /* that other workers have used for it: split_decode.h */
    uint64_t warp_ns;   /* on a GPU: the time of its warps, together; else 0 */
    uint8_t gpu;        /* which one that was */
    bool is_lost;       /* a file of it is, before it came to an end: the job gets no completion,
                           since its session ends, and its client submits it again */
    bool is_crowded;    /* which was that long since others were in the way: tells nothing */
    uint64_t source_nbytes; /* of all that was run, good or bad: what estimates are made of */
    uint64_t capacity_nbytes;
    uint64_t in_nbytes; /* of what was decoded well */
    uint64_t out_nbytes;
    struct wharf_outcome outcome; /* of a slice, its first bad chunk's, or sums */
    uint32_t bad_chunk;           /* if the outcome is not OK, of a batch */
    struct wharf_batch *batch;    /* of OPEN, if it is good */
};

#endif
