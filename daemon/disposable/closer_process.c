/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_process.c: collects sockets that may hold descriptors, and starts processes that close
 * them by exiting.
 */
#include "daemon/disposable/closer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/machine.h"
#include "daemon/base/spawn.h"
#include "daemon/core/core.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/closer_thread.h"
#include "daemon/disposable/disposable.h"

/* How long to wait where no process can be started. */
#define RETRY_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* Sockets that a process takes over: handing over more would keep the loop thread. */
#define MOST_AT_ONCE 1024

/* Packets that are read to see whether there are descriptors behind them.  A client that keeps the
 * rules has a few wake-ups on their way. */
#define MOST_PACKETS 256

/* What a socket is charged with, as connections are, its three descriptors that may be on their way
 * included. */
static const struct wharf_use use_of_one = {.n_connections = 1, .n_descriptors = 4};

/* Sockets that go to the same processes. */
struct lot {
    struct wharf_closer_process *closer_process;
    struct wharf_tenant *tenant; /* whose they are, NULL: nobody's */
    struct wharf_list link;      /* in the closer process's list */
    struct wharf_timer timer;
    int *waiting;
    unsigned n_waiting, n_room;
    unsigned n_beyond;    /* of those that wait: of clients that were turned away, at most */
    unsigned n_processes; /* that have not ended */
    bool is_late;         /* they wait for longer than they should, which was said */
};

struct process {
    struct lot *lot;
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_list link;          /* in the closer process's list */
    struct wharf_use use;            /* charged for what it has */
    pid_t pid;
};

struct wharf_closer_process {
    struct wharf_loop *loop;
    struct wharf_core *core;
    struct wharf_closer_thread *closer; /* of those that are not doubtful */
    struct wharf_list processes;
    unsigned n_processes;
    struct wharf_list lots;
    struct lot nobodys; /* is always there */
    unsigned n_beyond;  /* of all lots */
    /* More than there are when all is well, less than would leave the daemon without descriptors:
     * those of clients that were let in are counted where these are charged. */
    uint64_t most_beyond;
};

/* ---- what is charged ----------------------------------------------------------------------- */

static void charge_anyway(struct wharf_closer_process *closer_process, struct wharf_tenant *tenant)
{
    wharf_core_enter(closer_process->core);
    wharf_tenant_charge_anyway(tenant, &use_of_one);
    wharf_core_leave(closer_process->core);
}

/* ---- lots ---------------------------------------------------------------------------------- */

static void lot_init(struct lot *lot, struct wharf_closer_process *closer_process,
                     struct wharf_tenant *tenant)
{
    lot->closer_process = closer_process;
    lot->tenant = tenant;
    wharf_list_append(&closer_process->lots, &lot->link);
}

static void lot_deinit(struct lot *lot)
{
    wharf_timer_clear(lot->closer_process->loop, &lot->timer);
    wharf_list_remove(&lot->link);
    free(lot->waiting);
}

static void lot_free_if_empty(struct lot *lot)
{
    if (!lot->tenant || lot->n_waiting > 0 || lot->n_processes > 0)
        return;
    lot_deinit(lot);
    free(lot);
}

/* The tenant's, a new one if need be.  NULL: out of memory. */
static struct lot *lot_of(struct wharf_closer_process *closer_process, struct wharf_tenant *tenant)
{
    struct lot *lot;

    WHARF_LIST_FOR(link, &closer_process->lots)
    {
        lot = WHARF_LIST_ENTRY(link, struct lot, link);
        if (lot->tenant == tenant)
            return lot;
    }
    lot = calloc(1, sizeof(*lot));
    if (lot)
        lot_init(lot, closer_process, tenant);
    return lot;
}

static bool lot_grow(struct lot *lot)
{
    unsigned n_room = lot->n_room ? 2 * lot->n_room : WHARF_CLOSER_N_SOCKETS;
    int *grown = reallocarray(lot->waiting, n_room, sizeof(*grown));

    if (!grown)
        return false;
    lot->waiting = grown;
    lot->n_room = n_room;
    return true;
}

/* ---- processes ----------------------------------------------------------------------------- */

static void process_free(struct process *process)
{
    struct lot *lot = process->lot;
    struct wharf_closer_process *closer_process = lot->closer_process;

    wharf_loop_remove(closer_process->loop, &process->exit_source);
    wharf_close_fd(process->exit_source.fd);
    wharf_list_remove(&process->link);
    closer_process->n_processes--;
    lot->n_processes--;
    if (lot->tenant)
        wharf_core_give_back(closer_process->core, lot->tenant, &process->use);
    free(process);
    lot_free_if_empty(lot);
}

