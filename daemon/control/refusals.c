/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals.c: logs refusals, rate-limited for each tenant and limit.
 */
#include "daemon/control/refusals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/room.h"
#include "daemon/control/server.h"
#include "daemon/core/limits.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"

/* The log gets lines about so many tenants at a time; others follow after this pause. */
#define MOST_TENANTS 8
#define PAUSE_NS ((uint64_t)WHARF_NS_PER_S)

/* A copy of a tenant's refusals, because the log line is written without the lock. */
struct news {
    char name[WHARF_CONFIG_NAME_NBYTES];
    uint32_t to_say;
    uint64_t n_since[WHARF_N_LIMITS]; /* refusals since the last line */
    struct wharf_use used;
    struct wharf_quota quota;
    uint64_t totals[WHARF_N_TOTALS];
};

static void take(struct wharf_tenant *tenant, uint64_t now_ns, struct news *ret_news)
{
    struct wharf_refusals *refusals = &tenant->refusals;

    memcpy(ret_news->name, tenant->name, sizeof(ret_news->name));
    ret_news->to_say = refusals->to_say;
    ret_news->used = tenant->used;
    struct wharf_use over = wharf_room_use_over(tenant);
    wharf_use_subtract(&ret_news->used, &over);
    ret_news->quota = tenant->quota;
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        ret_news->totals[i] = tenant->totals->of[i].total;
    for (unsigned i = 0; i < WHARF_N_LIMITS; i++) {
        if (!(refusals->to_say >> i & 1))
            continue;
        ret_news->n_since[i] = tenant->stats.n_refused[i] - refusals->n_said[i];
        refusals->n_said[i] = tenant->stats.n_refused[i];
        refusals->said_ns[i] = now_ns;
    }
    refusals->to_say = 0;
}

static bool take_next(struct wharf_server *server, uint64_t now_ns, struct news *ret_news)
{
    wharf_core_enter(&server->core);
    struct wharf_tenant *tenant = wharf_tenants_next_refused(&server->core.tenants);
    if (tenant)
        take(tenant, now_ns, ret_news);
    wharf_core_leave(&server->core);
    return tenant != NULL;
}

/* Describes what was refused, and the setting of the limit. */
static void describe(const struct news *news, enum wharf_limit limit, char *text, size_t nbytes)
{
    const char *setting = wharf_limit_setting(limit);

    if (limit < WHARF_N_SHARED_LIMITS)
        snprintf(text, nbytes,
                 "over %s = %" PRIu64 ", of which %" PRIu64
                 " are in use; [quota], or [tenant %s], sets it",
                 setting, wharf_limit_allowed(limit, &news->quota),
                 wharf_limit_used(limit, &news->used), news->name);
    else if (limit < WHARF_LIMIT_HUNG_GATES)
        snprintf(text, nbytes, "over %s = %" PRIu64 "; [quota], or [tenant %s], sets it", setting,
                 wharf_limit_allowed(limit, &news->quota), news->name);
    else if (limit == WHARF_LIMIT_HUNG_GATES)
        snprintf(text, nbytes, "its descriptors have hung processes of the daemon");
    else
        snprintf(text, nbytes,
                 "over %s = %" PRIu64 " of all tenants, of which a part is kept for others; "
                 "[total] sets it",
                 setting, news->totals[limit - WHARF_LIMIT_TOTAL]);
}

static void say(const struct news *news)
{
    char text[256];

    for (enum wharf_limit i = 0; i < WHARF_N_LIMITS; i++) {
        if (!(news->to_say >> i & 1))
            continue;
        describe(news, i, text, sizeof(text));
        wharf_log(WHARF_LOG_NOTICE, &(struct wharf_log_fields){.tenant = news->name},
                  "refused tenant %s, %" PRIu64 " time%s: %s", news->name, news->n_since[i],
                  news->n_since[i] == 1 ? "" : "s", text);
    }
}

static void on_time(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, refusal_timer);

    server->waits_to_say = false;
    wharf_refusals_say(server);
}

void wharf_refusals_say(struct wharf_server *server)
{
    uint64_t now_ns;
    struct news news;

    if (server->waits_to_say || !wharf_tenants_has_refused(&server->core.tenants))
        return;
    now_ns = wharf_now_ns();
    for (unsigned n = 0; n < MOST_TENANTS && take_next(server, now_ns, &news); n++)
        say(&news);
    server->waits_to_say = true;
    wharf_timer_set(server->loop, &server->refusal_timer, now_ns + PAUSE_NS, on_time);
}
