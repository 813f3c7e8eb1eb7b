/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.c: tenants, their charges and their life.
 *
 * A tenant is found by name in a hash table.  It is idle when nothing is charged to it and nothing
 * refers to it; the loop thread drops idle tenants later, a few at a time.  Until its debts, bans
 * and suspensions are over it is kept, so that reconnecting sheds none of them.
 */
#include "daemon/core/tenant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/limits.h"
#include "daemon/core/queues.h"
#include "daemon/core/stats.h"
#include "daemon/core/totals.h"
#include "kernels/memo.h"

/* ---- by name ------------------------------------------------------------------------------- */

/* FNV-1a. */
static struct wharf_tenant **chain_of(struct wharf_tenants *tenants, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &tenants->chains[(hash ^ hash >> 16) % WHARF_TENANTS_N_CHAINS];
}

static struct wharf_tenant *find(struct wharf_tenants *tenants, const char *name)
{
    struct wharf_tenant *tenant = *chain_of(tenants, name);

    while (tenant && strcmp(tenant->name, name) != 0)
        tenant = tenant->next;
    return tenant;
}

static void enter(struct wharf_tenants *tenants, struct wharf_tenant *tenant)
{
    struct wharf_tenant **chain = chain_of(tenants, tenant->name);

    tenant->next = *chain;
    *chain = tenant;
    tenant->tenants = tenants;
    tenant->number = ++tenants->last_number;
    wharf_list_append(&tenants->list, &tenant->link);
    tenants->n++;
}

static void leave(struct wharf_tenants *tenants, struct wharf_tenant *tenant)
{
    struct wharf_tenant **at = chain_of(tenants, tenant->name);

    while (*at != tenant)
        at = &(*at)->next;
    *at = tenant->next;
    wharf_list_remove(&tenant->link);
    tenants->n--;
}

/* ---- those that nobody refers to ----------------------------------------------------------- */

static void set_n_idle(struct wharf_tenants *tenants, uint32_t n)
{
    __atomic_store_n(&tenants->n_idle, n, __ATOMIC_RELAXED);
}

static void wake(struct wharf_tenant *tenant)
{
    if (!tenant->tenants || !wharf_list_is_linked(&tenant->idle_link))
        return;
    wharf_list_remove(&tenant->idle_link);
    set_n_idle(tenant->tenants, tenant->tenants->n_idle - 1);
}

static bool is_used(const struct wharf_tenant *tenant)
{
    return !wharf_use_is_nothing(&tenant->used) || tenant->n_hung_filters > 0 ||
           tenant->n_references > 0;
}

/* Something that referred to it is gone: that may have been the last. */
static void rest(struct wharf_tenant *tenant)
{
    if (!tenant->tenants || tenant->is_configured || is_used(tenant) ||
        wharf_list_is_linked(&tenant->idle_link))
        return;
    tenant->idle_ns = wharf_now_ns();
    wharf_list_append(&tenant->tenants->idle, &tenant->idle_link);
    set_n_idle(tenant->tenants, tenant->tenants->n_idle + 1);
}

void wharf_tenant_ref(struct wharf_tenant *tenant)
{
    tenant->n_references++;
    wake(tenant);
}

void wharf_tenant_unref(struct wharf_tenant *tenant)
{
    tenant->n_references--;
    rest(tenant);
}

struct wharf_fair_party *wharf_tenant_party(struct wharf_tenant *tenant)
{
    if (!tenant->loop_party)
        tenant->loop_party = wharf_fair_party_new();
    return tenant->loop_party;
}

void wharf_tenant_forget_hang(struct wharf_tenant *tenant)
{
    tenant->n_hung_filters--;
    rest(tenant);
}

/* ---- those who were refused ---------------------------------------------------------------- */

static void set_n_refused(struct wharf_tenants *tenants, uint32_t n)
{
    __atomic_store_n(&tenants->n_refused, n, __ATOMIC_RELAXED);
}

static void forget_refusals(struct wharf_tenant *tenant)
{
    if (!wharf_list_is_linked(&tenant->refusals.link))
        return;
    wharf_list_remove(&tenant->refusals.link);
    set_n_refused(tenant->tenants, tenant->tenants->n_refused - 1);
}

struct wharf_tenant *wharf_tenants_next_refused(struct wharf_tenants *tenants)
{
    struct wharf_tenant *tenant =
        WHARF_LIST_FIRST(&tenants->refused, struct wharf_tenant, refusals.link);

