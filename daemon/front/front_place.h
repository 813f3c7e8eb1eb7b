/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front_place.h: which engine runs a job.
 *
 * A queued job is in one of the pools of sched.h, or it waits for memory.  For jobs that any engine
 * may run, the one that would be done with it first gets it, by what each has to do and by what
 * such jobs have cost it before.  All under the front lock.
 */
#ifndef WHARF_DAEMON_FRONT_FRONT_PLACE_H
#define WHARF_DAEMON_FRONT_FRONT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/front/sched.h"
#include "daemon/gpu/gpu_list.h"
#include "proto/wharf_result.h"

struct wharf_front;
struct wharf_gpu_backend;
struct wharf_job;
struct wharf_piece;
struct wharf_session;

/* A queued job is in no pool while it waits for its memory to be made ready for the GPU. */
#define WHARF_POOL_NONE WHARF_N_POOLS

/*
 * What placement knows of one GPU and its worker.  Its backend keeps it up to date.  What concerns
 * several of them at once is in bits of the front's, one for each GPU: gpus_up and the like.
 */
struct wharf_gpu_view {
    uint32_t number;                   /* its place in front->gpus */
    char name[WHARF_GPU_NAME_NBYTES];  /* by which the configuration calls it */
    struct wharf_gpu_backend *backend; /* NULL: it is gone */
    int wake_fd;                       /* an eventfd, for the backend's thread */
    uint64_t busy_since_ns;            /* which is awake; WHARF_NEVER: it sleeps */
    struct wharf_list memories;        /* gpu_memory.h: all that it could use */
    uint32_t place;                    /* what its worker said of it; 0: nothing */
    bool may_come;                     /* there is a worker, or will be */
    bool is_lost;                      /* worker after worker does not get ready */
    bool is_alone;                     /* it has a suspect's item, and takes nothing beside it */
    uint32_t n_warps;                  /* that decode at the same time, at least 1 while it is up */
    uint64_t latency_ns;               /* from handing over a job of no size until it is noticed */
    uint32_t n_large, n_large_free;    /* its worker's places for large chunks */
    uint32_t n_in_flight;              /* items that the worker has */
    uint64_t in_flight_ns;             /* the time that warps will take for them, all together */
    uint64_t in_flight_nbytes;         /* of their sources and capacities */
    uint64_t flow_ps_per_kib; /* of which so much time passes for each KiB when there is plenty */
    int64_t lead_ns;          /* what pool ANY has had more of it than the GPUs' own pools */
    int64_t own_lead_ns;      /* what its own pool has had more of it than that of all GPUs */
    struct wharf_list models; /* gpu_models.h: that it has, the one used longest ago first */
    uint32_t most_models;     /* that it has places for */
    uint32_t n_models;        /* that are in use, and of how many tenants */
    uint32_t n_model_tenants;
    uint32_t n_leaving_models; /* that are being let go for others */
    uint64_t n_ups;            /* workers that have been ready */
    uint64_t n_ended;          /* workers that have ended, ready or not */
    uint64_t n_own_ends;       /* of these, by no SIGKILL of somebody else's */
    uint64_t n_chunks;         /* that it has decoded, good or bad */
    uint64_t busy_ns;          /* of its warps, for these */
    uint64_t away_ns;          /* for which these were away, each from when it was handed over */
    uint64_t out_nbytes;       /* that it has decoded to */
    uint64_t n_copied;         /* chunks whose output the copy engine took */
    uint64_t n_given_up;       /* chunks that it had for too long, which the CPU has done */
    uint64_t n_lost;           /* chunks that they had then */
    uint64_t n_large_chunks;   /* decoded in its places for large ones */
};

/* Whether its worker takes items. */
bool wharf_place_is_up(const struct wharf_front *front, uint32_t gpu);

/* Whether jobs of sessions that want this engine (enum wharf_engine) can go to the GPU now. */
bool wharf_place_has_gpu(const struct wharf_front *front, uint32_t engine);

/* How many jobs are queued, in all pools; and how many of them the CPU could take. */
uint32_t wharf_place_n_queued(const struct wharf_front *front);
uint32_t wharf_place_n_for_cpu(const struct wharf_front *front);

/* Whether every job that wharf_place_n_for_cpu counts is in pool ANY, so that all may turn out to
 * be the GPUs'. */
bool wharf_place_may_be_gpus(const struct wharf_front *front);

/* Tenants that have normal jobs; those with jobs in several pools count as often. */
uint32_t wharf_place_n_tenants(const struct wharf_front *front);

/* Whether there is a GPU that takes clients' own memory, or will be. */
bool wharf_place_may_import(const struct wharf_front *front);

/* Whether this GPU's thread has a reason to stay awake. */
bool wharf_place_wants_gpu(const struct wharf_front *front, uint32_t gpu);

/* Whether it has a free place for a large chunk, or has to refuse them since no GPU has any. */
bool wharf_place_may_take_large(const struct wharf_front *front, uint32_t gpu);

/* Bits of the GPUs whose threads are to be woken. */
uint32_t wharf_place_gpus_to_wake(const struct wharf_front *front);

