/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c: the connection's packets and errors.
 */
#include "clientlib/link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/now.h"
#include "clientlib/replay.h"
#include "clientlib/rings.h"
#include "proto/ring_ops.h"

/*
 * Between tries to connect the pause doubles up to the longest: a daemon that is ready is found
 * within that, and twenty tries a second of a few microseconds each are nothing to this machine.
 */
#define FIRST_PAUSE_NS 1000000u
#define LONGEST_PAUSE_NS 50000000u

/* How long a thread sleeps at most before it looks by itself, for what another thread did. */
#define SLEEP_NS 20000000u

/* How long the end of a daemon that has died may go unnoticed. */
#define LONGEST_CHECK_NS 50000000u

/* A session that has lived so long is no sign of a daemon that dies whenever it starts. */
#define SETTLED_NS 1000000000u

/* Of errno values; also what a system call can return at most. */
enum { MAX_ERRNO = 4095 };

/* Packets to read at a time: a daemon that sends more than that is read from later. */
enum { MAX_PACKETS = 64 };

int wharf_client_link_init(struct wharf_client_link *link, const char *path)
{
    memset(link, 0, sizeof(*link));
    link->socket = -1;
    if (!path)
        return 0;
    link->address.sun_family = AF_UNIX;
    memcpy(link->address.sun_path, path, strlen(path));
    link->packets = malloc(sizeof(*link->packets));
    return link->packets ? 0 : -ENOMEM;
}

/* Forked children have copies of the socket, for as long as they live: the end of the connection
 * must not wait for them. */
static void hang_up(struct wharf_client_link *link)
{
    shutdown(link->socket, SHUT_RDWR);
    close(link->socket);
    link->socket = -1;
}

void wharf_client_link_deinit(struct wharf_client_link *link, int is_forked)
{
    if (is_forked)
        wharf_client_rings_free_forked(link->rings);
    else
        wharf_client_rings_drop(link->rings);
    if (link->socket >= 0 && is_forked)
        close(link->socket);
    else if (link->socket >= 0)
        hang_up(link);
    free(link->packets);
}

/* ---- the end of a connection --------------------------------------------------------------- */

static void end_session(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;

    if (link->socket >= 0)
        wharf_client_wakeup_fd_forget(&wharf->wakeup, link->socket);
    link->wanted_reply = 0;
    if (link->rings) {
        wharf_client_rings_wake_own(link->rings);
        wharf_client_rings_drop(link->rings);
    }
    link->rings = NULL;
}

/* The next try, and from when on the daemon counts as away. */
static void plan_next_try(struct wharf_client_link *link, int was_up)
{
    uint64_t now = wharf_client_now_ns();
    int is_settled = was_up && (link->has_progress || now - link->up_ns > SETTLED_NS);

    if (is_settled || link->away_since_ns == 0)
        link->away_since_ns = now;
    if (is_settled)
        link->pause_ns = 0;
    /* Clients that lost the same daemon do not all come at the same time. */
    link->next_try_ns = now + link->pause_ns + now % (link->pause_ns / 4 + 1);
    link->pause_ns = link->pause_ns ? 2 * link->pause_ns : FIRST_PAUSE_NS;
    if (link->pause_ns > LONGEST_PAUSE_NS)
        link->pause_ns = LONGEST_PAUSE_NS;
}

/* Whether the daemon ended the session as one that broke a rule.  Then it has emptied the arena,
 * and there is nothing to submit again. */
static int is_forfeited(const struct wharf_client_link *link)
{
    return link->rings &&
           (wharf_ring_load_flags(&link->rings->ring.d->flags) & WHARF_RING_FORFEITED);
}

void wharf_client_link_lost(struct wharf *wharf, int error, const char *format, ...)
{
    struct wharf_client_link *link = &wharf->link;
    int was_up = link->state == WHARF_CLIENT_LINK_UP;
    va_list arguments;

    if (is_forfeited(link)) {
        wharf_client_link_break(wharf, "it says that this client did: %s",
                                link->farewell[0] ? link->farewell : "it does not say how");
        return;
    }

    if (was_up)
        wharf_client_replay_prepare(wharf);
    end_session(wharf);
    if (link->socket >= 0)
        hang_up(link);
    link->state = WHARF_CLIENT_LINK_DOWN;
    link->error = error;
    va_start(arguments, format);
    vsnprintf(link->text, sizeof(link->text), format, arguments);
    va_end(arguments);
    plan_next_try(link, was_up);
}

