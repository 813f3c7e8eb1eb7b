/* SPDX-License-Identifier: Apache-2.0 */
/* stats_families.c: the table of metrics.  A new metric is a new row. */
#include "daemon/control/stats_families.h"

#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/core/limits.h"
#include "daemon/core/totals.h"

/* ---- samples of a group -------------------------------------------------------------------- */

static void label_group(struct wharf_stats_page *page, Wharf__Sample *sample,
                        const struct wharf_stats_group *group)
{
    if (group->tenant)
        wharf_stats_page_label(page, sample, "tenant", group->tenant);
    if (group->gpu)
        wharf_stats_page_label(page, sample, "gpu", group->gpu);
    if (group->engine)
        wharf_stats_page_label(page, sample, "engine", group->engine);
    if (group->job_class)
        wharf_stats_page_label(page, sample, "class", group->job_class);
}

static void add_value(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    label_group(page, wharf_stats_page_add(page, "", group->value), group);
}

/* One of several samples that differ in one label. */
static void add_labelled(struct wharf_stats_page *page, const struct wharf_stats_group *group,
                         double value, const char *label, const char *label_value)
{
    Wharf__Sample *sample = wharf_stats_page_add(page, "", value);

    label_group(page, sample, group);
    wharf_stats_page_label(page, sample, label, label_value);
}

/* The same of counters; none if it is 0. */
static void add_count(struct wharf_stats_page *page, const struct wharf_stats_group *group,
                      uint64_t count, const char *label, const char *label_value)
{
    if (count)
        add_labelled(page, group, (double)count, label, label_value);
}

static void add_results(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (uint32_t i = 0; i < WHARF_STATS_N_RESULTS; i++)
        add_count(page, group, group->stats->n_jobs[i], "result", wharf_result_name(i));
}

/* Who has histograms has those that are 0 too: they can be seen to begin. */
static void add_refused(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    const uint64_t *n_refused = group->row->stats.n_refused;

    for (enum wharf_limit i = 0; i < WHARF_N_LIMITS; i++)
        if (n_refused[i] || group->row->has_histograms)
            add_labelled(page, group, (double)n_refused[i], "limit", wharf_limit_label(i));
}

/* A tenant that is not listed in full has those of which it uses a half or more: they are what is
 * looked out for, and thousands of tenants would have six series each that say nothing. */
static bool shows_limit(const struct wharf_stats_row *row, enum wharf_limit limit)
{
    uint64_t allowed = wharf_limit_allowed(limit, &row->quota);

    return row->has_histograms || wharf_limit_used(limit, &row->used) >= allowed - allowed / 2;
}

/* Few tenants have any: of the others there is no sample, so that more tenants fit into a page. */
static void add_memo(struct wharf_stats_page *page, const struct wharf_stats_group *group,
                     uint64_t count)
{
    if (count > 0)
        label_group(page, wharf_stats_page_add(page, "", (double)count), group);
}

static void add_memo_lookups(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_memo(page, group, group->row->stats.memo.n_looked);
}

static void add_memo_hits(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_memo(page, group, group->row->stats.memo.n_hits);
}

static void add_memo_kept(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_memo(page, group, group->row->stats.memo.n_kept);
}

static void add_memo_evicted(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_memo(page, group, group->row->stats.memo.n_evicted);
}

static void add_limits(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (enum wharf_limit i = 0; i < WHARF_N_SHARED_LIMITS; i++)
        if (shows_limit(group->row, i))
            add_labelled(page, group, (double)wharf_limit_allowed(i, &group->row->quota), "limit",
                         wharf_limit_label(i));
}

static void add_limits_used(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (enum wharf_limit i = 0; i < WHARF_N_SHARED_LIMITS; i++)
        if (shows_limit(group->row, i))
            add_labelled(page, group, (double)wharf_limit_used(i, &group->row->used), "limit",
                         wharf_limit_label(i));
}

static void add_totals(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        add_labelled(page, group, (double)group->source->daemon.totals[i], "limit",
                     wharf_limit_setting(WHARF_LIMIT_TOTAL + i));
}

static void add_totals_used(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        add_labelled(page, group, (double)wharf_total_used(i, &group->row->used), "limit",
                     wharf_limit_setting(WHARF_LIMIT_TOTAL + i));
}

