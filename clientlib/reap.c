/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that take completions. */
#include <errno.h>

#include "clientlib/completions.h"
#include "clientlib/embedded.h"
#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/pump.h"
#include "clientlib/wait_step.h"

static unsigned take_some(struct wharf *wharf, struct wharf_completion *completions, unsigned max)
{
    unsigned n = 0;

    while (n < max && wharf_client_take_done(wharf, &completions[n]))
        n++;
    if (n)
        wharf_client_has_changed(wharf);
    return n;
}

/* What there is without waiting. */
static unsigned poll_some(struct wharf *wharf, struct wharf_completion *completions, unsigned max)
{
    unsigned n;

    wharf_client_pump(wharf);
    n = take_some(wharf, completions, max);
    if (n == 0 && !wharf->is_daemon && wharf_client_embedded_run(wharf))
        n = take_some(wharf, completions, max);
    /* A program in an event loop sleeps next: what made the descriptor readable is read. */
    if (n < max && wharf->is_daemon && wharf->wakeup.epoll_fd >= 0)
        wharf_client_link_listen(wharf, 0);
    else if (n == 0 && wharf->is_daemon)
        wharf_client_link_listen_if_due(wharf);
    return n;
}

static int wait_some(struct wharf *wharf, struct wharf_completion *completions, unsigned max,
                     unsigned min, uint64_t deadline_ns)
{
    unsigned n = 0;

    for (;;) {
        wharf_client_pump(wharf);
        n += take_some(wharf, completions + n, max - n);
        if (n >= min || wharf->jobs.n_public == 0)
            return (int)n;
        int r = wharf_client_link_error(wharf);
        if (r < 0)
            return n ? (int)n : r;
        if (wharf_client_now_ns() >= deadline_ns)
            return (int)n;
        wharf_client_wait_step(wharf, min - n, deadline_ns);
    }
}

int wharf_wait(struct wharf *wharf, struct wharf_completion *completions, unsigned max,
               unsigned min, int64_t timeout_ns)
{
    uint64_t deadline_ns = wharf_client_deadline(timeout_ns);
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    if (!completions || max == 0 || max > INT32_MAX || min > max)
        r = wharf_client_fail(-EINVAL, "no room for completions, or for fewer than are waited for");
    else if (min == 0 || timeout_ns == 0)
        r = (int)poll_some(wharf, completions, max);
    else
        r = wait_some(wharf, completions, max, min, deadline_ns);
    if (r == 0)
        r = wharf_client_link_error(wharf);
    wharf_client_leave(wharf);
    return r;
}

int wharf_poll(struct wharf *wharf, struct wharf_completion *completions, unsigned max)
{
    return wharf_wait(wharf, completions, max, 0, 0);
}

int wharf_fd(struct wharf *wharf)
{
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    if (wharf->wakeup.epoll_fd < 0)
        r = wharf_client_wakeup_fd_open(&wharf->wakeup);
    if (r == 0)
        r = wharf->wakeup.epoll_fd;
    wharf_client_leave(wharf);
    return r;
}
