/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_step.c: spins, sleeps or runs a job.
 */
#include "clientlib/wait_step.h"

#include <errno.h>

#include "clientlib/embedded.h"
#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/rings.h"

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Looks in vain, one after the other, after which most waits sleep at once; and how many of these
 * do until one looks again. */
#define MOST_MISSES 4
#define N_RESTS 64

/* Whether to poll for a while.  Polling in vain takes a processor from those who do the work. */
static int may_spin(struct wharf *wharf)
{
    if (wharf->spin_ns == 0)
        return 0;
    if (wharf->n_spin_misses < MOST_MISSES)
        return 1;
    return ++wharf->n_spin_misses % N_RESTS == 0;
}

static void count_spin(struct wharf *wharf, int found)
{
    if (found)
        wharf->n_spin_misses = 0;
    else if (wharf->n_spin_misses < MOST_MISSES)
        wharf->n_spin_misses++;
}

/* Returns whether they are there. */
static int spin(struct wharf *wharf, struct wharf_client_rings *rings, uint32_t n_wanted,
                uint64_t deadline_ns)
{
    uint32_t from = rings->ring.cq_head;
    uint64_t until;
    int found;

    if (!may_spin(wharf))
        return 0;
    until = earlier(deadline_ns, wharf_client_now_ns() + wharf->spin_ns);
    pthread_mutex_unlock(&wharf->lock);
    found = wharf_client_rings_spin(rings, from, n_wanted, until);
    pthread_mutex_lock(&wharf->lock);
    if (found || until < deadline_ns)
        count_spin(wharf, found);
    return found;
}

static void sleep_on_rings(struct wharf *wharf, struct wharf_client_rings *rings, uint32_t n_wanted,
                           uint64_t deadline_ns)
{
    uint64_t kinds = WHARF_WAIT_FUTEX;
    uint64_t now = wharf_client_now_ns();
    uint32_t n_outstanding = wharf_client_rings_n_outstanding(rings);
    uint64_t timeout_ns;
    uint32_t value;

    /* While this thread looked, another one may have taken all there was to wait for. */
    if (n_outstanding == 0 || now >= deadline_ns)
        return;
    if (wharf->wakeup.epoll_fd >= 0)
        kinds |= WHARF_WAIT_PACKET;
    if (wharf_client_rings_arm(rings, kinds, n_wanted < n_outstanding ? n_wanted : n_outstanding))
        return;
    value = rings->ring.cq_tail;
    timeout_ns = earlier(deadline_ns - now, wharf->link.check_ns);
    pthread_mutex_unlock(&wharf->lock);
    wharf_client_rings_sleep(rings, value, timeout_ns);
    pthread_mutex_lock(&wharf->lock);
}

static void rest_on_rings(struct wharf *wharf, uint32_t n_wanted, uint64_t deadline_ns)
{
    struct wharf_client_rings *rings = wharf->link.rings;

    wharf_client_rings_hold(rings);
    if (!spin(wharf, rings, n_wanted, deadline_ns) && wharf->link.rings == rings)
        sleep_on_rings(wharf, rings, n_wanted, deadline_ns);
    wharf_client_rings_drop(rings);
    wharf_client_link_listen_if_due(wharf);
}

void wharf_client_wait_step(struct wharf *wharf, uint32_t n_wanted, uint64_t deadline_ns)
{
    if (!wharf->is_daemon)
        wharf_client_embedded_rest(wharf, deadline_ns);
    else if (wharf->link.state == WHARF_CLIENT_LINK_UP)
        rest_on_rings(wharf, n_wanted, deadline_ns);
    else
        wharf_client_link_sleep(wharf, deadline_ns);
}
