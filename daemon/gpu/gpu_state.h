/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_state.h: the backend of one GPU, inside.
 *
 * One thread of the core, wharf-gpu and the GPU's number, owns all of it: it feeds the worker,
 * notices what it has done, sees to its memory, and takes over what a worker leaves behind that
 * ends.  Each header here says what its file is for.
 */
#ifndef WHARF_DAEMON_GPU_GPU_STATE_H
#define WHARF_DAEMON_GPU_GPU_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/list.h"
#include "daemon/core/gpu_view.h"
#include "daemon/core/piece.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "kernels/work_queue_ops.h"

struct wharf_gpu_hold;
struct wharf_gpu_memory;

/* Places for items.  A GPU has some thousand warps, and a place is used again only after all items
 * of its piece. */
#define WHARF_GPU_N_ENTRIES 16384u

/* Workers that may be killed since they could not register a piece of memory, or memory of one
 * tenant: then nobody tries again. */
#define WHARF_GPU_MOST_STALLS 2

enum wharf_gpu_state {
    WHARF_GPU_WAITING,  /* no worker; one is started when it is time */
    WHARF_GPU_STARTING, /* it gets ready */
    WHARF_GPU_PROVING,  /* it decodes samples */
    WHARF_GPU_UP,       /* it takes items */
    WHARF_GPU_DYING,    /* it takes no more; its pidfd has not said that it is gone */
    WHARF_GPU_ABSENT,   /* there is no such GPU, or not for us: no worker is started any more */
};

/* A piece that the worker has: items with the indices first to first + n_items - 1, each of which
 * is one of its chunks, or a part of its only one. */
struct wharf_gpu_piece {
    struct wharf_list link; /* in the list of those under way, of the finished, or of the free */
    struct wharf_gpu_backend *backend; /* whose piece it is */
    struct wharf_retry retry;          /* while it waits for a thread of the CPU */
    struct wharf_piece piece;
    uint32_t first;
    uint32_t n_items;
    uint32_t n_left; /* items that are not completed */
    uint64_t handed_ns;
    uint64_t patience_ns; /* after which it counts as hung */
    uint64_t warp_ns;     /* as estimated, of its items that are not completed */
    uint64_t nbytes;      /* of its sources and capacities */
    struct wharf_gpu_round round;
    bool is_withdrawn;
    bool is_recalled; /* since it takes too long, and not since its job was stopped */
    bool is_given_up; /* which was noticed before all of it was done: it is the CPU's now */
    bool has_device;  /* some of it is in clients' GPU memory: the CPU cannot do it */
    bool is_faulting; /* the worker ended while it ran alone */
    bool is_large;    /* it has, or had, a place for large chunks; */
    bool is_alone;    /* then: it is a suspect's, and nothing was there when it was begun */
    bool has_places;  /* if not, what came of it is the next two, for each of its chunks */
    uint8_t engine;
    struct wharf_outcome outcome;
    /* Of a finished one. */
    bool has_waited;     /* the thread, to write its results; */
    uint64_t waited_ns;  /* so long, where that was measured; */
    bool is_slow;        /* which was long */
    bool is_told;        /* its client has the results of its chunks; or: */
    bool is_refused;     /* it cannot be decoded in parts */
    uint32_t n_of_gpu;   /* chunks that the worker has done, */
    uint64_t out_nbytes; /* to so many bytes; */
    uint32_t n_copied;   /* whose output the copy engine took */
    uint64_t took_ns;    /* of warps, together */
};

/* One item: its place in the queue. */
struct wharf_gpu_item {
    struct wharf_gpu_piece *piece; /* NULL: the place is free */
    uint32_t attempt;
    uint32_t staging; /* its place in the device's memory, counted from 1; 0: none */
    bool is_done;
    bool was_copied;
    uint32_t src_nbytes, dst_nbytes;
    struct wharf_outcome outcome;
    uint32_t part;    /* what the completion says of a part */
    uint64_t took_ns; /* of its warp */
};