    if (tenant)
        forget_refusals(tenant);
    return tenant;
}

/* ---- debts --------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of processors' and GPUs' time, in the turns where it is deepest in debt. */
static uint64_t owed_ns(const struct wharf_tenant *tenant)
{
    int64_t least = tenant->interactive_ns < 0 ? tenant->interactive_ns : 0;

    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        for (unsigned k = 0; k < WHARF_N_LANES; k++)
            if (tenant->sched[i].lane[k].turn.deficit_ns < least)
                least = tenant->sched[i].lane[k].turn.deficit_ns;
    return (uint64_t)-least;
}

static uint64_t trust_end_ns(const struct wharf_gpu_trust *trust, uint64_t ban_ns)
{
    uint64_t end_ns =
        later(trust->banned_until_ns, __atomic_load_n(&trust->watched_until_ns, __ATOMIC_RELAXED));

    if (trust->n_alone || trust->n_worker_faults)
        end_ns = later(end_ns, trust->suspect_ns + ban_ns);
    if (trust->n_slow)
        end_ns = later(end_ns, trust->slow_ns + ban_ns);
    if (trust->n_stalls)
        end_ns = later(end_ns, trust->stall_ns + ban_ns);
    return end_ns;
}

uint64_t wharf_tenant_debts_end_ns(const struct wharf_tenant *tenant,
                                   const struct wharf_config *config)
{
    uint64_t end_ns = tenant->idle_ns + owed_ns(tenant);

    if (tenant->is_suspended || wharf_fair_party_owes(tenant->loop_party))
        return WHARF_NEVER;
    /* A new one could use at once what this one gets in a second. */
    if (tenant->interactive_at_ns)
        end_ns = later(end_ns, tenant->interactive_at_ns + WHARF_NS_PER_S);
    /* Likewise for looks at its start words. */
    if (tenant->starts.left_at_ns)
        end_ns = later(end_ns, tenant->starts.left_at_ns + WHARF_NS_PER_S);
    if (tenant->n_filter_hangs)
        end_ns = later(end_ns, tenant->filter_hang_ns + wharf_config_barred_ns(config));
    end_ns = later(end_ns, tenant->starts_paid_ns);
    end_ns = later(end_ns, trust_end_ns(&tenant->gpu_trust, config->gpu_ban_ns));
    return later(end_ns, later(tenant->suspended_until_ns, tenant->not_here_until_ns));
}

/* ---- all of them --------------------------------------------------------------------------- */

void wharf_tenants_init(struct wharf_tenants *tenants)
{
    wharf_totals_init_boundless(&tenants->totals);
    memset(tenants->chains, 0, sizeof(tenants->chains));
    memset(&tenants->dropped, 0, sizeof(tenants->dropped));
    wharf_list_init(&tenants->list);
    wharf_list_init(&tenants->refused);
    wharf_list_init(&tenants->idle);
    tenants->n = tenants->n_idle = tenants->n_walks = 0;
    tenants->n_to_tidy = tenants->n_refused = 0;
    tenants->last_number = 0;
    tenants->memo_parts = 0;
}

uint64_t wharf_tenant_memo_owner(struct wharf_tenants *tenants, struct wharf_tenant *tenant,
                                 uint32_t n_parts)
{
    uint32_t part = 0;

    if (tenant->memo_owner)
        return tenant->memo_owner;
    /* That is many users. */
    if (strcmp(tenant->name, "unknown") == 0)
        return 0;
    while (part < n_parts && (tenants->memo_parts >> part & 1))
        part++;
    if (part == n_parts)
        return 0;
    tenants->memo_parts |= (uint64_t)1 << part;
    tenant->memo_owner = WHARF_MEMO_OWNER(part, tenant->number);
    return tenant->memo_owner;
}

static void give_memo_back(struct wharf_tenants *tenants, const struct wharf_tenant *tenant)
{
    if (tenant->memo_owner)
        tenants->memo_parts &= ~((uint64_t)1 << WHARF_MEMO_PART_OF(tenant->memo_owner));
}

static void drop(struct wharf_tenants *tenants, struct wharf_tenant *tenant)
{
    wake(tenant);
    give_memo_back(tenants, tenant);
    forget_refusals(tenant);
    leave(tenants, tenant);
    wharf_tenant_stats_add(&tenants->dropped, &tenant->stats);
    wharf_fair_party_unref(tenant->loop_party);
    free(tenant);
}