static void on_exit_of_process(struct wharf_source *source, uint32_t ready)
{
    struct process *process = WHARF_LIST_ENTRY(source, struct process, exit_source);

    (void)ready;
    waitid(P_PIDFD, (id_t)source->fd, NULL, WEXITED);
    process_free(process);
}

static int watch(struct process *process)
{
    struct wharf_loop *loop = process->lot->closer_process->loop;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (fd < 0)
        return -errno;
    int r = wharf_loop_add(loop, &process->exit_source, fd, POLLIN, on_exit_of_process);
    if (r < 0)
        wharf_close_fd(fd);
    return r;
}

/* With the first `n` sockets of the lot; it ends when nobody has the pipe's other end any more. */
static int start(struct process *process, unsigned n, int *ret_pipe)
{
    const struct lot *lot = process->lot;
    int pipes[2];

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    int r = wharf_spawn_self("--closer", pipes[0], lot->waiting, n, &process->pid);
    wharf_close_fd(pipes[0]);
    if (r == 0)
        r = watch(process);
    if (r == 0) {
        *ret_pipe = pipes[1];
        return 0;
    }
    /* What it had is the core's still: killed, it closes no last reference. */
    wharf_disposable_undo(process->pid);
    wharf_close_fd(pipes[1]);
    return r;
}

/* The process has its own references to the first `n` sockets now. */
static void let_go(struct lot *lot, unsigned n)
{
    unsigned n_beyond = n < lot->n_beyond ? n : lot->n_beyond;

    for (unsigned i = 0; i < n; i++)
        wharf_close_fd(lot->waiting[i]);
    lot->n_waiting -= n;
    lot->n_beyond -= n_beyond;
    lot->closer_process->n_beyond -= n_beyond;
    memmove(lot->waiting, lot->waiting + n, lot->n_waiting * sizeof(lot->waiting[0]));
}

/* What is charged for `n` sockets of a tenant. */
static struct wharf_use use_of(unsigned n)
{
    return (struct wharf_use){.n_connections = n * use_of_one.n_connections,
                              .n_descriptors = n * use_of_one.n_descriptors};
}

static int process_new(struct lot *lot)
{
    struct wharf_closer_process *closer_process = lot->closer_process;
    struct process *process = calloc(1, sizeof(*process));
    unsigned n = lot->n_waiting < MOST_AT_ONCE ? lot->n_waiting : MOST_AT_ONCE;
    int pipe_fd = -1;

    if (!process)
        return -ENOMEM;
    process->lot = lot;
    int r = start(process, n, &pipe_fd);
    if (r < 0) {
        free(process);
        return r;
    }
    wharf_list_append(&closer_process->processes, &process->link);
    closer_process->n_processes++;
    lot->n_processes++;
    if (lot->tenant)
        process->use = use_of(n);
    let_go(lot, n);
    wharf_close_fd(pipe_fd);
    return 0;
}

/* ---- sockets ------------------------------------------------------------------------------- */

static bool may_start(const struct lot *lot)
{
    return lot->closer_process->n_processes < WHARF_CLOSER_MOST_PROCESSES &&
           lot->n_processes < WHARF_CLOSER_MOST_OF_TENANT &&
           (lot->n_processes < WHARF_CLOSER_MOST_HUNG ||
            lot->n_waiting >= WHARF_CLOSER_MOST_SOCKETS);
}

static void on_time(struct wharf_timer *timer);

/* Nothing is wrong with the daemon where files of the tenant's hang, or servers of these. */
static void tell_late(const struct lot *lot, int r)
{
    struct wharf_log_fields fields = {.tenant = lot->tenant ? lot->tenant->name : NULL};

    if (r == -EBUSY) {
        wharf_log_client(WHARF_LOG_WARNING, &fields,
                         "sockets wait to be closed: closing earlier ones hangs, in files that "
                         "their clients left in them");
        return;
    }
    fields.error = -r;
    wharf_log_client(WHARF_LOG_WARNING, &fields,
                     "sockets wait to be closed: cannot start a process for that");
}

static void bury(struct lot *lot)
{
    struct wharf_closer_process *closer_process = lot->closer_process;
    int r = may_start(lot) ? process_new(lot) : -EBUSY;

    if (r < 0 && !lot->is_late)
        tell_late(lot, r);
    lot->is_late = r < 0 || lot->n_processes > WHARF_CLOSER_MOST_HUNG;
    if (lot->n_waiting > 0)
        wharf_timer_set(closer_process->loop, &lot->timer, wharf_now_ns() + RETRY_NS, on_time);
    else
        wharf_timer_clear(closer_process->loop, &lot->timer);
}

static void on_time(struct wharf_timer *timer)
{
    bury(WHARF_LIST_ENTRY(timer, struct lot, timer));
}

