/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_reply.c: statistics in pages.
 *
 * All samples have an order: by family, then by tenant or GPU, then by engine, then within a group
 * of samples that belong together (a histogram, one counter for each result).  A page begins at a
 * place in that order and holds as many groups as fit; its `next` is the place of the first one
 * that did not.  Tenants are placed by number, so those that come or go meanwhile move nobody else.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/control/connection.h"
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

/* ---- a page -------------------------------------------------------------------------------- */

enum {
    MOST_SAMPLES = 96,
    MOST_LABELS = 3,
    TEXT_NBYTES = 4096,
    /* Buckets, sum and count. */
    MOST_OF_GROUP = WHARF_STATS_N_BUCKETS + 2,
};

/* Everything that a reply points to. */
struct page {
    Wharf__Sample samples[MOST_SAMPLES];
    Wharf__Sample *sample_pointers[MOST_SAMPLES];
    Wharf__Label labels[MOST_SAMPLES][MOST_LABELS];
    Wharf__Label *label_pointers[MOST_SAMPLES][MOST_LABELS];
    char text[TEXT_NBYTES]; /* labels' values */
    size_t n_text;
    size_t n_samples;
    Wharf__MetricFamily families[8];
    Wharf__MetricFamily *family_pointers[8];
    size_t n_families;
    Wharf__StatsReply stats;
    Wharf__Reply reply;
};

/* Text that lives as long as the page; cut off at its end. */
static char *keep_text(struct page *page, const char *text)
{
    size_t n_free = sizeof(page->text) - page->n_text;
    char *kept = page->text + page->n_text;
    int n = snprintf(kept, n_free, "%s", text);

    page->n_text += (size_t)n < n_free ? (size_t)n + 1 : n_free - 1;
    return kept;
}

static Wharf__Sample *add_sample(struct page *page, const char *suffix, double value)
{
    size_t at = page->n_samples++;
    Wharf__Sample *sample = &page->samples[at];

    wharf__sample__init(sample);
    sample->suffix = (char *)suffix;
    sample->value = value;
    sample->labels = page->label_pointers[at];
    page->sample_pointers[at] = sample;
    page->families[page->n_families - 1].n_samples++;
    return sample;
}

static void add_label(struct page *page, Wharf__Sample *sample, const char *name, char *value)
{
    size_t at = (size_t)(sample - page->samples);
    Wharf__Label *label = &page->labels[at][sample->n_labels];

    wharf__label__init(label);
    label->name = (char *)name;
    label->value = value;
    page->label_pointers[at][sample->n_labels++] = label;
}

/* ---- groups -------------------------------------------------------------------------------- */

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
    void (*add)(struct page *page, const struct group *group);
};

static void label_group(struct page *page, Wharf__Sample *sample, const struct group *group)
{
    if (group->tenant)
        add_label(page, sample, "tenant", (char *)group->tenant);
    if (group->gpu)
        add_label(page, sample, "gpu", (char *)group->gpu);
    if (group->engine)
        add_label(page, sample, "engine", (char *)group->engine);
}

static void add_value(struct page *page, const struct group *group)
{
    label_group(page, add_sample(page, "", group->value), group);
}

static void add_results(struct page *page, const struct group *group)
{
    for (uint32_t i = 0; i < WHARF_STATS_N_RESULTS; i++) {
        if (!group->results[i])
            continue;
        Wharf__Sample *sample = add_sample(page, "", (double)group->results[i]);
        label_group(page, sample, group);
        add_label(page, sample, "result", (char *)wharf_result_name(i));
    }
}

static void add_placements(struct page *page, const struct group *group)
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
        Wharf__Sample *sample = add_sample(page, "", (double)group->placed[i]);
        label_group(page, sample, group);
        add_label(page, sample, "reason", (char *)names[i]);
    }
}

/* Names of GPUs never change. */
static void add_on_gpus(struct page *page, const struct group *group)
{
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        if (!group->on_gpus[i])
            continue;
        Wharf__Sample *sample = add_sample(page, "", (double)group->on_gpus[i]);
        label_group(page, sample, group);
        add_label(page, sample, "gpu", (char *)group->gpus[i].name);
    }
}

