/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.h: one client's connection.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_CONNECTION_H
#define WHARF_DAEMON_CONTROL_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/log.h"
#include "daemon/control/server.h"

enum wharf_connection_state {
    WHARF_CONNECTION_GREETING, /* Hello is waited for */
    WHARF_CONNECTION_READY,    /* no queue yet */
    WHARF_CONNECTION_OPEN,     /* with a session */
    WHARF_CONNECTION_CLOSING,  /* its session's end is waited for */
};

/* Why a connection is not read from at present. */
enum wharf_connection_hold {
    WHARF_HOLD_FD_FILTER = 1 << 0, /* the filter has its next packet */
    WHARF_HOLD_SEND = 1 << 1,      /* a reply waits for room */
    WHARF_HOLD_PROMISE = 1 << 2,   /* the daemon may not answer Hello yet */
    WHARF_HOLD_DOORBELL = 1 << 3,  /* it rings for nothing */
    WHARF_HOLD_IMPORT = 1 << 4, /* the GPU's worker has memory of it to import, or the process for
                                   files a file to look at */
    WHARF_HOLD_MODEL = 1 << 5,  /* its model is being made */
    WHARF_HOLD_STATS = 1 << 6,  /* the statistics that it asked for are being made */
    WHARF_HOLD_ROOM = 1 << 7,   /* its tenant is about to give back what it needs (room.h) */
};

struct wharf_connection;

/* What becomes of one, for who is above it. */
struct wharf_connection_events {
    /* There is something to be read: takes it, which may end the connection. */
    void (*on_packet)(struct wharf_connection *connection);
    /* It is about to end: nobody is to do anything with it any more. */
    void (*on_end)(struct wharf_connection *connection);
};

struct wharf_connection {
    struct wharf_source source;
    struct wharf_timer hello_timer;
    struct wharf_timer hold_timer;   /* of WHARF_HOLD_DOORBELL */
    uint64_t doorbell_hold_ns;       /* the last one, while it rings for nothing */
    struct wharf_timer look_timer;   /* of WHARF_HOLD_IMPORT and WHARF_HOLD_STATS */
    struct wharf_timer unread_timer; /* of all holds but DOORBELL and STATS */
    struct wharf_timer room_timer;   /* of WHARF_HOLD_ROOM */
    uint64_t room_since_ns;          /* since when it has waited for that; 0: it has not */
    bool is_over;                    /* it is over its tenant's quota, and waits or is reserved */
    const char *reserved_text; /* it has a reserved place (room.h): the limit that it is over */
    struct wharf_list link;
    struct wharf_list tenant_link;    /* in its tenant's list */
    struct wharf_list fd_filter_link; /* in the filter's queue */
    struct wharf_list doom_link;      /* in the server's list of those that cannot go on */
    struct wharf_server *server;
    const struct wharf_connection_events *events;
    uint64_t number;
    int fd;
    uint8_t state;          /* enum wharf_connection_state */
    uint8_t holds;          /* bits of enum wharf_connection_hold */
    uint8_t fd_filter_kind; /* enum wharf_fd_filter_kind: what its packet at the filter asks for */
    uid_t uid;
    pid_t pid;
    bool is_operator; /* may drain the daemon */
    bool is_observer; /* sees what all tenants do */
    struct wharf_tenant *tenant;
    struct wharf_quota told;            /* the tenant's when it said Hello */
    struct wharf_use use;               /* charged for it, without its session */
    struct wharf_session *session;      /* or NULL */
    uint64_t features;                  /* bits 1 << Feature that were agreed on */
    struct wharf_file_process *files;   /* for its session's files, or NULL */
    int files_error;                    /* why there is none for the last request; negative */
    uint32_t import_id;                 /* with HOLD_IMPORT, the request's */
    uint32_t import_region;             /* and the region's number */
    struct wharf_list stats_link;       /* with HOLD_STATS, in a list of the maker's */
    uint32_t stats_request;             /* the request's id */
    struct wharf_stats_snapshot *stats; /* that it reads, or NULL */
    int last_error;                     /* the Error to be sent before closing; 0: none */
    char last_text[160];
    uint8_t *unsent; /* a reply that waits for room, or NULL */
    size_t unsent_nbytes;
    bool unsent_has_fds;                          /* the session's descriptors go with it */
    bool is_given_up;                             /* closing by no fault of its client's */
    char name[WHARF_CONTROL_MAX_NAME_NBYTES + 1]; /* what the program calls itself */
};

/* Whether it has to wait for a place, since it is over the quota and has no reserved one. */
static inline bool wharf_connection_is_awaiting_room(const struct wharf_connection *connection)
{
    return connection->is_over && !connection->reserved_text;
}

/* Puts one that is charged for into the loop; one that is over its tenant's quota is held.  0 or
 * -errno. */
int wharf_connection_start(struct wharf_connection *connection);

/* Says why it ends, if there is something to say and room for it. */
void wharf_connection_say_last_words(struct wharf_connection *connection);

/* One that was over its tenant's quota is not any more. */
void wharf_connection_let_in(struct wharf_connection *connection);

/* The daemon may answer now: Hello is waited for, for some time. */
void wharf_connection_greet(struct wharf_connection *connection);

/* Ends a connection because of what the client did: it is told `error` and the text. */
void wharf_connection_refuse(struct wharf_connection *connection, int error, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));

