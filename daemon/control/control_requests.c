/* SPDX-License-Identifier: Apache-2.0 */
/* control_requests.c: what the daemon does for each control message. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/file_requests.h"
#include "daemon/control/model_requests.h"
#include "daemon/control/pass_rights.h"
#include "daemon/control/queue_use.h"
#include "daemon/control/replies.h"
#include "daemon/control/room.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/limits.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/fd_filter_protocol.h"
#include "daemon/placement/gpu_arena_pool.h"
#include "daemon/placement/gpu_memory.h"

/* ---- hello --------------------------------------------------------------------------------- */

/* The engine of the GPU's worker, also while the worker is restarted; AUTO: there is no GPU. */
static uint32_t gpu_engine(const struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;

    wharf_core_enter(core);
    uint32_t engine = core->fleet.gpu_engine;
    wharf_core_leave(core);
    return engine;
}

static void fill_limits(const struct wharf_connection *connection, Wharf__Limits *limits)
{
    const struct wharf_quota *quota = &connection->told;

    limits->max_entries = (uint32_t)quota->max_entries;
    limits->max_arena_nbytes = quota->max_arena_nbytes;
    limits->max_memory_nbytes = quota->max_memory_nbytes;
    limits->max_regions = (uint32_t)quota->max_regions;
    limits->max_job_nbytes = quota->max_job_nbytes;
    limits->max_batch_chunks = (uint32_t)quota->max_batch_chunks;
    limits->max_jobs = (uint32_t)quota->max_jobs;
    limits->max_connections = (uint32_t)quota->max_connections;
    limits->max_models = (uint32_t)quota->max_models;
    if (connection->features & WHARF_FEATURE_COMPRESS)
        limits->max_compress_nbytes = quota->max_compress_nbytes;
    if (connection->features & WHARF_FEATURE_START_WORDS)
        limits->max_start_ns = quota->max_start_ns;
    if (gpu_engine(connection) != WHARF_ENGINE_AUTO) {
        const struct wharf_config *config = &connection->server->config;
        limits->max_gpu_large_nbytes = config->gpu_large_nbytes;
        limits->max_gpu_large_ns = config->gpu_large_longest_ns;
    }
    if (!(connection->features & WHARF_FEATURE_GPU_MEMORY))
        return;
    limits->max_gpu_chunk_nbytes = connection->server->config.gpu_chunk_nbytes;
    limits->max_gpu_memory_nbytes = quota->max_gpu_memory_nbytes;
    limits->max_gpu_regions = (uint32_t)quota->max_gpu_regions;
}

/* Whether the GPU can import memory that a client made itself. */
static bool may_import(const struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;

    wharf_core_enter(core);
    bool result = wharf_place_may_import(core);
    wharf_core_leave(core);
    return result;
}

static void reply_hello(struct wharf_connection *connection, uint32_t id)
{
    Wharf__HelloReply hello = WHARF__HELLO_REPLY__INIT;
    Wharf__Limits limits = WHARF__LIMITS__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    uint32_t codecs[WHARF_N_CODECS];
    uint32_t engines[3] = {WHARF_ENGINE_CPU, WHARF_ENGINE_REFERENCE};
    uint32_t n_engines = 2;

    for (uint32_t i = 0; i < WHARF_N_CODECS; i++)
        codecs[i] = i;
    engines[n_engines] = gpu_engine(connection);
    if (engines[n_engines] != WHARF_ENGINE_AUTO)
        n_engines++;
    fill_limits(connection, &limits);
    hello.version = WHARF_CONTROL_VERSION;
    hello.features = connection->features;
    hello.generation = connection->server->core.generation;
    hello.daemon_version = (char *)WHARF_VERSION;
    hello.n_codecs = WHARF_N_CODECS;
    hello.codecs = codecs;
    hello.n_engines = n_engines;
    hello.engines = engines;
    hello.limits = &limits;
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    wharf_connection_send(connection, &reply, false);
}

/* A refused Hello ends the connection, after the answer. */
static void refuse_hello(struct wharf_connection *connection, uint32_t id, int code,
                         const char *text)
{
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);

    wharf_log_client(WHARF_LOG_NOTICE, &fields, "refused the Hello of pid %d: %s",
                     (int)connection->pid, text);
    wharf_request_refuse(connection, id, code, "%s", text);
    wharf_connection_end(connection, true);
}

