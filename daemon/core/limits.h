/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h: the limits for which a tenant can be refused, and their settings.
 *
 * Counters, metrics and messages use this one list, so all of them name a limit as wharfd.conf
 * does.
 */
#ifndef WHARF_DAEMON_CORE_LIMITS_H
#define WHARF_DAEMON_CORE_LIMITS_H

#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/core/totals.h"

enum wharf_limit {
    /* Limits on all clients of a tenant together, enforced by wharf_tenant_charge. */
    WHARF_LIMIT_CONNECTIONS,
    WHARF_LIMIT_DESCRIPTORS,
    WHARF_LIMIT_JOBS,
    WHARF_LIMIT_MEMORY,
    WHARF_LIMIT_GPU_MEMORY,
    WHARF_LIMIT_GPU_REGIONS,
    WHARF_N_SHARED_LIMITS,
    /* Limits on one queue, session or client. */
    WHARF_LIMIT_ENTRIES = WHARF_N_SHARED_LIMITS,
    WHARF_LIMIT_ARENA,
    WHARF_LIMIT_REGIONS,
    WHARF_LIMIT_MODELS,
    WHARF_LIMIT_HUNG_GATES, /* no setting: filters, which users know as gates, that its descriptors
                               hang */
    WHARF_LIMIT_TOTAL,      /* the first of enum wharf_total_kind */
    WHARF_N_LIMITS = WHARF_LIMIT_TOTAL + WHARF_N_TOTALS,
};

/* The label in metrics: the setting, for a total with the prefix total_. */
const char *wharf_limit_label(enum wharf_limit limit);

/* The setting's name in its section, [quota] or [total]. */
const char *wharf_limit_setting(enum wharf_limit limit);

/* The amount of one of the first WHARF_N_SHARED_LIMITS in a use. */
uint64_t wharf_limit_used(enum wharf_limit limit, const struct wharf_use *use);

/* The quota's value for a limit before WHARF_LIMIT_HUNG_GATES. */
uint64_t wharf_limit_allowed(enum wharf_limit limit, const struct wharf_quota *quota);

#endif