static void add_placements(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    static const char *const names[] = {
        [WHARF_PLACED_CPU_ASKED] = "cpu_asked",   [WHARF_PLACED_GPU_ASKED] = "gpu_asked",
        [WHARF_PLACED_CPU_SOONER] = "cpu_sooner", [WHARF_PLACED_GPU_SOONER] = "gpu_sooner",
        [WHARF_PLACED_NO_GPU] = "no_gpu",         [WHARF_PLACED_CODEC] = "codec",
        [WHARF_PLACED_TOO_LARGE] = "too_large",   [WHARF_PLACED_NOT_PINNED] = "not_pinned",
        [WHARF_PLACED_BANNED] = "banned",         [WHARF_PLACED_TO_LEARN] = "to_learn",
        [WHARF_PLACED_CPU_MORE] = "cpu_more",     [WHARF_PLACED_GPU_MORE] = "gpu_more",
        [WHARF_PLACED_GPU_MEMORY] = "gpu_memory", [WHARF_PLACED_SEVERAL_GPUS] = "several_gpus",
    };

    for (uint32_t i = 0; i < WHARF_N_PLACEMENTS; i++)
        add_count(page, group, group->row->stats.n_placed[i], "reason", names[i]);
}

static void add_on_gpus(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    for (uint32_t i = 0; i < group->source->daemon.n_gpus; i++)
        add_count(page, group, group->row->stats.n_on_gpus[i], "gpu",
                  group->source->daemon.gpus[i].name);
}

/* Bounds as Prometheus writes them: seconds. */
static void add_histogram(struct wharf_stats_page *page, const struct wharf_stats_group *group,
                          const struct wharf_histogram *histogram)
{
    uint64_t count = 0;
    char bound[32];

    for (unsigned i = 0; i < WHARF_STATS_N_BUCKETS; i++) {
        count += histogram->buckets[i];
        if (i + 1 < WHARF_STATS_N_BUCKETS)
            snprintf(bound, sizeof(bound), "%.9g", 1e-6 * (double)((uint64_t)1 << i));
        else
            snprintf(bound, sizeof(bound), "+Inf");
        Wharf__Sample *sample = wharf_stats_page_add(page, "_bucket", (double)count);
        label_group(page, sample, group);
        wharf_stats_page_label(page, sample, "le", wharf_stats_page_text(page, bound));
    }
    label_group(page, wharf_stats_page_add(page, "_sum", 1e-9 * (double)histogram->sum_ns), group);
    label_group(page, wharf_stats_page_add(page, "_count", (double)count), group);
}

static void add_queue(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_histogram(page, group, &group->stats->queue);
}

static void add_run(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_histogram(page, group, &group->stats->run);
}

static void add_latency(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    add_histogram(page, group, group->latency);
}

static void add_suppressed(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    const struct wharf_log_counts *log = &group->source->daemon.log;

    add_labelled(page, group, (double)log->n_over_limit, "reason", "limit");
    add_labelled(page, group, (double)log->n_not_taken, "reason", "unread");
}

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "other"
#endif

#if defined(__clang__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void add_build_info(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    Wharf__Sample *sample = wharf_stats_page_add(page, "", 1);

    (void)group;
    wharf_stats_page_label(page, sample, "version", WHARF_VERSION);
    wharf_stats_page_label(page, sample, "compiler", COMPILER);
    wharf_stats_page_label(page, sample, "machine", MACHINE);
}

static void add_info(struct wharf_stats_page *page, const struct wharf_stats_group *group)
{
    Wharf__Sample *sample = wharf_stats_page_add(page, "", 1);

    wharf_stats_page_label(page, sample, "version", WHARF_VERSION);
    wharf_stats_page_label(page, sample, "io", group->source->daemon.io);
}

/* ---- what there is ------------------------------------------------------------------------- */

#define COUNTER WHARF__METRIC_TYPE__METRIC_TYPE_COUNTER
#define GAUGE WHARF__METRIC_TYPE__METRIC_TYPE_GAUGE
#define HISTOGRAM WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM

/* clang-format off: it reads as a table.  Families of one value have what that is last, others a
 * function that adds their samples. */
