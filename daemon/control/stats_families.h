/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_families.h: the table of the daemon's metric families.
 *
 * Each family is one row: name, help, type, and a function that adds its samples.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_FAMILIES_H
#define WHARF_DAEMON_CONTROL_STATS_FAMILIES_H

#include "daemon/control/stats_copy.h"
#include "daemon/control/stats_page.h"
#include "daemon/core/stats.h"

/* What one group's samples are made of. */
struct wharf_stats_group {
    const struct wharf_stats_source *source;
    const struct wharf_stats_row *row;
    const char *tenant; /* labels; NULL: none */
    const char *gpu;
    const char *engine;
    const struct wharf_engine_stats *stats; /* of that engine */
    const char *job_class;
    const struct wharf_histogram *latency; /* of that class */
    double value;
};

/* What a family is of: the daemon, each GPU, each tenant, each engine and each class of jobs of
 * each tenant; all tenants together, and each engine and class of these. */
enum wharf_stats_scope {
    WHARF_STATS_OF_DAEMON,
    WHARF_STATS_OF_GPU,
    WHARF_STATS_OF_TENANT,
    WHARF_STATS_OF_ENGINE,
    WHARF_STATS_OF_CLASS,
    WHARF_STATS_OF_ALL_TENANT,
    WHARF_STATS_OF_ALL_ENGINE,
    WHARF_STATS_OF_ALL_CLASS
};

struct wharf_stats_family {
    const char *name;
    const char *help;
    Wharf__MetricType type;
    enum wharf_stats_scope scope;
    double (*value)(const struct wharf_stats_source *source, unsigned gpu,
                    const struct wharf_stats_row *row, const struct wharf_engine_stats *engine);
    void (*add)(struct wharf_stats_page *page, const struct wharf_stats_group *group);
};

extern const struct wharf_stats_family wharf_stats_families[];
extern const unsigned wharf_stats_n_families;

#endif
