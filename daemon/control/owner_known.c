/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/owner_known.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/control/server.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/owner_lookup.h"

/* How long a failed look-up is remembered. */
#define UNKNOWN_NS (10 * (uint64_t)WHARF_NS_PER_S)

/* Whether a uid needs no look-up: it is an owner by the rules, or in a block. */
static bool is_settled(const struct wharf_owner_known *known, uid_t uid, char name[])
{
    /* Linux's default, on which many programs rely. */
    static const uid_t overflow = 65534;
    const struct wharf_config *config = &known->server->config;
    const struct wharf_uid_range *range = wharf_uid_ranges_find(&known->blocks, uid);

    snprintf(name, WHARF_CONFIG_NAME_NBYTES, "uid:%u", (unsigned)uid);
    if (uid == 0 || uid == overflow || wharf_config_tenant(config, name))
        return true;
    if (!range)
        return false;
    uint64_t n_before = (uid - range->first) / config->owners.block_n_uids;
    snprintf(name, WHARF_CONFIG_NAME_NBYTES, "block:%u",
             (unsigned)(range->first + n_before * config->owners.block_n_uids));
    return true;
}

/* The range that a uid is in, if it is known and not too old. */
static const struct wharf_owner_range *find_fresh(struct wharf_owner_known *known, uid_t uid)
{
    const struct wharf_owner_range *range = wharf_owner_cache_find(&known->cache, uid);

    return range && wharf_now_ns() < range->until_ns ? range : NULL;
}

bool wharf_owner_known_resolve(struct wharf_owner_known *known, struct wharf_owner_walk *walk,
                               const struct wharf_owner_range *answer)
{
    while (!is_settled(known, walk->at, walk->tenant)) {
        const struct wharf_owner_range *range = answer ? answer : find_fresh(known, walk->at);
        if (!range)
            return false;
        if (!range->is_unknown && range->owner == walk->at)
            return true;
        if (range->is_unknown || ++walk->n_steps == WHARF_OWNERS_MOST_STEPS) {
            strcpy(walk->tenant, WHARF_OWNERS_UNKNOWN);
            return true;
        }
        walk->at = range->owner;
        answer = NULL;
    }
    return true;
}

void wharf_owner_known_resolve_by_old(struct wharf_owner_known *known,
                                      struct wharf_owner_walk *walk)
{
    const struct wharf_owner_range *range = wharf_owner_cache_find(&known->cache, walk->at);

    if (!range || !wharf_owner_known_resolve(known, walk, range))
        strcpy(walk->tenant, WHARF_OWNERS_UNKNOWN);
}

/* ---- answers ------------------------------------------------------------------------------- */

void wharf_owner_known_add_failure(struct wharf_owner_known *known, uid_t uid)
{
    struct wharf_owner_range *last = wharf_owner_cache_find(&known->cache, uid);
    struct wharf_owner_range unknown = {.first = uid, .last = uid, .is_unknown = true};

    unknown.until_ns = wharf_now_ns() + UNKNOWN_NS;
    if (last)
        last->until_ns = unknown.until_ns;
    else
        wharf_owner_cache_add(&known->cache, &unknown);
}

void wharf_owner_known_add(struct wharf_owner_known *known, uid_t uid,
                           const struct wharf_owner_answer *answer)
{
    if (answer->error || answer->first > uid || answer->last < uid) {
        wharf_owner_known_add_failure(known, uid);
        return;
    }
    wharf_owner_cache_add(&known->cache,
                          &(struct wharf_owner_range){
                              .first = answer->first,
                              .last = answer->last,
                              .owner = answer->owner,
                              .until_ns = wharf_now_ns() + known->server->config.owners.remember_ns,
                          });
}

const char *wharf_owner_known_add_group(struct wharf_owner_known *known, uid_t uid,
                                        const struct wharf_owner_answer *answer)
{
    struct wharf_server *server = known->server;
    struct wharf_member member = {.uid = uid, .is_known = !answer->error};
    char name[WHARF_CONFIG_NAME_NBYTES];
    const char *group = "";

    /* The process has the present configuration's groups, since a reload ends it. */
    if (answer->owner < server->config.n_groups)
        group = server->config.groups[answer->owner].name;
    snprintf(member.group, sizeof(member.group), "%s", group);
    member.until_ns =
        wharf_now_ns() + (member.is_known ? server->config.owners.remember_ns : UNKNOWN_NS);
    wharf_member_cache_add(&known->members, &member);
    if (!member.is_known)
        return NULL;
    snprintf(name, sizeof(name), "uid:%u", (unsigned)uid);
    wharf_core_enter(&server->core);
    wharf_tenants_set_group(&server->core.tenants, name, group, &server->config);
    wharf_core_leave(&server->core);
    return group;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void take_config(struct wharf_owner_known *known)
{
    /* The configuration was checked when it was read. */
    wharf_uid_ranges_parse(known->server->config.owners.blocks, &known->blocks);
}

void wharf_owner_known_reload(struct wharf_owner_known *known)
{
    take_config(known);
    wharf_owner_cache_expire(&known->cache);
    wharf_member_cache_clear(&known->members);
}

int wharf_owner_known_init(struct wharf_owner_known *known, struct wharf_server *server)
{
    known->server = server;
    take_config(known);
    int r = wharf_owner_cache_init(&known->cache);

    return r < 0 ? r : wharf_member_cache_init(&known->members);
}

void wharf_owner_known_deinit(struct wharf_owner_known *known)
{
    wharf_owner_cache_deinit(&known->cache);
    wharf_member_cache_deinit(&known->members);
}