#define OWN_FAMILIES(VALUE, GROUP)                                                                 \
    VALUE(wharf_up, GAUGE, OF_DAEMON, "1: the daemon answers.", 1)                                 \
    GROUP(wharf_build_info, GAUGE, OF_DAEMON, "How the daemon was built.", add_build_info)         \
    VALUE(wharf_config_last_reload_successful, GAUGE, OF_DAEMON,                                   \
          "1: the configuration that was read last was taken.", !source->daemon.has_bad_config)    \
    VALUE(wharf_config_last_reload_success_timestamp_seconds, GAUGE, OF_DAEMON,                    \
          "When a configuration was last taken, in Unix time.", source->daemon.configured_s)       \
    VALUE(wharf_log_messages_total, COUNTER, OF_DAEMON,                                            \
          "Messages of the daemon that were written.", source->daemon.log.n_written)               \
    GROUP(wharf_log_suppressed_total, COUNTER, OF_DAEMON,                                          \
          "Messages of the daemon that were left out.", add_suppressed)                            \
    VALUE(wharf_gpus_expected, GAUGE, OF_DAEMON, "GPUs that there should be.",                     \
          source->daemon.n_gpus_expected)                                                          \
    VALUE(wharf_gpus_up, GAUGE, OF_DAEMON, "GPUs that take jobs.", source->daemon.n_gpus_up)       \
    GROUP(wharf_info, GAUGE, OF_DAEMON, "The running daemon.", add_info)                           \
    VALUE(wharf_uptime_seconds, GAUGE, OF_DAEMON, "Time since the daemon started.",                \
          source->daemon.uptime_s)                                                                 \
    VALUE(wharf_start_time_seconds, GAUGE, OF_DAEMON, "When the daemon started, in Unix time.",    \
          source->daemon.started_s)                                                                \
    VALUE(wharf_workers, GAUGE, OF_DAEMON, "Threads that decode on the CPU.",                      \
          source->daemon.n_workers)                                                                \
    VALUE(wharf_workers_busy, GAUGE, OF_DAEMON, "Threads that decode on the CPU at present.",      \
          source->daemon.n_busy)                                                                   \
    VALUE(wharf_jobs_queued, GAUGE, OF_DAEMON, "Jobs that wait for an engine.",                    \
          source->daemon.n_queued)                                                                 \
    VALUE(wharf_idle_work_running, GAUGE, OF_DAEMON,                                               \
          "Threads that compress background jobs at present.", source->daemon.n_idle_running)      \
    VALUE(wharf_idle_work_allowed, GAUGE, OF_DAEMON,                                               \
          "Threads that may do so if nothing else waits.", source->daemon.n_idle_allowed)          \
    VALUE(wharf_idle_work_pieces_total, COUNTER, OF_DAEMON,                                        \
          "Pieces of background jobs that compress that were begun.",                              \
          source->daemon.n_idle_pieces)                                                            \
    VALUE(wharf_idle_work_throttled_total, COUNTER, OF_DAEMON,                                     \
          "How often fewer threads were allowed, since a job waited.",                             \
          source->daemon.n_idle_throttled)                                                         \
    VALUE(wharf_shared_chunks_total, COUNTER, OF_DAEMON,                                           \
          "Chunks that idle workers could help with.", source->daemon.n_shared_chunks)             \
    VALUE(wharf_shared_ranges_total, COUNTER, OF_DAEMON,                                           \
          "Ranges in which shared chunks were decoded.", source->daemon.n_shared_ranges)           \
    VALUE(wharf_helped_ranges_total, COUNTER, OF_DAEMON,                                           \
          "Ranges of shared chunks that helpers decoded.", source->daemon.n_helped_ranges)         \
    VALUE(wharf_gpu_parted_chunks_total, COUNTER, OF_DAEMON, "Chunks that GPUs decoded in parts.", \
          source->daemon.n_parted_chunks)                                                          \
    VALUE(wharf_gpu_parts_total, COUNTER, OF_DAEMON, "Parts in which GPUs decoded chunks.",        \
          source->daemon.n_parts)                                                                  \
    VALUE(wharf_gpu_parts_refused_total, COUNTER, OF_DAEMON,                                       \
          "Chunks that GPUs could not decode in parts.", source->daemon.n_parts_refused)           \
    VALUE(wharf_gpu_pinned_bytes, GAUGE, OF_DAEMON, "Memory of clients that is pinned for GPUs.",  \
          source->daemon.pinned_nbytes)                                                            \
    VALUE(wharf_gpu_pinned_limit_bytes, GAUGE, OF_DAEMON,                                          \
          "The most memory of clients that is pinned for GPUs.", source->daemon.gpu_memory_nbytes) \
    VALUE(wharf_gpu_chunk_limit_bytes, GAUGE, OF_DAEMON,                                           \
          "The largest chunk, in or out, that GPUs decode many of at a time.",                     \
          source->daemon.gpu_chunk_nbytes)                                                         \
    VALUE(wharf_gpu_longest_seconds, GAUGE, OF_DAEMON,                                             \
          "How long GPUs may have a chunk; 0: without limit.",                                     \
          1e-9 * (double)source->daemon.gpu_longest_ns)                                            \
    VALUE(wharf_gpu_up, GAUGE, OF_GPU, "Whether the GPU's worker takes jobs.",                     \
          source->daemon.gpus[gpu].is_up)                                                          \
    VALUE(wharf_gpu_warps, GAUGE, OF_GPU,                                                          \
          "Chunks that the GPU decodes at a time where there are many.",                           \
          source->daemon.gpus[gpu].n_warps)                                                        \
    VALUE(wharf_gpu_latency_seconds, GAUGE, OF_GPU,                                                \
          "Time of a job of no size, when the worker started.",                                    \
          1e-9 * (double)source->daemon.gpus[gpu].latency_ns)                                      \
    VALUE(wharf_gpu_chunks_in_flight, GAUGE, OF_GPU, "Chunks that the GPU has.",                   \
          source->daemon.gpus[gpu].n_in_flight)                                                    \
    VALUE(wharf_gpu_models, GAUGE, OF_GPU, "Registered models that the GPU has.",                  \
          source->daemon.gpus[gpu].n_models)                                                       \
    VALUE(wharf_gpu_chunks_total, COUNTER, OF_GPU,                                                 \
          "Chunks that the GPU has decoded, good or bad.", source->daemon.gpus[gpu].n_chunks)      \
    VALUE(wharf_gpu_output_bytes_total, COUNTER, OF_GPU, "Bytes that the GPU has decoded to.",     \
          source->daemon.gpus[gpu].out_nbytes)                                                     \
    VALUE(wharf_gpu_busy_seconds_total, COUNTER, OF_GPU,                                           \
          "Sum of the time that warps took for chunks.",                                           \
          1e-9 * (double)source->daemon.gpus[gpu].busy_ns)                                         \
    VALUE(wharf_gpu_away_seconds_total, COUNTER, OF_GPU,                                           \
          "Sum of the time that chunks were with the GPU.",                                        \
          1e-9 * (double)source->daemon.gpus[gpu].away_ns)                                         \
    VALUE(wharf_gpu_given_up_chunks_total, COUNTER, OF_GPU,                                        \
          "Chunks that the GPU had for too long and the CPU then decoded.",                        \
          source->daemon.gpus[gpu].n_given_up)                                                     \
    VALUE(wharf_gpu_large_chunks_total, COUNTER, OF_GPU,                                           \
          "Chunks decoded in the GPU's places for large ones.",                                    \
          source->daemon.gpus[gpu].n_large_chunks)                                                 \
    VALUE(wharf_gpu_streams_total, COUNTER, OF_GPU,                                                \
          "Large chunks that the whole GPU has decoded, each at once.",                            \
          source->daemon.gpus[gpu].n_streams)                                                      \
    VALUE(wharf_gpu_compress_warps, GAUGE, OF_GPU, "Chunks that the GPU compresses at a time.",    \
          source->daemon.gpus[gpu].n_encode)                                                       \
    VALUE(wharf_gpu_compressed_chunks_total, COUNTER, OF_GPU,                                      \
          "Chunks that the GPU was to compress.", source->daemon.gpus[gpu].n_encoded)              \
    VALUE(wharf_gpu_compressed_in_bytes_total, COUNTER, OF_GPU,                                    \
          "Bytes that the GPU has compressed.", source->daemon.gpus[gpu].encoded_in_nbytes)        \
    VALUE(wharf_gpu_compressed_out_bytes_total, COUNTER, OF_GPU, "Bytes that these became.",       \
          source->daemon.gpus[gpu].encoded_out_nbytes)                                             \
    VALUE(wharf_gpu_idle_work_running, GAUGE, OF_GPU,                                              \
          "Chunks of background jobs that the GPU compresses at present.",                         \
          source->daemon.gpus[gpu].idle_work.n_running)                                            \
    VALUE(wharf_gpu_idle_work_allowed, GAUGE, OF_GPU,                                              \
          "Chunks of background jobs that it may compress at a time.",                             \
          source->daemon.gpus[gpu].n_encode_allowed)                                               \
    VALUE(wharf_gpu_idle_work_pieces_total, COUNTER, OF_GPU,                                       \
          "Chunks of background jobs that it began to compress.",                                  \
          source->daemon.gpus[gpu].idle_work.n_pieces)                                             \
    VALUE(wharf_gpu_idle_work_bytes_total, COUNTER, OF_GPU,                                        \
          "Bytes of background jobs that it has compressed.",                                      \
          source->daemon.gpus[gpu].idle_work.nbytes)                                               \
    VALUE(wharf_gpu_idle_work_throttled_total, COUNTER, OF_GPU,                                    \
          "How often fewer were allowed, since chunks were decoded later.",                        \
          source->daemon.gpus[gpu].idle_work.n_throttled)                                          \
    VALUE(wharf_gpu_idle_work_withdrawn_total, COUNTER, OF_GPU,                                    \
          "Chunks of background jobs that were withdrawn and begun again.",                        \
          source->daemon.gpus[gpu].idle_work.n_withdrawn)                                          \
    VALUE(wharf_gpu_workers_ended_total, COUNTER, OF_GPU, "Workers of the GPU that ended.",        \
          source->daemon.gpus[gpu].n_ended)                                                        \
    VALUE(wharf_gpu_lost_chunks_total, COUNTER, OF_GPU,                                            \
          "Chunks that workers of the GPU had when they ended.", source->daemon.gpus[gpu].n_lost)

