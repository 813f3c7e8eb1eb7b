/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h: the daemon's centre: rings are watched, jobs queued, picked, completed and published
 * here.
 *
 * DESIGN.md explains the front lock and the invariant about watched and armed sessions.  Functions
 * are called under the lock, between wharf_front_enter and wharf_front_leave, unless they say
 * otherwise.
 */
#ifndef WHARF_DAEMON_FRONT_FRONT_H
#define WHARF_DAEMON_FRONT_FRONT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/control/session.h"
#include "daemon/control/tenant.h"
#include "daemon/front/backend.h"
#include "daemon/front/front_place.h"
#include "daemon/front/job.h"
#include "daemon/front/sched.h"
#include "daemon/gpu/gpu_room.h"
#include "daemon/gpu/gpu_spares.h"

struct wharf_loop;

struct wharf_front {
    pthread_mutex_t lock;
    struct wharf_loop *loop;
    struct wharf_backend *backend; /* the CPU's */
    struct wharf_gpu_view gpus[WHARF_MAX_GPUS];
    uint32_t n_gpus;             /* that there are, or may be */
    pthread_cond_t gpus_changed; /* what became of a worker */
    uint32_t gpu_engine;         /* enum wharf_engine: GPU or SIMT; AUTO: none, nor will be */
    uint64_t gpu_codecs;         /* bit i: workers decode codec i; 0: none was ready yet */
    uint32_t gpus_up;            /* bits: whose worker takes items */
    uint32_t gpus_asleep;        /* whose thread sleeps */
    uint32_t gpus_looking;       /* whose thread is awake and looks at the rings */
    uint32_t gpus_wanted;        /* whose thread has something to look at */
    uint32_t gpus_left;          /* whom a thread of the CPU left a job to */
    uint32_t gpus_called;        /* whose thread is woken when the lock is left */
    bool gpu_was_up;             /* some worker has been ready: what engines take is known */
    uint32_t n_stopped;          /* jobs that were stopped while an engine had pieces of them */
    int promise_fd;              /* the lock of Hello's promise, for workers; -1: none */
    struct wharf_list memories;  /* gpu_memory.h: all that a GPU could use */
    struct wharf_list unheld;    /* GPU memory that was given up and that no worker has */
    uint32_t last_memory;
    uint32_t n_gpu_tenants;    /* that have items with GPUs */
    uint64_t n_parted_chunks;  /* that GPUs have decoded in parts */
    uint64_t n_parts;          /* in so many */
    uint64_t n_parts_refused;  /* chunks that could not be decoded so, and were decoded whole */
    uint64_t pinned_nbytes;    /* of which GPUs have so much, each byte counted once */
    uint64_t dead_nbytes;      /* of that, what nobody uses any more */
    struct wharf_list orphans; /* pieces that a worker of a GPU left; gpu_rescue.c */
    uint32_t n_orphans;
    struct wharf_list held_orphans; /* of these, those of tenants that were suspended */
    uint32_t n_held_orphans;
    struct wharf_gpu_spares spares;
    struct wharf_gpu_room room;
    struct wharf_config config; /* as the loop thread last gave it */
    uint64_t generation;
    /* What statistics tell of the daemon. */
    double started_s;      /* Unix time */
    double configured_s;   /* when the configuration was last read well, likewise */
    bool has_bad_config;   /* what was read last was refused */
    uint32_t n_gpus_there; /* that the machine shows, or the configuration names */
    bool is_draining;

    struct wharf_tenants tenants;
    struct wharf_list sessions; /* all that are not freed */
    struct wharf_list watched;  /* whose rings are looked at without being rung for */
    struct wharf_list leases;   /* lease.h: that there are, the oldest first */
    struct wharf_list unpublished;
    struct wharf_list shares; /* share.h: chunks that idle workers can help with */
    struct wharf_list stale;  /* sessions that are counted as active and are not */
    struct wharf_list events; /* sessions that the loop thread has to look at */
    struct wharf_sched sched[WHARF_N_POOLS];
    struct wharf_list suspended;                /* tenants whose jobs are not begun for a while */
    char newly_stuck[WHARF_CONFIG_NAME_NBYTES]; /* a tenant that the loop thread has to name; or ""
                                                 */
    bool is_watched_over;        /* the loop thread looks whether workers are stuck */
    uint32_t n_waiting;          /* jobs that wait for memory, or are due */
    struct wharf_list due;       /* sessions with jobs that may have to wait no longer */
    uint64_t active_weight;      /* of tenants that have active sessions */
    int64_t cpu_lead_ns;         /* what pool ANY has had more of the CPU than its own one */
    struct wharf_heap deadlines; /* of jobs */
    uint64_t loop_wakes_at_ns;   /* when the loop thread will look at them by itself */
    /* To be done when the lock is left. */
    bool wake_loop;
    void *called[2]; /* threads of engines */
    uint32_t n_called;

