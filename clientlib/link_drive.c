/* SPDX-License-Identifier: Apache-2.0 */
/* link_drive.c: the steps of connecting to a daemon. */
#include "clientlib/link_drive.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "clientlib/connect_error.h"
#include "clientlib/handle.h"
#include "clientlib/handshake.h"
#include "clientlib/link.h"
#include "clientlib/now.h"

/* Returns whether there is a connection now. */
static int dial(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    char text[sizeof(link->text)];

    link->last_request = link->last_reply = link->wanted_reply = 0;
    link->is_cancelling = link->has_progress = link->is_refused = 0;
    link->check_ns = WHARF_CLIENT_FIRST_CHECK_NS;
    link->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->socket >= 0 &&
        connect(link->socket, (struct sockaddr *)&link->address, sizeof(link->address)) == 0) {
        link->farewell[0] = '\0';
        snprintf(link->text, sizeof(link->text),
                 "%s: the daemon does not answer: `wharf doctor` says what to do",
                 link->address.sun_path);
        return 1;
    }
    int err = errno;
    wharf_client_explain_connect(link->address.sun_path, err, text, sizeof(text));
    /* The queue of those who want in is full: come again. */
    link->is_refused = err != EAGAIN;
    wharf_client_link_lost(wharf, -err, "%s", text);
    return 0;
}

/* One step; returns whether the next one may be possible. */
static int step(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    const Wharf__Reply *reply;

    if (link->state == WHARF_CLIENT_LINK_DOWN) {
        if (wharf_client_now_ns() < link->next_try_ns || !dial(wharf))
            return 0;
        wharf_client_handshake_begin(wharf);
    } else {
        if (!wharf_client_link_read(wharf, &reply)) {
            wharf_client_link_close_received(link);
            return 0;
        }
        if (reply)
            wharf_client_handshake_take(wharf, reply);
        wharf_client_link_close_received(link);
    }
    return link->state != WHARF_CLIENT_LINK_DOWN;
}

void wharf_client_link_step(struct wharf *wharf)
{
    const struct wharf_client_link *link = &wharf->link;

    while (link->state != WHARF_CLIENT_LINK_UP && link->state != WHARF_CLIENT_LINK_BROKEN)
        if (!step(wharf))
            break;
}
