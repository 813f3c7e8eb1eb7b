/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_reply.c: statistics in pages.
 *
 * All samples have an order: by family, then by tenant or GPU, then by engine, then within a group
 * of samples that belong together (a histogram, one counter for each result).  A page begins at a
 * place in that order and holds as many groups as fit; its `next` is the place of the first one
 * that did not.  Tenants are placed by number, so those that come or go meanwhile move nobody else.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/control/connection.h"
#include "daemon/control/stats_page.h"
#include "daemon/front/front_place.h"

/* ---- places -------------------------------------------------------------------------------- */

/* Packed into StatsRequest.first: 8 bits, 48 bits, 8 bits.  0 is the first. */
struct place {
    unsigned family;
    uint64_t tenant; /* number, or a GPU's; of families of the daemon as a whole 0 */
    unsigned engine;
};

static struct place place_unpack(uint64_t first)
{
    return (struct place){
        .family = (unsigned)(first >> 56),
        .tenant = first >> 8 & 0xffffffffffffu,
        .engine = (unsigned)(first & 0xff),
    };
}

static uint64_t place_pack(const struct place *place)
{
    return (uint64_t)place->family << 56 | place->tenant << 8 | place->engine;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Of a histogram: buckets, sum and count. */
enum { MOST_OF_GROUP = WHARF_STATS_N_BUCKETS + 2 };

/* A consistent copy of what one group's samples are made of. */
struct group {
    bool is_empty;
    const char *tenant; /* label; NULL: none */
    const char *gpu;
    const char *engine;
    uint64_t results[WHARF_STATS_N_RESULTS];
    uint64_t placed[WHARF_N_PLACEMENTS];
    uint64_t on_gpus[WHARF_MAX_GPUS];
    const struct wharf_gpu_view *gpus; /* of these, for their names */
    struct wharf_histogram histogram;
    double value;
    const char *version; /* of the info sample */
    const char *io;
};

struct family {
    const char *name;
    const char *help;
    Wharf__MetricType type;
    enum { OF_DAEMON, OF_GPU, OF_TENANT, OF_ENGINE } scope;
    /* Under the front lock; `tenant` and `engine`, or the GPU in its place, as the scope says. */
    void (*copy)(const struct wharf_server *server, const struct wharf_tenant *tenant,
                 unsigned engine, struct group *group);
    void (*add)(struct wharf_stats_page *page, const struct group *group);
};

static void label_group(struct wharf_stats_page *page, Wharf__Sample *sample,
                        const struct group *group)
{
    if (group->tenant)
        wharf_stats_page_label(page, sample, "tenant", group->tenant);
    if (group->gpu)
        wharf_stats_page_label(page, sample, "gpu", group->gpu);
    if (group->engine)
        wharf_stats_page_label(page, sample, "engine", group->engine);
}

static void add_value(struct wharf_stats_page *page, const struct group *group)
{
    label_group(page, wharf_stats_page_add(page, "", group->value), group);
}

static void add_results(struct wharf_stats_page *page, const struct group *group)
{
    for (uint32_t i = 0; i < WHARF_STATS_N_RESULTS; i++) {
        if (!group->results[i])
            continue;
        Wharf__Sample *sample = wharf_stats_page_add(page, "", (double)group->results[i]);
        label_group(page, sample, group);
        wharf_stats_page_label(page, sample, "result", wharf_result_name(i));
    }
}

static void add_placements(struct wharf_stats_page *page, const struct group *group)
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

    for (uint32_t i = 0; i < WHARF_N_PLACEMENTS; i++) {
        if (!group->placed[i])
            continue;
        Wharf__Sample *sample = wharf_stats_page_add(page, "", (double)group->placed[i]);
        label_group(page, sample, group);
        wharf_stats_page_label(page, sample, "reason", names[i]);
    }
}

/* Names of GPUs never change. */
static void add_on_gpus(struct wharf_stats_page *page, const struct group *group)
{
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        if (!group->on_gpus[i])
            continue;
        Wharf__Sample *sample = wharf_stats_page_add(page, "", (double)group->on_gpus[i]);
        label_group(page, sample, group);
        wharf_stats_page_label(page, sample, "gpu", group->gpus[i].name);
    }
}

