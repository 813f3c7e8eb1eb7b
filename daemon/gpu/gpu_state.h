/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_state.h: the internals of one GPU's backend.
 *
 * One thread of the core, wharf-gpu-N, owns all of it.  It feeds the worker, takes its completions,
 * manages its memory, and takes over the pieces of a worker that ends.  The sections below name the
 * files.
 */
#ifndef WHARF_DAEMON_GPU_GPU_STATE_H
#define WHARF_DAEMON_GPU_GPU_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/list.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_patience.h"
#include "daemon/core/gpu_view.h"
#include "daemon/core/piece.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/segment.h"
#include "daemon/core/stats.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "kernels/work_queue_ops.h"

struct wharf_gpu_hold;
struct wharf_gpu_memory;

/* Places for items.  A GPU has a few thousand warps, and a place becomes free only after all items
 * of its piece. */
#define WHARF_GPU_N_ENTRIES 16384u

/* How many workers may be killed because they could not register a piece of memory, or memory of
 * one tenant, before it is refused. */
#define WHARF_GPU_MOST_STALLS 2

enum wharf_gpu_state {
    WHARF_GPU_WAITING,  /* no worker; the next one starts later */
    WHARF_GPU_STARTING, /* the worker gets ready */
    WHARF_GPU_PROVING,  /* it decodes samples: the self-test */
    WHARF_GPU_UP,       /* it takes items */
    WHARF_GPU_DYING,    /* it takes no more items; its pidfd is not readable yet */
    WHARF_GPU_ABSENT,   /* there is no such GPU, or we may not use it: no worker is started again */
};

/* The source of a piece whose chunks are in a file, one behind the other: gpu_files.c. */
struct wharf_gpu_stage {
    bool is_there;    /* if not, its sources are in memory */
    bool is_answered; /* the read has ended */
    uint32_t place;   /* in the session's staging area */
    uint32_t nbytes;  /* that are read */
    struct wharf_file_patience patience;
    struct wharf_file_end end; /* of the read */
};

/* A piece on the GPU.  Its items have the indices first to first + n_items - 1.  Each is one of its
 * chunks, or a part of its only chunk. */
struct wharf_gpu_piece {
    struct wharf_list link;            /* in the list of running, finished or free pieces */
    struct wharf_gpu_backend *backend; /* that it belongs to */
    struct wharf_retry retry;          /* while it waits for a CPU thread */
    struct wharf_piece piece;
    uint32_t first;
    uint32_t n_items;
    uint32_t n_left; /* items that are not completed */
    uint64_t handed_ns;
    uint64_t patience_ns; /* time after which it counts as hung */
    uint64_t warp_ns;     /* estimate for its items that are not completed */
    uint64_t nbytes;      /* of its sources and capacities */
    struct wharf_gpu_round round;
    struct wharf_gpu_stage stage;
    bool is_withdrawn;
    bool is_recalled; /* withdrawn because it takes too long, not because its job was stopped */
    bool is_given_up; /* recalled in time, before all of it was done: it is the CPU's now */
    bool has_device;  /* some of it is in clients' GPU memory, so the CPU cannot run it */
    bool is_faulting; /* the worker ended while it ran alone */
    bool is_aside;    /* it has, or had, a place for large chunks, or a warp that compresses; */
    bool is_stream;   /* which the whole GPU decodes; */
    bool is_alone;    /* and it is a suspect's, started when nothing else ran */
    bool has_places;  /* if not, the next two are the result of each chunk */
    uint8_t engine;
    struct wharf_outcome outcome;
    /* Of a finished piece. */
    bool has_waited;     /* the thread, while it wrote the results; */
    uint64_t waited_ns;  /* for how long, if measured; */
    bool is_slow;        /* which counts as long */
    bool is_told;        /* the client has its results; or: */
    bool is_refused;     /* it cannot be decoded in parts */
    uint32_t n_of_gpu;   /* chunks that the worker decoded, */
    uint64_t out_nbytes; /* their output in bytes, */
    uint64_t took_ns;    /* and the sum of their warp times */
    uint64_t stream_ns;  /* of a stream: for how long it had the GPU */
    struct wharf_memo_stats memo;
};

