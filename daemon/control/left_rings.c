/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/left_rings.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/loop.h"
#include "daemon/control/server.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/front_lock.h"

/* How long until it is asked for the first time, since a client closes its socket first, and at
 * most.  An answer takes some microseconds, and a tenant's descriptors bound how many are asked of.
 */
#define FIRST_NS (5 * (uint64_t)WHARF_NS_PER_MS)
#define LONGEST_NS (4 * (uint64_t)WHARF_NS_PER_S)

struct kept {
    struct wharf_list link; /* in the server's list */
    struct wharf_timer timer;
    struct wharf_server *server;
    struct wharf_tenant *tenant;
    struct wharf_left_rings left;
    uint64_t pause_ns;
};

static void take(struct wharf_segment *ret_ring, struct wharf_segment *segment)
{
    bool is_held = segment->fd >= 0 && wharf_segment_is_held(segment->fd);

    *ret_ring = (struct wharf_segment){
        .nbytes = segment->nbytes,
        .fd = is_held ? wharf_steal_fd(&segment->fd) : -1,
    };
}

void wharf_left_rings_take(struct wharf_left_rings *left, struct wharf_session *session)
{
    take(&left->rings[0], &session->c);
    take(&left->rings[1], &session->d);
}

struct wharf_use wharf_left_rings_use(const struct wharf_left_rings *left)
{
    struct wharf_use use = {.n_descriptors = 0};

    for (unsigned i = 0; i < 2; i++) {
        if (left->rings[i].fd < 0)
            continue;
        /* With D the arena's may be in flight. */
        use.n_descriptors += 1 + i;
        use.memory_nbytes += left->rings[i].nbytes;
    }
    return use;
}

/* Returns what need not be charged any more. */
static struct wharf_use let_go(struct wharf_left_rings *left, bool even_if_held)
{
    struct wharf_use use = wharf_left_rings_use(left);

    for (unsigned i = 0; i < 2; i++)
        if (left->rings[i].fd >= 0 && (even_if_held || !wharf_segment_is_held(left->rings[i].fd)))
            left->rings[i].fd = wharf_close_fd(left->rings[i].fd);
    struct wharf_use rest = wharf_left_rings_use(left);
    wharf_use_subtract(&use, &rest);
    return use;
}

static void kept_free(struct kept *kept)
{
    wharf_timer_clear(kept->server->loop, &kept->timer);
    wharf_list_remove(&kept->link);
    free(kept);
}

static void ask(struct wharf_timer *timer);

static void ask_later(struct kept *kept)
{
    wharf_timer_set(kept->server->loop, &kept->timer, wharf_now_ns() + kept->pause_ns, ask);
    kept->pause_ns = 2 * kept->pause_ns < LONGEST_NS ? 2 * kept->pause_ns : LONGEST_NS;
}

static void ask(struct wharf_timer *timer)
{
    struct kept *kept = WHARF_LIST_ENTRY(timer, struct kept, timer);
    struct wharf_use use = let_go(&kept->left, false), rest = wharf_left_rings_use(&kept->left);
    bool is_over = wharf_use_is_nothing(&rest);

    kept->tenant->n_endings -= is_over;
    wharf_front_give_back(&kept->server->front, kept->tenant, &use);
    if (is_over)
        kept_free(kept);
    else
        ask_later(kept);
}

void wharf_left_rings_keep(struct wharf_server *server, struct wharf_tenant *tenant,
                           struct wharf_left_rings *left)
{
    struct kept *kept = calloc(1, sizeof(*kept));

    if (!kept) {
        struct wharf_use use = let_go(left, true);
        wharf_front_give_back(&server->front, tenant, &use);
        return;
    }
    *kept = (struct kept){.server = server, .tenant = tenant, .left = *left, .pause_ns = FIRST_NS};
    wharf_list_append(&server->left_rings, &kept->link);
    tenant->n_endings++;
    ask_later(kept);
}

void wharf_left_rings_free(struct wharf_server *server)
{
    WHARF_LIST_FOR(link, &server->left_rings)
    {
        struct kept *kept = WHARF_LIST_ENTRY(link, struct kept, link);
        let_go(&kept->left, true);
        kept_free(kept);
    }
}
