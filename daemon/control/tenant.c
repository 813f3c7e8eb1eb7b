/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void wharf_tenants_init(struct wharf_tenants *tenants)
{
    wharf_totals_init_boundless(&tenants->totals);
    wharf_list_init(&tenants->list);
    tenants->n = 0;
    tenants->last_number = 0;
}

static void forget(struct wharf_tenants *tenants, struct wharf_tenant *tenant)
{
    wharf_list_remove(&tenant->link);
    tenants->n--;
    free(tenant);
}

void wharf_tenants_deinit(struct wharf_tenants *tenants)
{
    WHARF_LIST_FOR(link, &tenants->list)
    forget(tenants, WHARF_LIST_ENTRY(link, struct wharf_tenant, link));
}

static bool is_idle(const struct wharf_tenant *tenant)
{
    return wharf_use_is_nothing(&tenant->used) && tenant->n_hung_gates == 0 &&
           tenant->n_pins == 0 && !tenant->is_suspended;
}

/* Drops the one that has been idle for the longest time, if there are too many. */
static void forget_surplus(struct wharf_tenants *tenants)
{
    if (tenants->n < WHARF_TENANTS_REMEMBERED)
        return;
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        if (is_idle(tenant)) {
            forget(tenants, tenant);
            return;
        }
    }
}

static struct wharf_tenant *tenant_new(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config)
{
    struct wharf_tenant *tenant = calloc(1, sizeof(*tenant));

    if (!tenant)
        return NULL;
    strncpy(tenant->name, name, sizeof(tenant->name) - 1);
    tenant->totals = &tenants->totals;
    tenant->quota = wharf_config_quota_of(config, tenant->name);
    wharf_list_init(&tenant->suspended_link);
    wharf_list_init(&tenant->gpu_pins.link);
    wharf_list_init(&tenant->gpu_pins.pins);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_tenant_init(&tenant->sched[i]);
    wharf_estimates_init(&tenant->estimates, tenants->cpu_ns_per_kib);
    for (unsigned i = 0; i < WHARF_MAX_GPUS; i++)
        wharf_gpu_costs_init(&tenant->gpu_costs[i], tenants->gpus[i].ns_per_kib,
                             tenants->gpus[i].latency_ns);
    return tenant;
}

struct wharf_tenant *wharf_tenants_get(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config)
{
    struct wharf_tenant *tenant;

    WHARF_LIST_FOR(link, &tenants->list)
    {
        tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        if (strcmp(tenant->name, name) == 0) {
            /* The latest one is the last to be forgotten. */
            wharf_list_remove(link);
            wharf_list_append(&tenants->list, link);
            return tenant;
        }
    }
    forget_surplus(tenants);
    tenant = tenant_new(tenants, name, config);
    if (!tenant)
        return NULL;
    tenant->number = ++tenants->last_number;
    wharf_list_append(&tenants->list, &tenant->link);
    tenants->n++;
    return tenant;
}

struct wharf_tenant *wharf_tenants_from(struct wharf_tenants *tenants, uint64_t number)
{
    struct wharf_tenant *found = NULL;

    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        if (tenant->number >= number && (!found || tenant->number < found->number))
            found = tenant;
    }
    return found;
}

void wharf_tenants_reload(struct wharf_tenants *tenants, const struct wharf_config *config)
{
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        tenant->quota = wharf_config_quota_of(config, tenant->name);
    }
}

void wharf_tenants_set_totals(struct wharf_tenants *tenants, const struct wharf_totals *totals)
{
    static const struct wharf_use nothing;

    tenants->totals = *totals;
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        tenant->has_place = false;
        wharf_totals_charge_anyway(&tenants->totals, &nothing, &tenant->has_place, &tenant->used);
    }
}

/* Whether `more` fits beside what is used; a quota that was lowered below its use fits nothing. */
static bool fits(uint64_t used, uint64_t more, uint64_t quota)
{
    return more == 0 || (used <= quota && more <= quota - used);
}

#define OVER(quota)                                                                                \
    "over " quota ", the limit of this user's clients together; close some, or ask for less"

int wharf_tenant_charge(struct wharf_tenant *tenant, const struct wharf_use *use,
                        const char **ret_text)
{
    const struct wharf_use *used = &tenant->used;
    const struct wharf_quota *quota = &tenant->quota;
    const char *text = NULL;

    if (!fits(used->n_connections, use->n_connections, quota->max_connections))
        text = OVER("max_connections");
    else if (!fits(used->n_descriptors, use->n_descriptors, quota->max_descriptors))
        text = OVER("max_descriptors");
    else if (!fits(used->n_jobs, use->n_jobs, quota->max_jobs))
        text = OVER("max_jobs");
    else if (!fits(used->memory_nbytes, use->memory_nbytes, quota->max_memory_nbytes))
        text = OVER("max_memory");
    else if (!fits(used->gpu_nbytes, use->gpu_nbytes, quota->max_gpu_memory_nbytes))
        text = OVER("max_gpu_memory");
    else if (!fits(used->n_gpu_regions, use->n_gpu_regions, quota->max_gpu_regions))
        text = OVER("max_gpu_regions");
    if (text) {
        if (ret_text)
            *ret_text = text;
        return -EDQUOT;
    }
    int r = wharf_totals_charge(tenant->totals, used, &tenant->has_place, use, ret_text);
    if (r == 0)
        wharf_use_add(&tenant->used, use);
    return r;
}

void wharf_tenant_charge_anyway(struct wharf_tenant *tenant, const struct wharf_use *use)
{
    wharf_totals_charge_anyway(tenant->totals, &tenant->used, &tenant->has_place, use);
    wharf_use_add(&tenant->used, use);
}

void wharf_tenant_give_back(struct wharf_tenant *tenant, const struct wharf_use *use)
{
    wharf_totals_give_back(tenant->totals, &tenant->used, &tenant->has_place, use);
    wharf_use_subtract(&tenant->used, use);
}