static void handle_hello(struct wharf_connection *connection, uint32_t id,
                         const Wharf__HelloRequest *hello)
{
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);

    if (connection->server->is_draining) {
        refuse_hello(connection, id, ESHUTDOWN, "the daemon is going down: connect again");
        return;
    }
    if (strlen(hello->client_name) > WHARF_CONTROL_MAX_NAME_NBYTES ||
        hello->min_version > hello->version) {
        refuse_hello(connection, id, EINVAL,
                     "client_name is too long, or min_version above version");
        return;
    }
    if (hello->version < WHARF_CONTROL_VERSION || hello->min_version > WHARF_CONTROL_VERSION) {
        refuse_hello(connection, id, EPROTONOSUPPORT, "this daemon speaks version 1 alone");
        return;
    }
    uint64_t known = WHARF_FEATURE_MODELS | WHARF_FEATURE_MARKS | WHARF_FEATURE_FILES |
                     WHARF_FEATURE_DONE_WORDS | WHARF_FEATURE_CHAINS;

    if (connection->tenant->quota.max_compress_nbytes > 0)
        known |= WHARF_FEATURE_COMPRESS;
    if (connection->tenant->quota.max_start_ns > 0)
        known |= WHARF_FEATURE_START_WORDS;
    if (may_import(connection))
        known |= WHARF_FEATURE_GPU_MEMORY | WHARF_FEATURE_GPU_SOURCES;
    if (hello->required_features & ~known) {
        refuse_hello(connection, id, EOPNOTSUPP,
                     "this daemon does not have all features that are required");
        return;
    }
    strcpy(connection->name, hello->client_name);
    connection->features = known & (hello->required_features | hello->optional_features);
    /* Both are in one table. */
    if (!(connection->features & WHARF_FEATURE_DONE_WORDS))
        connection->features &= ~WHARF_FEATURE_START_WORDS;
    connection->told = connection->tenant->quota;
    connection->state = WHARF_CONNECTION_READY;
    wharf_pass_rights(connection->fd, true);
    wharf_timer_clear(connection->server->loop, &connection->hello_timer);
    wharf_log_client(WHARF_LOG_DEBUG, &fields, "%s (pid %d) says Hello", connection->name,
                     (int)connection->pid);
    reply_hello(connection, id);
}

/* ---- opening the queue --------------------------------------------------------------------- */

/* Checks the request's own values.  Returns 0 or the error. */
static int check_queue(struct wharf_connection *connection, const Wharf__OpenQueueRequest *open,
                       const char **ret_text)
{
    const struct wharf_quota *quota = &connection->told;

    *ret_text = "n_entries is no power of two from 2 to 32768";
    if (!wharf_ring_n_entries_good(open->n_entries))
        return EINVAL;
    *ret_text = "default_class is none that is known";
    if (open->default_class > WHARF_CLASS_BACKGROUND)
        return EINVAL;
    *ret_text = "engine is none that is known";
    if (open->engine > WHARF_ENGINE_SIMT)
        return EINVAL;
    *ret_text = "arena_nbytes is 0 for an arena that is brought";
    if (open->bring_arena && open->arena_nbytes == 0)
        return EINVAL;
    *ret_text = "this daemon has no such engine";
    if ((open->engine == WHARF_ENGINE_GPU || open->engine == WHARF_ENGINE_SIMT) &&
        open->engine != gpu_engine(connection))
        return EOPNOTSUPP;
    *ret_text = "n_entries is over max_entries, the limit of one queue";
    if (open->n_entries > quota->max_entries)
        return wharf_connection_is_over(connection, WHARF_LIMIT_ENTRIES);
    *ret_text = "arena_nbytes is over max_arena, the limit of one session";
    if (open->arena_nbytes > quota->max_arena_nbytes)
        return wharf_connection_is_over(connection, WHARF_LIMIT_ARENA);
    return 0;
}

/* Tells the GPU's backend about the arena: a preallocated one, or memory that it must register. */
static void add_arena(struct wharf_core *core, struct wharf_session *session)
{
    struct wharf_gpu_memory *memory = session->regions[0].memory;

    if (memory && wharf_list_is_linked(&memory->link))
        wharf_gpu_memory_give(core, memory, session);
    else
        wharf_gpu_memory_add(core, memory);
}