void wharf_client_link_break(struct wharf *wharf, const char *format, ...)
{
    struct wharf_client_link *link = &wharf->link;
    va_list arguments;

    /* The socket stays open until wharf_close: at its end the daemon would empty the arena, and the
     * program may still be looking at outputs there. */
    end_session(wharf);
    link->state = WHARF_CLIENT_LINK_BROKEN;
    link->error = -EPROTO;
    va_start(arguments, format);
    vsnprintf(link->text, sizeof(link->text), format, arguments);
    va_end(arguments);
    wharf_client_has_changed(wharf);
}

/* How long there has been no daemon. */
static uint64_t away_ns_of(const struct wharf_client_link *link)
{
    return wharf_client_now_ns() - link->away_since_ns;
}

int wharf_client_link_is_lost(const struct wharf_client_link *link)
{
    if (link->state == WHARF_CLIENT_LINK_UP)
        return 0;
    return link->state == WHARF_CLIENT_LINK_BROKEN || away_ns_of(link) > link->patience_ns;
}

int wharf_client_link_error(const struct wharf *wharf)
{
    const struct wharf_client_link *link = &wharf->link;

    if (!wharf->is_daemon || link->state == WHARF_CLIENT_LINK_UP)
        return 0;
    if (link->state == WHARF_CLIENT_LINK_BROKEN)
        return wharf_client_fail(-EPROTO, "%s: the daemon broke the protocol: %s",
                                 link->address.sun_path, link->text);
    uint64_t away_ns = away_ns_of(link);
    if (away_ns <= link->patience_ns)
        return 0;
    return wharf_client_fail(-ENOTCONN, "the daemon has been away for %.1f s: %s",
                             (double)away_ns / 1e9, link->text);
}

/* ---- sending and receiving ----------------------------------------------------------------- */

int wharf_client_link_send(struct wharf_client_link *link, Wharf__Request *request, const int *fds,
                           size_t n_fds)
{
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    size_t nbytes;

    request->id = link->last_request + 1;
    int r = wharf_control_pack_request(request, packet, &nbytes);
    if (r == 0)
        r = wharf_control_send(link->socket, packet, nbytes, fds, n_fds, MSG_DONTWAIT);
    if (r == 0)
        link->last_request++;
    return r;
}

void wharf_client_link_close_received(struct wharf_client_link *link)
{
    struct wharf_control_receiver *receiver = &link->packets->receiver;

    for (size_t i = 0; i < receiver->n_fds; i++)
        close(receiver->fds[i]);
    receiver->n_fds = 0;
}

int wharf_client_error_code(const Wharf__Error *error)
{
    return error->code >= 1 && error->code <= MAX_ERRNO ? -error->code : -EPROTO;
}

/* An Error that answers no request: the connection's end follows, and this is why. */
static void note_farewell(struct wharf_client_link *link, const Wharf__Error *error)
{
    link->farewell_error = wharf_client_error_code(error);
    wharf_client_copy_printable(link->farewell, sizeof(link->farewell), error->text);
    if (!link->farewell[0])
        strcpy(link->farewell, "it does not say why");
}

/*
 * Looks at a message: numbers in order, no descriptors where none belong.  Returns the reply that
 * it is, or NULL for one that is done with, after which the link may be BROKEN.
 */
static const Wharf__Reply *open_message(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    struct wharf_control_receiver *receiver = &link->packets->receiver;
    const Wharf__Reply *reply;

    if (wharf_control_unpack_reply(&link->packets->memory, receiver->packet, receiver->nbytes,
                                   &reply) < 0) {
        wharf_client_link_break(wharf, "it sent %zu bytes that are no message", receiver->nbytes);
        return NULL;
    }
    if (receiver->n_fds && reply->body_case != WHARF__REPLY__BODY_OPEN_QUEUE) {
        wharf_client_link_break(wharf, "it sent descriptors with a reply that has none");
        return NULL;
    }
    if (reply->id == 0 && reply->body_case == WHARF__REPLY__BODY_ERROR) {
        note_farewell(link, reply->error);
        return NULL;
    }
    if (reply->id != link->last_reply + 1 || reply->id > link->last_request) {
        wharf_client_link_break(wharf, "it sent reply %u after reply %u and request %u", reply->id,
                                link->last_reply, link->last_request);
        return NULL;
    }
    link->last_reply = reply->id;
    return reply;
}

