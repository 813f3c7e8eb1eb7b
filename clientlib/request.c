/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c: sends a control request and waits for its reply, across restarts of the daemon.
 */
#include "clientlib/request.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/handshake.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/pump.h"

/* How long a sleep for the socket may take, in case another thread has changed it. */
#define SLEEP_NS 50000000

static int is_up(const struct wharf *wharf)
{
    return wharf->link.state == WHARF_CLIENT_LINK_UP;
}

static void sleep_on_socket(struct wharf *wharf, short events)
{
    struct pollfd control = {.fd = wharf->link.socket, .events = events};
    struct timespec timeout = {0, SLEEP_NS};

    pthread_mutex_unlock(&wharf->lock);
    ppoll(&control, 1, &timeout, NULL);
    pthread_mutex_lock(&wharf->lock);
}

/* Sends once, on a connection that is UP.  Returns as wharf_client_send_fn does. */
static int send_when_possible(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                              uint64_t deadline_ns)
{
    int r;

    while ((r = send(wharf, data)) == -EAGAIN && wharf_client_now_ns() < deadline_ns) {
        sleep_on_socket(wharf, POLLIN | POLLOUT);
        wharf_client_link_listen(wharf, 0);
        if (!is_up(wharf))
            break;
    }
    return r;
}

/* Returns whether the reply is there: otherwise the connection is gone or time is over. */
static int wait_for_reply(struct wharf *wharf, const struct wharf_client_reply *reply,
                          uint64_t n_ups, uint64_t deadline_ns)
{
    while (wharf->link.n_ups == n_ups && is_up(wharf)) {
        wharf_client_link_listen(wharf, 1);
        if (reply->nbytes || wharf_client_now_ns() >= deadline_ns)
            break;
        if (is_up(wharf))
            sleep_on_socket(wharf, POLLIN);
    }
    return reply->nbytes != 0;
}

/* One try on one connection.  Returns 0, 1 (nothing to ask) or -errno; with 0 the reply may still
 * be missing. */
static int try_once(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                    struct wharf_client_reply *reply, uint64_t deadline_ns)
{
    struct wharf_client_link *link = &wharf->link;
    int r = send_when_possible(wharf, send, data, deadline_ns);

    if (r != 0)
        return r;
    link->reply = reply;
    link->wanted_reply = link->last_request;
    wait_for_reply(wharf, reply, link->n_ups, deadline_ns);
    link->reply = NULL;
    link->wanted_reply = 0;
    return 0;
}

static int wait_until_up(struct wharf *wharf, uint64_t deadline_ns)
{
    for (;;) {
        wharf_client_pump(wharf);
        if (is_up(wharf))
            return 0;
        int r = wharf_client_link_error(wharf);
        if (r < 0)
            return r;
        if (wharf_client_now_ns() >= deadline_ns)
            return wharf_client_fail(-ETIMEDOUT, "%s", wharf->link.text);
        wharf_client_link_sleep(wharf, deadline_ns);
    }
}

static int read_answer(struct wharf *wharf, const struct wharf_client_reply *reply,
                       struct wharf_client_answer *answer)
{
    char text[160];

    if (wharf_control_unpack_reply(&answer->memory, reply->packet, reply->nbytes, &answer->reply) <
        0)
        return wharf_client_fail(-EPROTO, "the daemon's reply is no message");
    if (answer->reply->body_case != WHARF__REPLY__BODY_ERROR)
        return 0;
    int code = wharf_client_error_code(answer->reply->error);
    wharf_client_copy_printable(text, sizeof(text), answer->reply->error->text);
    return wharf_client_fail(code, "the daemon at %s refused: %s", wharf->link.address.sun_path,
                             text[0] ? text : strerror(-code));
}

/* A daemon that is going down finishes its jobs first, then it closes. */
static void wait_for_end(struct wharf *wharf, uint64_t deadline_ns)
{
    uint64_t n_ups = wharf->link.n_ups;

    while (is_up(wharf) && wharf->link.n_ups == n_ups && wharf_client_now_ns() < deadline_ns) {
        sleep_on_socket(wharf, POLLIN);
        wharf_client_pump(wharf);
        wharf_client_link_listen(wharf, 0);
    }
}

int wharf_client_request(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                         struct wharf_client_answer *answer)
{
    uint64_t deadline_ns = wharf_client_now_ns() + wharf->link.patience_ns;
    struct wharf_client_reply reply;
    int r;

    answer->reply = NULL;
    do {
        reply.nbytes = 0;
        r = wait_until_up(wharf, deadline_ns);
        if (r < 0)
            return r;
        r = try_once(wharf, send, data, &reply, deadline_ns);
        if (r == 1)
            return 0;
        if (r < 0 && r != -EAGAIN)
            wharf_client_link_listen(wharf, 0);
        if (reply.nbytes) {
            r = read_answer(wharf, &reply, answer);
            if (r != -ESHUTDOWN)
                return r;
            wait_for_end(wharf, deadline_ns);
        }
    } while (wharf_client_now_ns() < deadline_ns);
    return wharf_client_fail(-ETIMEDOUT,
                             "%s: the daemon does not answer: `wharf doctor` says what to do",
                             wharf->link.address.sun_path);
}

int wharf_client_request_done(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                              struct wharf_client_answer *answer)
{
    int r = wharf->is_daemon ? wharf_client_request(wharf, send, data, answer) : 0;

    if (r == 0 && wharf->is_daemon && answer->reply &&
        answer->reply->body_case != WHARF__REPLY__BODY_DONE)
        r = wharf_client_fail(-EPROTO, "the daemon's reply is not to what was asked");
    return r;
}

/* ---- removals ------------------------------------------------------------------------------ */

struct removal {
    Wharf__Request *request;
    uint64_t n_queues; /* when it was asked for first */
};

static int send_removal(struct wharf *wharf, void *data)
{
    const struct removal *removal = data;

    /* The next daemon was not told of it. */
    if (wharf->link.n_queues != removal->n_queues)
        return 1;
    return wharf_client_link_send(&wharf->link, removal->request, NULL, 0);
}

int wharf_client_request_removal(struct wharf *wharf, Wharf__Request *request,
                                 struct wharf_client_answer *answer)
{
    struct removal removal = {request, wharf->link.n_queues};
    int r = wharf_client_request_done(wharf, send_removal, &removal, answer);

    /* It was asked for while all was registered anew, and this not yet. */
    return r == -ENOENT ? 0 : r;
}

/* ---- from call to call --------------------------------------------------------------------- */

int wharf_client_with_answer(struct wharf *wharf, wharf_client_ask_fn *ask, void *data)
{
    struct wharf_client_answer *answer = malloc(sizeof(*answer));
    int r;

    if (!answer)
        return wharf_client_fail(-ENOMEM, "out of memory");
    pthread_mutex_lock(&wharf->request_lock);
    pthread_mutex_lock(&wharf->lock);
    r = ask(wharf, data, answer);
    wharf_client_leave(wharf);
    pthread_mutex_unlock(&wharf->request_lock);
    free(answer);
    return r;
}

struct question {
    wharf_client_send_fn *send;
    void *data;
};

static int ask_question(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    const struct question *question = data;

    return wharf_client_request_done(wharf, question->send, question->data, answer);
}

int wharf_client_ask(struct wharf *wharf, wharf_client_send_fn *send, void *data)
{
    struct question question = {send, data};
    int r = wharf_client_check(wharf);

    if (r < 0)
        return r;
    if (!wharf->is_daemon)
        return wharf_client_fail(-ENOTCONN, "this handle works without a daemon");
    return wharf_client_with_answer(wharf, ask_question, &question);
}
