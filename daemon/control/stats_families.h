/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_families.h: the metric families that the daemon has, from copies of what it counts, as
 * pages.
 *
 * All samples have an order: by family, then by tenant or GPU, then by engine, then within a group
 * of samples that belong together (a histogram, one counter for each result).  A page begins at a
 * place in that order and holds as many groups as fit.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_FAMILIES_H
#define WHARF_DAEMON_CONTROL_STATS_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/control/stats.h"
#include "daemon/control/stats_page.h"
#include "daemon/control/tenant.h"

struct wharf_front;

/* Of the daemon as a whole, and of its GPUs. */
struct wharf_stats_daemon {
    const char *io;
    double uptime_s;
    uint64_t n_workers, n_busy, n_queued;
    uint64_t n_shared_chunks, n_shared_ranges, n_helped_ranges;
    uint64_t n_parted_chunks, n_parts, n_parts_refused;
    uint64_t pinned_nbytes;
    uint32_t n_gpus;
    struct {
        const char *name; /* stays as long as the daemon */
        bool is_up;
        uint64_t n_warps, latency_ns, n_in_flight, n_models, n_chunks, out_nbytes, busy_ns, away_ns;
        uint64_t n_copied, n_given_up, n_large_chunks, n_ended, n_lost;
    } gpus[WHARF_MAX_GPUS];
};

/* Of a tenant, or of all together. */
struct wharf_stats_row {
    char name[WHARF_CONFIG_NAME_NBYTES];
    bool has_histograms;
    struct wharf_use used;
    uint64_t pinned_nbytes;
    uint64_t n_hung_gates;
    struct wharf_tenant_stats stats;
};

struct wharf_stats_source {
    struct wharf_stats_daemon daemon;
    struct wharf_stats_row *rows;
    size_t n_rows;
    /* All tenants together, those of which there are no rows and those that are gone too; NULL: not
     * for who asks. */
    const struct wharf_stats_row *all;
    uint64_t n_tenants;      /* that the daemon knows, */
    uint64_t n_tenants_seen; /* and those that it has known */
};

/* Copies, under the front lock: of constant size, or of that of the GPUs. */
void wharf_stats_copy_daemon(const struct wharf_front *front,
                             struct wharf_stats_daemon *ret_daemon);
void wharf_stats_copy_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *ret_row);

/* Adds what a tenant has to a row of all together.  Under the front lock. */
void wharf_stats_add_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *all);

struct wharf_stats_place {
    unsigned family;
    uint64_t at; /* a row's number, or a GPU's; 0 of families of the daemon as a whole */
    unsigned engine;
};

bool wharf_stats_place_is_good(const struct wharf_stats_place *place);

/* Fills a page from the place on, and moves that to the first group that did not fit.  Returns
 * false if there are no more. */
bool wharf_stats_fill(struct wharf_stats_page *page, const struct wharf_stats_source *source,
                      struct wharf_stats_place *place);

/*
 * How long a row's samples are as text, in Prometheus' format; and all others' together, with what
 * says what they are.  At least so long: of some values the most digits are taken.  The page is
 * room to work in.
 */
size_t wharf_stats_row_text_nbytes(const struct wharf_stats_source *source,
                                   struct wharf_stats_row *row, struct wharf_stats_page *page);
size_t wharf_stats_other_text_nbytes(const struct wharf_stats_source *source,
                                     struct wharf_stats_page *page);

#endif
