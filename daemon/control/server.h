/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h: the data of the loop thread: listeners, connections, the filter.
 *
 * Only the loop thread uses it.
 */
#ifndef WHARF_DAEMON_CONTROL_SERVER_H
#define WHARF_DAEMON_CONTROL_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/observer.h"
#include "daemon/control/reaper.h"
#include "daemon/core/core.h"
#include "daemon/cpu/cpu_here.h"
#include "proto/control.h"

struct wharf_fd_filter;
struct wharf_model_maker;
struct wharf_owners;
struct wharf_scraper;
struct wharf_stats_maker;
struct wharf_closer_process;

struct wharf_server {
    struct wharf_config config;
    struct wharf_loop *loop;
    struct wharf_core core;
    struct wharf_reaper *reaper;
    struct wharf_fd_filter *filter;
    struct wharf_list file_processes; /* file_requests.h */
    struct wharf_model_maker *model_maker;
    struct wharf_stats_maker *stats_maker;
    struct wharf_closer_process *closer_process;
    struct wharf_owners *owners;
    struct wharf_observers observers;
    struct wharf_scraper *scraper;
    struct wharf_cpu_here here;
    struct wharf_timer deadline_timer; /* jobs' deadlines */
    struct wharf_timer gpu_timer;      /* GPUs that are missing */
    struct wharf_timer tidy_timer;     /* tenants that may be dropped */
    bool is_tidying;                   /* tidy_timer is set */
    struct wharf_timer refusal_timer;  /* log lines that wait (refusals.h) */
    bool waits_to_say;                 /* refusal_timer is set */

    struct wharf_list listeners;
    struct wharf_list connections;
    struct wharf_list kept_rings; /* of ended sessions (kept_rings.h) */
    struct wharf_list closing;    /* connections to end after this turn of the loop */
    uint64_t n_connections;
    unsigned n_reserved;      /* of these, with a reserved place (room.h) */
    uint64_t last_connection; /* number of the one accepted last */

    int path_fd;    /* the lock for listening there */
    int promise_fd; /* the lock of Hello's promise */
    char *promise_path;
    bool is_promised;                 /* promise_fd is locked, so connections are read */
    struct wharf_timer promise_timer; /* tries the lock again */
    void (*on_promised)(
        struct wharf_server *server); /* called when the lock is taken later; or NULL */

    uint64_t started_ns;
    bool wants_drain; /* after this turn of the loop */
    bool is_draining;
    bool is_over; /* the loop ends */
    struct wharf_timer drain_timer;

    /* Buffers for one packet at a time. */
    struct wharf_control_memory memory;
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    uint8_t reply[WHARF_CONTROL_MAX_NBYTES];
};

/*
 * wharf_server_init: creates the loop and starts the threads.  Takes ownership of `config`. Returns
 * 0 or -errno, having logged the reason; deinit is needed in both cases.
 */
int wharf_server_init(struct wharf_server *server, struct wharf_config *config);
void wharf_server_deinit(struct wharf_server *server);

/* Serves until the daemon ends.  Returns 0 or -errno. */
int wharf_server_run(struct wharf_server *server);

/* Starts to end: takes no new connections or jobs.  The daemon ends when all accepted jobs are
 * done, or after the time limit; on a second call, at once. */
void wharf_server_drain(struct wharf_server *server);

/* Applies the settings that can change in a running daemon.  Returns 0; or -errno with a message,
 * and changes nothing. */
int wharf_server_reload(struct wharf_server *server, struct wharf_config *next, char *message,
                        size_t message_nbytes);

/* For statistics: whether the last configuration was accepted. */
void wharf_server_note_reload(struct wharf_server *server, bool is_good);

#endif
