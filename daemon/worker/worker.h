/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: wharfd-gpu, the process that owns a GPU; and wharfd-simt, the same without one.
 *
 * Its main thread talks to the core and registers memory; another one starts kernels and waits for
 * them, one more those for large items, and one, if it is wanted, copies outputs.  It sees neither
 * clients nor their sockets: only memory, by memfds that the core has looked at, and items, which
 * the core has checked.  When anything goes wrong it says what and ends: the core takes its work
 * over and starts another one.
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
#include "kernels/work_mover.h"
#include "kernels/work_queue_ops.h"

/* Numbers of memory count up: they are spread over chains evenly. */
#define WHARF_WORKER_N_CHAINS 4096u

struct wharf_worker;

/* A queue and the kernels that serve it. */
struct wharf_worker_kernels {
    struct wharf_worker *worker;
    struct wharf_epoch *epoch;
    struct wharf_work_queue queue;
    uint64_t least_stay_ns; /* 0: they stay as long as there is work */
    uint64_t stay_ns;       /* of the next one */
    bool has_one;           /* one is there, or about to be; without the lock */
    pthread_t runner;
};

struct wharf_worker {
    const char *gpu; /* which: a number or a UUID */
    const struct wharf_epoch_ops *ops;
    int device; /* its number */
    struct wharf_worker_setup setup;
    struct wharf_segment queue_memory;
    struct wharf_worker_kernels main, large; /* the latter without an epoch where there are none */
    struct wharf_list memories[WHARF_WORKER_N_CHAINS]; /* by their numbers */
    bool is_per_batch;                                 /* kernels end with what was there */
    pthread_t copier;
    struct wharf_work_mover *mover; /* NULL: kernels write all outputs themselves */

    pthread_mutex_t lock; /* of what both threads look at */
    pthread_cond_t changed;
    bool wants_park;    /* no kernel may be there, nor a copy under way */
    unsigned n_parked;  /* threads that see to that */
    unsigned n_threads; /* of those that are there */
};

/* Sends a message to the core; ends the process if the core is gone. */
void wharf_worker_say(const struct wharf_worker_message *message);

/* Says what went wrong, and ends the process. */
_Noreturn void wharf_worker_fail(int status, int error, const char *what, const char *why);

/* ---- worker_run.c -------------------------------------------------------------------------- */

/* Starts the threads that start kernels and, if there is a mover, the one that copies. */
void wharf_worker_run(struct wharf_worker *worker);

/* Returns when no kernel is there, nor will be until it is told to go on. */
void wharf_worker_park(struct wharf_worker *worker);
void wharf_worker_go_on(struct wharf_worker *worker);

/* ---- worker_memory.c ----------------------------------------------------------------------- */

/* Registers memory by its descriptor, or imports it, and answers.  Parked or not. */
void wharf_worker_register(struct wharf_worker *worker, const struct wharf_worker_message *message,
                           int fd);

/* Lets go of memory, and answers.  Parked. */
void wharf_worker_forget(struct wharf_worker *worker, uint32_t number);

/* ---- engine_cuda.c of wharfd-gpu, engine_simt.c of wharfd-simt ----------------------------- */

extern const struct wharf_epoch_ops *const wharf_worker_engine;
extern const uint32_t wharf_worker_engine_number; /* enum wharf_engine */

#endif
