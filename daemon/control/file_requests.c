/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_requests.c: registers files, and runs the wharfd-io process of a session.
 */
#include "daemon/control/file_requests.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/exit_text.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/loop_source.h"
#include "daemon/control/connection.h"
#include "daemon/control/region_place.h"
#include "daemon/control/replies.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/session.h"
#include "daemon/core/shared_charge.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/disposable.h"
#include "daemon/placement/gpu_arena_pool.h"
#include "daemon/placement/gpu_memory.h"

/* A tenant cannot register files while so many processes hang in its files. */
#define MOST_HUNG 2

/* About what the kernel has for a thread, and what that touches of its stack. */
#define TASK_NBYTES ((uint64_t)64 << 10)

/* A file that was passed to the process, or is about to be. */
struct taking {
    uint32_t file; /* WHARF_FILE_NONE: none is */
    bool is_asked; /* the request waits for what follows */
    uint32_t id;   /* of the request */
    uint32_t region;
    uint64_t nbytes;
    bool read_only;
    bool has_answer;
    struct wharf_file_answer answer;
};

struct wharf_file_process {
    struct wharf_server *server;
    struct wharf_list link;              /* in the server's list */
    struct wharf_connection *connection; /* NULL: it was killed */
    struct wharf_tenant *tenant;         /* pinned */
    struct wharf_use use;                /* charged until it is gone */
    struct wharf_shared_charge *area; /* of the staging area, which it maps; NULL: there is none */
    bool is_ending;                   /* it is one of n_endings */
    bool is_blamed;                   /* it is one of n_hung_files */
    pid_t pid;                        /* 0: it has ended, and another one can be called so */
    struct wharf_source source;       /* its socket, which is the session's file_io's */
    struct wharf_source exit_source;  /* its pidfd */
    struct taking taking;
    uint32_t n_files; /* that are registered */
    /* By place: the number of the last file there; and whether that is not closed. */
    uint32_t files[WHARF_FILE_MOST];
    bool is_used[WHARF_FILE_MOST];
};

/* ---- the process --------------------------------------------------------------------------- */

/* Adds to one of the tenant's counters, modulo 2^32, which other threads read. */
static void count(uint32_t *number, uint32_t more)
{
    __atomic_fetch_add(number, more, __ATOMIC_RELAXED);
}

static void process_free(struct wharf_file_process *process)
{
    struct wharf_core *core = &process->server->core;

    wharf_loop_remove(process->server->loop, &process->exit_source);
    wharf_close_fd(process->exit_source.fd);
    wharf_list_remove(&process->link);
    count(&process->tenant->n_hung_files, -(uint32_t)process->is_blamed);
    count(&process->tenant->n_file_processes, (uint32_t)-1);
    process->tenant->n_endings -= process->is_ending;
    wharf_core_enter(core);
    wharf_tenant_give_back(process->tenant, &process->use);
    wharf_shared_charge_release(process->area);
    wharf_tenant_unref(process->tenant);
    wharf_core_leave(core);
    free(process);
}

/* Kills the process.  Its pidfd reports the end, which can take as long as the file it hangs in. */
static void stop(struct wharf_file_process *process)
{
    struct wharf_connection *connection = WHARF_STEAL(process->connection);
    struct wharf_file_io *io = connection->session->file_io;

    wharf_loop_remove(process->server->loop, &process->source);
    connection->files = NULL;
    count(&process->tenant->n_files, -process->n_files);
    process->n_files = 0;
    if (process->pid > 0)
        kill(process->pid, SIGKILL);
    wharf_file_io_lose(io);
    if (!__atomic_load_n(&io->is_hung, __ATOMIC_RELAXED)) {
        process->is_ending = true;
        process->tenant->n_endings++;
        return;
    }
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);
    wharf_log_client(WHARF_LOG_WARNING, &fields, "a file hung the process %d, which is killed",
                     (int)process->pid);
    count(&process->tenant->n_hung_files, 1);
    process->is_blamed = true;
}