static int make_session(struct wharf_connection *connection, const Wharf__OpenQueueRequest *open,
                        int fd, struct wharf_session **ret_session, const char **ret_text)
{
    struct wharf_server *server = connection->server;
    struct wharf_session_options options = wharf_request_queue_options(connection, open, fd);
    struct wharf_use use = wharf_session_use(&options);
    struct wharf_gpu_memory *memory = NULL;
    struct wharf_segment pooled;
    struct wharf_session *session;
    int r;

    if (open->bring_arena && fd < 0)
        return fd;
    wharf_core_enter(&server->core);
    r = wharf_tenant_charge(connection->tenant, &use, ret_text);
    if (r < 0 && wharf_room_reserve_queue(connection, open, *ret_text)) {
        wharf_tenant_charge_anyway(connection->tenant, &use);
        r = 0;
    }
    if (r == 0 && wharf_place_has_gpu(&server->core, options.engine) &&
        wharf_gpu_arena_pool_take(&server->core, wharf_session_arena_nbytes(&options), &pooled,
                                  &memory))
        options.pooled = &pooled;
    wharf_core_leave(&server->core);
    if (r < 0)
        return r;
    r = wharf_session_new(&options, connection->tenant, &session);
    if (r < 0) {
        wharf_core_enter(&server->core);
        wharf_tenant_give_back(connection->tenant, &use);
        wharf_gpu_memory_drop(&server->core, memory, &(struct wharf_use){.n_jobs = 0});
        wharf_core_leave(&server->core);
        return r;
    }
    session->socket = connection->fd;
    session->connection = connection;
    struct wharf_region *arena = &session->regions[0];
    arena->memory = memory;
    if (arena->is_there && !memory)
        arena->memory =
            wharf_gpu_memory_new(&server->core, session, open->bring_arena ? fd : arena->segment.fd,
                                 arena->segment.nbytes, false);
    *ret_session = session;
    return 0;
}

