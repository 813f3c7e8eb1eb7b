/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h: an accepted submission, and the pieces in which engines run it.
 *
 * The core lock guards jobs.  While engines have pieces of a job, they read its submission, regions
 * and batch without the lock, because nothing changes these then.
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

struct wharf_idle_work;
struct wharf_session_model;
struct wharf_region;
struct wharf_session;

enum wharf_job_state {
    WHARF_JOB_FREE,
    WHARF_JOB_QUEUED,
    WHARF_JOB_RUNNING,
};

/* How a job ended. */
struct wharf_job_end {
    struct wharf_outcome outcome;
    uint32_t engine;    /* enum wharf_engine */
    uint32_t bad_chunk; /* of a batch that did not end OK */
    bool has_results;   /* a table of results was filled */
    uint64_t ended_ns;
};

/*
 * A job's words: done_word.h, starts.h.  What is known of the done word is here alone: nothing that
 * the client could write there is read back.
 */
struct wharf_job_words {
    struct wharf_region *done; /* where the word is; NULL: there is none */
    uint64_t done_offset;
    uint32_t done_serial;
    bool is_told; /* the word was written, or there is no memory for it */
    bool is_owed; /* the job has ended like this, and a worker writes the word next: */
    struct wharf_job_end end;
    struct wharf_region *start; /* where its start word is; NULL: there is none */
    const uint64_t *start_word;
    uint32_t start_serial;
    bool is_held;            /* the job waits for it */
    bool is_start_limit;     /* the job's deadline is that of its start word alone */
    uint64_t start_limit_ns; /* how long it may wait */
};

struct wharf_job {
    union {
        struct wharf_submission submission;
        struct wharf_completion completion; /* if it ended during a lease, in another thread */
    };
    struct wharf_session *session;
    struct wharf_list link;          /* in a queue, or not linked */
    struct wharf_list chains;        /* jobs that wait for its end: chains.h */
    struct wharf_heap_node deadline; /* in the core's heap, if it has one */
    struct wharf_region *source;     /* of a batch: the region of its table; NULL: it was refused */
    struct wharf_region *destination;  /* of a batch: the region of its results; NULL: none */
    struct wharf_session_model *model; /* the model that its parameter names; NULL: none */
    struct wharf_job_words *words;     /* those of its slot; NULL: it has none */
    struct wharf_batch *batch;         /* NULL until it is opened */
    uint64_t taken_ns;                 /* when the submission was taken */
    uint64_t begun_ns;                 /* when an engine started it */
    uint64_t estimate_ns;              /* of the next piece */
    uint64_t backlog_ns;               /* estimate of all its queued pieces */
    uint32_t index;                    /* of the submission in its ring */
    uint32_t next_free;                /* slot of the next free job of the session */
    uint32_t n_pieces;                 /* pieces that engines have */
    uint8_t state;                     /* enum wharf_job_state */
    uint8_t job_class;                 /* enum wharf_class, never DEFAULT */
    uint8_t lane;                      /* enum wharf_lane */
    uint8_t pool;                      /* enum wharf_pool, or NONE while it waits for memory */
    uint8_t why;                       /* enum wharf_placement, of pools CPU and GPU */
    uint8_t attempt;                   /* how often it was restarted, at most 255 */
    bool is_plain;                     /* a lease may include it: lease.h */
    bool is_chain;                     /* a batch whose table begins with a struct wharf_chain */
    uint8_t stopped; /* WHARF_CANCELLED or WHARF_DEADLINE: no more pieces start; else 0.
                        Also read without the lock. */
};

/* Whether it has ended but for its done word. */
static inline bool wharf_job_is_owed_word(const struct wharf_job *job)
{
    return job->words && job->words->is_owed;
}

static inline bool wharf_job_compresses(const struct wharf_job *job)
{
    return job->submission.flags & WHARF_JOB_COMPRESS;
}

/* It has no destination: that member is its source, where nothing may be written. */
static inline bool wharf_job_discards(const struct wharf_job *job)
{
    return job->submission.flags & WHARF_JOB_DISCARD;
}

/* Bytes of a batch's table that are not its chunks'. */
static inline uint64_t wharf_chain_nbytes(bool is_chain)
{
    return is_chain ? sizeof(struct wharf_chain) : 0;
}

/* How many chunks a batch has. */
static inline uint32_t wharf_job_n_chunks(const struct wharf_job *job)
{
    return (uint32_t)((job->submission.src_nbytes - wharf_chain_nbytes(job->is_chain)) /
                      sizeof(struct wharf_chunk));
}

/* The unit of work that an engine gets. */
enum wharf_piece_kind {
    WHARF_PIECE_CHUNK, /* the whole job */
    WHARF_PIECE_OPEN,  /* copy and check a batch's table */
    WHARF_PIECE_SLICE, /* some chunks of a batch */
    WHARF_PIECE_WORD,  /* write the done word of a job that has ended */
};

struct wharf_piece {
    enum wharf_piece_kind kind;
    struct wharf_job *job;
    uint32_t first_chunk;         /* of a slice */
    uint32_t n_chunks;            /* 1 unless it is a slice */
    uint8_t pool;                 /* enum wharf_pool that it came from */
    uint8_t attempt;              /* how often it was restarted because an engine died */
    struct wharf_idle_work *idle; /* where it counts as idle work (idle_work.h); NULL: nowhere */
    uint64_t estimate_ns;
    uint64_t charged_ns; /* so far */
    /* Filled by the engine. */
    uint32_t engine; /* enum wharf_engine; AUTO if none ran it */
    uint64_t begun_ns;
    uint64_t ended_ns;
    uint64_t others_ns; /* part of the time between that other pieces and programs used */
    uint64_t helped_ns; /* time that helpers used for it: split_decode.h */
    uint64_t warp_ns;   /* on a GPU: the sum of its warps' times; else 0 */
    uint8_t gpu;        /* the GPU that ran it */
    bool is_lost;    /* one of its files was lost before it ended.  The job gets no completion: its
                        session ends, and the client resubmits it */
    bool is_told;    /* its outcome is in its job's done word */
    bool is_crowded; /* others delayed it, so its time is no sample for estimates */
    uint64_t source_nbytes; /* of all chunks that ran, good or bad, for estimates */
    uint64_t capacity_nbytes;
    uint64_t in_nbytes; /* of good chunks */
    uint64_t out_nbytes;
    uint64_t file_in_nbytes; /* the part of in_nbytes that is in files */
    uint64_t file_out_nbytes;
    struct wharf_outcome outcome; /* of a slice: that of the first bad chunk, or sums */
    uint32_t bad_chunk;           /* its index in the batch, if the outcome is not OK */
    struct wharf_batch *batch;    /* result of OPEN, if good */
};

#endif