/* The pool that a job belongs to now, or NONE. */
enum wharf_pool wharf_place_pool_of(const struct wharf_front *front, const struct wharf_job *job);

/* Puts a job into the pool that it belongs to now, at the end or at the beginning of its queue; or,
 * unless at_front, behind those of its session that are due. */
void wharf_place_push(struct wharf_front *front, struct wharf_job *job, bool at_front);
void wharf_place_remove(struct wharf_front *front, struct wharf_job *job);

/* Whether the CPU, which has got this job, may decode no chunk of it: its session wants the GPU
 * alone, which has no decoder for it.  And what becomes of chunks that it may not decode, these and
 * those whose output is to be in GPU memory.  By the engine that has a piece of it, without the
 * lock. */
bool wharf_place_is_refused(const struct wharf_front *front, const struct wharf_job *job);
struct wharf_outcome wharf_place_refusal(const struct wharf_front *front,
                                         const struct wharf_job *job);

/* Forgets all queued jobs of a session, without touching them. */
void wharf_place_drop(struct wharf_front *front, struct wharf_session *session);

/*
 * Memory of the session has become ready, or will not: jobs that waited for it are due, and what is
 * pushed meanwhile is behind them.  There can be as many as the session has entries, so some are
 * placed each time that the lock is given back (wharf_place_due): sessions in turn, each one's jobs
 * in their order.
 */
void wharf_place_look_again(struct wharf_front *front, struct wharf_session *session);

/* Places up to 64 of these, under the lock; more may be left in front->due. */
void wharf_place_due(struct wharf_front *front);

/* ---- place_pick.c -------------------------------------------------------------------------- */

/* The next job for the CPU, or for this GPU, which stays in its queue; NULL if there is none.
 * most_ns: as in wharf_sched_first. */
struct wharf_job *wharf_place_first_for_cpu(struct wharf_front *front, uint64_t most_ns);
struct wharf_job *wharf_place_first_for_gpu(struct wharf_front *front, uint32_t gpu);

/* The next job for one of its places for large chunks. */
struct wharf_job *wharf_place_first_large(struct wharf_front *front, uint32_t gpu);

/* A GPU is full: what it leaves may be for another one, which sleeps. */
void wharf_place_pass_on(struct wharf_front *front);

/* A piece was taken by the CPU, or by a GPU.  They serve several pools each by turns: counts why,
 * and what one of these has had more than another while both had jobs. */
void wharf_place_took_by_cpu(struct wharf_front *front, const struct wharf_piece *piece);
void wharf_place_took_by_gpu(struct wharf_front *front, const struct wharf_piece *piece,
                             uint32_t gpu);

/* ---- front_cost.c -------------------------------------------------------------------------- */

/* Whether some output of a job goes to a client's own GPU memory: then the CPU cannot run it. */
bool wharf_place_needs_gpu(const struct wharf_job *job);

/* What there is to do of a job next, and what a processor takes for it in the mean. */
struct wharf_next_chunk {
    uint64_t in_nbytes, out_nbytes;
    uint64_t cpu_ns;
};
struct wharf_next_chunk wharf_place_next_chunk(const struct wharf_job *job);

/* What a GPU would take for it from now on, until it is known to be done. */
uint64_t wharf_place_trip_ns(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                             const struct wharf_next_chunk *next);

/* Whether a GPU can be given more: what it has keeps its warps busy for less than `ahead`. */
bool wharf_place_gpu_has_room(const struct wharf_front *front, uint32_t gpu);

/* A piece's way to the GPU and back. */
struct wharf_gpu_trip {
    uint64_t elapsed_ns;  /* from handing over until the last chunk was completed */
    uint64_t decode_ns;   /* the longest that one of its chunks was decoded */
    uint64_t estimate_ns; /* that warps were expected to take for them, together */
    uint64_t nbytes;      /* the most that was in flight with it, of sources and capacities */
    uint32_t n_there;     /* chunks that were in flight when it was handed over, its own included */
};

/* A piece has come back from the GPU, all of it decoded there: teaches what passes through the GPU
 * and the way to it when warps are not what jobs wait for, and finds out whether that is why it
 * took so long. */
void wharf_place_learn_trip(struct wharf_gpu_view *gpu, struct wharf_piece *piece,
                            const struct wharf_gpu_trip *trip);

/* A piece of the job was taken back from that GPU: what it takes there is at least that. */
void wharf_place_learn_too_long(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_gpu_trip *trip);

/* A piece is done, by whom ever, for which it took so long: teaches what its kind takes there, and
 * what passes. */
void wharf_place_learn(struct wharf_front *front, const struct wharf_piece *piece,
                       uint64_t took_ns);

/* The time that so many bytes take together on that way. */
uint64_t wharf_place_flow_ns(const struct wharf_gpu_view *gpu, uint64_t nbytes);

/* How long one warp of that GPU will take for a chunk of this job's codec. */
uint64_t wharf_place_warp_ns(uint32_t gpu, const struct wharf_job *job, uint64_t in_nbytes,
                             uint64_t out_nbytes);

#endif