#define ALL_FAMILIES(VALUE, GROUP)                                                                 \
    VALUE(wharf_tenants, GAUGE, OF_ALL_TENANT, "Tenants that are connected or remembered.",        \
          source->n_tenants)                                                                       \
    VALUE(wharf_tenants_listed, GAUGE, OF_ALL_TENANT,                                              \
          "Tenants that have samples of their own here.", source->n_rows)                          \
    VALUE(wharf_tenants_seen_total, COUNTER, OF_ALL_TENANT,                                        \
          "Tenants that came and were not known.", source->n_tenants_seen)                         \
    VALUE(process_start_time_seconds, GAUGE, OF_ALL_TENANT,                                        \
          "When the daemon started, in Unix time.", source->daemon.started_s)                      \
    VALUE(process_cpu_seconds_total, COUNTER, OF_ALL_TENANT,                                       \
          "Processors' time that the daemon's main process has used.",                             \
          source->daemon.process.cpu_s)                                                            \
    VALUE(process_open_fds, GAUGE, OF_ALL_TENANT,                                                  \
          "Descriptors that the daemon's main process has open.", source->daemon.process.n_fds)    \
    VALUE(process_max_fds, GAUGE, OF_ALL_TENANT,                                                   \
          "Descriptors that the daemon's main process may have open.",                             \
          source->daemon.process.most_fds)                                                         \
    VALUE(process_resident_memory_bytes, GAUGE, OF_ALL_TENANT,                                     \
          "Memory that the daemon's main process has in use, shared with clients or not.",         \
          source->daemon.process.resident_nbytes)                                                  \
    VALUE(process_virtual_memory_bytes, GAUGE, OF_ALL_TENANT,                                      \
          "Memory that the daemon's main process has mapped.",                                     \
          source->daemon.process.virtual_nbytes)                                                   \
    GROUP(wharf_total_limit, GAUGE, OF_ALL_TENANT, "The limit of all tenants together.",           \
          add_totals)                                                                              \
    GROUP(wharf_total_limit_used, GAUGE, OF_ALL_TENANT,                                            \
          "What all tenants together have of the limit.", add_totals_used)