static void on_exit_of_process(struct wharf_source *source, uint32_t ready)
{
    struct wharf_file_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_file_process, exit_source);
    struct wharf_connection *connection = process->connection;
    char text[WHARF_EXIT_TEXT_NBYTES];
    siginfo_t info = {0};

    (void)ready;
    waitid(P_PIDFD, (id_t)source->fd, &info, WEXITED);
    process->pid = 0;
    if (connection) {
        struct wharf_log_fields fields = wharf_connection_fields(connection, 0);
        int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        wharf_log_client(WHARF_LOG_WARNING, &fields, "the process for files has ended %s",
                         wharf_exit_text(status, text));
        wharf_files_are_lost(connection);
    }
    process_free(process);
}

static void on_answer(struct wharf_source *source, uint32_t ready);

/* One for each worker and spare one: each can wait in a file. */
static uint32_t n_slots_of(const struct wharf_server *server)
{
    uint32_t n_slots = 2 * server->core.workers.n_workers;

    return n_slots < 2 ? 2 : n_slots < WHARF_FILE_MOST_SLOTS ? n_slots : WHARF_FILE_MOST_SLOTS;
}

/* Whether a GPU could use a staging area. */
static bool wants_staging(struct wharf_core *core, const struct wharf_session *session)
{
    return session->engine != WHARF_ENGINE_CPU && session->engine != WHARF_ENGINE_REFERENCE &&
           __atomic_load_n(&core->fleet.n_gpus, __ATOMIC_RELAXED) > 0;
}

/* An area with this charge: one that is pinned already, or one that has no pages yet.  NULL: there
 * is no room for it. */
static struct wharf_file_staging *take_staging(struct wharf_core *core,
                                               const struct wharf_session *session,
                                               struct wharf_shared_charge *charge)
{
    struct wharf_use use = wharf_file_staging_use();
    struct wharf_gpu_memory *memory = NULL;
    struct wharf_segment pooled;
    bool is_pooled = false;

    wharf_core_enter(core);
    int r = wharf_shared_charge_begin(charge, session->tenant, &use);
    if (r == 0 && wharf_place_has_gpu(core, session->engine))
        is_pooled = wharf_gpu_arena_pool_take(core, WHARF_FILE_STAGING_NBYTES, &pooled, &memory);
    wharf_core_leave(core);
    struct wharf_file_staging *staging =
        r == 0 ? wharf_file_staging_new(is_pooled ? &pooled : NULL) : NULL;
    if (staging) {
        staging->account = memory;
        staging->charge = charge;
        return staging;
    }
    wharf_core_enter(core);
    wharf_gpu_memory_drop(core, memory, &(struct wharf_use){.n_jobs = 0});
    if (r == 0)
        wharf_shared_charge_release(WHARF_STEAL(charge));
    wharf_core_leave(core);
    free(charge);
    return NULL;
}

/* NULL: the CPU runs all jobs. */
static struct wharf_file_staging *make_staging(struct wharf_core *core,
                                               const struct wharf_session *session)
{
    struct wharf_shared_charge *charge =
        wants_staging(core, session) ? calloc(1, sizeof(*charge)) : NULL;

    return charge ? take_staging(core, session, charge) : NULL;
}

/* The session has its files, and GPUs its staging area. */
static void enter(struct wharf_file_process *process, struct wharf_session *session,
                  struct wharf_file_io *io)
{
    struct wharf_core *core = &process->server->core;
    struct wharf_file_staging *staging = io->staging;
    bool is_pooled = staging && staging->account;

    /* Without an entry no GPU has it, and jobs run on the CPU. */
    if (staging && !is_pooled)
        staging->account =
            wharf_gpu_memory_new(core, session, staging->memory.fd, staging->memory.nbytes, false);
    wharf_core_enter(core);
    session->file_io = io;
    if (staging)
        process->area = wharf_shared_charge_hold(staging->charge);
    if (staging && staging->account) {
        staging->account->is_staging = true;
        staging->account->charge = wharf_shared_charge_hold(staging->charge);
    }
    if (is_pooled)
        wharf_gpu_memory_give(core, staging->account, session);
    else if (staging)
        wharf_gpu_memory_add(core, staging->account);
    wharf_core_leave(core);
}