void wharf_tenants_deinit(struct wharf_tenants *tenants)
{
    WHARF_LIST_FOR(link, &tenants->list)
    drop(tenants, WHARF_LIST_ENTRY(link, struct wharf_tenant, link));
}

bool wharf_tenants_tidy(struct wharf_tenants *tenants, const struct wharf_config *config,
                        uint64_t now_ns, uint32_t n_looks)
{
    struct wharf_tenant *tenant;

    if (tenants->n_walks > 0)
        return false;
    for (; n_looks > 0; n_looks--) {
        tenant = WHARF_LIST_FIRST(&tenants->idle, struct wharf_tenant, idle_link);
        if (!tenant)
            return false;
        if (now_ns < wharf_tenant_debts_end_ns(tenant, config)) {
            wharf_list_rotate(&tenants->idle);
            continue;
        }
        if (now_ns < tenant->idle_ns + config->keep_tenants_ns &&
            tenants->n_idle <= WHARF_TENANTS_REMEMBERED)
            return false;
        drop(tenants, tenant);
    }
    return true;
}

bool wharf_tenants_tidy_on(struct wharf_tenants *tenants, const struct wharf_config *config,
                           uint64_t now_ns)
{
    if (tenants->n_to_tidy == 0)
        tenants->n_to_tidy = tenants->n_idle;
    uint32_t n =
        tenants->n_to_tidy < WHARF_TENANTS_TIDIED ? tenants->n_to_tidy : WHARF_TENANTS_TIDIED;
    bool goes_on = wharf_tenants_tidy(tenants, config, now_ns, n);
    tenants->n_to_tidy = goes_on ? tenants->n_to_tidy - n : 0;
    return tenants->n_to_tidy > 0;
}

static void configure(struct wharf_tenant *tenant, const struct wharf_config *config)
{
    tenant->quota = wharf_config_quota_of(config, tenant->name, tenant->group);
    tenant->is_configured = wharf_config_tenant(config, tenant->name) != NULL;
}

static struct wharf_tenant *tenant_new(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config)
{
    struct wharf_tenant *tenant = calloc(1, sizeof(*tenant));

    if (!tenant)
        return NULL;
    strncpy(tenant->name, name, sizeof(tenant->name) - 1);
    tenant->totals = &tenants->totals;
    configure(tenant, config);
    wharf_list_init(&tenant->idle_link);
    wharf_list_init(&tenant->connections);
    wharf_list_init(&tenant->suspended_link);
    wharf_list_init(&tenant->refusals.link);
    wharf_list_init(&tenant->gpu_pins.link);
    wharf_list_init(&tenant->gpu_pins.pins);
    wharf_list_init(&tenant->starts.sessions);
    wharf_list_init(&tenant->starts.young);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_tenant_init(&tenant->sched[i]);
    wharf_estimates_init(&tenant->estimates, tenants->cpu_ns_per_kib);
    wharf_estimates_init_encoding(&tenant->encoding);
    for (unsigned i = 0; i < WHARF_MAX_GPUS; i++)
        wharf_gpu_costs_init(&tenant->gpu_costs[i], tenants->gpus[i].ns_per_kib,
                             tenants->gpus[i].latency_ns);
    return tenant;
}

struct wharf_tenant *wharf_tenants_get(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config)
{
    struct wharf_tenant *tenant = find(tenants, name);

    if (!tenant) {
        tenant = tenant_new(tenants, name, config);
        if (!tenant)
            return NULL;
        enter(tenants, tenant);
    }
    wharf_tenant_ref(tenant);
    return tenant;
}

void wharf_tenant_set_group(struct wharf_tenant *tenant, const char *group,
                            const struct wharf_config *config)
{
    if (strcmp(tenant->group, group) == 0)
        return;
    snprintf(tenant->group, sizeof(tenant->group), "%s", group);
    configure(tenant, config);
}

void wharf_tenants_set_group(struct wharf_tenants *tenants, const char *name, const char *group,
                             const struct wharf_config *config)
{
    struct wharf_tenant *tenant = find(tenants, name);

    if (tenant)
        wharf_tenant_set_group(tenant, group, config);
}

void wharf_tenants_reload(struct wharf_tenants *tenants, const struct wharf_config *config)
{
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        configure(tenant, config);
        if (tenant->is_configured)
            wake(tenant);
        else
            rest(tenant);
    }
}

/* ---- quotas -------------------------------------------------------------------------------- */

