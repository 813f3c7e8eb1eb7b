/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front_place.h: which engine runs a job.
 *
 * A queued job is in one of the pools of sched.h, or it waits for memory.  For jobs that any engine
 * may run, the one that would be done with it first gets it, by what each has to do and by what
 * such jobs have cost it before.  All under the front lock.
 */
#ifndef WHARF_DAEMON_FRONT_PLACE_H
#define WHARF_DAEMON_FRONT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched.h"
#include "proto/wharf_result.h"

struct wharf_front;
struct wharf_job;
struct wharf_piece;
struct wharf_session;

/* A queued job is in no pool while it waits for its memory to be made ready for the GPU. */
#define WHARF_POOL_NONE WHARF_N_POOLS

/* What placement knows of the GPU and its worker.  Its backend keeps it up to date. */
struct wharf_gpu_view {
    uint32_t engine;       /* enum wharf_engine: GPU or SIMT; AUTO: there is none, nor will be */
    bool is_up;            /* its worker takes items */
    bool looks;            /* the backend's thread is awake and looks at the rings */
    bool is_wanted;        /* the backend's thread has something to look at */
    uint32_t n_stopped;    /* jobs that were stopped while an engine had pieces of them */
    bool has_left;         /* a thread of the CPU left a job to it */
    bool may_import;       /* clients may register GPU memory: there is a worker, or will be */
    bool is_lost;          /* worker after worker does not get ready */
    bool has_dead;         /* clients have given GPU memory up */
    uint64_t codecs;       /* bit i: it decodes codec i */
    uint32_t n_warps;      /* that decode at the same time, at least 1 while it is up */
    uint64_t latency_ns;   /* from handing over a job of no size until it is noticed */
    uint32_t n_in_flight;  /* items that the worker has */
    uint64_t in_flight_ns; /* the time that warps will take for them, all together */
    uint64_t in_flight_nbytes; /* of their sources and capacities */
    uint64_t flow_ps_per_kib;  /* of which so much time passes for each KiB when there is plenty */
    uint64_t pinned_nbytes;    /* memory of clients that it has */
    uint64_t n_ended;          /* workers that have ended */
    uint64_t n_copied;         /* chunks whose output the copy engine took */
    uint64_t n_lost;           /* chunks that they had then */
};

/* Whether jobs of sessions that want this engine (enum wharf_engine) can go to the GPU now. */
bool wharf_place_has_gpu(const struct wharf_front *front, uint32_t engine);

/* How many jobs are queued, in all pools; and how many of them the CPU could take. */
uint32_t wharf_place_n_queued(const struct wharf_front *front);
uint32_t wharf_place_n_for_cpu(const struct wharf_front *front);

/* Tenants that have normal jobs; those with jobs in several pools count as often. */
uint32_t wharf_place_n_tenants(const struct wharf_front *front);

/* Whether the GPU's thread has a reason to be awake. */
bool wharf_place_wants_gpu(const struct wharf_front *front);

/* Puts a job into the pool that it belongs to now, at the end or at the beginning of its queue. */
void wharf_place_push(struct wharf_front *front, struct wharf_job *job, bool at_front);
void wharf_place_remove(struct wharf_front *front, struct wharf_job *job);

/* What becomes of a chunk of this job that the CPU has got and whose output is to be in GPU memory.
 * By the engine that has a piece of it, without the lock. */
struct wharf_outcome wharf_place_refusal(const struct wharf_job *job);

/* Forgets all queued jobs of a session, without touching them. */
void wharf_place_drop(struct wharf_front *front, struct wharf_session *session);

/* Memory of the session has become ready, or will not: jobs that waited for it go on. */
void wharf_place_waiting(struct wharf_front *front, struct wharf_session *session);

/* The next job for the CPU, or for the GPU, which stays in its queue; NULL if there is none.
 * most_ns: as in wharf_sched_first. */
struct wharf_job *wharf_place_first_for_cpu(struct wharf_front *front, uint64_t most_ns);
struct wharf_job *wharf_place_first_for_gpu(struct wharf_front *front);

/* A piece was taken by the GPU or the CPU, which serve two pools each by turns: counts why, and
 * what ANY has had more than the engine's own pool while both had jobs. */
void wharf_place_took(struct wharf_front *front, const struct wharf_piece *piece, bool is_gpu);

/* Whether the GPU can be given more: what it has keeps its warps busy for less than `ahead`. */
bool wharf_place_gpu_has_room(const struct wharf_front *front);

/* A piece's way to the GPU and back. */
struct wharf_gpu_trip {
    uint64_t elapsed_ns;  /* from handing over until the last chunk was completed */
    uint64_t decode_ns;   /* the longest that one of its chunks was decoded */
    uint64_t estimate_ns; /* that warps were expected to take for them, together */
    uint64_t nbytes;      /* the most that was in flight with it, of sources and capacities */
};

/* A piece has come back from the GPU, all of it decoded there: teaches what passes through the GPU
 * and the way to it when warps are not what jobs wait for, and finds out whether that is why it
 * took so long. */
void wharf_place_learn_trip(struct wharf_gpu_view *gpu, struct wharf_piece *piece,
                            const struct wharf_gpu_trip *trip);

/* A piece is done, by whom ever, for which it took so long: teaches what its kind takes there, and
 * what passes. */
void wharf_place_learn(struct wharf_front *front, const struct wharf_piece *piece,
                       uint64_t took_ns);

/* The time that so many bytes take together on that way. */
uint64_t wharf_place_flow_ns(const struct wharf_gpu_view *gpu, uint64_t nbytes);

/* How long one warp will take for a chunk of this job's codec. */
uint64_t wharf_place_warp_ns(const struct wharf_job *job, uint64_t in_nbytes, uint64_t out_nbytes);

#endif
