/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h: what a tenant can be refused for, and the settings that say so.
 *
 * One list serves counters, metrics and messages, so that all of them name a limit as wharfd.conf
 * does.
 */
#ifndef WHARF_DAEMON_CORE_LIMITS_H
#define WHARF_DAEMON_CORE_LIMITS_H

#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/core/totals.h"

enum wharf_limit {
    /* Of all that a tenant's clients have together: wharf_tenant_charge holds these. */
    WHARF_LIMIT_CONNECTIONS,
    WHARF_LIMIT_DESCRIPTORS,
    WHARF_LIMIT_JOBS,
    WHARF_LIMIT_MEMORY,
    WHARF_LIMIT_GPU_MEMORY,
    WHARF_LIMIT_GPU_REGIONS,
    WHARF_N_SHARED_LIMITS,
    /* Of one queue, session or client. */
    WHARF_LIMIT_ENTRIES = WHARF_N_SHARED_LIMITS,
    WHARF_LIMIT_ARENA,
    WHARF_LIMIT_REGIONS,
    WHARF_LIMIT_MODELS,
    WHARF_LIMIT_HUNG_GATES, /* no setting: descriptors that have hung processes of the daemon */
    WHARF_LIMIT_TOTAL,      /* the first of enum wharf_total_kind */
    WHARF_N_LIMITS = WHARF_LIMIT_TOTAL + WHARF_N_TOTALS,
};

/* As labels name it: the setting, of a total with total_ before it. */
const char *wharf_limit_label(enum wharf_limit limit);

/* The setting's name in its section, [quota] or [total]. */
const char *wharf_limit_setting(enum wharf_limit limit);

/* The amount of one of the first WHARF_N_SHARED_LIMITS in a use. */
uint64_t wharf_limit_used(enum wharf_limit limit, const struct wharf_use *use);

/* What a quota says of one before WHARF_LIMIT_HUNG_GATES. */
uint64_t wharf_limit_allowed(enum wharf_limit limit, const struct wharf_quota *quota);

#endif