/* Bounds as Prometheus writes them: seconds. */
static void add_histogram(struct page *page, const struct group *group)
{
    uint64_t count = 0;
    char bound[32];

    for (unsigned i = 0; i < WHARF_STATS_N_BUCKETS; i++) {
        count += group->histogram.buckets[i];
        if (i + 1 < WHARF_STATS_N_BUCKETS)
            snprintf(bound, sizeof(bound), "%.9g", 1e-6 * (double)((uint64_t)1 << i));
        else
            snprintf(bound, sizeof(bound), "+Inf");
        Wharf__Sample *sample = add_sample(page, "_bucket", (double)count);
        label_group(page, sample, group);
        add_label(page, sample, "le", keep_text(page, bound));
    }
    label_group(page, add_sample(page, "_sum", 1e-9 * (double)group->histogram.sum_ns), group);
    label_group(page, add_sample(page, "_count", (double)count), group);
}

static void add_info(struct page *page, const struct group *group)
{
    Wharf__Sample *sample = add_sample(page, "", 1);

    add_label(page, sample, "version", (char *)group->version);
    add_label(page, sample, "io", (char *)group->io);
}

/* ---- what there is ------------------------------------------------------------------------- */

#define COPY(name, expression)                                                                     \
    static void name(const struct wharf_server *server, const struct wharf_tenant *tenant,         \
                     unsigned engine, struct group *group)                                         \
    {                                                                                              \
        (void)server, (void)tenant, (void)engine;                                                  \
        group->value = (double)(expression);                                                       \
    }

COPY(copy_uptime, 1e-9 * (double)(wharf_now_ns() - server->started_ns))
COPY(copy_workers, server->front.n_workers)
COPY(copy_busy, server->front.n_short + server->front.n_long)
COPY(copy_queued, wharf_place_n_queued(&server->front))
COPY(copy_shared, server->front.n_shared_chunks)
COPY(copy_ranges, server->front.n_shared_ranges)
COPY(copy_helped, server->front.n_helped_ranges)
COPY(copy_parted, server->front.n_parted_chunks)
COPY(copy_parts, server->front.n_parts)
COPY(copy_parts_refused, server->front.n_parts_refused)
COPY(copy_pinned, server->front.pinned_nbytes)
COPY(copy_gpu_up, wharf_place_is_up(&server->front, engine))
COPY(copy_gpu_warps,
     wharf_place_is_up(&server->front, engine) ? server->front.gpus[engine].n_warps : 0)
COPY(copy_gpu_latency, 1e-9 * (double)server->front.gpus[engine].latency_ns)
COPY(copy_gpu_items, server->front.gpus[engine].n_in_flight)
COPY(copy_gpu_given_up, server->front.gpus[engine].n_given_up)
COPY(copy_gpu_models, server->front.gpus[engine].n_models)
COPY(copy_gpu_chunks, server->front.gpus[engine].n_chunks)
COPY(copy_gpu_bytes, server->front.gpus[engine].out_nbytes)
COPY(copy_gpu_busy, 1e-9 * (double)server->front.gpus[engine].busy_ns)
COPY(copy_gpu_away, 1e-9 * (double)server->front.gpus[engine].away_ns)
COPY(copy_gpu_ended, server->front.gpus[engine].n_ended)
COPY(copy_gpu_copied, server->front.gpus[engine].n_copied)
COPY(copy_gpu_lost, server->front.gpus[engine].n_lost)
COPY(copy_connections, tenant->used.n_connections)
COPY(copy_descriptors, tenant->used.n_descriptors)
COPY(copy_memory, tenant->used.memory_nbytes)
COPY(copy_gpu_memory, tenant->used.gpu_nbytes)
COPY(copy_tenant_pinned, tenant->gpu_pins.pinned_nbytes)
COPY(copy_evicted, tenant->stats.n_evicted)
COPY(copy_slots, tenant->used.n_jobs)
COPY(copy_hung, tenant->n_hung_gates)
COPY(copy_accepted, tenant->stats.n_connections)
COPY(copy_sessions, tenant->stats.n_sessions)
COPY(copy_refused, tenant->stats.n_refused)
COPY(copy_broken, tenant->stats.n_broken)
COPY(copy_doorbells, tenant->stats.n_doorbells)
COPY(copy_chunks, tenant->stats.engines[engine].n_chunks)
COPY(copy_in, tenant->stats.engines[engine].in_nbytes)
COPY(copy_out, tenant->stats.engines[engine].out_nbytes)
COPY(copy_time, 1e-9 * (double)tenant->stats.engines[engine].busy_ns)