/* Gives up what no session has got. */
static void discard(struct wharf_core *core, struct wharf_file_staging *staging)
{
    if (!staging)
        return;
    wharf_core_enter(core);
    wharf_gpu_memory_drop(core, staging->account, &(struct wharf_use){.n_jobs = 0});
    wharf_shared_charge_release(staging->charge);
    wharf_core_leave(core);
}

/* Takes the socket over. */
static int watch(struct wharf_file_process *process, struct wharf_session *session, int fd)
{
    struct wharf_server *server = process->server;
    struct wharf_file_io *io;
    struct wharf_file_staging *staging = make_staging(&server->core, session);
    struct wharf_file_io_options options = {
        .n_slots = n_slots_of(server),
        .timeout_ns = server->config.file_timeout_ns,
        .ahead_nbytes = server->config.read_ahead_nbytes,
        .is_short = &server->core.is_short_of_workers,
    };
    int r = wharf_file_io_new(fd, &options, staging, &io);

    if (r < 0) {
        discard(&server->core, staging);
        wharf_file_staging_free(staging);
        return r;
    }
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    r = pidfd < 0 ? -errno : 0;
    if (r == 0)
        r = wharf_loop_add(server->loop, &process->exit_source, pidfd, POLLIN, on_exit_of_process);
    if (r == 0)
        r = wharf_loop_add(server->loop, &process->source, io->socket, POLLIN, on_answer);
    if (r < 0) {
        discard(&server->core, staging);
        wharf_file_io_free(io);
        return r;
    }
    enter(process, session, io);
    return 0;
}

/* With what it may have in the page cache for jobs to come. */
static struct wharf_use process_use(const struct wharf_server *server)
{
    uint32_t n_slots = n_slots_of(server);

    return (struct wharf_use){
        .n_descriptors = 2,
        .n_mappings = 1,
        .n_tasks = 1 + n_slots,
        .memory_nbytes = wharf_file_memory_nbytes(n_slots, 0) + (1 + n_slots) * TASK_NBYTES +
                         server->config.read_ahead_nbytes,
    };
}

struct wharf_use wharf_files_start_use(const struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;
    struct wharf_use use = process_use(server), area = wharf_file_staging_use();

    if (wants_staging(&server->core, connection->session))
        wharf_use_add(&use, &area);
    return use;
}

static int start(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;
    struct wharf_use use = process_use(server);
    int r = wharf_core_charge(&server->core, connection->tenant, &use, &connection->files_text);

    if (r < 0)
        return r;
    struct wharf_file_process *process = calloc(1, sizeof(*process));
    if (!process) {
        wharf_core_give_back(&server->core, connection->tenant, &use);
        return -ENOMEM;
    }
    process->server = server;
    process->tenant = connection->tenant;
    process->use = use;
    process->taking.file = WHARF_FILE_NONE;
    process->source.fd = process->exit_source.fd = -1;
    for (uint32_t place = 0; place < WHARF_FILE_MOST; place++)
        process->files[place] = wharf_file_number(place, 0);
    wharf_list_append(&server->file_processes, &process->link);
    count(&process->tenant->n_file_processes, 1);
    wharf_core_enter(&server->core);
    wharf_tenant_ref(process->tenant);
    wharf_core_leave(&server->core);
    r = wharf_disposable_spawn("--io", &process->pid);
    if (r >= 0)
        r = watch(process, connection->session, r);
    if (r < 0) {
        wharf_disposable_undo(process->pid);
        process_free(process);
        return r;
    }
    process->connection = connection;
    connection->files = process;
    return 0;
}

/* ---- before the filter ----------------------------------------------------------------------- */

/* Finds a number for a new file. */
static uint32_t new_file(struct wharf_file_process *process)
{
    for (uint32_t place = 0; place < WHARF_FILE_MOST; place++) {
        if (process->is_used[place])
            continue;
        process->is_used[place] = true;
        process->files[place] += WHARF_FILE_MOST;
        if (process->files[place] == WHARF_FILE_NONE)
            process->files[place] += WHARF_FILE_MOST;
        return process->files[place];
    }
    return WHARF_FILE_NONE;
}

