/* SPDX-License-Identifier: Apache-2.0 */
/* kept_rings.c: polls whether clients still hold rings of ended sessions. */
#include "daemon/control/kept_rings.h"

#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/server.h"
#include "daemon/core/left_rings.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"

/* How long until it is asked for the first time, since a client closes its socket first, and at
 * most.  An answer takes some microseconds, and a tenant's descriptors bound how many are asked
 * of. */
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
    struct wharf_use use = wharf_left_rings_let_go(&kept->left, false),
                     rest = wharf_left_rings_use(&kept->left);
    bool is_over = wharf_use_is_nothing(&rest);

    kept->tenant->n_endings -= is_over;
    wharf_core_give_back(&kept->server->core, kept->tenant, &use);
    if (is_over)
        kept_free(kept);
    else
        ask_later(kept);
}

void wharf_kept_rings_add(struct wharf_server *server, struct wharf_tenant *tenant,
                          struct wharf_left_rings *left)
{
    struct kept *kept = calloc(1, sizeof(*kept));

    if (!kept) {
        struct wharf_use use = wharf_left_rings_let_go(left, true);
        wharf_core_give_back(&server->core, tenant, &use);
        return;
    }
    *kept = (struct kept){.server = server, .tenant = tenant, .left = *left, .pause_ns = FIRST_NS};
    wharf_list_append(&server->kept_rings, &kept->link);
    tenant->n_endings++;
    ask_later(kept);
}

void wharf_kept_rings_free(struct wharf_server *server)
{
    WHARF_LIST_FOR(link, &server->kept_rings)
    {
        struct kept *kept = WHARF_LIST_ENTRY(link, struct kept, link);
        wharf_left_rings_let_go(&kept->left, true);
        kept_free(kept);
    }
}