/* Bounds as Prometheus writes them: seconds. */
static void add_histogram(struct wharf_stats_page *page, const struct group *group)
{
    uint64_t count = 0;
    char bound[32];

    for (unsigned i = 0; i < WHARF_STATS_N_BUCKETS; i++) {
        count += group->histogram.buckets[i];
        if (i + 1 < WHARF_STATS_N_BUCKETS)
            snprintf(bound, sizeof(bound), "%.9g", 1e-6 * (double)((uint64_t)1 << i));
        else
            snprintf(bound, sizeof(bound), "+Inf");
        Wharf__Sample *sample = wharf_stats_page_add(page, "_bucket", (double)count);
        label_group(page, sample, group);
        wharf_stats_page_label(page, sample, "le", wharf_stats_page_text(page, bound));
    }
    label_group(page, wharf_stats_page_add(page, "_sum", 1e-9 * (double)group->histogram.sum_ns),
                group);
    label_group(page, wharf_stats_page_add(page, "_count", (double)count), group);
}

static void add_info(struct wharf_stats_page *page, const struct group *group)
{
    Wharf__Sample *sample = wharf_stats_page_add(page, "", 1);

    wharf_stats_page_label(page, sample, "version", group->version);
    wharf_stats_page_label(page, sample, "io", group->io);
}

/* ---- what there is ------------------------------------------------------------------------- */

static void copy_wharf_info(const struct wharf_server *server, const struct wharf_tenant *tenant,
                            unsigned engine, struct group *group)
{
    (void)tenant, (void)engine;
    group->version = WHARF_VERSION;
    group->io = wharf_loop_kind(server->loop) == WHARF_LOOP_URING ? "io_uring" : "epoll";
}

static void copy_wharf_jobs_total(const struct wharf_server *server,
                                  const struct wharf_tenant *tenant, unsigned engine,
                                  struct group *group)
{
    (void)server;
    memcpy(group->results, tenant->stats.engines[engine].n_jobs, sizeof(group->results));
}

static void copy_wharf_placements_total(const struct wharf_server *server,
                                        const struct wharf_tenant *tenant, unsigned engine,
                                        struct group *group)
{
    (void)server, (void)engine;
    memcpy(group->placed, tenant->stats.n_placed, sizeof(group->placed));
}

static void copy_wharf_gpu_placements_total(const struct wharf_server *server,
                                            const struct wharf_tenant *tenant, unsigned engine,
                                            struct group *group)
{
    (void)engine;
    memcpy(group->on_gpus, tenant->stats.n_on_gpus, sizeof(group->on_gpus));
    group->gpus = server->front.gpus;
}

static void copy_wharf_job_queue_seconds(const struct wharf_server *server,
                                         const struct wharf_tenant *tenant, unsigned engine,
                                         struct group *group)
{
    (void)server;
    group->histogram = tenant->stats.engines[engine].queue;
    group->is_empty = engine == WHARF_ENGINE_AUTO;
}

static void copy_wharf_job_run_seconds(const struct wharf_server *server,
                                       const struct wharf_tenant *tenant, unsigned engine,
                                       struct group *group)
{
    (void)server;
    group->histogram = tenant->stats.engines[engine].run;
    group->is_empty = engine == WHARF_ENGINE_AUTO;
}

#define COUNTER WHARF__METRIC_TYPE__METRIC_TYPE_COUNTER
#define GAUGE WHARF__METRIC_TYPE__METRIC_TYPE_GAUGE
#define HISTOGRAM WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM

/* clang-format off: it reads as a table.  Families of one value have what that is last; others a
 * function for their samples, and one above for what these are made of. */