/* A sample of a codec: none of it where nbytes is 0. */
struct wharf_gpu_sample {
    uint32_t nbytes;
    uint32_t packed_nbytes;
    uint32_t parameter;
};

struct wharf_gpu_proof {
    struct wharf_segment memory; /* of all samples and what they are decoded to */
    uint64_t address;            /* where the device has it; 0: not yet */
    struct wharf_gpu_sample samples[WHARF_N_CODECS];
    uint32_t step;
    bool is_asked; /* an item is under way */
    struct wharf_work_item item;
    uint32_t index;
    uint64_t begun_ns;
    /* Measured. */
    uint64_t latency_ns;
    uint32_t ns_per_kib[WHARF_N_CODECS];
    uint32_t cpu_ns_per_kib[WHARF_N_CODECS]; /* of one of our processors */
};

/* Places in the device's memory for outputs that the copy engine takes from there. */
struct wharf_gpu_staging {
    uint64_t address; /* 0: there are none */
    uint64_t place_nbytes;
    uint32_t *free_places; /* counted from 1 */
    uint32_t n_free;
};

/* A place for one large chunk. */
struct wharf_gpu_large_place {
    struct wharf_gpu_piece *piece; /* NULL: it is free */
    uint64_t address;
    uint32_t index, attempt; /* its item's */
    uint32_t src_nbytes, dst_nbytes;
    uint64_t withdrawn_ns; /* 0: it is not */
    uint64_t patience_ns;  /* after which, from then on, it counts as hung */
    bool is_over;          /* since it took too long */
};

struct wharf_gpu_large {
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
    struct wharf_gpu_large_place places[WHARF_WORKER_MOST_LARGE];
    uint32_t n_places; /* that the worker has */
    uint32_t n_taken;
    bool is_held;              /* none is begun, since memory is to be let go of */
    struct wharf_list waiting; /* pieces of one chunk that were in other places before */
};

/* A look at all that the worker could have, some entries at a time; guarded by the core lock. */
struct wharf_gpu_pass {
    uint32_t number;
    bool is_under_way;
    bool is_stale;        /* something has changed since it began */
    bool may_forget;      /* the worker may be told to let go of what nobody uses */
    bool has_searched;    /* in vain, for a model that can go */
    bool has_dead;        /* some that nobody uses, or that others want the place of, stays, */
    uint64_t dead_nbytes; /* so much */
    uint64_t next_ns;     /* when something else is due */
};

/* The life of its workers: gpu_worker.c. */
struct wharf_gpu_life {
    uint64_t since_ns;    /* of the state */
    uint64_t retry_at_ns; /* in state WAITING */
    uint64_t backoff_ns;
    uint64_t up_since_ns; /* 0: the worker was never ready */
    uint32_t n_failures;  /* workers running that have ended without having been ready */
    uint32_t n_lost;      /* items that it had when it began to die */
    bool was_killed;      /* by us: it hung */
    bool is_double;       /* the same GPU as another one, by another name */
    bool is_known;        /* one has been ready before */
};

/* What the worker has: gpu_queue.c. */
struct wharf_gpu_flight {
    uint32_t n_without_places; /* pieces, in that list or finished */
    uint32_t n_requeued;       /* pieces that it left to the CPU's threads; core lock */
    uint32_t n_places;         /* that the others have, those of completed items too */
    uint32_t n_passed;         /* places passed by since one was last free again */
    uint32_t n_items;          /* under way */
    uint64_t n_warp_ns;        /* of them, estimated */
    uint64_t n_nbytes;         /* of pieces under way, sources and capacities */
    uint64_t active_ns;        /* when an item was last handed over or came back */
    uint32_t n_stopped;        /* jobs, as of when cancels were last looked for */
    uint32_t n_cancel_looks;   /* pieces that are still to be looked at for that */
    uint32_t cancel_look_at;   /* the next one's number */
};

