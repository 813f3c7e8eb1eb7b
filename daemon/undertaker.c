/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/undertaker.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/gate.h"
#include "daemon/list.h"
#include "daemon/log.h"
#include "proto/control.h"

/* What one process takes, and how long it is kept for that: starting one costs about as much as a
 * hundred requests. */
#define MOST_SOCKETS 64
#define KEPT_NS WHARF_NS_PER_S

/* How long to wait where no process can be started. */
#define RETRY_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* Processes that have not ended yet, beyond which no more are started: some hang. */
#define MOST_PROCESSES 16

/* Sockets that wait for a process.  More than there are when all is well, less than would leave the
 * daemon without descriptors. */
#define MOST_WAITING 1024

struct process {
    struct wharf_undertaker *undertaker;
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_list link;          /* in the undertaker's list */
    pid_t pid;
    int fd;           /* leads to it; -1: it is to end */
    unsigned n_taken; /* sockets that it was sent */
};

struct wharf_undertaker {
    struct wharf_loop *loop;
    struct wharf_list processes; /* that have not ended */
    unsigned n_processes;
    struct process *process; /* of these, the one that takes sockets; or NULL */
    struct wharf_timer timer;
    int *waiting; /* sockets */
    unsigned n_waiting, n_room;
};

/* ---- processes ----------------------------------------------------------------------------- */

static void process_free(struct process *process)
{
    struct wharf_undertaker *undertaker = process->undertaker;

    wharf_loop_remove(undertaker->loop, &process->exit_source);
    wharf_close_fd(process->exit_source.fd);
    wharf_close_fd(process->fd);
    wharf_list_remove(&process->link);
    undertaker->n_processes--;
    if (undertaker->process == process)
        undertaker->process = NULL;
    free(process);
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
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (fd < 0)
        return -errno;
    int r = wharf_loop_add(process->undertaker->loop, &process->exit_source, fd, POLLIN,
                           on_exit_of_process);
    if (r < 0)
        wharf_close_fd(fd);
    return r;
}

static int process_new(struct wharf_undertaker *undertaker)
{
    int pair[2];

    if (undertaker->n_processes >= MOST_PROCESSES)
        return -EAGAIN;
    struct process *process = calloc(1, sizeof(*process));
    if (!process)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        free(process);
        return -errno;
    }
    process->undertaker = undertaker;
    process->fd = pair[0];
    int r = wharf_gate_spawn("--undertaker", pair[1], &process->pid);
    wharf_close_fd(pair[1]);
    if (r == 0)
        r = watch(process);
    if (r < 0) {
        if (process->pid) {
            kill(process->pid, SIGKILL);
            waitpid(process->pid, NULL, 0);
        }
        wharf_close_fd(process->fd);
        free(process);
        return r;
    }
    wharf_list_append(&undertaker->processes, &process->link);
    undertaker->n_processes++;
    undertaker->process = process;
    return 0;
}

/* It ends when it has read everything. */
static void dismiss(struct wharf_undertaker *undertaker)
{
    struct process *process = WHARF_STEAL(undertaker->process);

    if (process)
        process->fd = wharf_close_fd(process->fd);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static void on_time(struct wharf_timer *timer);

static int hand_over(struct wharf_undertaker *undertaker, int fd)
{
    static const uint8_t byte;
    int r = undertaker->process ? 0 : process_new(undertaker);

    if (r < 0)
        return r;
    struct process *process = undertaker->process;
    r = wharf_control_send(process->fd, &byte, 1, &fd, 1, MSG_DONTWAIT);
    if (r < 0) {
        /* It has died, or does not read. */
        dismiss(undertaker);
        return r;
    }
    wharf_close_fd(fd);
    if (process->n_taken++ == 0)
        wharf_timer_set(undertaker->loop, &undertaker->timer, wharf_now_ns() + KEPT_NS, on_time);
    if (process->n_taken == MOST_SOCKETS)
        dismiss(undertaker);
    return 0;
}

static void hand_over_all(struct wharf_undertaker *undertaker)
{
    unsigned n_done = 0;

    while (n_done < undertaker->n_waiting &&
           hand_over(undertaker, undertaker->waiting[n_done]) == 0)
        n_done++;
    undertaker->n_waiting -= n_done;
    if (undertaker->n_waiting == 0)
        return;
    memmove(undertaker->waiting, undertaker->waiting + n_done,
            undertaker->n_waiting * sizeof(undertaker->waiting[0]));
    wharf_timer_set(undertaker->loop, &undertaker->timer, wharf_now_ns() + RETRY_NS, on_time);
}

static void on_time(struct wharf_timer *timer)
{
    struct wharf_undertaker *undertaker = WHARF_LIST_ENTRY(timer, struct wharf_undertaker, timer);

    dismiss(undertaker);
    hand_over_all(undertaker);
}

static void wait_for_process(struct wharf_undertaker *undertaker, int fd, int r)
{
    if (undertaker->n_waiting == undertaker->n_room) {
        unsigned n_room = undertaker->n_room ? 2 * undertaker->n_room : 64;
        int *grown = reallocarray(undertaker->waiting, n_room, sizeof(*grown));
        if (!grown) {
            /* Without memory nothing better is left. */
            wharf_close_fd(fd);
            return;
        }
        undertaker->waiting = grown;
        undertaker->n_room = n_room;
    }
    if (undertaker->n_waiting == 0)
        wharf_log_client(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = -r},
                         "sockets of clients wait to be closed");
    undertaker->waiting[undertaker->n_waiting++] = fd;
    wharf_timer_set(undertaker->loop, &undertaker->timer, wharf_now_ns() + RETRY_NS, on_time);
}

void wharf_undertaker_take(struct wharf_undertaker *undertaker, int fd)
{
    shutdown(fd, SHUT_RDWR);
    int r = undertaker->n_waiting ? -EAGAIN : hand_over(undertaker, fd);
    if (r == -EPIPE || r == -ECONNRESET)
        r = hand_over(undertaker, fd);
    if (r < 0)
        wait_for_process(undertaker, fd, r);
}

bool wharf_undertaker_is_full(const struct wharf_undertaker *undertaker)
{
    return undertaker->n_waiting >= MOST_WAITING;
}

/* ---- beginning and end --------------------------------------------------------------------- */

int wharf_undertaker_new(struct wharf_loop *loop, struct wharf_undertaker **ret_undertaker)
{
    struct wharf_undertaker *undertaker = calloc(1, sizeof(*undertaker));

    if (!undertaker)
        return -ENOMEM;
    undertaker->loop = loop;
    wharf_list_init(&undertaker->processes);
    *ret_undertaker = undertaker;
    return 0;
}

void wharf_undertaker_free(struct wharf_undertaker *undertaker)
{
    if (!undertaker)
        return;
    wharf_timer_clear(undertaker->loop, &undertaker->timer);
    WHARF_LIST_FOR(link, &undertaker->processes)
    process_free(WHARF_LIST_ENTRY(link, struct process, link));
    free(undertaker->waiting);
    free(undertaker);
}