/* One item: its place in the queue. */
struct wharf_gpu_item {
    struct wharf_gpu_piece *piece; /* NULL: the place is free */
    uint32_t attempt;
    bool is_done;
    uint32_t src_nbytes, dst_nbytes;
    struct wharf_outcome outcome;
    uint32_t part;    /* the part's word in the completion */
    uint64_t took_ns; /* of its warp */
};

/* A codec's sample; nbytes 0: none. */
struct wharf_gpu_sample {
    uint32_t nbytes;
    uint32_t packed_nbytes;
    uint32_t parameter;
};

struct wharf_gpu_proof {
    struct wharf_segment memory; /* of all samples and their outputs */
    uint64_t address;            /* on the device; 0: not registered yet */
    struct wharf_gpu_sample samples[WHARF_N_CODECS];
    uint32_t step;
    bool is_asked; /* an item is under way */
    struct wharf_work_item item;
    uint32_t index;
    uint64_t begun_ns;
    /* Measured. */
    uint64_t latency_ns;
    uint32_t ns_per_kib[WHARF_N_CODECS];
    uint32_t cpu_ns_per_kib[WHARF_N_CODECS]; /* of a processor */
};

/* A place for one large chunk. */
struct wharf_gpu_large_place {
    struct wharf_gpu_piece *piece; /* NULL: it is free */
    uint64_t address;
    uint32_t index, attempt; /* its item's */
    uint32_t src_nbytes, dst_nbytes;
    uint64_t begun_ns;     /* WHARF_NEVER: a stream that waits for the one before it */
    uint64_t withdrawn_ns; /* 0: it is not */
    uint64_t patience_ns;  /* time after that until it counts as hung */
    bool is_over;          /* since it took too long */
    bool is_stream;        /* decoded by the whole GPU: its item is in that queue */
};

/* A queue of large items. */
struct wharf_gpu_large_queue {
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
};

struct wharf_gpu_large {
    struct wharf_gpu_large_queue warps, streams; /* by few warps; by the whole GPU */
    uint32_t least_stream; /* of the worker: bytes from which on a source is for the latter */
    struct wharf_gpu_large_place places[WHARF_WORKER_MOST_LARGE];
    uint32_t n_places; /* of the worker */
    uint32_t n_taken;
    bool is_held; /* no chunk starts here, or to be compressed: memory has to be released */
    struct wharf_list waiting; /* pieces of one chunk that were first in ordinary places */
};

/* A chunk that is compressed, at its item's place in the queue. */
struct wharf_gpu_encode_place {
    struct wharf_gpu_piece *piece; /* NULL: it is free */
    uint32_t index, attempt;       /* its item's */
    uint32_t src_nbytes, dst_nbytes;
    bool is_withdrawn;
    bool is_put_off; /* withdrawn to be begun again later */
};

/* What the worker compresses: gpu_encode.c. */
struct wharf_gpu_encode {
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
    struct wharf_gpu_encode_place places[WHARF_WORKER_ENCODE_ENTRIES];
    uint32_t n_warps; /* of the worker */
    uint32_t n_taken;
    uint32_t n_stopped;        /* the core's n_stopped at the last search for cancels */
    struct wharf_list running; /* pieces, oldest first */
    struct wharf_list waiting; /* pieces that were put off, or wait for another worker */
};

/* Pieces with sources in files, and how far these are: gpu_files.c. */
struct wharf_gpu_files {
    struct wharf_list fresh; /* they have places, and have to be asked for */
    struct wharf_list reading;
    uint64_t asked_ns;         /* when the last of them was asked for */
    struct wharf_list read;    /* the read has ended, well or not */
    struct wharf_list ready;   /* to be handed over */
    struct wharf_list waiting; /* for a place: pieces of one chunk that had to be read again */
    struct wharf_list left;    /* struct wharf_file_left */
};