void wharf_tenants_set_totals(struct wharf_tenants *tenants, const struct wharf_totals *totals)
{
    static const struct wharf_use nothing;

    tenants->totals = *totals;
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        tenant->has_reservation = false;
        wharf_totals_charge_anyway(&tenants->totals, &nothing, &tenant->has_reservation,
                                   &tenant->used);
    }
}

/* Whether `more` fits beside what is used; a quota that was lowered below its use fits nothing. */
static bool fits(uint64_t used, uint64_t more, uint64_t quota)
{
    return more == 0 || (used <= quota && more <= quota - used);
}

/* By its name and value, as the log names it; of a tenant with settings its own section sets it. */
static const char *write_over_text(struct wharf_tenant *tenant, enum wharf_limit limit)
{
    char *text = tenant->over_texts[limit];

    snprintf(text, WHARF_OVER_NBYTES,
             "over %s = %" PRIu64
             " of [quota], the limit of this user's clients together; close some, or ask for less",
             wharf_limit_setting(limit), wharf_limit_allowed(limit, &tenant->quota));
    return text;
}

/* The first quota that `more` does not fit into beside `used`, WHARF_N_SHARED_LIMITS: it fits. */
static enum wharf_limit find_quota(const struct wharf_tenant *tenant, const struct wharf_use *used,
                                   const struct wharf_use *more)
{
    enum wharf_limit limit = 0;

    while (limit < WHARF_N_SHARED_LIMITS &&
           fits(wharf_limit_used(limit, used), wharf_limit_used(limit, more),
                wharf_limit_allowed(limit, &tenant->quota)))
        limit++;
    return limit;
}

bool wharf_tenant_has_room(const struct wharf_tenant *tenant, const struct wharf_use *use,
                           const struct wharf_use *over)
{
    struct wharf_use used = tenant->used;

    if (over)
        wharf_use_subtract(&used, over);
    return find_quota(tenant, &used, use) == WHARF_N_SHARED_LIMITS;
}

/* Of each limit there is a line at most this often; the next one counts what was between. */
#define SAY_NS (60 * (uint64_t)WHARF_NS_PER_S)

void wharf_tenant_count_refusal(struct wharf_tenant *tenant, enum wharf_limit limit)
{
    struct wharf_refusals *refusals = &tenant->refusals;
    uint64_t now_ns = wharf_now_ns();

    tenant->stats.n_refused[limit]++;
    if (!tenant->tenants ||
        (refusals->said_ns[limit] && now_ns - refusals->said_ns[limit] < SAY_NS))
        return;
    refusals->to_say |= 1u << limit;
    if (wharf_list_is_linked(&refusals->link))
        return;
    wharf_list_append(&tenant->tenants->refused, &refusals->link);
    set_n_refused(tenant->tenants, tenant->tenants->n_refused + 1);
}

int wharf_tenant_charge_over_quota(struct wharf_tenant *tenant, const struct wharf_use *use,
                                   const char **ret_text)
{
    enum wharf_total_kind kind;
    int r =
        wharf_totals_charge(tenant->totals, &tenant->used, &tenant->has_reservation, use, &kind);

    if (r == 0) {
        wharf_use_add(&tenant->used, use);
        return 0;
    }
    if (ret_text)
        *ret_text = tenant->totals->of[kind].text;
    wharf_tenant_count_refusal(tenant, WHARF_LIMIT_TOTAL + kind);
    return r;
}

int wharf_tenant_charge(struct wharf_tenant *tenant, const struct wharf_use *use,
                        const char **ret_text)
{
    enum wharf_limit limit = find_quota(tenant, &tenant->used, use);

    if (limit == WHARF_N_SHARED_LIMITS)
        return wharf_tenant_charge_over_quota(tenant, use, ret_text);
    if (ret_text)
        *ret_text = write_over_text(tenant, limit);
    wharf_tenant_count_refusal(tenant, limit);
    return -EDQUOT;
}

void wharf_tenant_charge_anyway(struct wharf_tenant *tenant, const struct wharf_use *use)
{
    wharf_totals_charge_anyway(tenant->totals, &tenant->used, &tenant->has_reservation, use);
    wharf_use_add(&tenant->used, use);
}

void wharf_tenant_give_back(struct wharf_tenant *tenant, const struct wharf_use *use)
{
    wharf_totals_give_back(tenant->totals, &tenant->used, &tenant->has_reservation, use);
    wharf_use_subtract(&tenant->used, use);
    rest(tenant);
}
