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
    WHARF_CONNECTION_GREETING, /* waits for Hello */
    WHARF_CONNECTION_READY,    /* no queue yet */
    WHARF_CONNECTION_OPEN,     /* with a session */
    WHARF_CONNECTION_CLOSING,  /* waits for the end of its session */
};

/* Why a connection is not read. */
enum wharf_connection_hold {
    WHARF_HOLD_FD_FILTER = 1 << 0, /* the filter has its next packet */
    WHARF_HOLD_SEND = 1 << 1,      /* a reply waits for room in the socket */
    WHARF_HOLD_PROMISE = 1 << 2,   /* the daemon may not answer Hello yet */
    WHARF_HOLD_DOORBELL = 1 << 3,  /* its doorbells found an empty ring */
    WHARF_HOLD_IMPORT = 1 << 4,    /* a GPU worker imports memory for it, or wharfd-io checks a
                                      file */
    WHARF_HOLD_MODEL = 1 << 5,     /* its model is being made */
    WHARF_HOLD_STATS = 1 << 6,     /* a snapshot for it is being made */
    WHARF_HOLD_ROOM = 1 << 7,      /* waits for use that its tenant is about to return (room.h) */
};

struct wharf_connection;

/* Callbacks to the modules above. */
struct wharf_connection_events {
    /* A packet can be read: handles it, and may end the connection. */
    void (*on_packet)(struct wharf_connection *connection);
    /* The connection is about to end: drops all references to it. */
    void (*on_end)(struct wharf_connection *connection);
};

struct wharf_connection {
    struct wharf_source source;
    struct wharf_timer hello_timer;
    struct wharf_timer hold_timer;   /* of WHARF_HOLD_DOORBELL */
    uint64_t doorbell_hold_ns;       /* length of the last WHARF_HOLD_DOORBELL */
    struct wharf_timer look_timer;   /* of WHARF_HOLD_IMPORT and WHARF_HOLD_STATS */
    struct wharf_timer unread_timer; /* of all holds but DOORBELL and STATS */
    struct wharf_timer room_timer;   /* of WHARF_HOLD_ROOM */
    uint64_t room_since_ns;          /* since when it waits for room; 0: it does not */
    bool is_over;              /* over its tenant's quota: it waits, or has a reserved place */
    const char *reserved_text; /* the limit that a reserved place (room.h) exceeds, or NULL */
    struct wharf_list link;
    struct wharf_list tenant_link;    /* in its tenant's list */
    struct wharf_list fd_filter_link; /* in the filter's queue */
    struct wharf_list doom_link;      /* in the server's list of connections to be ended */
    struct wharf_server *server;
    const struct wharf_connection_events *events;
    uint64_t number;
    int fd;
    uint8_t state;          /* enum wharf_connection_state */
    uint8_t holds;          /* bits of enum wharf_connection_hold */
    uint8_t fd_filter_kind; /* enum wharf_fd_filter_kind that its packet at the filter requires */
    uid_t uid;
    pid_t pid;
    bool is_operator; /* may drain the daemon */
    bool is_observer; /* may see all tenants' statistics */
    struct wharf_tenant *tenant;
    struct wharf_quota told;            /* the tenant's quota when it sent Hello */
    struct wharf_use use;               /* charged for it, without its session */
    struct wharf_session *session;      /* or NULL */
    uint64_t features;                  /* agreed features, bits 1 << Feature */
    struct wharf_file_process *files;   /* for its session's files, or NULL */
    int files_error;                    /* -errno if there is none for the last request */
    const char *files_text;             /* and the limit that it met, or NULL */
    uint32_t import_id;                 /* with HOLD_IMPORT, the request's */
    uint32_t import_region;             /* and the region's number */
    struct wharf_list stats_link;       /* with HOLD_STATS, in a list of the statistics maker */
    uint32_t stats_request;             /* the request's id */
    struct wharf_stats_snapshot *stats; /* that it reads, or NULL */
    int last_error;                     /* the Error to send before closing; 0: none */
    char last_text[160];
    uint8_t *unsent; /* a reply that waits for room, or NULL */
    size_t unsent_nbytes;
    bool unsent_has_fds;                          /* the session's descriptors go with it */
    bool is_given_up;                             /* closing through no fault of its client */
    char name[WHARF_CONTROL_MAX_NAME_NBYTES + 1]; /* the program's own name for itself */
};

/* Whether it is over the quota without a reserved place, and so has to wait. */
static inline bool wharf_connection_is_awaiting_room(const struct wharf_connection *connection)
{
    return connection->is_over && !connection->reserved_text;
}

/* Adds a charged connection; holds it if it exceeds its tenant's quota.  0 or -errno. */
int wharf_connection_start(struct wharf_connection *connection);

/* Sends the reason for its end, if there is one and the socket has room. */
void wharf_connection_say_last_words(struct wharf_connection *connection);

/* Ends the wait of a connection that was over its tenant's quota. */
void wharf_connection_let_in(struct wharf_connection *connection);

/* The daemon may answer from now on: starts hello_timeout. */
void wharf_connection_greet(struct wharf_connection *connection);

/* Ends a connection because of the client's fault, and sends it `error` and the text. */
void wharf_connection_refuse(struct wharf_connection *connection, int error, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));

/* Counts a refusal for a limit that charging does not check.  Returns EDQUOT. */
int wharf_connection_is_over(struct wharf_connection *connection, enum wharf_limit limit);

