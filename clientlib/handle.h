/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle.h: struct wharf, and the lock around it.
 *
 * Every public call enters, works on the handle and leaves.  Code that sleeps or takes long
 * (decoding, copying, waiting for the daemon) releases the lock meanwhile, and checks everything
 * again afterwards: another thread may have done the work, lost the daemon or found the next one.
 *
 *   job_table.h    jobs, from submission until they are taken
 *   link.h         the connection, from one daemon to the next
 *   handshake.h    Hello, queue, regions and models, until jobs can be submitted
 *   rings.h        the session's shared memory
 *   link_drive.h   from one state of the connection to the next
 *   pump.h         jobs into the ring, completions out of it
 *   completions.h  jobs that end
 *   replay.h       what happens to jobs when the daemon dies
 *   embedded.h     jobs in this process
 *   cost_choice.h  whether one call is faster in this process or in the daemon
 *   wait_step.h    one step of waiting, for any reason
 *   wakeup_fd.h    the descriptor for event loops
 */
#ifndef WHARF_CLIENT_HANDLE_H
#define WHARF_CLIENT_HANDLE_H

#include <pthread.h>

#include "clientlib/arena.h"
#include "clientlib/cost_choice.h"
#include "clientlib/fork_guard.h"
#include "clientlib/job_table.h"
#include "clientlib/link_state.h"
#include "clientlib/model_table.h"
#include "clientlib/region_table.h"
#include "clientlib/wakeup_fd.h"
#include "clientlib/wharf.h"

struct wharf {
    /* Constant after wharf_open. */
    uint32_t engine;
    uint32_t flags; /* enum wharf_open_flag */
    int is_daemon;
    uint32_t default_class;
    uint64_t spin_ns;
    unsigned n_spin_misses; /* wait_step.c */
    struct wharf_client_fork_guard guard;

    /* One request of a program at a time; taken before `lock`. */
    pthread_mutex_t request_lock;

    pthread_mutex_t lock; /* guards all members below */
    /* A job was finished or taken, memory was given back, or a daemon is there. */
    pthread_cond_t changed;
    uint32_t n_waiters; /* for `changed` */
    uint32_t n_copies;  /* pieces of the arena that calls have for copies */
    struct wharf_client_jobs jobs;
    struct wharf_client_regions regions;
    struct wharf_client_models models;
    struct wharf_client_arena arena;
    struct wharf_client_costs costs;
    uint64_t n_here; /* calls of wharf_decompress that did not go to the daemon */
    struct wharf_client_wakeup_fd wakeup;
    struct wharf_client_link link; /* DOWN for ever in an embedded handle */
};

/* wharf_client_enter: takes the lock.  Returns 0, or -EINVAL (NULL) or -ESTALE without it. */
int wharf_client_enter(struct wharf *wharf);
/* The same checks, for calls that need no lock. */
int wharf_client_check(struct wharf *wharf);

/* wharf_client_leave: updates the descriptor for event loops, which may take completions and submit
 * queued jobs, and releases the lock. */
void wharf_client_leave(struct wharf *wharf);

/* wharf_client_has_changed: wakes the threads that wait for `changed`. */
void wharf_client_has_changed(struct wharf *wharf);

/* wharf_client_wait_changed: waits for that, or until deadline_ns, without the lock. */
void wharf_client_wait_changed(struct wharf *wharf, uint64_t deadline_ns);

#endif
