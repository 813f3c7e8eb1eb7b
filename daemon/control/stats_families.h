/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_families.h: the daemon's metric families, and pages of their samples.
 *
 * Samples are made from copies of the counters, so that no lock is held meanwhile.
 *
 * All samples have an order: by family, then by tenant or GPU, then by engine or class, then within
 * a group of samples that belong together (a histogram, one counter for each result).  A page
 * begins at a cursor, a position in that order, and holds as many groups as fit.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_FAMILIES_H
#define WHARF_DAEMON_CONTROL_STATS_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log.h"
#include "daemon/base/process_stats.h"
#include "daemon/control/stats_page.h"
#include "daemon/core/stats.h"
#include "daemon/core/tenant.h"

struct wharf_core;

/* A copy of what the daemon as a whole, and its GPUs, have counted. */
struct wharf_stats_daemon {
    const char *io;
    double uptime_s;
    uint64_t n_workers, n_busy, n_queued;
    uint64_t n_idle_running, n_idle_allowed, n_idle_pieces, n_idle_throttled;
    uint64_t n_shared_chunks, n_shared_ranges, n_helped_ranges;
    uint64_t n_parted_chunks, n_parts, n_parts_refused;
    uint64_t pinned_nbytes;
    uint64_t totals[WHARF_N_TOTALS];
    double started_s, configured_s; /* Unix time */
    bool has_bad_config;
    uint64_t n_gpus_expected, n_gpus_up;
    struct wharf_log_counts log;
    struct wharf_process_stats process; /* only of what has all tenants */
    uint32_t n_gpus;
    struct {
        const char *name; /* stays as long as the daemon */
        bool is_up;
        uint64_t n_warps, latency_ns, n_in_flight, n_models, n_chunks, out_nbytes, busy_ns, away_ns;
        uint64_t n_copied, n_given_up, n_large_chunks, n_ended, n_lost;
    } gpus[WHARF_MAX_GPUS];
};

/* A copy of what a tenant, or all tenants together, have and have counted. */
struct wharf_stats_row {
    char name[WHARF_CONFIG_NAME_NBYTES];
    bool has_histograms;
    struct wharf_use used;
    struct wharf_quota quota; /* not of all together */
    uint64_t pinned_nbytes;
    uint64_t n_hung_filters;
    struct wharf_tenant_stats stats;
};

struct wharf_stats_source {
    struct wharf_stats_daemon daemon;
    struct wharf_stats_row *rows;
    size_t n_rows;
    /* All tenants together, with those that have no row here and those that were dropped; NULL: who
     * asks may not see them. */
    const struct wharf_stats_row *all;
    uint64_t n_tenants;      /* that the daemon knows, */
    uint64_t n_tenants_seen; /* and those that it has known */
};

/* Copies, under the core lock.  They take constant time, and some for each GPU. */
void wharf_stats_copy_daemon(const struct wharf_core *core, struct wharf_stats_daemon *ret_daemon);
void wharf_stats_copy_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *ret_row);

/* Adds what a tenant has to a row of all together.  Under the core lock. */
void wharf_stats_add_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *all);

struct wharf_stats_cursor {
    unsigned family;
    uint64_t at;   /* a row's number, or a GPU's; 0 of families of the daemon as a whole */
    unsigned part; /* an engine, or a class of jobs */
};

bool wharf_stats_cursor_is_good(const struct wharf_stats_cursor *cursor);

/* Fills a page from the cursor on, and moves it to the first group that did not fit.  Returns
 * false if there are no more. */
bool wharf_stats_fill(struct wharf_stats_page *page, const struct wharf_stats_source *source,
                      struct wharf_stats_cursor *cursor);

/*
 * An upper bound of the size of samples as text, in Prometheus' format: of those of one row, and of
 * all that belong to no row, with the lines that describe each family.  The page is scratch space.
 */
size_t wharf_stats_row_text_nbytes(const struct wharf_stats_source *source,
                                   struct wharf_stats_row *row, struct wharf_stats_page *page);
size_t wharf_stats_other_text_nbytes(const struct wharf_stats_source *source,
                                     struct wharf_stats_page *page);

#endif