/* Ends it through no fault of the client, and tells the client to reconnect, which it may with the
 * same arena. */
void wharf_connection_part(struct wharf_connection *connection, const char *text);

/*
 * Ends a connection: at once without a session, otherwise when the session is free.  by_client: the
 * client left or broke a rule, so its arena's pages are freed.
 */
void wharf_connection_end(struct wharf_connection *connection, bool by_client);

/* Ends a connection of the server's list `closing`. */
void wharf_connection_end_closing(struct wharf_connection *connection);

/* Its session is free: the last step of ending. */
void wharf_connection_session_free(struct wharf_connection *connection);

/* Adds or removes a reason to hold it.  It is not read while it is held. */
void wharf_connection_hold(struct wharf_connection *connection, enum wharf_connection_hold hold);
void wharf_connection_release(struct wharf_connection *connection, enum wharf_connection_hold hold);

/*
 * Sends a reply, with the session's descriptors if has_fds; keeps it if the socket has no room.  At
 * most one reply waits, since its connection is not read meanwhile.  If the reply cannot be sent at
 * all, the connection ends at the end of the loop's turn, not here.
 */
void wharf_connection_send(struct wharf_connection *connection, const Wharf__Reply *reply,
                           bool has_fds);

/* Sends a page of statistics, a packed StatsReply, as the reply to a request. */
void wharf_connection_send_stats(struct wharf_connection *connection, uint32_t request,
                                 const uint8_t *stats, size_t stats_nbytes);

/* The log fields of a message about it, with an errno value or 0.  They point into its tenant, so
 * use them at once. */
struct wharf_log_fields wharf_connection_fields(const struct wharf_connection *connection,
                                                int error);

/* ---- connection_look.c --------------------------------------------------------------------- */

/* Polls the session's ring after n_wakes doorbells.  Returns whether it had unseen submissions.
 * With has_turn, in the connection's turn of the loop, may decode a lone chunk here, at its
 * cost. */
bool wharf_connection_look_at_ring(struct wharf_connection *connection, unsigned n_wakes,
                                   bool has_turn);

/* WHARF_HOLD_IMPORT and WHARF_HOLD_STATS can last long: until a worker has started, or for all
 * tenants.  So the session's ring is polled now and then meanwhile. */
void wharf_connection_hold_import(struct wharf_connection *connection);
void wharf_connection_release_import(struct wharf_connection *connection);
void wharf_connection_hold_stats(struct wharf_connection *connection);
void wharf_connection_release_stats(struct wharf_connection *connection);

/* ---- connection_receive.c ------------------------------------------------------------------ */

/* Reads wake-ups, then at most one other packet, which may end the connection. */
void wharf_connection_receive(struct wharf_connection *connection);

/* Before its end: filter, models, statistics and room drop their references. */
void wharf_connection_forget(struct wharf_connection *connection);

/* ---- control_requests.c -------------------------------------------------------------------- */

/* Whether a request must come with a descriptor; all others must not. */
bool wharf_request_wants_fd(const Wharf__Request *request);

/* The kind of descriptor that such a request requires, enum wharf_fd_filter_kind. */
uint8_t wharf_request_fd_filter_kind(const struct wharf_connection *connection,
                                     const Wharf__Request *request);

/* Carries out a request and sends its reply.  fd: its descriptor, which the caller keeps; or -errno
 * if it was not accepted. */
void wharf_request_handle(struct wharf_connection *connection, const Wharf__Request *request,
                          int fd);

/* ---- memory_requests.c --------------------------------------------------------------------- */

#define WHARF_FEATURE_GPU_MEMORY ((uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY)
#define WHARF_FEATURE_FILES ((uint64_t)1 << WHARF__FEATURE__FEATURE_FILES)
#define WHARF_FEATURE_MODELS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS)
#define WHARF_FEATURE_MARKS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MARKS)
#define WHARF_FEATURE_GPU_SOURCES ((uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_SOURCES)
#define WHARF_FEATURE_DONE_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS)
#define WHARF_FEATURE_START_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_START_WORDS)
#define WHARF_FEATURE_CHAINS ((uint64_t)1 << WHARF__FEATURE__FEATURE_CHAINS)
#define WHARF_FEATURE_COMPRESS ((uint64_t)1 << WHARF__FEATURE__FEATURE_COMPRESS)

/* The text for an error of wharf_segment_adopt; for quotas use wharf_tenant_charge's. */
const char *wharf_memory_error_text(int r);

/* Answers a request to remove something: r is 0, -ENOENT, -EBUSY or -ETIME (a blocked worker has
 * the session). */
void wharf_request_removed(struct wharf_connection *connection, uint32_t id, int r,
                           const char *what, uint32_t number);

/* Carry out a request and answer it: at once, except for GPU memory, for which the connection is
 * held. fd as in wharf_request_handle. */
void wharf_request_register(struct wharf_connection *connection, uint32_t id,
                            const Wharf__RegisterMemoryRequest *memory, int fd);
void wharf_request_unregister(struct wharf_connection *connection, uint32_t id,
                              const Wharf__UnregisterMemoryRequest *memory);

/* Answers the last request to register GPU memory, whose result is known now. */
void wharf_request_decided(struct wharf_connection *connection);

/* stats_reply.c: sends a page of statistics, or an error. */
void wharf_stats_reply(struct wharf_connection *connection, const Wharf__Request *request);

#endif