static void handle_open_queue(struct wharf_connection *connection, uint32_t id,
                              const Wharf__OpenQueueRequest *open, int fd)
{
    Wharf__OpenQueueReply queue = WHARF__OPEN_QUEUE_REPLY__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    struct wharf_session *session;
    const char *text;

    if (connection->server->is_draining) {
        wharf_request_refuse(connection, id, ESHUTDOWN, "the daemon is going down: connect again");
        return;
    }
    if (connection->session) {
        wharf_request_refuse(connection, id, EBUSY, "this connection has a queue");
        return;
    }
    int code = check_queue(connection, open, &text);
    if (code) {
        wharf_request_refuse(connection, id, code, "%s", text);
        return;
    }
    text = wharf_room_refuses_queue(connection, open);
    if (text) {
        wharf_request_refuse(connection, id, EDQUOT, "%s", text);
        return;
    }
    int r = make_session(connection, open, fd, &session, &text);
    if (r < 0) {
        wharf_request_refuse(connection, id, -r, "%s", text ? text : wharf_memory_error_text(r));
        return;
    }
    connection->session = session;
    connection->state = WHARF_CONNECTION_OPEN;
    queue.n_entries = open->n_entries;
    queue.arena_nbytes = session->regions[0].is_there ? session->regions[0].segment.nbytes : 0;
    queue.session = session->id;
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_OPEN_QUEUE;
    reply.open_queue = &queue;
    wharf_core_enter(&connection->server->core);
    add_arena(&connection->server->core, session);
    wharf_core_add_session(&connection->server->core, session);
    wharf_core_leave(&connection->server->core);
    wharf_connection_send(connection, &reply, true);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void handle_drain(struct wharf_connection *connection, uint32_t id)
{
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);

    if (!connection->is_operator) {
        wharf_request_refuse(connection, id, EPERM,
                             "only root and the daemon's own user may drain it, and not through a "
                             "socket with `tenant = socket`");
        return;
    }
    wharf_log(WHARF_LOG_NOTICE, &fields, "draining, as %s (pid %d) asks", connection->name,
              (int)connection->pid);
    wharf_request_done(connection, id);
    connection->server->wants_drain = true;
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool always(const Wharf__Request *request)
{
    (void)request;
    return true;
}

static bool brings_arena(const Wharf__Request *request)
{
    return request->open_queue->bring_arena;
}

/* With the simulated GPU a memfd stands for GPU memory. */
static uint8_t memory_fd_filter_kind(const struct wharf_connection *connection,
                                     const Wharf__Request *request)
{
    const Wharf__RegisterMemoryRequest *memory = request->register_memory;
    bool is_gpu = memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_GPU;

    if (memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_FILE && wharf_files_are_ready(connection))
        return memory->read_only ? WHARF_FD_FILTER_FILE : WHARF_FD_FILTER_FILE_WRITE;
    return is_gpu && connection->server->config.gpu_engine != WHARF_GPU_SIMT
               ? WHARF_FD_FILTER_GPU
               : WHARF_FD_FILTER_MEMFD;
}

static void hello_again(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    (void)request;
    (void)fd;
    wharf_connection_refuse(connection, EPROTO, "Hello was said before");
}

static void open_queue(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    handle_open_queue(connection, request->id, request->open_queue, fd);
}

static void register_memory(struct wharf_connection *connection, const Wharf__Request *request,
                            int fd)
{
    wharf_request_register(connection, request->id, request->register_memory, fd);
}

static void unregister_memory(struct wharf_connection *connection, const Wharf__Request *request,
                              int fd)
{
    (void)fd;
    wharf_request_unregister(connection, request->id, request->unregister_memory);
}

static void register_model(struct wharf_connection *connection, const Wharf__Request *request,
                           int fd)
{
    wharf_model_register(connection, request->id, request->register_model, fd);
}

static void unregister_model(struct wharf_connection *connection, const Wharf__Request *request,
                             int fd)
{
    (void)fd;
    wharf_model_unregister(connection, request->id, request->unregister_model->model);
}

static void stats(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    (void)fd;
    wharf_stats_reply(connection, request);
}

static void drain(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    (void)fd;
    handle_drain(connection, request->id);
}

static void ping(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    (void)fd;
    wharf_request_done(connection, request->id);
}

static void unknown(struct wharf_connection *connection, const Wharf__Request *request, int fd)
{
    (void)fd;
    wharf_request_refuse(connection, request->id, EOPNOTSUPP,
                         "this daemon does not know such a request");
}

/* A row of the request table, for requests after Hello. */
struct row {
    Wharf__Request__BodyCase kind;
    bool (*wants_fd)(const Wharf__Request *request); /* NULL: never */
    /* NULL: a memfd, if it wants one. */
    uint8_t (*fd_filter_kind)(const struct wharf_connection *connection,
                              const Wharf__Request *request);
    void (*handle)(struct wharf_connection *connection, const Wharf__Request *request, int fd);
};
static const struct row rows[] = {
    {WHARF__REQUEST__BODY_HELLO, NULL, NULL, hello_again},
    {WHARF__REQUEST__BODY_OPEN_QUEUE, brings_arena, NULL, open_queue},
    {WHARF__REQUEST__BODY_REGISTER_MEMORY, always, memory_fd_filter_kind, register_memory},
    {WHARF__REQUEST__BODY_UNREGISTER_MEMORY, NULL, NULL, unregister_memory},
    {WHARF__REQUEST__BODY_REGISTER_MODEL, always, NULL, register_model},
    {WHARF__REQUEST__BODY_UNREGISTER_MODEL, NULL, NULL, unregister_model},
    {WHARF__REQUEST__BODY_STATS, NULL, NULL, stats},
    {WHARF__REQUEST__BODY_DRAIN, NULL, NULL, drain},
    {WHARF__REQUEST__BODY_PING, NULL, NULL, ping},
};

static const struct row *row_of(const Wharf__Request *request)
{
    static const struct row none = {.handle = unknown};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].kind == request->body_case)
            return &rows[i];
    return &none;
}

bool wharf_request_wants_fd(const Wharf__Request *request)
{
    const struct row *row = row_of(request);

    return row->wants_fd && row->wants_fd(request);
}

uint8_t wharf_request_fd_filter_kind(const struct wharf_connection *connection,
                                     const Wharf__Request *request)
{
    const struct row *row = row_of(request);

    return row->fd_filter_kind ? row->fd_filter_kind(connection, request)
                               : (uint8_t)WHARF_FD_FILTER_MEMFD;
}

void wharf_request_handle(struct wharf_connection *connection, const Wharf__Request *request,
                          int fd)
{
    if (connection->state != WHARF_CONNECTION_GREETING)
        row_of(request)->handle(connection, request, fd);
    else if (request->body_case == WHARF__REQUEST__BODY_HELLO)
        handle_hello(connection, request->id, request->hello);
    else
        wharf_connection_refuse(connection, EPROTO, "a request came before Hello");
}