/* Counts that the tenant is over that limit, which is none of those that charging it finds. Returns
 * EDQUOT. */
int wharf_connection_is_over(struct wharf_connection *connection, enum wharf_limit limit);

/* Ends it by no fault of the client's, who is told to connect again, and may with the same arena.
 */
void wharf_connection_part(struct wharf_connection *connection, const char *text);

/*
 * Ends a connection: at once if it has no session, otherwise when that is free.  `by_client`: it
 * went or broke a rule, so its arena is emptied.
 */
void wharf_connection_end(struct wharf_connection *connection, bool by_client);

/* Ends one of the server's list of those that cannot go on. */
void wharf_connection_end_closing(struct wharf_connection *connection);

/* Its session is free: the last step of ending. */
void wharf_connection_session_free(struct wharf_connection *connection);

/* It is not read from while it is held, for whatever reasons. */
void wharf_connection_hold(struct wharf_connection *connection, enum wharf_connection_hold hold);
void wharf_connection_release(struct wharf_connection *connection, enum wharf_connection_hold hold);

/*
 * Sends a reply, with the session's descriptors if has_fds; keeps it if there is no room.  There is
 * no other one that waits: connections with one are not read from.  If it cannot be sent at all,
 * the connection is ended at the end of the loop's turn, not here.
 */
void wharf_connection_send(struct wharf_connection *connection, const Wharf__Reply *reply,
                           bool has_fds);

/* Sends a page of statistics, a packed StatsReply, as the reply to a request. */
void wharf_connection_send_stats(struct wharf_connection *connection, uint32_t request,
                                 const uint8_t *stats, size_t stats_nbytes);

/* What messages about it have as fields, with an errno value, or 0.  They point into the
 * connection's tenant: for now. */
struct wharf_log_fields wharf_connection_fields(const struct wharf_connection *connection,
                                                int error);

/* ---- connection_look.c --------------------------------------------------------------------- */

/* Looks at the session's ring; whether something was there that nobody had seen.  A lone chunk may
 * be decoded here where the connection has its turn in the loop, and pays for that. */
bool wharf_connection_look_at_ring(struct wharf_connection *connection, unsigned n_wakes,
                                   bool has_turn);

/* WHARF_HOLD_IMPORT, WHARF_HOLD_STATS: its ring is looked at now and then all the same, since they
 * can last until a worker was started, or for as long as there are tenants. */
void wharf_connection_hold_import(struct wharf_connection *connection);
void wharf_connection_release_import(struct wharf_connection *connection);
void wharf_connection_hold_stats(struct wharf_connection *connection);
void wharf_connection_release_stats(struct wharf_connection *connection);

/* ---- connection_receive.c ------------------------------------------------------------------ */

/* Reads wake-ups, and then one other packet if there is one: that may end the
 * connection. */
void wharf_connection_receive(struct wharf_connection *connection);

/* It is about to end: filter, models, statistics and room forget it. */
void wharf_connection_forget(struct wharf_connection *connection);

/* ---- control_requests.c -------------------------------------------------------------------- */

/* Whether a request may come with a descriptor (it has to, then). */
bool wharf_request_wants_fd(const Wharf__Request *request);

/* enum wharf_fd_filter_kind: what kind of descriptor a request that wants one does. */
uint8_t wharf_request_fd_filter_kind(const struct wharf_connection *connection,
                                     const Wharf__Request *request);

/* Carries out a request and sends its reply.  fd: what came with it, which stays the caller's; or
 * -errno: why it is not there. */
void wharf_request_handle(struct wharf_connection *connection, const Wharf__Request *request,
                          int fd);

/* ---- memory_requests.c --------------------------------------------------------------------- */

#define WHARF_FEATURE_GPU_MEMORY ((uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY)
#define WHARF_FEATURE_FILES ((uint64_t)1 << WHARF__FEATURE__FEATURE_FILES)
#define WHARF_FEATURE_MODELS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS)
#define WHARF_FEATURE_MARKS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MARKS)
#define WHARF_FEATURE_GPU_SOURCES ((uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_SOURCES)
#define WHARF_FEATURE_COMPRESS ((uint64_t)1 << WHARF__FEATURE__FEATURE_COMPRESS)

/* What to tell the client of memory that was not taken, by what wharf_segment_adopt returned; a
 * quota's text is wharf_tenant_charge's. */
const char *wharf_memory_error_text(int r);

/* Answers a request to let go of such a thing: it is gone, or -ENOENT, -EBUSY, or -ETIME as above.
 */
void wharf_request_removed(struct wharf_connection *connection, uint32_t id, int r,
                           const char *what, uint32_t number);

/* Carry out a request and answer it: at once, but for GPU memory, for which the connection is held.
 * fd as for wharf_request_handle. */
void wharf_request_register(struct wharf_connection *connection, uint32_t id,
                            const Wharf__RegisterMemoryRequest *memory, int fd);
void wharf_request_unregister(struct wharf_connection *connection, uint32_t id,
                              const Wharf__UnregisterMemoryRequest *memory);

/* What became of the GPU memory that the last request was to register: answers it. */
void wharf_request_decided(struct wharf_connection *connection);

/* stats_reply.c: one page, or why there is none. */
void wharf_stats_reply(struct wharf_connection *connection, const Wharf__Request *request);

#endif
