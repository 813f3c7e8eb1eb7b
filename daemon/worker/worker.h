/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: wharfd-gpu, the process that owns a GPU; and wharfd-simt, the same on CPU threads.
 *
 * The main thread exchanges messages with the core and registers memory.  A second thread starts
 * kernels and waits for them, a third does so for large items, a fourth for items to encode, and a
 * fifth decodes large streams.  The
 * worker sees neither clients nor their sockets, only memfds and items that the core has checked.
 * On any error it reports the reason and exits; the core takes its items back and starts another
 * worker.
 */
#ifndef WHARF_DAEMON_WORKER_WORKER_H
#define WHARF_DAEMON_WORKER_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/worker_message.h"
#include "kernels/epoch.h"
#include "kernels/work_queue_ops.h"

/* Numbers of memories count up, so they spread evenly over the hash chains. */
#define WHARF_WORKER_N_CHAINS 4096u

struct wharf_worker;

/* A queue and the kernels that serve it. */
struct wharf_worker_kernels {
    struct wharf_worker *worker;
    struct wharf_epoch *epoch;
    struct wharf_work_queue queue;
    uint64_t least_stay_ns; /* 0: kernels stay as long as there is work */
    uint64_t stay_ns;       /* how long the next kernel may stay */
    pthread_t runner;
    /* Of the main kernel; guarded by the worker's lock. */
    uint32_t part;        /* percent of the GPU that the next kernel may have */
    uint32_t kernel_part; /* and that this one has, */
    bool has_kernel;      /* while there is one */
};

/* The queue of large streams, which a thread serves in a kernel's place. */
struct wharf_worker_streams {
    struct wharf_worker_kernels kernels; /* without an epoch */
    bool is_open;
    struct wharf_streams *engine;
    uint64_t most_nbytes; /* of a source */
    struct wharf_work_poster done;
    uint32_t head, cancel_head; /* taken */
    /* At its item's place, each cancel that was the last for it. */
    struct wharf_work_cancel cancelled[WHARF_WORKER_STREAM_ENTRIES];
};

struct wharf_worker {
    const char *gpu; /* a number or a UUID */
    const struct wharf_epoch_ops *ops;
    int device; /* its number for the engine */
    struct wharf_worker_setup setup;
    struct wharf_segment queue_memory;
    struct wharf_worker_kernels main;
    struct wharf_worker_kernels large, encode; /* without an epoch if there are no such items */
    struct wharf_worker_streams streams;
    struct wharf_list memories[WHARF_WORKER_N_CHAINS]; /* hash chains by number */
    bool is_per_batch;                                 /* each kernel decodes one batch and ends */

    pthread_mutex_t lock; /* guards the members below, which all threads use */
    pthread_cond_t changed;
    bool wants_park;    /* threads must stop their kernels */
    unsigned n_parked;  /* threads that have done so */
    unsigned n_threads; /* threads that must */
};

/* Whether kernels of other processes run on the device at the same time as this one's, by MPS,
 * rather than in turns.  Each engine has its own. */
bool wharf_worker_is_beside(int device);

/* Sends a message to the core; ends the process if the core is gone. */
void wharf_worker_say(const struct wharf_worker_message *message);

/* Reports an error and ends the process. */
_Noreturn void wharf_worker_fail(int status, int error, const char *what, const char *why);

/* ---- worker_run.c -------------------------------------------------------------------------- */

/* Starts the threads that start kernels. */
void wharf_worker_run(struct wharf_worker *worker);

/* Parks: waits until no kernel runs, and lets none start until wharf_worker_go_on. */
void wharf_worker_park(struct wharf_worker *worker);
void wharf_worker_go_on(struct wharf_worker *worker);

/* ---- worker_streams.c ---------------------------------------------------------------------- */

/* There are streams where there are places for large items: of so many bytes; 0: there are none. */
uint32_t wharf_worker_open_streams(struct wharf_worker *worker);

/* Decodes all streams in the queue, until there are no more or the worker parks. */
void wharf_worker_serve_streams(struct wharf_worker_streams *streams);

/* ---- worker_memory.c ----------------------------------------------------------------------- */

/* Registers or imports memory by its descriptor, and answers.  Kernels may run. */
void wharf_worker_register(struct wharf_worker *worker, const struct wharf_worker_message *message,
                           int fd);

/* Releases memory, and answers.  Only while parked. */
void wharf_worker_forget(struct wharf_worker *worker, uint32_t number);

/* ---- engine_cuda.c of wharfd-gpu, engine_simt.c of wharfd-simt ----------------------------- */

extern const struct wharf_epoch_ops *const wharf_worker_engine;
extern const struct wharf_stream_ops *const wharf_worker_stream_engine; /* NULL: there is none */
extern const uint32_t wharf_worker_engine_number;                       /* enum wharf_engine */

#endif