static void copy_info(const struct wharf_server *server, const struct wharf_tenant *tenant,
                      unsigned engine, struct group *group)
{
    (void)tenant, (void)engine;
    group->version = WHARF_VERSION;
    group->io = wharf_loop_kind(server->loop) == WHARF_LOOP_URING ? "io_uring" : "epoll";
}

static void copy_jobs(const struct wharf_server *server, const struct wharf_tenant *tenant,
                      unsigned engine, struct group *group)
{
    (void)server;
    memcpy(group->results, tenant->stats.engines[engine].n_jobs, sizeof(group->results));
}

static void copy_placed(const struct wharf_server *server, const struct wharf_tenant *tenant,
                        unsigned engine, struct group *group)
{
    (void)server, (void)engine;
    memcpy(group->placed, tenant->stats.n_placed, sizeof(group->placed));
}

static void copy_on_gpus(const struct wharf_server *server, const struct wharf_tenant *tenant,
                         unsigned engine, struct group *group)
{
    (void)engine;
    memcpy(group->on_gpus, tenant->stats.n_on_gpus, sizeof(group->on_gpus));
    group->gpus = server->front.gpus;
}

static void copy_queue_time(const struct wharf_server *server, const struct wharf_tenant *tenant,
                            unsigned engine, struct group *group)
{
    (void)server;
    group->histogram = tenant->stats.engines[engine].queue;
    group->is_empty = engine == WHARF_ENGINE_AUTO;
}

static void copy_run_time(const struct wharf_server *server, const struct wharf_tenant *tenant,
                          unsigned engine, struct group *group)
{
    (void)server;
    group->histogram = tenant->stats.engines[engine].run;
    group->is_empty = engine == WHARF_ENGINE_AUTO;
}

#define COUNTER WHARF__METRIC_TYPE__METRIC_TYPE_COUNTER
#define GAUGE WHARF__METRIC_TYPE__METRIC_TYPE_GAUGE
#define HISTOGRAM WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM

/* clang-format off: one row a family reads as a table. */
static const struct family families[] = {
    {"wharf_info", "The running daemon.", GAUGE, OF_DAEMON, copy_info, add_info},
    {"wharf_uptime_seconds", "Since the daemon started.", GAUGE, OF_DAEMON, copy_uptime, add_value},
    {"wharf_workers", "Threads that decode on the CPU.", GAUGE, OF_DAEMON, copy_workers, add_value},
    {"wharf_workers_busy", "Those of them that do.", GAUGE, OF_DAEMON, copy_busy, add_value},
    {"wharf_jobs_queued", "Jobs that no engine has.", GAUGE, OF_DAEMON, copy_queued, add_value},
    {"wharf_shared_chunks_total", "Chunks that idle workers could help with.", COUNTER, OF_DAEMON,
     copy_shared, add_value},
    {"wharf_shared_ranges_total", "Ranges of their parts that workers took.", COUNTER, OF_DAEMON,
     copy_ranges, add_value},
    {"wharf_helped_ranges_total", "Those of them that were taken to help.", COUNTER, OF_DAEMON,
     copy_helped, add_value},
    {"wharf_gpu_parted_chunks_total", "Chunks that GPUs decoded in parts.", COUNTER, OF_DAEMON,
     copy_parted, add_value},
    {"wharf_gpu_parts_total", "In how many parts.", COUNTER, OF_DAEMON, copy_parts, add_value},
    {"wharf_gpu_parts_refused_total", "Chunks that could not be decoded so.", COUNTER, OF_DAEMON,
     copy_parts_refused, add_value},
    {"wharf_gpu_pinned_bytes", "Memory of clients that GPUs have.", GAUGE, OF_DAEMON, copy_pinned,
     add_value},
    {"wharf_gpu_up", "Whether the GPU's worker takes jobs.", GAUGE, OF_GPU, copy_gpu_up, add_value},
    {"wharf_gpu_warps", "Chunks that it decodes at a time where there are many.", GAUGE, OF_GPU,
     copy_gpu_warps, add_value},
    {"wharf_gpu_latency_seconds", "Of a job of no size, measured at its start.", GAUGE, OF_GPU,
     copy_gpu_latency, add_value},
    {"wharf_gpu_chunks_in_flight", "That it has.", GAUGE, OF_GPU, copy_gpu_items, add_value},
    {"wharf_gpu_models", "Registered models that it has.", GAUGE, OF_GPU, copy_gpu_models,
     add_value},
    {"wharf_gpu_chunks_total", "That it has decoded, good or bad.", COUNTER, OF_GPU,
     copy_gpu_chunks, add_value},
    {"wharf_gpu_output_bytes_total", "Bytes that it has decoded to.", COUNTER, OF_GPU,
     copy_gpu_bytes, add_value},
    {"wharf_gpu_busy_seconds_total", "Time of its warps for chunks, together.", COUNTER, OF_GPU,
     copy_gpu_busy, add_value},
    {"wharf_gpu_away_seconds_total", "For which chunks were with it, together.", COUNTER, OF_GPU,
     copy_gpu_away, add_value},
    {"wharf_gpu_copied_chunks_total", "Chunks whose output the copy engine took.", COUNTER, OF_GPU,
     copy_gpu_copied, add_value},
    {"wharf_gpu_given_up_chunks_total", "Chunks that it had for too long, which the CPU then did.",
     COUNTER, OF_GPU, copy_gpu_given_up, add_value},
    {"wharf_gpu_workers_ended_total", "Workers of the GPU that ended.", COUNTER, OF_GPU,
     copy_gpu_ended, add_value},
    {"wharf_gpu_lost_chunks_total", "Chunks that these had then.", COUNTER, OF_GPU, copy_gpu_lost,
     add_value},
    {"wharf_connections", "Connections.", GAUGE, OF_TENANT, copy_connections, add_value},
    {"wharf_descriptors", "Descriptors held or sent.", GAUGE, OF_TENANT, copy_descriptors,
     add_value},
    {"wharf_memory_bytes", "Arenas and registered memory.", GAUGE, OF_TENANT, copy_memory,
     add_value},
    {"wharf_gpu_memory_bytes", "GPU memory of clients that they have registered.", GAUGE, OF_TENANT,
     copy_gpu_memory, add_value},
    {"wharf_pinned_bytes", "Its part of what GPUs have.", GAUGE, OF_TENANT, copy_tenant_pinned,
     add_value},
    {"wharf_evicted_total", "Pieces of its memory that GPUs let go of for others.", COUNTER,
     OF_TENANT, copy_evicted, add_value},
    {"wharf_queue_entries", "Entries of all queues.", GAUGE, OF_TENANT, copy_slots, add_value},
    {"wharf_hung_gates", "Processes hung by descriptors.", GAUGE, OF_TENANT, copy_hung, add_value},
    {"wharf_connections_total", "Connections accepted.", COUNTER, OF_TENANT, copy_accepted,
     add_value},
    {"wharf_sessions_total", "Queues opened.", COUNTER, OF_TENANT, copy_sessions, add_value},
    {"wharf_refused_total", "What a quota refused.", COUNTER, OF_TENANT, copy_refused, add_value},
    {"wharf_broken_total", "Connections that broke a rule.", COUNTER, OF_TENANT, copy_broken,
     add_value},
    {"wharf_doorbells_total", "Wake-ups by clients.", COUNTER, OF_TENANT, copy_doorbells,
     add_value},
    {"wharf_placements_total", "Chunks, by why they were given to the engine that ran them.",
     COUNTER, OF_TENANT, copy_placed, add_placements},
    {"wharf_gpu_placements_total", "Chunks, by the GPU that they were given to.", COUNTER,
     OF_TENANT, copy_on_gpus, add_on_gpus},
    {"wharf_jobs_total", "Jobs completed.", COUNTER, OF_ENGINE, copy_jobs, add_results},
    {"wharf_chunks_total", "Chunks decoded, good or bad.", COUNTER, OF_ENGINE, copy_chunks,
     add_value},
    {"wharf_input_bytes_total", "Compressed bytes decoded.", COUNTER, OF_ENGINE, copy_in,
     add_value},
    {"wharf_output_bytes_total", "Bytes decoded to.", COUNTER, OF_ENGINE, copy_out, add_value},
    {"wharf_engine_busy_seconds_total", "Time spent on jobs.", COUNTER, OF_ENGINE, copy_time,
     add_value},
    {"wharf_job_queue_seconds", "From taking a job to its start.", HISTOGRAM, OF_ENGINE,
     copy_queue_time, add_histogram},
    {"wharf_job_run_seconds", "From its start to its end.", HISTOGRAM, OF_ENGINE, copy_run_time,
     add_histogram},
};
/* clang-format on */
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