/* A pass over all memory that the worker could have, a few entries at a time; core lock. */
struct wharf_gpu_pass {
    uint32_t number;
    bool is_under_way;
    bool is_stale;        /* something has changed since the pass began */
    bool may_forget;      /* the worker may be told to release unused memory */
    bool has_searched;    /* in vain, for a model to release */
    bool has_dead;        /* unused or evicted memory is still registered: */
    uint64_t dead_nbytes; /* this much */
    uint64_t next_ns;     /* when the next pass is due */
};

/* The life of the GPU's workers: gpu_worker.c. */
struct wharf_gpu_life {
    uint64_t since_ns;    /* when the state began */
    uint64_t retry_at_ns; /* in state WAITING */
    uint64_t backoff_ns;
    uint64_t up_since_ns; /* 0: the worker was never ready */
    uint32_t n_failures;  /* workers in a row that ended before they were ready */
    uint32_t n_lost;      /* items of the worker when it began to die */
    bool was_killed;      /* by us, because it hung */
    bool is_double;       /* the same GPU as another backend's, under another name */
    bool is_known;        /* some worker has been ready before */
};

/* What the worker has: gpu_queue.c. */
struct wharf_gpu_flight {
    uint32_t n_without_places; /* pieces without places, running, finished, or read */
    uint32_t n_requeued;       /* pieces left to the CPU threads; core lock */
    uint32_t n_places;       /* places that other pieces have, including those of completed items */
    uint32_t n_passed;       /* places skipped since the last one became free */
    uint32_t n_items;        /* running */
    uint64_t n_warp_ns;      /* their estimated warp time */
    uint64_t n_nbytes;       /* of running pieces, sources plus capacities */
    uint64_t active_ns;      /* when an item was last handed over or completed */
    uint32_t n_stopped;      /* the core's n_stopped at the last search for cancels */
    uint32_t n_cancel_looks; /* pieces that this search has still to visit */
    uint32_t cancel_look_at; /* the next piece's number */
    bool has_kernel;         /* a kernel may run: it got an item and was not told to leave */
    bool has_served_stream;  /* since then a job with a word has ended */
    bool is_to_leave;        /* the kernel is to leave when the lock is left */
};

/* Requests to the worker to register and release memory: gpu_pins.c. */
struct wharf_gpu_told {
    /* Unanswered requests, in the order of the expected answers: to register, and to release. */
    struct wharf_list asked, forgotten;
    uint32_t n_asked;
    uint64_t registering_ns; /* when the worker began the first of `asked`; 0: it is idle */
    uint64_t silent_ns;      /* since when it has answered nothing; 0: nothing is unanswered */
    uint64_t patience_ns;    /* the longest patience_ns of pieces that ran since then */
    struct wharf_gpu_pass pass;
    bool has_unheld;          /* wharf_gpu_pins_retire has something to do */
    uint64_t forgotten_at_ns; /* when the worker was last told to release memory */
};

/* Reports the number of GPUs; called by the first GPU's thread. */
typedef void wharf_gpu_count(struct wharf_core *core, const struct wharf_config *config,
                             const char *program, uint32_t n_gpus);

struct wharf_gpu_backend {
    /* Takes the worker's completions from all queues. */
    void (*take_done)(struct wharf_gpu_backend *backend, uint64_t now_ns);
    struct wharf_core *core;
    uint32_t gpu;                /* its index in core->fleet.gpus and in masks */
    struct wharf_gpu_view *view; /* core->fleet.gpus[gpu] */
    pthread_t thread;
    bool is_started;
    struct wharf_config config;       /* as at the start: unchanging settings need no lock */
    char name[WHARF_GPU_NAME_NBYTES]; /* its name in the configuration */
    char program[4096];
    wharf_gpu_count *tell_count; /* called with the number of GPUs; or NULL */
    uint32_t engine;             /* enum wharf_engine: GPU or SIMT */
    /* Core lock. */
    bool stop;
    /* From here on, for the thread only. */
    bool is_over;         /* `stop` was seen, and no piece is left */
    bool is_up_for_words; /* since served_ns only start words kept it awake: starts.h */
    uint64_t served_ns;
    enum wharf_gpu_state state;
    struct wharf_worker_link link;
    struct wharf_gpu_life life;
    uint64_t codecs;   /* bit i: it decodes codec i */
    bool is_per_batch; /* it starts a kernel for each batch */
    bool is_beside;    /* other processes' kernels run beside its own */
    bool has_memo;     /* it keeps decoded chunks */
    char device[64];   /* for messages */
    char failure[320]; /* its last message about a failure */

