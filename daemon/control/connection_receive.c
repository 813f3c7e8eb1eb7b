/* SPDX-License-Identifier: Apache-2.0 */
/* connection_receive.c: receives a client's packets: wake-ups, requests, and violations. */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/fd_filter.h"
#include "daemon/control/file_requests.h"
#include "daemon/control/model_requests.h"
#include "daemon/control/room.h"
#include "daemon/control/stats_maker.h"
#include "daemon/core/session.h"
#include "daemon/cpu/cpu_here.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"

/* Packets of one connection that are read in one turn. */
#define MOST_PACKETS 16

/* How long to ignore a connection whose doorbells announce nothing: doubles each time, up to the
 * maximum. */
#define DOORBELL_HOLD_NS WHARF_NS_PER_MS
#define LONGEST_DOORBELL_HOLD_NS (16 * (uint64_t)WHARF_NS_PER_MS)

/* What a read of the socket found. */
struct look {
    ssize_t nbytes;
    bool has_fds;
    bool is_too_long;
};

/*
 * Reads a packet, or peeks at it.  It offers no room for descriptors: the kernel drops them and
 * reports that there were some.  No file is closed here, because a close could hang.
 */
static struct look read_packet(struct wharf_connection *connection, int flags)
{
    struct iovec iov = {connection->server->packet, sizeof(connection->server->packet)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    do {
        n = recvmsg(connection->fd, &header, flags | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return (struct look){
        .nbytes = n < 0 ? -errno : n,
        .has_fds = header.msg_flags & MSG_CTRUNC,
        .is_too_long = header.msg_flags & MSG_TRUNC,
    };
}

/*
 * Removes a packet that violates the protocol.  If it stayed unread, closing the connection would
 * send a reset, and the client would not see the reply with the reason.  A packet with descriptors
 * stays: the process that closes the connection disposes of them.
 */
static void drop_packet(struct wharf_connection *connection, const struct look *look)
{
    if (!look->has_fds)
        read_packet(connection, 0);
}

static void take_request(struct wharf_connection *connection, const struct look *look)
{
    struct wharf_server *server = connection->server;
    const Wharf__Request *request;
    int r = wharf_control_unpack_request(&server->memory, server->packet, (size_t)look->nbytes,
                                         &request);

    if (r < 0 || request->id == 0) {
        drop_packet(connection, look);
        wharf_connection_refuse(connection, EPROTO, "a packet of %zd bytes is no request",
                                look->nbytes);
        return;
    }
    bool wants_fd = wharf_request_wants_fd(request);
    if (look->has_fds != wants_fd) {
        wharf_connection_refuse(connection, EPROTO,
                                wants_fd ? "a request came without its descriptor"
                                         : "descriptors came with a request that has none");
        return;
    }
    if (wharf_room_awaits(connection, request))
        return;
    if (wants_fd) {
        wharf_files_prepare(connection, request);
        connection->fd_filter_kind = wharf_request_fd_filter_kind(connection, request);
        wharf_fd_filter_ask(server->filter, connection);
        return;
    }
    read_packet(connection, 0);
    wharf_request_handle(connection, request, -EBADF);
}

/* Handles everything but wake-ups: the end of the connection, a request, or a violation. */
static void take_other(struct wharf_connection *connection, const struct look *look)
{
    if (look->nbytes <= 0)
        wharf_connection_end(connection, true);
    else if (look->is_too_long) {
        drop_packet(connection, look);
        wharf_connection_refuse(connection, EPROTO, "a packet is longer than %u bytes",
                                WHARF_CONTROL_MAX_NBYTES);
    } else if (wharf_packet_kind((size_t)look->nbytes) == WHARF_PACKET_WAKE)
        wharf_connection_refuse(connection, EPROTO, "descriptors came with a wake-up");
    else
        take_request(connection, look);
}

static bool is_plain_wake(const struct look *look)
{
    return look->nbytes == 1 && !look->has_fds && !look->is_too_long;
}

static void end_hold(struct wharf_timer *timer)
{
    wharf_connection_release(WHARF_LIST_ENTRY(timer, struct wharf_connection, hold_timer),
                             WHARF_HOLD_DOORBELL);
}

/* Answers one wake-up or more.  A client that keeps ringing with an empty ring is ignored for a
 * moment, so that it cannot keep the loop busy. */
static void answer_wakes(struct wharf_connection *connection, unsigned n_wakes, bool was_needed)
{
    was_needed |= wharf_connection_look_at_ring(connection, n_wakes, true);
    if (was_needed || n_wakes < MOST_PACKETS) {
        connection->doorbell_hold_ns = 0;
        return;
    }
    uint64_t hold_ns =
        connection->doorbell_hold_ns ? 2 * connection->doorbell_hold_ns : DOORBELL_HOLD_NS;
    connection->doorbell_hold_ns =
        hold_ns < LONGEST_DOORBELL_HOLD_NS ? hold_ns : LONGEST_DOORBELL_HOLD_NS;
    wharf_connection_hold(connection, WHARF_HOLD_DOORBELL);
    wharf_timer_set(connection->server->loop, &connection->hold_timer,
                    wharf_now_ns() + connection->doorbell_hold_ns, end_hold);
}

/*
 * A client that rang is waiting, so jobs in its ring start before its packets are read.  The ring
 * is polled again afterwards, because a later packet may announce more.
 */
void wharf_connection_receive(struct wharf_connection *connection)
{
    bool was_needed = wharf_connection_look_at_ring(connection, 0, true);
    struct look look = read_packet(connection, MSG_PEEK);
    unsigned n_wakes = 0;

    while (is_plain_wake(&look) && n_wakes < MOST_PACKETS) {
        read_packet(connection, 0);
        n_wakes++;
        look = read_packet(connection, MSG_PEEK);
    }
    if (n_wakes && connection->session && !wharf_session_ring_is_whole(connection->session)) {
        wharf_connection_refuse(connection, EPERM,
                                "the ring C was not sealed with F_SEAL_FUTURE_WRITE before the "
                                "first wake-up");
        return;
    }
    if (n_wakes)
        answer_wakes(connection, n_wakes, was_needed);
    if (look.nbytes != -EAGAIN && !is_plain_wake(&look))
        take_other(connection, &look);
}

void wharf_connection_forget(struct wharf_connection *connection)
{
    wharf_fd_filter_forget(connection->server->filter, connection);
    wharf_files_forget(connection);
    wharf_model_forget(connection);
    wharf_stats_forget(connection);
    wharf_room_forget(connection);
}