    /* The engine's threads.  One that is awake looks at the rings before it does anything long. */
    uint32_t n_workers;
    uint32_t n_awake; /* looking, or called and soon looking */
    uint32_t n_short; /* doing something that is not estimated to be long */
    uint32_t n_long;  /* doing something that is */
    uint32_t n_brief; /* of the short ones, those that look at the rings within some 100 us */
    uint32_t n_stuck; /* of the long ones, those whom a client's memory keeps waiting */
    uint32_t n_sleeping;
    uint32_t n_lingering;     /* sessions that linger */
    bool nothing_fits;        /* what is queued cannot be begun now */
    uint64_t n_shared_chunks; /* that several workers could decode together */
    uint64_t n_shared_ranges; /* in so many ranges of parts */
    uint64_t n_helped_ranges; /* of which others than the chunk's worker took so many */

    /* Looked at without the lock all the time, so on a cache line of their own. */
    _Alignas(64) uint32_t n_gpus_coming; /* threads of GPUs that want the lock */
    uint32_t n_urgent_wakes;             /* of clients that had interactive jobs */
};

/* gpu_rescue.c: a piece that a worker of the GPU left behind, for a thread of the CPU; whether
 * there is one. */
bool wharf_gpu_orphan_take(struct wharf_front *front, struct wharf_piece *ret_piece);

/* A tenant is suspended no more: what was left of its jobs can be taken. */
void wharf_gpu_orphans_resume(struct wharf_front *front);

/* What became of a session, for the loop thread. */
enum wharf_session_news {
    WHARF_SESSION_IS_BROKEN,   /* the client broke the order of indices */
    WHARF_SESSION_IS_DRAINED,  /* all that it took is published */
    WHARF_SESSION_HAS_DECIDED, /* it is known what becomes of GPU memory; again and again */
    WHARF_SESSION_IS_FREE,     /* dead, and nobody uses it any more */
};

/* `config` is copied; its lists stay the caller's.  Returns 0 or -errno; deinit is good either way.
 * Without the lock. */
int wharf_front_init(struct wharf_front *front, const struct wharf_config *config,
                     struct wharf_loop *loop);
void wharf_front_deinit(struct wharf_front *front);

/*
 * Take and give back the front lock.  Leaving publishes what was completed, sees to it that
 * somebody looks at the rings, and wakes clients, workers and the loop, with the lock already given
 * back.
 */
void wharf_front_enter(struct wharf_front *front);
/* For the thread of a GPU, which has work for as many warps as all others together: those let it go
 * first. */
void wharf_front_enter_first(struct wharf_front *front);
void wharf_front_leave(struct wharf_front *front);

/* wharf_tenant_charge and wharf_tenant_give_back for those who have not the lock. */
int wharf_front_charge(struct wharf_front *front, struct wharf_tenant *tenant,
                       const struct wharf_use *use, const char **ret_text);
void wharf_front_give_back(struct wharf_front *front, struct wharf_tenant *tenant,
                           const struct wharf_use *use);

/* ---- for the loop thread ------------------------------------------------------------------- */

/* Its ring is not looked at before wharf_front_rung: its client has been told to ring. */
void wharf_front_add_session(struct wharf_front *front, struct wharf_session *session);

/* The session's client has sent packets, of which so many are counted now: look at its ring, which
 * is whole (wharf_session_ring_is_whole).  Returns whether there was need to. */
bool wharf_front_rung(struct wharf_front *front, struct wharf_session *session, uint32_t n_packets);

/* Takes nothing more; the news is IS_DRAINED, once.  False: a worker that is stuck has it. */
bool wharf_front_drain_session(struct wharf_front *front, struct wharf_session *session);

/* Sees to it that no worker has the session to itself, until it is let go; gives up the lock
 * meanwhile.  False: a worker has it that is stuck; it is not to be let go. */