/* 0 or -errno. */
static int prepare(struct wharf_connection *connection)
{
    int r = 0;

    if (!connection->files)
        r = connection->tenant->n_hung_files < MOST_HUNG ? start(connection) : -EBUSY;
    if (r < 0)
        return r;
    struct taking *taking = &connection->files->taking;
    *taking = (struct taking){.file = new_file(connection->files)};
    return taking->file == WHARF_FILE_NONE ? -ENOSPC : 0;
}

static bool is_of_file(const struct wharf_connection *connection, const Wharf__Request *request)
{
    const char *text;

    return request->body_case == WHARF__REQUEST__BODY_REGISTER_MEMORY &&
           request->register_memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_FILE &&
           connection->state == WHARF_CONNECTION_OPEN &&
           wharf_files_check(connection, request->register_memory, &text) == 0;
}

bool wharf_files_need_process(const struct wharf_connection *connection,
                              const Wharf__Request *request)
{
    return !connection->files && is_of_file(connection, request);
}

void wharf_files_prepare(struct wharf_connection *connection, const Wharf__Request *request)
{
    connection->files_text = NULL;
    connection->files_error = is_of_file(connection, request) ? prepare(connection) : 0;
}

bool wharf_files_are_ready(const struct wharf_connection *connection)
{
    return connection->files && connection->files->taking.file != WHARF_FILE_NONE;
}

int wharf_files_socket(const struct wharf_connection *connection, uint32_t *ret_file)
{
    *ret_file = connection->files->taking.file;
    return connection->session->file_io->socket;
}

int wharf_files_check(const struct wharf_connection *connection,
                      const Wharf__RegisterMemoryRequest *memory, const char **ret_text)
{
    uint8_t engine = connection->session ? connection->session->engine : WHARF_ENGINE_AUTO;

    *ret_text = "files were not agreed on: FEATURE_FILES is missing";
    if (!(connection->features & WHARF_FEATURE_FILES))
        return EOPNOTSUPP;
    *ret_text = "the queue's engine is a GPU, which cannot write files: register it read-only";
    if ((engine == WHARF_ENGINE_GPU || engine == WHARF_ENGINE_SIMT) && !memory->read_only)
        return EOPNOTSUPP;
    *ret_text = "nbytes is more than a file can have";
    return memory->nbytes > INT64_MAX ? EINVAL : 0;
}

/* ---- registering --------------------------------------------------------------------------- */

static const char *error_text(int r)
{
    switch (r) {
    case -EBADF:
        return "the descriptor is neither a regular file nor a block device";
    case -EACCES:
        return "the descriptor is not open for that, or its file system keeps the daemon out";
    case -EINVAL:
        return "the descriptor is open with O_APPEND, which overrides offsets";
    case -EROFS:
        return "its file system is in memory, as tmpfs is, where the daemon only reads: register "
               "it read-only, and write there yourself";
    case -EOPNOTSUPP:
        return "its file system makes its files up, as procfs does";
    case -EBUSY:
        return "files of this user hang processes of the daemon";
    case -ENOSPC:
        return "no more files can be registered by one session";
    case -EDQUOT:
        return "over this user's or all users' limit of memory, mappings or descriptors";
    default:
        return "it cannot be looked at";
    }
}

static void close_file(struct wharf_file_process *process, uint32_t file)
{
    struct wharf_file_request request = {.op = WHARF_FILE_CLOSE, .file = file};

    /* If sending fails, the process has ended: its pidfd reports it.  The number stays used. */
    (void)wharf_control_send(process->source.fd, (const uint8_t *)&request, sizeof(request), NULL,
                             0, MSG_DONTWAIT);
}

/* Gives up a file's number, which is free again when the process has closed the file. */
static void forgo(struct wharf_file_process *process)
{
    if (process->taking.file != WHARF_FILE_NONE)
        close_file(process, process->taking.file);
    process->taking.file = WHARF_FILE_NONE;
}

void wharf_files_forgo(struct wharf_connection *connection)
{
    if (connection->files)
        forgo(connection->files);
}

static int add_region(struct wharf_connection *connection, const struct taking *taking,
                      const char **ret_text)
{
    struct wharf_region *place;
    struct wharf_region wanted = {
        .number = (uint16_t)taking->region,
        .is_there = true,
        .read_only = taking->read_only,
        .write_only = taking->answer.write_only != 0,
        .is_file = true,
        .file = taking->file,
        .segment = {.nbytes = taking->nbytes, .fd = -1},
    };
    int r = wharf_region_begin(connection, &wanted, &place, ret_text);

    return r < 0 ? r : wharf_region_enter(connection, &wanted, place, 0);
}