static void add(struct lot *lot, int fd, bool is_beyond)
{
    struct wharf_closer_process *closer_process = lot->closer_process;

    lot->waiting[lot->n_waiting++] = fd;
    lot->n_beyond += is_beyond;
    closer_process->n_beyond += is_beyond;
    if (lot->n_waiting == WHARF_CLOSER_N_SOCKETS || lot->n_waiting == WHARF_CLOSER_MOST_SOCKETS)
        bury(lot);
    else if (lot->n_waiting == 1)
        wharf_timer_set(closer_process->loop, &lot->timer, wharf_now_ns() + WHARF_CLOSER_KEPT_NS,
                        on_time);
}

enum look { END, PACKET, DESCRIPTORS };

/* There is no room for descriptors, nor for anything else that comes beside a packet, and these are
 * not touched by a look: the kernel only says that there was something. */
static enum look look_at_next(int fd)
{
    char byte;
    struct iovec iov = {&byte, sizeof(byte)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    /* The peer has closed before it has read everything: said once, before what is there. */
    do {
        n = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT);
    } while (n < 0 && (errno == ECONNRESET || errno == EINTR));
    if (header.msg_flags & MSG_CTRUNC)
        return DESCRIPTORS;
    return n > 0 ? PACKET : END;
}

/* What looks like the end can be an empty packet: with each packet come credentials, if they are
 * wanted. */
static bool is_at_end(int fd)
{
    static const int on = 1, off = 0;

    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return false;
    bool is_end = look_at_next(fd) == END;
    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off)) == 0 && is_end;
}

/*
 * Whether descriptors may be left in a socket that was shut down, so that nothing comes behind
 * them.  Packets without any are read.
 */
static bool is_doubtful(int fd)
{
    char byte;

    for (unsigned i = 0; i < MOST_PACKETS; i++) {
        enum look look = look_at_next(fd);
        if (look == DESCRIPTORS)
            return true;
        if (look == END && is_at_end(fd))
            return false;
        recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
    }
    return true;
}

static void take_doubtful(struct wharf_closer_process *closer_process, int fd,
                          struct wharf_tenant *tenant, bool is_beyond)
{
    struct lot *lot = lot_of(closer_process, tenant);

    if (is_beyond)
        charge_anyway(closer_process, tenant);
    /* Without memory nothing better is left than never to close it. */
    if (lot && (lot->n_waiting < lot->n_room || lot_grow(lot)))
        add(lot, fd, is_beyond);
}

void wharf_closer_process_take(struct wharf_closer_process *closer_process, int fd,
                               struct wharf_tenant *tenant, const struct wharf_use *use)
{
    struct lot *nobodys = &closer_process->nobodys;
    bool doubtful;

    shutdown(fd, SHUT_RDWR);
    doubtful = is_doubtful(fd);
    if (doubtful && tenant) {
        take_doubtful(closer_process, fd, tenant, !use);
        return;
    }
    if (use)
        wharf_core_give_back(closer_process->core, tenant, use);
    if (!doubtful)
        wharf_closer_thread_take(closer_process->closer, fd);
    else if (nobodys->n_waiting < nobodys->n_room || lot_grow(nobodys))
        add(nobodys, fd, true);
}

bool wharf_closer_process_is_full(const struct wharf_closer_process *closer_process)
{
    return closer_process->n_beyond >= closer_process->most_beyond;
}

/* ---- beginning and end --------------------------------------------------------------------- */

int wharf_closer_process_new(struct wharf_loop *loop, struct wharf_core *core,
                             struct wharf_closer_process **ret_closer_process)
{
    struct wharf_closer_process *closer_process = calloc(1, sizeof(*closer_process));
    struct wharf_machine machine;

    if (!closer_process)
        return -ENOMEM;
    closer_process->loop = loop;
    closer_process->core = core;
    wharf_machine_read(&machine);
    closer_process->most_beyond = wharf_totals_waiting_sockets(&machine);
    wharf_list_init(&closer_process->processes);
    wharf_list_init(&closer_process->lots);
    lot_init(&closer_process->nobodys, closer_process, NULL);
    int r = wharf_closer_thread_new(&closer_process->closer);
    if (r < 0) {
        wharf_closer_process_free(closer_process);
        return r;
    }
    *ret_closer_process = closer_process;
    return 0;
}

void wharf_closer_process_free(struct wharf_closer_process *closer_process)
{
    if (!closer_process)
        return;
    WHARF_LIST_FOR(link, &closer_process->processes)
    process_free(WHARF_LIST_ENTRY(link, struct process, link));
    WHARF_LIST_FOR(link, &closer_process->lots)
    {
        struct lot *lot = WHARF_LIST_ENTRY(link, struct lot, link);
        lot_deinit(lot);
        if (lot->tenant)
            free(lot);
    }
    wharf_closer_thread_free(closer_process->closer);
    free(closer_process);
}
