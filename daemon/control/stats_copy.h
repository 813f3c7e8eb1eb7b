/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_copy.h: copies of the daemon's counters.  Metrics are made from these, so no lock is held
 * meanwhile.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_COPY_H
#define WHARF_DAEMON_CONTROL_STATS_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log.h"
#include "daemon/base/process_stats.h"
#include "daemon/core/gpu_view.h"
#include "daemon/core/stats.h"
#include "daemon/core/tenant.h"

struct wharf_core;

/* A copy of the counters of the daemon as a whole and of its GPUs. */
struct wharf_stats_daemon {
    const char *io;
    double uptime_s;
    uint64_t n_workers, n_busy, n_queued;
    uint64_t n_idle_running, n_idle_allowed, n_idle_pieces, n_idle_throttled;
    uint64_t n_shared_chunks, n_shared_ranges, n_helped_ranges;
    uint64_t n_parted_chunks, n_parts, n_parts_refused;
    uint64_t pinned_nbytes;
    uint64_t gpu_chunk_nbytes, gpu_memory_nbytes, gpu_longest_ns; /* settings */
    uint64_t totals[WHARF_N_TOTALS];
    double started_s, configured_s; /* Unix time */
    bool has_bad_config;
    uint64_t n_gpus_expected, n_gpus_up;
    struct wharf_log_counts log;
    struct wharf_process_stats process; /* only for observers */
    uint32_t n_gpus;
    struct {
        const char *name; /* lives as long as the daemon */
        bool is_up;
        uint64_t n_warps, latency_ns, n_in_flight, n_models, n_chunks, out_nbytes, busy_ns, away_ns;
        uint64_t n_given_up, n_large_chunks, n_streams, n_ended, n_lost;
        uint32_t n_encode, n_encode_allowed;
        struct wharf_idle_work idle_work;
        uint64_t n_encoded, encoded_in_nbytes, encoded_out_nbytes;
    } gpus[WHARF_MAX_GPUS];
};

/* A copy of the use and counters of a tenant, or of all tenants together. */
struct wharf_stats_row {
    char name[WHARF_CONFIG_NAME_NBYTES];
    bool has_histograms;
    struct wharf_use used;
    struct wharf_quota quota; /* of a single tenant only */
    uint64_t pinned_nbytes;
    uint64_t n_hung_filters;
    uint64_t n_files, n_file_processes, n_hung_files;
    struct wharf_tenant_stats stats;
};

struct wharf_stats_source {
    struct wharf_stats_daemon daemon;
    struct wharf_stats_row *rows;
    size_t n_rows;
    /* All tenants together, including those without a row and dropped ones; NULL: the reader may
     * not see them. */
    const struct wharf_stats_row *all;
    uint64_t n_tenants;      /* that the daemon knows now, */
    uint64_t n_tenants_seen; /* and ever */
};

/* Copies, under the core lock, in constant time for each GPU. */
void wharf_stats_copy_daemon(const struct wharf_core *core, struct wharf_stats_daemon *ret_daemon);
void wharf_stats_copy_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *ret_row);

/* Adds a tenant's values to the row of all tenants.  Under the core lock. */
void wharf_stats_add_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *all);

#endif
