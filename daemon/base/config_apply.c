/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_apply.c: what a configuration says of a tenant, and what of a new one takes effect at
 * once.
 */
#include "daemon/base/config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config_table.h"

/* ---- quotas -------------------------------------------------------------------------------- */

static const struct wharf_config_quota *find_quota(const struct wharf_config_quota *list, size_t n,
                                                   const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

const struct wharf_config_quota *wharf_config_tenant(const struct wharf_config *config,
                                                     const char *tenant)
{
    return find_quota(config->tenants, config->n_tenants, tenant);
}

static void put_over(struct wharf_quota *quota, const struct wharf_config_quota *own)
{
    for (size_t at = 0; own && at < WHARF_QUOTA_N_MEMBERS; at++)
        if (own->set >> at & 1)
            ((uint64_t *)quota)[at] = ((const uint64_t *)&own->quota)[at];
}

struct wharf_quota wharf_config_quota_of(const struct wharf_config *config, const char *tenant,
                                         const char *group)
{
    struct wharf_quota quota = config->quota;

    put_over(&quota, find_quota(config->groups, config->n_groups, group));
    put_over(&quota, find_quota(config->tenants, config->n_tenants, tenant));
    return quota;
}

/* ---- reload -------------------------------------------------------------------------------- */

static bool differs(const struct wharf_setting *s, const void *a, const void *b)
{
    const char *in_a = (const char *)a + s->offset;
    const char *in_b = (const char *)b + s->offset;

    if (wharf_setting_is_text(s))
        return strcmp(in_a, in_b) != 0;
    return memcmp(in_a, in_b, sizeof(uint64_t)) != 0;
}

static bool listens_differ(const struct wharf_config *a, const struct wharf_config *b)
{
    return a->n_listens != b->n_listens ||
           (a->n_listens && memcmp(a->listens, b->listens, a->n_listens * sizeof(*a->listens)));
}

void wharf_config_reload(struct wharf_config *config, struct wharf_config *next,
                         void (*kept)(const char *section, const char *key))
{
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        if (strcmp(s->section, "quota") == 0 || strcmp(s->section, "listen") == 0)
            continue;
        if (!differs(s, config, next))
            continue;
        if (s->reloads)
            memcpy((char *)config + s->offset, (char *)next + s->offset,
                   wharf_setting_is_text(s) ? s->max : sizeof(uint64_t));
        else
            kept(s->section, s->key);
    }
    if (listens_differ(config, next))
        kept("listen", "path, group, mode or tenant");
    config->quota = next->quota;
    free(config->tenants);
    config->tenants = WHARF_STEAL(next->tenants);
    config->n_tenants = next->n_tenants;
    next->n_tenants = 0;
    free(config->groups);
    config->groups = WHARF_STEAL(next->groups);
    config->n_groups = next->n_groups;
    next->n_groups = 0;
}