bool wharf_front_recall(struct wharf_front *front, struct wharf_session *session);
static inline void wharf_front_let_go(struct wharf_session *session)
{
    session->n_recalls--;
}

/* Takes the lock so that no worker has the session to itself, for a change of its regions or
 * models.  0; or -ETIME without the lock: a worker has it that is stuck. */
int wharf_front_enter_alone(struct wharf_front *front, struct wharf_session *session);
void wharf_front_leave_alone(struct wharf_front *front, struct wharf_session *session);

/* A region or model is taken away from the session, with `use` that it was charged: leaves there
 * what is to be given back when its segment is freed.  Under the lock. */
void wharf_front_part_with(struct wharf_front *front, struct wharf_session *session,
                           struct wharf_gpu_memory *memory, struct wharf_use *use);

/* Ends all leases that there are, of that tenant unless it is NULL, one after the other, but for
 * those of workers that are stuck: what was done is counted then.  For any thread. */
void wharf_front_recall_all(struct wharf_front *front, const struct wharf_tenant *tenant);

/* Sets the flag CPU_ONLY in its ring, or takes it back: whether its jobs have a GPU at present. */
void wharf_front_tell_cpu_only(struct wharf_front *front, struct wharf_session *session);

/* Its client is told, in D, not to go on with its arena.  Without the lock. */
void wharf_front_forfeit_session(struct wharf_front *front, struct wharf_session *session);

/* The session is over: nothing more is published.  The news is IS_FREE, once.  Without the lock. */
void wharf_front_kill_session(struct wharf_front *front, struct wharf_session *session);

/* The loop thread is to look at what became of GPU memory of the session. */
void wharf_front_tell_decided(struct wharf_front *front, struct wharf_session *session);

/* The next session that there is news of, and which; NULL: no more. */
struct wharf_session *wharf_front_next_news(struct wharf_front *front,
                                            enum wharf_session_news *ret_news);

/* Does what is due: rings that nobody else looks at, deadlines.  Returns when the loop thread has
 * to come again for deadlines, or WHARF_NEVER.  Without the lock. */
uint64_t wharf_front_serve(struct wharf_front *front);

/* ---- for engines --------------------------------------------------------------------------- */

/* Looks at some rings and at deadlines.  Returns whether something was in the rings. */
bool wharf_front_look(struct wharf_front *front);

/* Whether the CPU's threads are all awake, and there is something to do for each of them. */
bool wharf_front_has_plenty(const struct wharf_front *front);

/*
 * The job whose turn it is on the CPU, which stays in its queue, or NULL.  The caller has called
 * wharf_front_look before.  most_ns: none that is estimated to take longer.
 */
struct wharf_job *wharf_front_first(struct wharf_front *front, uint64_t most_ns);

/* Cuts the next piece from that job. */
void wharf_front_take(struct wharf_front *front, struct wharf_job *job,
                      struct wharf_piece *ret_piece);

/* Both at once, but what a worker of the GPU left goes before all; false if there is nothing. */
bool wharf_front_next(struct wharf_front *front, uint64_t most_ns, struct wharf_piece *ret_piece);

/*
 * The piece is not done, and may take long: charges what it has used, up to now_ns.  Engines whose
 * pieces can be interrupted say so at least once for each slice.
 */
void wharf_front_going_on(struct wharf_front *front, struct wharf_piece *piece, uint64_t now_ns);

/*
 * For the backend of a GPU: a piece of at most so many chunks of what wharf_place_first_for_gpu
 * gave.  Returns what one warp would take for all of them.
 */
uint64_t wharf_front_take_for_gpu(struct wharf_front *front, uint32_t gpu, struct wharf_job *job,
                                  uint32_t most_chunks, uint64_t now_ns,
                                  struct wharf_piece *ret_piece);

/* A chunk that was taken is not begun after all: it goes back to the beginning of its queue. */
void wharf_front_put_back(struct wharf_front *front, const struct wharf_piece *piece);

/* The piece is done: the last write to client memory has happened. */
void wharf_front_done(struct wharf_front *front, struct wharf_piece *piece);

/* Whether there are rings to be watched. */
static inline bool wharf_front_watches(const struct wharf_front *front)
{
    return !wharf_list_is_empty(&front->watched);
}

#endif