static void begin_family(struct page *page, const struct family *family)
{
    Wharf__MetricFamily *message = &page->families[page->n_families];

    wharf__metric_family__init(message);
    message->name = (char *)family->name;
    message->help = (char *)family->help;
    message->type = family->type;
    message->samples = &page->sample_pointers[page->n_samples];
    page->family_pointers[page->n_families++] = message;
}

/* The state of a page before a group was added that turned out too large. */
struct mark {
    size_t n_samples, n_text, n_families, n_family_samples;
};

static struct mark mark_page(const struct page *page)
{
    return (struct mark){
        .n_samples = page->n_samples,
        .n_text = page->n_text,
        .n_families = page->n_families,
        .n_family_samples = page->n_families ? page->families[page->n_families - 1].n_samples : 0,
    };
}

static void return_to_mark(struct page *page, const struct mark *mark)
{
    page->n_samples = mark->n_samples;
    page->n_text = mark->n_text;
    page->n_families = mark->n_families;
    if (mark->n_families)
        page->families[mark->n_families - 1].n_samples = mark->n_family_samples;
}

/* What the longest `next` adds is counted too. */
static bool fits(struct page *page)
{
    page->stats.n_families = page->n_families;
    page->stats.next = UINT64_MAX;
    return protobuf_c_message_get_packed_size(&page->reply.base) <= WHARF_CONTROL_MAX_NBYTES;
}

/* Adds the group; returns whether it fits. */
static bool add_group(struct page *page, const struct family *family, struct group *group)
{
    struct mark mark = mark_page(page);

    if (page->n_samples + MOST_OF_GROUP > MOST_SAMPLES)
        return false;
    if (!page->n_families || page->families[page->n_families - 1].name != family->name) {
        if (page->n_families == sizeof(page->families) / sizeof(page->families[0]))
            return false;
        begin_family(page, family);
    }
    if (group->tenant)
        group->tenant = keep_text(page, group->tenant);
    family->add(page, group);
    if (fits(page))
        return true;
    return_to_mark(page, &mark);
    return false;
}

/* Fills the page from the place on; returns the place of the next one. */
static uint64_t fill(struct page *page, const struct wharf_connection *connection,
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
    static struct page page; /* the loop thread's */

    if (place.family >= N_FAMILIES || place.engine >= WHARF_STATS_N_ENGINES)
        return false;
    page.n_samples = page.n_text = page.n_families = 0;
    wharf__reply__init(&page.reply);
    wharf__stats_reply__init(&page.stats);
    page.reply.id = request->id;
    page.reply.body_case = WHARF__REPLY__BODY_STATS;
    page.reply.stats = &page.stats;
    page.stats.families = page.family_pointers;
    page.stats.next = fill(&page, connection, place);
    page.stats.n_families = page.n_families;
    wharf_connection_send(connection, &page.reply, false);
    return true;
}