/* The daemon has closed.  If the tenant has too many connections it says so before it hears
 * anything: coming again soon would not help. */
static void take_end(struct wharf *wharf, int error)
{
    struct wharf_client_link *link = &wharf->link;
    int is_over =
        link->state != WHARF_CLIENT_LINK_UP && link->farewell[0] && link->farewell_error == -EDQUOT;

    if (is_over)
        wharf_client_link_lost(wharf, -EDQUOT, "%s: the daemon refused the connection: %s",
                               link->address.sun_path, link->farewell);
    else
        wharf_client_link_lost(wharf, error, "%s: the daemon closed the %s%s",
                               link->address.sun_path,
                               link->farewell[0] ? "connection: " : "connection", link->farewell);
    link->is_refused = is_over;
}

int wharf_client_link_read(struct wharf *wharf, const Wharf__Reply **ret_reply)
{
    struct wharf_client_link *link = &wharf->link;
    struct wharf_control_receiver *receiver = &link->packets->receiver;
    int r = wharf_control_receive(link->socket, receiver, MSG_DONTWAIT);

    *ret_reply = NULL;
    /* It closed before it had read everything.  That is said once, and before what it sent. */
    if (r == -ECONNRESET)
        r = wharf_control_receive(link->socket, receiver, MSG_DONTWAIT);
    if (r == -EAGAIN)
        return 0;
    if (r == -EBADMSG) {
        wharf_client_link_break(wharf, "it sent a packet that is too long");
        return 0;
    }
    if (r < 0 || wharf_packet_kind(receiver->nbytes) == WHARF_PACKET_END) {
        take_end(wharf, r < 0 ? r : -ECONNRESET);
        return 0;
    }
    if (wharf_packet_kind(receiver->nbytes) == WHARF_PACKET_MESSAGE)
        *ret_reply = open_message(wharf);
    else if (receiver->n_fds)
        wharf_client_link_break(wharf, "it sent descriptors with a wake-up");
    else if (link->rings)
        wharf_client_rings_had_packet(link->rings);
    return link->state != WHARF_CLIENT_LINK_BROKEN;
}

/* ---- while UP ------------------------------------------------------------------------------ */

static void deliver_reply(struct wharf_client_link *link)
{
    struct wharf_control_receiver *receiver = &link->packets->receiver;

    /* Others are of calls that have given up. */
    if (link->last_reply != link->wanted_reply || !link->reply)
        return;
    memcpy(link->reply->packet, receiver->packet, receiver->nbytes);
    link->reply->nbytes = receiver->nbytes;
    link->wanted_reply = 0;
}

void wharf_client_link_listen(struct wharf *wharf, int mine)
{
    struct wharf_client_link *link = &wharf->link;
    const Wharf__Reply *reply;

    if (link->state != WHARF_CLIENT_LINK_UP || (link->wanted_reply && !mine))
        return;
    link->checked_ns = wharf_client_now_ns();
    for (int i = 0; i < MAX_PACKETS && wharf_client_link_read(wharf, &reply); i++) {
        if (reply && link->packets->receiver.n_fds)
            wharf_client_link_break(wharf, "it sent descriptors that nobody asked for");
        else if (reply)
            deliver_reply(link);
        wharf_client_link_close_received(link);
    }
    wharf_client_link_close_received(link);
}

void wharf_client_link_listen_if_due(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;

    if (wharf_client_now_ns() - link->checked_ns < link->check_ns)
        return;
    link->check_ns *= 2;
    if (link->check_ns > LONGEST_CHECK_NS)
        link->check_ns = LONGEST_CHECK_NS;
    wharf_client_link_listen(wharf, 0);
}

void wharf_client_link_sleep(struct wharf *wharf, uint64_t deadline_ns)
{
    const struct wharf_client_link *link = &wharf->link;
    struct pollfd control = {.fd = link->socket, .events = POLLIN};
    uint64_t now = wharf_client_now_ns();
    uint64_t until = now + SLEEP_NS;

    if (link->state == WHARF_CLIENT_LINK_DOWN && link->next_try_ns < until)
        until = link->next_try_ns;
    if (deadline_ns < until)
        until = deadline_ns;
    if (until <= now)
        return;
    struct timespec timeout = {0, (long)(until - now)};
    pthread_mutex_unlock(&wharf->lock);
    /* Another thread may close the socket meanwhile: hence the short time. */
    ppoll(&control, control.fd >= 0, &timeout, NULL);
    pthread_mutex_lock(&wharf->lock);
}
