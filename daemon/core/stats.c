/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/stats.h"

#include "daemon/base/config.h"
#include "daemon/core/limits.h"

void wharf_engine_stats_add(struct wharf_engine_stats *to, const struct wharf_engine_stats *more)
{
    for (unsigned i = 0; i < WHARF_STATS_N_RESULTS; i++)
        if (more->n_jobs[i])
            to->n_jobs[i] += more->n_jobs[i];
    to->n_chunks += more->n_chunks;
    to->in_nbytes += more->in_nbytes;
    to->out_nbytes += more->out_nbytes;
    to->busy_ns += more->busy_ns;
    wharf_histogram_merge(&to->queue, &more->queue);
    wharf_histogram_merge(&to->run, &more->run);
}

void wharf_memo_stats_add(struct wharf_memo_stats *to, const struct wharf_memo_stats *more)
{
    to->n_looked += more->n_looked;
    to->n_hits += more->n_hits;
    to->n_kept += more->n_kept;
    to->n_evicted += more->n_evicted;
}

void wharf_tenant_stats_add(struct wharf_tenant_stats *to, const struct wharf_tenant_stats *more)
{
    for (unsigned i = 0; i < WHARF_STATS_N_ENGINES; i++)
        wharf_engine_stats_add(&to->engines[i], &more->engines[i]);
    for (unsigned i = 0; i < WHARF_STATS_N_CLASSES; i++)
        wharf_histogram_merge(&to->latency[i], &more->latency[i]);
    to->n_connections += more->n_connections;
    to->n_sessions += more->n_sessions;
    for (unsigned i = 0; i < WHARF_N_LIMITS; i++)
        to->n_refused[i] += more->n_refused[i];
    to->n_broken += more->n_broken;
    to->n_doorbells += more->n_doorbells;
    to->n_compressed += more->n_compressed;
    to->compressed_in_nbytes += more->compressed_in_nbytes;
    to->compressed_out_nbytes += more->compressed_out_nbytes;
    wharf_memo_stats_add(&to->memo, &more->memo);
    to->file_in_nbytes += more->file_in_nbytes;
    to->files.ahead_nbytes += more->files.ahead_nbytes;
    to->files.hit_nbytes += more->files.hit_nbytes;
    to->files.waste_nbytes += more->files.waste_nbytes;
    to->file_out_nbytes += more->file_out_nbytes;
    to->n_evicted += more->n_evicted;
    for (unsigned i = 0; i < WHARF_N_PLACEMENTS; i++)
        to->n_placed[i] += more->n_placed[i];
    for (unsigned i = 0; i < WHARF_MAX_GPUS; i++)
        to->n_on_gpus[i] += more->n_on_gpus[i];
}