#define FAMILIES(VALUE, GROUP)                                                                     \
    GROUP(wharf_info, GAUGE, OF_DAEMON, "The running daemon.", add_info)                           \
    VALUE(wharf_uptime_seconds, GAUGE, OF_DAEMON, "Since the daemon started.",                     \
          1e-9 * (double)(wharf_now_ns() - server->started_ns))                                    \
    VALUE(wharf_workers, GAUGE, OF_DAEMON, "Threads that decode on the CPU.",                      \
          server->front.n_workers)                                                                 \
    VALUE(wharf_workers_busy, GAUGE, OF_DAEMON, "Those of them that do.",                          \
          server->front.n_short + server->front.n_long)                                            \
    VALUE(wharf_jobs_queued, GAUGE, OF_DAEMON, "Jobs that no engine has.",                         \
          wharf_place_n_queued(&server->front))                                                    \
    VALUE(wharf_shared_chunks_total, COUNTER, OF_DAEMON,                                           \
          "Chunks that idle workers could help with.", server->front.n_shared_chunks)              \
    VALUE(wharf_shared_ranges_total, COUNTER, OF_DAEMON,                                           \
          "Ranges of their parts that workers took.", server->front.n_shared_ranges)               \
    VALUE(wharf_helped_ranges_total, COUNTER, OF_DAEMON, "Those of them that were taken to help.", \
          server->front.n_helped_ranges)                                                           \
    VALUE(wharf_gpu_parted_chunks_total, COUNTER, OF_DAEMON, "Chunks that GPUs decoded in parts.", \
          server->front.n_parted_chunks)                                                           \
    VALUE(wharf_gpu_parts_total, COUNTER, OF_DAEMON, "In how many parts.", server->front.n_parts)  \
    VALUE(wharf_gpu_parts_refused_total, COUNTER, OF_DAEMON,                                       \
          "Chunks that could not be decoded so.", server->front.n_parts_refused)                   \
    VALUE(wharf_gpu_pinned_bytes, GAUGE, OF_DAEMON, "Memory of clients that GPUs have.",           \
          server->front.pinned_nbytes)                                                             \
    VALUE(wharf_gpu_up, GAUGE, OF_GPU, "Whether the GPU's worker takes jobs.",                     \
          wharf_place_is_up(&server->front, engine))                                               \
    VALUE(wharf_gpu_warps, GAUGE, OF_GPU,                                                          \
          "Chunks that it decodes at a time where there are many.",                                \
          wharf_place_is_up(&server->front, engine) ? server->front.gpus[engine].n_warps : 0)      \
    VALUE(wharf_gpu_latency_seconds, GAUGE, OF_GPU, "Of a job of no size, measured at its start.", \
          1e-9 * (double)server->front.gpus[engine].latency_ns)                                    \
    VALUE(wharf_gpu_chunks_in_flight, GAUGE, OF_GPU, "That it has.",                               \
          server->front.gpus[engine].n_in_flight)                                                  \
    VALUE(wharf_gpu_models, GAUGE, OF_GPU, "Registered models that it has.",                       \
          server->front.gpus[engine].n_models)                                                     \
    VALUE(wharf_gpu_chunks_total, COUNTER, OF_GPU, "That it has decoded, good or bad.",            \
          server->front.gpus[engine].n_chunks)                                                     \
    VALUE(wharf_gpu_output_bytes_total, COUNTER, OF_GPU, "Bytes that it has decoded to.",          \
          server->front.gpus[engine].out_nbytes)                                                   \
    VALUE(wharf_gpu_busy_seconds_total, COUNTER, OF_GPU,                                           \
          "Time of its warps for chunks, together.",                                               \
          1e-9 * (double)server->front.gpus[engine].busy_ns)                                       \
    VALUE(wharf_gpu_away_seconds_total, COUNTER, OF_GPU,                                           \
          "For which chunks were with it, together.",                                              \
          1e-9 * (double)server->front.gpus[engine].away_ns)                                       \
    VALUE(wharf_gpu_copied_chunks_total, COUNTER, OF_GPU,                                          \
          "Chunks whose output the copy engine took.", server->front.gpus[engine].n_copied)        \
    VALUE(wharf_gpu_given_up_chunks_total, COUNTER, OF_GPU,                                        \
          "Chunks that it had for too long, which the CPU then did.",                              \
          server->front.gpus[engine].n_given_up)                                                   \
    VALUE(wharf_gpu_workers_ended_total, COUNTER, OF_GPU, "Workers of the GPU that ended.",        \
          server->front.gpus[engine].n_ended)                                                      \
    VALUE(wharf_gpu_lost_chunks_total, COUNTER, OF_GPU, "Chunks that these had then.",             \
          server->front.gpus[engine].n_lost)                                                       \
    VALUE(wharf_connections, GAUGE, OF_TENANT, "Connections.", tenant->used.n_connections)         \
    VALUE(wharf_descriptors, GAUGE, OF_TENANT, "Descriptors held or sent.",                        \
          tenant->used.n_descriptors)                                                              \
    VALUE(wharf_memory_bytes, GAUGE, OF_TENANT, "Arenas and registered memory.",                   \
          tenant->used.memory_nbytes)                                                              \
    VALUE(wharf_gpu_memory_bytes, GAUGE, OF_TENANT,                                                \
          "GPU memory of clients that they have registered.", tenant->used.gpu_nbytes)             \
    VALUE(wharf_pinned_bytes, GAUGE, OF_TENANT, "Its part of what GPUs have.",                     \
          tenant->gpu_pins.pinned_nbytes)                                                          \
    VALUE(wharf_evicted_total, COUNTER, OF_TENANT,                                                 \
          "Pieces of its memory that GPUs let go of for others.", tenant->stats.n_evicted)         \
    VALUE(wharf_queue_entries, GAUGE, OF_TENANT, "Entries of all queues.", tenant->used.n_jobs)    \
    VALUE(wharf_hung_gates, GAUGE, OF_TENANT, "Processes hung by descriptors.",                    \
          tenant->n_hung_gates)                                                                    \
    VALUE(wharf_connections_total, COUNTER, OF_TENANT, "Connections accepted.",                    \
          tenant->stats.n_connections)                                                             \
    VALUE(wharf_sessions_total, COUNTER, OF_TENANT, "Queues opened.", tenant->stats.n_sessions)    \
    VALUE(wharf_refused_total, COUNTER, OF_TENANT, "What a quota refused.",                        \
          tenant->stats.n_refused)                                                                 \
    VALUE(wharf_broken_total, COUNTER, OF_TENANT, "Connections that broke a rule.",                \
          tenant->stats.n_broken)                                                                  \
    VALUE(wharf_doorbells_total, COUNTER, OF_TENANT, "Wake-ups by clients.",                       \
          tenant->stats.n_doorbells)                                                               \
    GROUP(wharf_placements_total, COUNTER, OF_TENANT,                                              \
          "Chunks, by why they were given to the engine that ran them.", add_placements)           \
    GROUP(wharf_gpu_placements_total, COUNTER, OF_TENANT,                                          \
          "Chunks, by the GPU that they were given to.", add_on_gpus)                              \
    GROUP(wharf_jobs_total, COUNTER, OF_ENGINE, "Jobs completed.", add_results)                    \
    VALUE(wharf_chunks_total, COUNTER, OF_ENGINE, "Chunks decoded, good or bad.",                  \
          tenant->stats.engines[engine].n_chunks)                                                  \
    VALUE(wharf_input_bytes_total, COUNTER, OF_ENGINE, "Compressed bytes decoded.",                \
          tenant->stats.engines[engine].in_nbytes)                                                 \
    VALUE(wharf_output_bytes_total, COUNTER, OF_ENGINE, "Bytes decoded to.",                       \
          tenant->stats.engines[engine].out_nbytes)                                                \
    VALUE(wharf_engine_busy_seconds_total, COUNTER, OF_ENGINE, "Time spent on jobs.",              \
          1e-9 * (double)tenant->stats.engines[engine].busy_ns)                                    \
    GROUP(wharf_job_queue_seconds, HISTOGRAM, OF_ENGINE, "From taking a job to its start.",        \
          add_histogram)                                                                           \
    GROUP(wharf_job_run_seconds, HISTOGRAM, OF_ENGINE, "From its start to its end.", add_histogram)