/* Of each tenant as wharf_NAME, and of all together as wharf_all_NAME. */
#define TENANT_FAMILIES(VALUE, GROUP)                                                              \
    VALUE(connections, GAUGE, TENANT, "Connections that are open.", row->used.n_connections)       \
    VALUE(descriptors, GAUGE, TENANT, "Descriptors held or sent.", row->used.n_descriptors)        \
    VALUE(memory_bytes, GAUGE, TENANT, "Arenas, registered memory and models.",                    \
          row->used.memory_nbytes)                                                                 \
    VALUE(gpu_memory_bytes, GAUGE, TENANT, "GPU memory that clients have registered.",             \
          row->used.gpu_nbytes)                                                                    \
    VALUE(pinned_bytes, GAUGE, TENANT, "Memory that is pinned for GPUs.", row->pinned_nbytes)      \
    VALUE(compressed_chunks_total, COUNTER, TENANT, "Chunks that were to be compressed.",          \
          row->stats.n_compressed)                                                                 \
    VALUE(compressed_in_bytes_total, COUNTER, TENANT, "Bytes that were compressed.",               \
          row->stats.compressed_in_nbytes)                                                         \
    VALUE(compressed_out_bytes_total, COUNTER, TENANT, "Bytes that these became.",                 \
          row->stats.compressed_out_nbytes)                                                        \
    GROUP(memo_lookups_total, COUNTER, TENANT,                                                     \
          "Chunks that were searched for among those that GPUs keep.", add_memo_lookups)           \
    GROUP(memo_hits_total, COUNTER, TENANT, "Those of them that were there, and were copied.",     \
          add_memo_hits)                                                                           \
    GROUP(memo_kept_total, COUNTER, TENANT, "Chunks that were decoded and kept.", add_memo_kept)   \
    GROUP(memo_evicted_total, COUNTER, TENANT, "Kept chunks that left for others.",                \
          add_memo_evicted)                                                                        \
    VALUE(files, GAUGE, TENANT, "Files that are registered.", row->n_files)                        \
    VALUE(file_processes, GAUGE, TENANT, "Processes of the daemon that read and write files.",     \
          row->n_file_processes)                                                                   \
    VALUE(hung_files, GAUGE, TENANT, "Those of them that hang in a file.", row->n_hung_files)      \
    VALUE(file_input_bytes_total, COUNTER, TENANT, "Compressed bytes that were read from files.",  \
          row->stats.file_in_nbytes)                                                               \
    VALUE(file_ahead_bytes_total, COUNTER, TENANT,                                                 \
          "Bytes that were read ahead of jobs in sequence.", row->stats.files.ahead_nbytes)        \
    VALUE(file_ahead_hit_bytes_total, COUNTER, TENANT, "Those of them that jobs came for.",        \
          row->stats.files.hit_nbytes)                                                             \
    VALUE(file_ahead_waste_bytes_total, COUNTER, TENANT, "Those of them that no job came for.",    \
          row->stats.files.waste_nbytes)                                                           \
    VALUE(file_output_bytes_total, COUNTER, TENANT, "Bytes that were written to files.",           \
          row->stats.file_out_nbytes)                                                              \
    VALUE(evicted_total, COUNTER, TENANT, "Arenas and regions unpinned to make room.",             \
          row->stats.n_evicted)                                                                    \
    VALUE(queue_entries, GAUGE, TENANT, "Entries of all queues.", row->used.n_jobs)                \
    VALUE(hung_gates, GAUGE, TENANT, "Processes of the daemon that hang on descriptors.",          \
          row->n_hung_filters)                                                                     \
    VALUE(connections_total, COUNTER, TENANT, "Connections accepted.", row->stats.n_connections)   \
    VALUE(sessions_total, COUNTER, TENANT, "Queues opened.", row->stats.n_sessions)                \
    GROUP(refused_total, COUNTER, TENANT, "Connections, requests and jobs refused by this limit.", \
          add_refused)                                                                             \
    VALUE(broken_total, COUNTER, TENANT, "Connections that broke a rule.", row->stats.n_broken)    \
    VALUE(doorbells_total, COUNTER, TENANT, "Wake-ups by clients.", row->stats.n_doorbells)        \
    GROUP(placements_total, COUNTER, TENANT, "Chunks, by the reason for the choice of engine.",    \
          add_placements)                                                                          \
    GROUP(gpu_placements_total, COUNTER, TENANT, "Chunks, by the GPU that they were given to.",    \
          add_on_gpus)                                                                             \
    GROUP(jobs_total, COUNTER, ENGINE, "Jobs completed.", add_results)                             \
    VALUE(chunks_total, COUNTER, ENGINE, "Chunks decoded, good or bad.", engine->n_chunks)         \
    VALUE(input_bytes_total, COUNTER, ENGINE, "Compressed bytes decoded.", engine->in_nbytes)      \
    VALUE(output_bytes_total, COUNTER, ENGINE, "Bytes decoded to.", engine->out_nbytes)            \
    VALUE(engine_busy_seconds_total, COUNTER, ENGINE, "Time that the engine spent on jobs.",       \
          1e-9 * (double)engine->busy_ns)                                                          \
    GROUP(job_queue_seconds, HISTOGRAM, ENGINE, "Time from taking a job to its start.", add_queue) \
    GROUP(job_run_seconds, HISTOGRAM, ENGINE, "Time from a job's start to its end.", add_run)      \
    GROUP(job_latency_seconds, HISTOGRAM, CLASS, "Time from taking a job to its end.", add_latency)