    struct wharf_segment queue;
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
    uint32_t last_attempt;
    struct wharf_gpu_item *items;   /* one for each place */
    struct wharf_gpu_piece *pieces; /* likewise */
    struct wharf_list free_pieces, under_way, finished;
    struct wharf_list again; /* pieces of one chunk in GPU memory that a worker left behind */
    struct wharf_gpu_flight flight;
    /* A suspect's item runs, and nothing starts beside it; earlier large chunks continue. */
    bool is_alone;

    struct wharf_gpu_proof proof;
    struct wharf_gpu_large large;
    struct wharf_gpu_encode encode;
    struct wharf_gpu_files files;

    struct wharf_gpu_told told;
};

/* ---- gpu_state.c --------------------------------------------------------------------------- */

/* Changes the state, and tells sessions and waiting jobs.  Without the lock. */
void wharf_gpu_set_state(struct wharf_gpu_backend *backend, enum wharf_gpu_state state,
                         uint64_t now_ns);

/* The worker takes no more items.  Takes its completions first. */
void wharf_gpu_begin_dying(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Kills a worker that hangs or sent an impossible message. */
void wharf_gpu_worker_kill(struct wharf_gpu_backend *backend, const char *why);

/* ---- gpu_backend.c ------------------------------------------------------------------------- */

/*
 * wharf_gpu_backend_start: adds the GPU of that name, with workers of this program, and starts its
 * thread.  tell_count: NULL, or called with the number of GPUs.  For one thread at a time.  0 or
 * -errno.
 */
int wharf_gpu_backend_start(struct wharf_core *core, const struct wharf_config *config,
                            const char *program, const char *name, wharf_gpu_count *tell_count);

/* Stops the thread and waits for its end; then free releases the rest.  NULL is allowed. */
void wharf_gpu_backend_stop(struct wharf_gpu_backend *backend);
void wharf_gpu_backend_free(struct wharf_gpu_backend *backend);

/* ---- gpu_worker.c -------------------------------------------------------------------------- */

/* Starts a worker when one is due, takes its messages, and notices its end.  Returns when it has to
 * be called again. */
uint64_t wharf_gpu_worker_tend(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Ends the worker for good, and waits for its end. */
void wharf_gpu_worker_stop(struct wharf_gpu_backend *backend);

/* ---- gpu_self_test.c ------------------------------------------------------------------------ */

/* A worker is ready: registers the samples.  0 or -errno. */
int wharf_gpu_self_test_begin(struct wharf_gpu_backend *backend);

/* Continues.  Returns 1 when all samples were right, 0 if more follow, or -EBADMSG if one is wrong;
 * wharf_gpu_self_test_what names its codec. */
int wharf_gpu_self_test_step(struct wharf_gpu_backend *backend);
const char *wharf_gpu_self_test_what(const struct wharf_gpu_backend *backend);

/* ---- gpu_pins.c ---------------------------------------------------------------------------- */

/* Tells the worker which memory to register and to release.  Returns when it is due again. */
uint64_t wharf_gpu_pins_tend(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Closes GPU memory that clients have given up and no worker has. */
void wharf_gpu_pins_retire(struct wharf_gpu_backend *backend);

/* A request or an answer was sent: restarts the time limit for the next answer. */
void wharf_gpu_pins_await(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* The worker is gone, and with it all its registrations. */
void wharf_gpu_pins_lost(struct wharf_gpu_backend *backend);

/* The worker has released the memory.  Under the lock.  If no worker has it any more, returns a
 * descriptor to be closed without the lock; else -1. */
int wharf_gpu_pins_drop(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold);

/* The memory cannot be registered for now.  Under the lock. */
void wharf_gpu_pins_refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold);

/* Memory is registered or refused: wakes the jobs, and the client's request, that wait for it.
 * Under the lock. */
void wharf_gpu_pins_tell(struct wharf_core *core, const struct wharf_gpu_memory *memory);

/* ---- gpu_answers.c ------------------------------------------------------------------------- */

/* The worker begins to register memory; has registered or refused it; has released it. */
void wharf_gpu_answers_begun(struct wharf_gpu_backend *backend,
                             const struct wharf_worker_message *message, uint64_t now_ns);
void wharf_gpu_answers_registered(struct wharf_gpu_backend *backend,
                                  const struct wharf_worker_message *message);
void wharf_gpu_answers_forgotten(struct wharf_gpu_backend *backend,
                                 const struct wharf_worker_message *message);

/* Kills the worker if registering a piece of memory, or any answer, takes too long.  Returns when
 * the time limit ends. */
uint64_t wharf_gpu_answers_see_to_stalls(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* ---- gpu_queue.c --------------------------------------------------------------------------- */

/* Hands a piece over in n_items items: one for each chunk, or that many parts of one chunk.  There
 * must be places and a free gpu_piece.  warp_ns: estimate for all chunks.  Under the lock. */
void wharf_gpu_items_submit(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                            uint32_t n_items, uint64_t warp_ns, uint64_t now_ns);
/* The same for a gpu_piece that is in no list. */
void wharf_gpu_items_hand_over(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                               uint32_t n_items, uint64_t warp_ns, uint64_t now_ns);
/* Whether one more item fits, whose gpu_piece is reserved; skips occupied slots. */
bool wharf_gpu_items_find_place(struct wharf_gpu_backend *backend);

/* The number of consecutive free places for a new piece, at most `most`, and limited by the
 * gpu_pieces that its chunks could need one by one.  If there are fewer than `least`, skips a few
 * places. */
uint32_t wharf_gpu_items_free_places(struct wharf_gpu_backend *backend, uint32_t least,
                                     uint32_t most);

/* Frees the place of the piece's i-th item, and ends the item if it runs.  Under the lock. */
void wharf_gpu_item_free(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                         uint32_t i);

/* Members of an item: the device address of a region's memory, the parameter for a job's model or
 * parameter, and the attempt. */
uint64_t wharf_gpu_device_address(const struct wharf_gpu_backend *backend,
                                  const struct wharf_region *region, uint64_t offset);
uint16_t wharf_gpu_device_parameter(const struct wharf_gpu_backend *backend,
                                    const struct wharf_job *job);
uint32_t wharf_gpu_next_attempt(struct wharf_gpu_backend *backend);

/* Whether gpu_pieces are free for n more chunks, apart from those reserved for pieces. */
bool wharf_gpu_may_keep(const struct wharf_gpu_backend *backend, uint32_t n);

/* Tells placement what the worker has, of which it judges whether there is room.  Under the lock.
 */
void wharf_gpu_tell_place(struct wharf_gpu_backend *backend);

/* Publishes the new items of a queue to the worker; without the lock. */
void wharf_gpu_publish_queue(struct wharf_work_submitter *submitter);

/* ---- gpu_items.c --------------------------------------------------------------------------- */

/* 0 or -ENOMEM; deinit works in both cases. */
int wharf_gpu_items_init(struct wharf_gpu_backend *backend);
void wharf_gpu_items_deinit(struct wharf_gpu_backend *backend);

/* A new worker's queue. */
int wharf_gpu_items_begin(struct wharf_gpu_backend *backend);

/* Under the lock: hands back pieces whose results are written, passes cancels on, and takes more
 * work. */
void wharf_gpu_items_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Publishes the new items; without the lock. */
void wharf_gpu_items_publish(struct wharf_gpu_backend *backend);

/*
 * Where contexts take turns, clients' streams that continue after a job, or make the source of the
 * next one, wait until the kernel leaves, some time after its last item.  _see_to_streams decides,
 * under the lock, whether the kernel is to leave at once: nothing runs, and streams may wait.
 * _leave tells the worker, without the lock.
 */
void wharf_gpu_items_see_to_streams(struct wharf_gpu_backend *backend);
void wharf_gpu_items_leave(struct wharf_gpu_backend *backend);

/* Whether some item hangs. */
bool wharf_gpu_items_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns);

/* How many times slower device code runs on the CPU. */
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

/* Whether a decoder can return this result and this many bytes. */
bool wharf_gpu_results_can_be(uint32_t result, uint64_t out_nbytes);

/* Ends a piece, which is in no list and has no places, with this outcome. */
void wharf_gpu_results_end(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                           uint32_t engine, const struct wharf_outcome *outcome);

/* Whether only the GPU may run the piece. */
bool wharf_gpu_is_forced(const struct wharf_gpu_backend *backend,
                         const struct wharf_gpu_piece *piece);

/* Queues a piece, which is in no list, for the CPU threads, before all others.  Under the lock. */
void wharf_gpu_recovery_requeue(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* ---- gpu_results.c ------------------------------------------------------------------------- */

/* Takes completions; without the lock.  Returns whether there were any. */
bool wharf_gpu_results_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Writes the results of finished pieces to clients' memory; without the lock, since that memory can
 * block. */
void wharf_gpu_results_tell(struct wharf_gpu_backend *backend);

/* Hands those pieces back; under the lock. */
void wharf_gpu_results_hand_back(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* ---- gpu_parts.c --------------------------------------------------------------------------- */

/* Whether the piece's items are parts of a chunk. */
static inline bool wharf_gpu_piece_has_parts(const struct wharf_gpu_piece *piece)
{
    return piece->n_items > piece->piece.n_chunks;
}

/* Joins the outcomes of all parts to the chunk's outcome; false: some part could not be decoded on
 * its own.  Without the lock. */
bool wharf_gpu_parts_join(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                          struct wharf_outcome *ret_outcome);

/* Has the GPU or the CPU decode such a piece, which is in no list and has no items, whole.  Under
 * the lock. */
void wharf_gpu_parts_take_whole(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                                uint64_t now_ns);

/* ---- gpu_memo.c ---------------------------------------------------------------------------- */

/* The worker is ready. */
void wharf_gpu_memo_ready(struct wharf_gpu_backend *backend,
                          const struct wharf_worker_ready *ready);

/* Whose kept chunks may serve the job's: the member `staging` of its items; 0: nobody's.  Under the
 * lock. */
uint64_t wharf_gpu_memo_owner(struct wharf_gpu_backend *backend, const struct wharf_job *job);

/* Counts what a completion says of a chunk.  Without the lock. */
void wharf_gpu_memo_count(struct wharf_gpu_piece *piece, const struct wharf_gpu_item *item);

/* ---- gpu_large.c --------------------------------------------------------------------------- */

/* Called once; for each new worker's queue; and when the worker is ready. */
void wharf_gpu_large_init(struct wharf_gpu_backend *backend);
void wharf_gpu_large_begin(struct wharf_gpu_backend *backend);
void wharf_gpu_large_ready(struct wharf_gpu_backend *backend,
                           const struct wharf_worker_ready *ready);

/* Takes completions; without the lock.  Returns whether there were any. */
bool wharf_gpu_large_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Whether a withdrawn large chunk hangs. */
bool wharf_gpu_large_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Under the lock: passes cancels on, and takes more chunks.  Returns whether ordinary items may be
 * handed over. */
bool wharf_gpu_large_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Queues a piece of one chunk, which is in no list and has no places, for a large place. */
void wharf_gpu_large_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* Without the lock. */
void wharf_gpu_large_publish(struct wharf_gpu_backend *backend);

/* The worker is gone: removes and returns one of the pieces that had or awaited places; NULL: none
 * is left.  Under the lock. */
struct wharf_gpu_piece *wharf_gpu_large_lose(struct wharf_gpu_backend *backend);

/* ---- gpu_encode.c ---------------------------------------------------------------------------- */

/* Called once; for each new worker's queue; and when the worker is ready. */
void wharf_gpu_encode_init(struct wharf_gpu_backend *backend);
void wharf_gpu_encode_begin(struct wharf_gpu_backend *backend);
void wharf_gpu_encode_ready(struct wharf_gpu_backend *backend,
                            const struct wharf_worker_ready *ready);

/* Takes completions; without the lock.  Returns whether there were any. */
bool wharf_gpu_encode_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Whether a chunk hangs. */
bool wharf_gpu_encode_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Under the lock: passes cancels on, throttles, and takes more chunks.  Returns whether ordinary
 * items may be handed over. */
bool wharf_gpu_encode_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Queues a piece of one chunk, which is in no list and has no places. */
void wharf_gpu_encode_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* A compressed chunk goes back to the core: counts it.  Under the lock. */
void wharf_gpu_encode_count(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece);

/* Without the lock. */
void wharf_gpu_encode_publish(struct wharf_gpu_backend *backend);

/* The worker is gone: removes and returns one of the pieces that it had or that waited; NULL: none
 * is left.  Under the lock. */
struct wharf_gpu_piece *wharf_gpu_encode_lose(struct wharf_gpu_backend *backend);

/* ---- gpu_recovery.c -------------------------------------------------------------------------- */

/* The worker is gone: hands its pieces to the CPU threads, or keeps them for the next worker. */
void wharf_gpu_recovery_hand_on(struct wharf_gpu_backend *backend);

/* Finds the suspects.  Under the lock, before any piece is handed on. */
void wharf_gpu_recovery_blame(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* The tenant's memory blocked the thread: for long; for waited_ns, 0 if that was not measured (it
 * is from now on, for a while).  Under the lock. */
void wharf_gpu_recovery_blame_slow(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                   uint64_t now_ns);
void wharf_gpu_recovery_blame_waits(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t waited_ns, uint64_t now_ns);

/* The worker hung while registering the tenant's memory, and was killed.  Under the lock. */
void wharf_gpu_recovery_blame_stall(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t now_ns);

/* ---- gpu_retry.c --------------------------------------------------------------------------- */

/* The worker is gone: leaves a piece of one chunk to the CPU, if that can run it; else keeps it for
 * the next worker.  is_faulting: the worker ended while it ran this piece alone.  Under the
 * lock. */
void wharf_gpu_retry_keep(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *kept,
                          bool is_faulting);

/* The worker is gone: cuts a running piece that is partly in clients' GPU memory into chunks, which
 * are retried.  Under the lock. */
void wharf_gpu_retry_cut(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece);

/* Cuts a finished piece of which some items were withdrawn after `longest`, and whose client wants
 * only the GPU.  Chunks without a result wait for large places.  Under the lock. */
void wharf_gpu_retry_cut_recalled(struct wharf_gpu_backend *backend,
                                  struct wharf_gpu_piece *gpu_piece);

/* Makes each chunk of a piece, which is in no list and has no places, a piece of its own. */
void wharf_gpu_retry_cut_up(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                            void (*keep_one)(struct wharf_gpu_backend *backend,
                                             struct wharf_gpu_piece *kept));

/* The result of a piece that only the GPU can run and that is not run any more; OK: it is. */
uint32_t wharf_gpu_retry_result(const struct wharf_gpu_backend *backend,
                                const struct wharf_gpu_piece *gpu_piece, uint64_t now_ns);

/* Retries kept pieces, or gives them up.  Under the lock.  Returns whether other pieces may be
 * handed over. */
bool wharf_gpu_retry_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* gpu_faults.c: the opcode of this job's items, enum wharf_work_opcode: DECODE, except in tests of
 * faults. */
uint32_t wharf_gpu_opcode(const struct wharf_submission *submission);
extern const bool wharf_gpu_has_faults;

#endif
