/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.c: tells systemd about the daemon's state, by its protocol (sd_notify(3)): datagrams of
 * lines NAME=VALUE.
 *
 * sd_notify itself blocks while nobody reads systemd's socket, and clients would wait with it.
 */
#include "daemon/base/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/clock.h"
#include "daemon/base/loop.h"

#define RETRY_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* Kinds of messages, in the order in which they are sent: a reload ends with READY, and after
 * STOPPING nothing matters. */
enum kind { RELOADING, READY, STOPPING, STATUS, ALIVE, N_KINDS };

static struct {
    int fd; /* -1: systemd does not listen */
    struct sockaddr_un address;
    socklen_t address_nbytes;
    char unsent[N_KINDS][256]; /* empty: nothing to send */
    struct wharf_loop *loop;
    struct wharf_timer timer;
} systemd = {.fd = -1};

void wharf_notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t nbytes = path ? strlen(path) : 0;

    if (nbytes < 2 || nbytes >= sizeof(systemd.address.sun_path) || !strchr("/@", path[0]))
        return;
    systemd.address.sun_family = AF_UNIX;
    memcpy(systemd.address.sun_path, path, nbytes);
    systemd.address_nbytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + nbytes);
    if (path[0] == '@')
        systemd.address.sun_path[0] = 0;
    systemd.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* False: systemd does not take it now. */
static bool send_text(const char *text)
{
    ssize_t n = sendto(systemd.fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                       (const struct sockaddr *)&systemd.address, systemd.address_nbytes);

    return n >= 0 || (errno != EAGAIN && errno != EINTR && errno != ENOBUFS);
}

static void on_time(struct wharf_timer *timer);

static void send_unsent(void)
{
    unsigned kind = 0;

    while (kind < N_KINDS && (!systemd.unsent[kind][0] || send_text(systemd.unsent[kind])))
        systemd.unsent[kind++][0] = 0;
    if (!systemd.loop)
        return;
    if (kind < N_KINDS)
        wharf_timer_set(systemd.loop, &systemd.timer, wharf_now_ns() + RETRY_NS, on_time);
    else
        wharf_timer_clear(systemd.loop, &systemd.timer);
}

static void on_time(struct wharf_timer *timer)
{
    (void)timer;
    send_unsent();
}

static void tell(enum kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(enum kind kind, const char *format, ...)
{
    va_list args;

    if (systemd.fd < 0)
        return;
    va_start(args, format);
    vsnprintf(systemd.unsent[kind], sizeof(systemd.unsent[kind]), format, args);
    va_end(args);
    send_unsent();
}

void wharf_notify_use_loop(struct wharf_loop *loop)
{
    if (systemd.loop)
        wharf_timer_clear(systemd.loop, &systemd.timer);
    systemd.loop = loop;
    if (loop)
        send_unsent();
}

void wharf_notify_ready(const char *status)
{
    systemd.unsent[STATUS][0] = 0;
    tell(READY, "READY=1\nSTATUS=%s", status);
}

void wharf_notify_status(const char *status)
{
    tell(STATUS, "STATUS=%s", status);
}

void wharf_notify_reloading(void)
{
    tell(RELOADING, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, wharf_now_ns() / WHARF_NS_PER_US);
}

void wharf_notify_stopping(uint64_t timeout_ns)
{
    systemd.unsent[STATUS][0] = 0;
    tell(STOPPING, "STOPPING=1\nSTATUS=Finishing jobs\nEXTEND_TIMEOUT_USEC=%" PRIu64,
         timeout_ns / WHARF_NS_PER_US);
}

void wharf_notify_alive(void)
{
    tell(ALIVE, "WATCHDOG=1");
}

uint64_t wharf_notify_watchdog_ns(void)
{
    uint64_t us;

    if (sd_watchdog_enabled(0, &us) <= 0)
        return WHARF_NEVER;
    return us * WHARF_NS_PER_US;
}