/* clang-format on */

/* Of each tenant alone. */
#define EACH_FAMILIES(VALUE, GROUP)                                                                \
    GROUP(wharf_limit, GAUGE, OF_TENANT, "The tenant's limit.", add_limits)                        \
    GROUP(wharf_limit_used, GAUGE, OF_TENANT, "What the tenant has of the limit.", add_limits_used)

#define VALUE_OF(name, type, scope, help, expression)                                              \
    static double value_of_##name(const struct wharf_stats_source *source, unsigned gpu,           \
                                  const struct wharf_stats_row *row,                               \
                                  const struct wharf_engine_stats *engine)                         \
    {                                                                                              \
        (void)source, (void)gpu, (void)row, (void)engine;                                          \
        return (double)(expression);                                                               \
    }
#define NO_VALUE(name, type, scope, help, add)
OWN_FAMILIES(VALUE_OF, NO_VALUE)
ALL_FAMILIES(VALUE_OF, NO_VALUE)
TENANT_FAMILIES(VALUE_OF, NO_VALUE)

#define OWN_VALUE(name, type, scope, help, expression)                                             \
    {#name, help, type, WHARF_STATS_##scope, value_of_##name, add_value},
#define OWN_GROUP(name, type, scope, help, add) {#name, help, type, WHARF_STATS_##scope, NULL, add},
#define EACH_VALUE(name, type, scope, help, expression)                                            \
    {"wharf_" #name, help, type, WHARF_STATS_OF_##scope, value_of_##name, add_value},
#define EACH_GROUP(name, type, scope, help, add)                                                   \
    {"wharf_" #name, help, type, WHARF_STATS_OF_##scope, NULL, add},
#define SUM_VALUE(name, type, scope, help, expression)                                             \
    {"wharf_all_" #name,                                                                           \
     "Of all tenants together: " help,                                                             \
     type,                                                                                         \
     WHARF_STATS_OF_ALL_##scope,                                                                   \
     value_of_##name,                                                                              \
     add_value},
#define SUM_GROUP(name, type, scope, help, add)                                                    \
    {"wharf_all_" #name,                                                                           \
     "Of all tenants together: " help,                                                             \
     type,                                                                                         \
     WHARF_STATS_OF_ALL_##scope,                                                                   \
     NULL,                                                                                         \
     add},

const struct wharf_stats_family wharf_stats_families[] = {
    OWN_FAMILIES(OWN_VALUE, OWN_GROUP) ALL_FAMILIES(OWN_VALUE, OWN_GROUP)
        TENANT_FAMILIES(SUM_VALUE, SUM_GROUP) EACH_FAMILIES(OWN_VALUE, OWN_GROUP)
            TENANT_FAMILIES(EACH_VALUE, EACH_GROUP)};
const unsigned wharf_stats_n_families =
    sizeof(wharf_stats_families) / sizeof(wharf_stats_families[0]);
