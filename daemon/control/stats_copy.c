/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/stats_copy.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/limits.h"
#include "daemon/core/totals.h"
#include "daemon/gpu/gpus.h"
#include "daemon/schedule/idle_work.h"

static void copy_gpus(const struct wharf_core *core, struct wharf_stats_daemon *daemon)
{
    daemon->n_gpus = core->fleet.n_gpus;
    for (uint32_t i = 0; i < core->fleet.n_gpus; i++) {
        const struct wharf_gpu_view *gpu = &core->fleet.gpus[i];
        bool is_up = wharf_place_is_up(core, i);
        daemon->gpus[i].name = gpu->name;
        daemon->gpus[i].is_up = is_up;
        daemon->gpus[i].n_warps = is_up ? gpu->n_warps : 0;
        daemon->gpus[i].latency_ns = gpu->latency_ns;
        daemon->gpus[i].n_in_flight = gpu->n_in_flight;
        daemon->gpus[i].n_models = gpu->n_models;
        daemon->gpus[i].n_chunks = gpu->n_chunks;
        daemon->gpus[i].out_nbytes = gpu->out_nbytes;
        daemon->gpus[i].busy_ns = gpu->busy_ns;
        daemon->gpus[i].away_ns = gpu->away_ns;
        daemon->gpus[i].n_given_up = gpu->n_given_up;
        daemon->gpus[i].n_large_chunks = gpu->n_large_chunks;
        daemon->gpus[i].n_streams = gpu->n_streams;
        daemon->gpus[i].n_encode = is_up ? gpu->n_encode : 0;
        daemon->gpus[i].n_encode_allowed =
            is_up && gpu->n_encode > 0 ? wharf_idle_work_allowed(&gpu->idle_work, gpu->n_encode)
                                       : 0;
        daemon->gpus[i].idle_work = gpu->idle_work;
        daemon->gpus[i].n_encoded = gpu->n_encoded;
        daemon->gpus[i].encoded_in_nbytes = gpu->encoded_in_nbytes;
        daemon->gpus[i].encoded_out_nbytes = gpu->encoded_out_nbytes;
        daemon->gpus[i].n_ended = gpu->n_ended;
        daemon->gpus[i].n_lost = gpu->n_lost;
    }
}

void wharf_stats_copy_daemon(const struct wharf_core *core, struct wharf_stats_daemon *ret_daemon)
{
    ret_daemon->n_workers = core->workers.n_workers;
    ret_daemon->n_busy = core->workers.n_short + core->workers.n_long;
    ret_daemon->n_queued = wharf_place_n_queued(core);
    ret_daemon->n_idle_running = core->idle_work.n_running;
    ret_daemon->n_idle_allowed = wharf_idle_work_allowed(&core->idle_work, core->workers.n_workers);
    ret_daemon->n_idle_pieces = core->idle_work.n_pieces;
    ret_daemon->n_idle_throttled = core->idle_work.n_throttled;
    ret_daemon->n_shared_chunks = core->workers.n_shared_chunks;
    ret_daemon->n_shared_ranges = core->workers.n_shared_ranges;
    ret_daemon->n_helped_ranges = core->workers.n_helped_ranges;
    ret_daemon->n_parted_chunks = core->fleet.n_parted_chunks;
    ret_daemon->n_parts = core->fleet.n_parts;
    ret_daemon->n_parts_refused = core->fleet.n_parts_refused;
    ret_daemon->pinned_nbytes = core->residency.pinned_nbytes;
    ret_daemon->gpu_chunk_nbytes = core->config.gpu_chunk_nbytes;
    ret_daemon->gpu_memory_nbytes = core->config.gpu_memory_nbytes;
    ret_daemon->gpu_longest_ns = core->config.gpu_longest_ns;
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        ret_daemon->totals[i] = core->tenants.totals.of[i].total;
    ret_daemon->started_s = core->started_s;
    ret_daemon->configured_s = core->configured_s;
    ret_daemon->has_bad_config = core->has_bad_config;
    ret_daemon->n_gpus_expected = wharf_gpus_expected(core);
    ret_daemon->n_gpus_up = wharf_gpus_up(core);
    wharf_log_read_counts(&ret_daemon->log);
    copy_gpus(core, ret_daemon);
}

void wharf_stats_copy_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *ret_row)
{
    memcpy(ret_row->name, tenant->name, sizeof(ret_row->name));
    ret_row->used = tenant->used;
    ret_row->quota = tenant->quota;
    ret_row->pinned_nbytes = tenant->gpu_pins.pinned_nbytes;
    ret_row->n_hung_filters = tenant->n_hung_filters;
    ret_row->n_files = __atomic_load_n(&tenant->n_files, __ATOMIC_RELAXED);
    ret_row->n_file_processes = __atomic_load_n(&tenant->n_file_processes, __ATOMIC_RELAXED);
    ret_row->n_hung_files = __atomic_load_n(&tenant->n_hung_files, __ATOMIC_RELAXED);
    ret_row->stats = tenant->stats;
}

void wharf_stats_add_tenant(const struct wharf_tenant *tenant, struct wharf_stats_row *all)
{
    wharf_use_add(&all->used, &tenant->used);
    all->pinned_nbytes += tenant->gpu_pins.pinned_nbytes;
    all->n_hung_filters += tenant->n_hung_filters;
    all->n_files += __atomic_load_n(&tenant->n_files, __ATOMIC_RELAXED);
    all->n_file_processes += __atomic_load_n(&tenant->n_file_processes, __ATOMIC_RELAXED);
    all->n_hung_files += __atomic_load_n(&tenant->n_hung_files, __ATOMIC_RELAXED);
    wharf_tenant_stats_add(&all->stats, &tenant->stats);
}
