/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: wharfd-gpu, the process that owns a GPU; and wharfd-simt, the same without one.
 *
 * The main thread exchanges messages with the core and registers memory.  Another thread starts
 * kernels and waits for them, a third does so for large items, and an optional one copies outputs.
 * The worker sees neither clients nor their sockets, only memfds and items that the core has
 * checked.  On any error it reports the reason and exits; the core takes over its items and starts
 * another worker.
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

/* Numbers of memory count up, so they spread evenly over the chains. */
#define WHARF_WORKER_N_CHAINS 4096u

struct wharf_worker;

/* A queue and the kernels that serve it. */
struct wharf_worker_kernels {
    struct wharf_worker *worker;
    struct wharf_epoch *epoch;
    struct wharf_work_queue queue;
    uint64_t least_stay_ns; /* 0: kernels stay as long as there is work */
    uint64_t stay_ns;       /* of the next kernel */
    pthread_t runner;
};

struct wharf_worker {
    const char *gpu; /* a number or a UUID */
    const struct wharf_epoch_ops *ops;
    int device; /* its number */
    struct wharf_worker_setup setup;
    struct wharf_segment queue_memory;
    struct wharf_worker_kernels main, large; /* `large` has no epoch if there are no large items */
    struct wharf_list memories[WHARF_WORKER_N_CHAINS]; /* by their numbers */
    bool is_per_batch;                                 /* each kernel takes one batch */

    pthread_mutex_t lock; /* guards the members below, which all threads use */
    pthread_cond_t changed;
    bool wants_park;    /* no kernel may run */
    unsigned n_parked;  /* threads that comply */
    unsigned n_threads; /* of all that have to */
};

/* The engine's: whether other processes' kernels run on the device beside its own, by MPS, and not
 * in turn. */
bool wharf_worker_is_beside(int device);

/* Sends a message to the core; ends the process if the core is gone. */
void wharf_worker_say(const struct wharf_worker_message *message);

/* Reports an error and ends the process. */
_Noreturn void wharf_worker_fail(int status, int error, const char *what, const char *why);

/* ---- worker_run.c -------------------------------------------------------------------------- */

/* Starts the threads that start kernels. */
void wharf_worker_run(struct wharf_worker *worker);

/* Waits until no kernel runs; none starts until wharf_worker_go_on. */
void wharf_worker_park(struct wharf_worker *worker);
void wharf_worker_go_on(struct wharf_worker *worker);

/* ---- worker_memory.c ----------------------------------------------------------------------- */

/* Registers memory by its descriptor, or imports it, and answers.  Parked or not. */
void wharf_worker_register(struct wharf_worker *worker, const struct wharf_worker_message *message,
                           int fd);

/* Releases memory, and answers.  Parked. */
void wharf_worker_forget(struct wharf_worker *worker, uint32_t number);

/* ---- engine_cuda.c of wharfd-gpu, engine_simt.c of wharfd-simt ----------------------------- */

extern const struct wharf_epoch_ops *const wharf_worker_engine;
extern const uint32_t wharf_worker_engine_number; /* enum wharf_engine */

#endif