/* Which memory the worker is told to register and to let go: gpu_pins.c. */
struct wharf_gpu_told {
    /* What the worker was told and has not answered, in that order, which is that of its answers:
     * to register holds, and to let them go. */
    struct wharf_list asked, forgotten;
    uint32_t n_asked;
    uint64_t registering_ns; /* since when it has been at the first of `asked`; 0: it is not */
    uint64_t silent_ns;      /* since when it has answered nothing of all that; 0: it has it all */
    uint64_t patience_ns;    /* the longest of pieces that were under way since then */
    struct wharf_gpu_pass pass;
    bool has_unheld;          /* wharf_gpu_pins_retire has something to do */
    uint64_t forgotten_at_ns; /* when the worker was last told to let go of some */
};

/* There are so many GPUs: said by the thread of the first one. */
typedef void wharf_gpu_count(struct wharf_core *core, const struct wharf_config *config,
                             const char *program, uint32_t n_gpus);

struct wharf_gpu_backend {
    /* Takes what the worker has completed, of all queues. */
    void (*take_done)(struct wharf_gpu_backend *backend, uint64_t now_ns);
    struct wharf_core *core;
    uint32_t gpu;                /* its number here: core->fleet.gpus and bits */
    struct wharf_gpu_view *view; /* core->fleet.gpus[gpu] */
    pthread_t thread;
    bool is_started;
    struct wharf_config config;       /* as at the start: what does not change needs no lock */
    char name[WHARF_GPU_NAME_NBYTES]; /* by which the configuration calls it */
    char program[4096];
    wharf_gpu_count *tell_count; /* what its workers tell of how many GPUs there are; or NULL */
    uint32_t engine;             /* enum wharf_engine: GPU or SIMT */
    /* Core lock. */
    bool stop;

    /* The thread's own, from here on. */
    bool is_over; /* nothing is left, and it shall stop */
    enum wharf_gpu_state state;
    struct wharf_worker_link link;
    struct wharf_gpu_life life;
    uint64_t codecs;   /* bit i: it decodes codec i */
    bool is_per_batch; /* it starts a kernel for each batch */
    char device[64];   /* for people */
    char failure[320]; /* what it said last of itself */

    struct wharf_segment queue;
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done, moved;
    uint32_t last_attempt;
    struct wharf_gpu_item *items;   /* one for each place */
    struct wharf_gpu_piece *pieces; /* likewise */
    struct wharf_list free_pieces, under_way, finished;
    struct wharf_list again; /* of one chunk each, for GPU memory: lost with a worker */
    struct wharf_gpu_flight flight;
    /* An item of a suspect runs, and nothing is begun beside it; large chunks that were there go
     * on. */
    bool is_alone;

    struct wharf_gpu_proof proof;
    struct wharf_gpu_staging staging;
    struct wharf_gpu_large large;

    struct wharf_gpu_told told;
};

/* ---- gpu_state.c --------------------------------------------------------------------------- */

/* It is in another state now, which sessions and jobs that wait for a GPU are told.  Without the
 * lock. */
void wharf_gpu_set_state(struct wharf_gpu_backend *backend, enum wharf_gpu_state state,
                         uint64_t now_ns);