/* clang-format on */

#define COPY_VALUE(name, type, scope, help, expression)                                            \
    static void copy_##name(const struct wharf_server *server, const struct wharf_tenant *tenant,  \
                            unsigned engine, struct group *group)                                  \
    {                                                                                              \
        (void)server, (void)tenant, (void)engine;                                                  \
        group->value = (double)(expression);                                                       \
    }
#define COPY_GROUP(name, type, scope, help, add)
FAMILIES(COPY_VALUE, COPY_GROUP)

#define ROW_VALUE(name, type, scope, help, expression)                                             \
    {#name, help, type, scope, copy_##name, add_value},
#define ROW_GROUP(name, type, scope, help, add) {#name, help, type, scope, copy_##name, add},
static const struct family families[] = {FAMILIES(ROW_VALUE, ROW_GROUP)};
enum { N_FAMILIES = sizeof(families) / sizeof(families[0]) };

/* ---- going through it ---------------------------------------------------------------------- */

static bool has_samples(const struct wharf_engine_stats *stats)
{
    for (unsigned i = 0; i < WHARF_STATS_N_RESULTS; i++)
        if (stats->n_jobs[i])
            return true;
    return false;
}

/* Root and the daemon's own user see everybody, others themselves: without going through all of the
 * others, which would be done under the front lock. */
static const struct wharf_tenant *tenant_from(const struct wharf_connection *connection,
                                              uint64_t number)
{
    if (connection->is_operator)
        return wharf_tenants_from(&connection->server->front.tenants, number);
    return connection->tenant->number >= number ? connection->tenant : NULL;
}

/* The tenant at the place or after it, to which the place is moved. */
static const struct wharf_tenant *next_tenant(const struct wharf_connection *connection,
                                              struct place *place)
{
    const struct wharf_tenant *tenant = tenant_from(connection, place->tenant);

    if (tenant && tenant->number != place->tenant) {
        place->tenant = tenant->number;
        place->engine = 0;
    }
    return tenant;
}

static void next_family(struct place *place)
{
    place->family++;
    place->tenant = 0;
    place->engine = 0;
}

static void next_engine(struct place *place)
{
    place->engine++;
    if (place->engine < WHARF_STATS_N_ENGINES)
        return;
    place->engine = 0;
    place->tenant++;
}

/* Names of GPUs stay as long as the daemon. */
static bool take_gpu(const struct wharf_connection *connection, struct place *place,
                     const struct family *family, struct group *group)
{
    const struct wharf_front *front = &connection->server->front;

    if (place->tenant >= front->n_gpus) {
        next_family(place);
        return false;
    }
    unsigned gpu = (unsigned)place->tenant++;
    group->gpu = front->gpus[gpu].name;
    family->copy(connection->server, NULL, gpu, group);
    return true;
}

/* Copies the group at the place; false if there is none there.  Moves the place to the next one. */
static bool take_group(const struct wharf_connection *connection, struct place *place,
                       struct group *group)
{
    const struct family *family = &families[place->family];
    const struct wharf_tenant *tenant = NULL;
    unsigned engine;

    *group = (struct group){.is_empty = false};
    if (family->scope == OF_GPU)
        return take_gpu(connection, place, family, group);
    if (family->scope != OF_DAEMON) {
        tenant = next_tenant(connection, place);
        if (!tenant) {
            next_family(place);
            return false;
        }
        group->tenant = tenant->name;
    }
    engine = place->engine;
    if (family->scope == OF_DAEMON)
        next_family(place);
    else if (family->scope == OF_TENANT)
        place->tenant++;
    else
        next_engine(place);
    if (family->scope == OF_ENGINE) {
        if (!has_samples(&tenant->stats.engines[engine]))
            return false;
        group->engine = engine == WHARF_ENGINE_AUTO ? "none" : wharf_engine_name(engine);
    }
    family->copy(connection->server, tenant, engine, group);
    return !group->is_empty;
}

/* Adds the group; returns whether it fits. */
static bool add_group(struct wharf_stats_page *page, const struct family *family,
                      struct group *group)
{
    struct wharf_stats_mark mark = wharf_stats_page_mark(page);

    if (!wharf_stats_page_begin(page, family->name, family->help, family->type, MOST_OF_GROUP))
        return false;
    if (group->tenant)
        group->tenant = wharf_stats_page_text(page, group->tenant);
    family->add(page, group);
    if (wharf_stats_page_fits(page))
        return true;
    wharf_stats_page_return(page, &mark);
    return false;
}

/* Fills the page from the place on; returns the place of the next one. */
static uint64_t fill(struct wharf_stats_page *page, const struct wharf_connection *connection,
                     struct place place)
{
    struct wharf_front *front = &connection->server->front;
    struct group group;

    /* What leases have done counts too. */
    if (place_pack(&place) == 0) {
        wharf_front_enter(front);
        wharf_front_recall_all(front);
        wharf_front_leave(front);
    }
    while (place.family < N_FAMILIES) {
        struct place before = place;
        const struct family *family = &families[place.family];
        wharf_front_enter(front);
        bool is_there = take_group(connection, &place, &group);
        char tenant[WHARF_CONFIG_NAME_NBYTES];
        if (group.tenant)
            group.tenant = strcpy(tenant, group.tenant);
        wharf_front_leave(front);
        if (is_there && !add_group(page, family, &group))
            return place_pack(&before);
    }
    return 0;
}

bool wharf_stats_reply(struct wharf_connection *connection, const Wharf__Request *request)
{
    struct place place = place_unpack(request->stats->first);
    static struct wharf_stats_page page; /* the loop thread's */

    if (place.family >= N_FAMILIES || place.engine >= WHARF_STATS_N_ENGINES)
        return false;
    wharf_stats_page_init(&page, request->id);
    page.stats.next = fill(&page, connection, place);
    page.stats.n_families = page.n_families;
    wharf_connection_send(connection, &page.reply, false);
    return true;
}