/* The process has checked the file: answers the request. */
static void finish(struct wharf_file_process *process)
{
    struct wharf_connection *connection = process->connection;
    struct taking taking = process->taking;
    const char *text = NULL;
    int r = taking.answer.error ? taking.answer.error : add_region(connection, &taking, &text);

    if (r == -ETIME) {
        wharf_connection_part_from_blocked(connection);
        return;
    }
    if (r < 0) {
        forgo(process);
        wharf_request_refuse(connection, taking.id, -r, "region %u: %s", (unsigned)taking.region,
                             text ? text : error_text(r));
    } else {
        process->taking.file = WHARF_FILE_NONE;
        process->n_files++;
        count(&process->tenant->n_files, 1);
        wharf_request_done(connection, taking.id);
    }
    wharf_connection_release_import(connection);
}

void wharf_files_register(struct wharf_connection *connection, uint32_t id,
                          const Wharf__RegisterMemoryRequest *memory, int sent)
{
    struct wharf_file_process *process = connection->files;

    if (connection->files_error < 0)
        sent = connection->files_error;
    if (sent < 0 || !process) {
        const char *text = sent == -EDQUOT ? connection->files_text : NULL;
        wharf_files_forgo(connection);
        wharf_request_refuse(connection, id, sent < 0 ? -sent : EIO, "region %u: %s",
                             (unsigned)memory->region, text ? text : error_text(sent));
        return;
    }
    process->taking.is_asked = true;
    process->taking.id = id;
    process->taking.region = memory->region;
    process->taking.nbytes = memory->nbytes;
    process->taking.read_only = memory->read_only;
    wharf_connection_hold_import(connection);
    if (process->taking.has_answer)
        finish(process);
}

void wharf_files_close(struct wharf_connection *connection, uint32_t file,
                       const struct wharf_use *use)
{
    if (connection->files) {
        close_file(connection->files, file);
        connection->files->n_files--;
        count(&connection->files->tenant->n_files, (uint32_t)-1);
    }
    wharf_core_give_back(&connection->server->core, connection->tenant, use);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void take_answer(struct wharf_file_process *process, const struct wharf_file_answer *answer)
{
    struct taking *taking = &process->taking;

    uint32_t place = wharf_file_place(answer->file);

    if (answer->op == WHARF_FILE_CLOSE) {
        if (answer->file == process->files[place])
            process->is_used[place] = false;
        return;
    }
    if (answer->file != taking->file || taking->has_answer)
        return;
    taking->answer = *answer;
    taking->has_answer = true;
    if (taking->is_asked)
        finish(process);
}

static void on_answer(struct wharf_source *source, uint32_t ready)
{
    struct wharf_file_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_file_process, source);
    struct wharf_file_answer answer;
    ssize_t n = recv(source->fd, &answer, sizeof(answer), MSG_DONTWAIT);

    (void)ready;
    if (n == (ssize_t)sizeof(answer))
        take_answer(process, &answer);
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        /* Its end, of which the pidfd tells. */
        wharf_loop_want(process->server->loop, source, 0);
}

/* ---- the end ------------------------------------------------------------------------------- */

void wharf_files_are_lost(struct wharf_connection *connection)
{
    bool is_hung = __atomic_load_n(&connection->session->file_io->is_hung, __ATOMIC_RELAXED);

    wharf_connection_part(connection,
                          is_hung ? "a file has hung the process that reads it: connect again"
                                  : "the process that reads files has ended: connect again");
}

void wharf_files_forget(struct wharf_connection *connection)
{
    if (connection->files)
        stop(connection->files);
}

void wharf_files_deinit(struct wharf_server *server)
{
    struct wharf_file_process *process;

    while (server->file_processes.next &&
           (process = WHARF_LIST_FIRST(&server->file_processes, struct wharf_file_process, link))) {
        if (process->connection)
            stop(process);
        process_free(process);
    }
}