/* It takes no more.  What it has done is taken first. */
void wharf_gpu_begin_dying(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* It hangs, or has lost its mind: ends it. */
void wharf_gpu_worker_kill(struct wharf_gpu_backend *backend, const char *why);

/* ---- gpu_backend.c ------------------------------------------------------------------------- */

/*
 * wharf_gpu_backend_start: the next GPU of the core's, of that name, whose workers are of this
 * program; starts its thread.  tell_count: NULL, or what its workers tell of how many there are. By
 * one thread at a time.  0 or -errno.
 */
int wharf_gpu_backend_start(struct wharf_core *core, const struct wharf_config *config,
                            const char *program, const char *name, wharf_gpu_count *tell_count);

/* Tells its thread to stop, and to free it when it has.  NULL is allowed. */
void wharf_gpu_backend_stop(struct wharf_gpu_backend *backend);
void wharf_gpu_backend_free(struct wharf_gpu_backend *backend);

/* ---- gpu_worker.c -------------------------------------------------------------------------- */

/* Starts a worker when it is time, takes its messages, and notices its end.  Returns when it wants
 * to be called again at the latest. */
uint64_t wharf_gpu_worker_tend(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Ends it for good, and waits for that. */
void wharf_gpu_worker_stop(struct wharf_gpu_backend *backend);

/* ---- gpu_self_test.c ---------------------------------------------------------------------------
 */

/* A worker is ready: registers the samples.  0 or -errno. */
int wharf_gpu_self_test_begin(struct wharf_gpu_backend *backend);

/* Goes on.  Returns 1 when all are done and right, 0 if there is more to come, or -EBADMSG if one
 * is wrong; of which codec, tells wharf_gpu_self_test_what. */
int wharf_gpu_self_test_step(struct wharf_gpu_backend *backend);
const char *wharf_gpu_self_test_what(const struct wharf_gpu_backend *backend);

/* ---- gpu_pins.c ---------------------------------------------------------------------------- */

/* Tells the worker which memory to register and to let go.  Returns when it is due again. */
uint64_t wharf_gpu_pins_tend(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Lets go of GPU memory that clients have given up and that the worker does not have. */
void wharf_gpu_pins_retire(struct wharf_gpu_backend *backend);

/* The worker was told something, or has said something: from now on an answer is waited for. */
void wharf_gpu_pins_await(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* The worker is gone, and all that it had. */
void wharf_gpu_pins_lost(struct wharf_gpu_backend *backend);

/* The worker does not have it any more.  Under the lock; returns a descriptor to be closed without
 * it if nobody has, or -1. */
int wharf_gpu_pins_drop(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold);

/* It is not to be had, for now.  Under the lock. */
void wharf_gpu_pins_refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold);

/* Memory is there, or is refused: jobs that waited for it go on, and so does who registered it.
 * Under the lock. */
void wharf_gpu_pins_tell(struct wharf_core *core, const struct wharf_gpu_memory *memory);

/* ---- gpu_answers.c ------------------------------------------------------------------------- */

/* It begins to register memory; has registered it, or could not; has let go of it. */
void wharf_gpu_answers_begun(struct wharf_gpu_backend *backend,
                             const struct wharf_worker_message *message, uint64_t now_ns);
void wharf_gpu_answers_registered(struct wharf_gpu_backend *backend,
                                  const struct wharf_worker_message *message);
void wharf_gpu_answers_forgotten(struct wharf_gpu_backend *backend,
                                 const struct wharf_worker_message *message);

/* It has been at registering a piece of memory, or has said nothing of what it was told, for too
 * long: kills it.  Returns when that would be. */
uint64_t wharf_gpu_answers_see_to_stalls(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* ---- gpu_queue.c --------------------------------------------------------------------------- */

/* What the copy engine is given, 0 if nothing; and where the device has it. */
uint64_t wharf_gpu_staging_nbytes(const struct wharf_gpu_backend *backend);
int wharf_gpu_staging_begin(struct wharf_gpu_backend *backend, uint64_t address);
/* An item's place there, or none, is free again. */
void wharf_gpu_staging_give(struct wharf_gpu_staging *staging, uint32_t place);

/* Hands a piece over, in n_items, as many as it has chunks or of one chunk so many parts, for which
 * there are places and a free gpu_piece; warp_ns is what its chunks will take.  Under the lock. */
void wharf_gpu_items_submit(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                            uint32_t n_items, uint64_t warp_ns, uint64_t now_ns);
/* Whether there is a place for one more item, of a chunk that is counted as kept already, behind
 * those that have to be passed by. */
bool wharf_gpu_items_find_place(struct wharf_gpu_backend *backend);

/* Free places in a row for chunks of a new piece, `most` at most: as many as there are gpu_pieces
 * to keep them one by one.  Where there are not `least`, others are passed by, some at a time. */
uint32_t wharf_gpu_items_free_places(struct wharf_gpu_backend *backend, uint32_t least,
                                     uint32_t most);

/* Its i-th item: the place is free, and if it was under way it is so no more.  Under the lock. */
void wharf_gpu_item_free(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                         uint32_t i);

/* What an item has of a region's memory, and of a job's model or parameter; and its attempt. */
uint64_t wharf_gpu_device_address(const struct wharf_gpu_backend *backend,
                                  const struct wharf_region *region, uint64_t offset);
uint16_t wharf_gpu_device_parameter(const struct wharf_gpu_backend *backend,
                                    const struct wharf_job *job);
uint32_t wharf_gpu_next_attempt(struct wharf_gpu_backend *backend);

/* Whether there is a free gpu_piece for one more chunk, beside those that are kept for what the
 * worker has. */
bool wharf_gpu_may_keep_one(const struct wharf_gpu_backend *backend);

/* Lets the worker see what is in one of its queues; without the lock. */
void wharf_gpu_publish_queue(struct wharf_work_submitter *submitter);

/* ---- gpu_items.c --------------------------------------------------------------------------- */

/* 0 or -ENOMEM; deinit takes what it left in both cases. */
int wharf_gpu_items_init(struct wharf_gpu_backend *backend);
void wharf_gpu_items_deinit(struct wharf_gpu_backend *backend);

/* A new worker's queue. */
int wharf_gpu_items_begin(struct wharf_gpu_backend *backend);

/* Under the lock: hands back the pieces that results were told of, passes cancels on, and takes
 * more work. */
void wharf_gpu_items_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Lets the worker see it; without the lock. */
void wharf_gpu_items_publish(struct wharf_gpu_backend *backend);

/* Whether some item has been under way for too long. */
bool wharf_gpu_items_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns);

/* What plays a GPU on the CPU takes so many times as long. */
#define WHARF_GPU_SIMT_TIMES 1000u

static inline struct wharf_gpu_item *wharf_gpu_item_at(const struct wharf_gpu_backend *backend,
                                                       uint32_t index)
{
    return &backend->items[index & (WHARF_GPU_N_ENTRIES - 1)];
}

/* A piece of the job is no longer this GPU's. */
static inline void wharf_gpu_end_use(struct wharf_gpu_backend *backend, const struct wharf_job *job)
{
    backend->told.pass.is_stale |= wharf_gpu_room_end_use(backend->gpu, job);
}

/* ---- gpu_finish.c -------------------------------------------------------------------------- */

/* Whether a decoder can end with this result and so many bytes. */
bool wharf_gpu_results_can_be(uint32_t result, uint64_t out_nbytes);

/* A piece, which is in no list and has no places, has come to this. */
void wharf_gpu_results_end(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                           uint32_t engine, const struct wharf_outcome *outcome);

/* Whether nothing but the GPU is to run it. */
bool wharf_gpu_is_forced(const struct wharf_gpu_backend *backend,
                         const struct wharf_gpu_piece *piece);

/* A piece, which is in no list, that the CPU's threads do next of all.  Under the lock. */
void wharf_gpu_recovery_requeue(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* ---- gpu_results.c ------------------------------------------------------------------------- */

/* Takes what has been completed; without the lock.  Returns whether there was anything. */
bool wharf_gpu_results_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Tells clients what became of the chunks of finished pieces; without the lock, since their memory
 * can keep us waiting. */
void wharf_gpu_results_tell(struct wharf_gpu_backend *backend);

/* Hands these back; under the lock. */
void wharf_gpu_results_hand_back(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* ---- gpu_parts.c --------------------------------------------------------------------------- */

/* Whether its items are parts of a chunk. */
static inline bool wharf_gpu_piece_has_parts(const struct wharf_gpu_piece *piece)
{
    return piece->n_items > piece->piece.n_chunks;
}

/* The chunk's outcome from those of its parts, which are all done; false: there is none, since some
 * part could not be decoded by itself.  Without the lock. */
bool wharf_gpu_parts_join(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                          struct wharf_outcome *ret_outcome);

/* Such a piece, which is in no list any more and has no items: the GPU or the CPU decodes it whole.
 * Under the lock. */
void wharf_gpu_parts_take_whole(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                                uint64_t now_ns);

/* ---- gpu_large.c --------------------------------------------------------------------------- */

/* Once; for a new worker's queue; and when it is ready. */
void wharf_gpu_large_init(struct wharf_gpu_backend *backend);
void wharf_gpu_large_begin(struct wharf_gpu_backend *backend);
void wharf_gpu_large_ready(struct wharf_gpu_backend *backend,
                           const struct wharf_worker_ready *ready);

/* Takes what has been completed; without the lock.  Returns whether there was anything. */
bool wharf_gpu_large_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Whether one that was withdrawn does not come back. */
bool wharf_gpu_large_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Under the lock: passes cancels on, and takes more.  Returns whether other items may be handed
 * over. */
bool wharf_gpu_large_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* A piece of one chunk, which is in no list and has no places, waits for such a place. */
void wharf_gpu_large_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* Without the lock. */
void wharf_gpu_large_publish(struct wharf_gpu_backend *backend);

/* The worker is gone: one of the pieces that had places or waited for them, which is in no list
 * now; or NULL.  Under the lock. */
struct wharf_gpu_piece *wharf_gpu_large_lose(struct wharf_gpu_backend *backend);

/* ---- gpu_recovery.c -------------------------------------------------------------------------- */

/* It is gone: hands what it left on, to the CPU's threads or its next worker. */
void wharf_gpu_recovery_hand_on(struct wharf_gpu_backend *backend);

/* Who may have done it.  Under the lock, before anything is rescued. */
void wharf_gpu_recovery_blame(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* This tenant's memory has kept the thread waiting: for long; for so long, or 0 where that was not
 * measured, which it is from now on for a while.  Under the lock. */
void wharf_gpu_recovery_blame_slow(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                   uint64_t now_ns);
void wharf_gpu_recovery_blame_waits(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t waited_ns, uint64_t now_ns);

/* The worker could not register this tenant's memory, and was killed for that.  Under the lock. */
void wharf_gpu_recovery_blame_stall(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t now_ns);

/* ---- gpu_retry.c --------------------------------------------------------------------------- */

/* The worker is gone: keeps a piece of one chunk for the next one, or leaves it to the CPU, if that
 * can have it.  is_faulting: the worker ended while it ran this alone.  Under the lock. */
void wharf_gpu_retry_keep(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *kept,
                          bool is_faulting);

/* The worker is gone: cuts a piece under way, of which some is in clients' GPU memory, into
 * its chunks, which are tried again.  Under the lock. */
void wharf_gpu_retry_cut(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece);

/* Cuts a piece whose items are all done, some of them taken back for taking too long and its client
 * wanting the GPU alone: what has no result waits for places for large chunks.  Under the lock. */
void wharf_gpu_retry_cut_recalled(struct wharf_gpu_backend *backend,
                                  struct wharf_gpu_piece *gpu_piece);

/* Goes on with these, or gives them up.  Under the lock.  Returns whether others may be handed
 * over. */
bool wharf_gpu_retry_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* gpu_faults.c: what an item of this job asks of the worker, enum wharf_work_opcode: DECODE, but in
 * tests of faults. */
uint32_t wharf_gpu_opcode(const struct wharf_submission *submission);
extern const bool wharf_gpu_has_faults;

#endif
