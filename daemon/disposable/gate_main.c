/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_main.c: the gate's own process.  Anything here may hang in close(): nobody waits for it.
 */
#include <string.h>
#include <sys/resource.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/segment.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/gate_protocol.h"

/* Standard streams, the front, the client, what it sent; some for the libraries. */
#define MOST_FDS 32

/* A socket that would wait until its data are sent does not. */
static void close_all(const int *fds, size_t n)
{
    static const struct linger none;

    for (size_t i = 0; i < n; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &none, sizeof(none));
        close(fds[i]);
    }
}

static int check(int fd, enum wharf_gate_kind kind)
{
    unsigned seals;
    uint64_t nbytes;

    return kind == WHARF_GATE_GPU ? wharf_segment_check_gpu(fd)
                                  : wharf_segment_check(fd, &seals, &nbytes);
}

/* Keeps the descriptor if it is the only one and good; returns it, or -1. */
static int sort_out(const struct wharf_control_receiver *receiver, enum wharf_gate_kind kind,
                    struct wharf_gate_answer *answer)
{
    answer->n_fds = (uint32_t)receiver->n_fds;
    if (receiver->n_fds == 1) {
        answer->verdict = check(receiver->fds[0], kind);
        if (answer->verdict == 0)
            return receiver->fds[0];
    }
    close_all(receiver->fds, receiver->n_fds);
    return -1;
}

/* Receives the packet that waits in a client's socket, and answers.  Returns 0 or -errno of talking
 * to the front. */
static int serve_one(int front, int client, enum wharf_gate_kind kind)
{
    static struct wharf_control_receiver receiver;
    static uint8_t message[sizeof(struct wharf_gate_answer) + WHARF_CONTROL_MAX_NBYTES];
    struct wharf_gate_answer answer = {
        .error = wharf_control_receive(client, &receiver, MSG_DONTWAIT),
    };
    WHARF_CLEANUP_FD int kept = sort_out(&receiver, kind, &answer);

    answer.packet_nbytes = answer.error ? 0 : (uint32_t)receiver.nbytes;
    memcpy(message, &answer, sizeof(answer));
    memcpy(message + sizeof(answer), receiver.packet, answer.packet_nbytes);
    return wharf_control_send(front, message, sizeof(answer) + answer.packet_nbytes, &kept,
                              kept >= 0, 0);
}

/* The front's packets: what is asked for, and a client's socket. */
static int next_client(int front, enum wharf_gate_kind *ret_kind)
{
    struct wharf_control_receiver receiver;
    int r = wharf_control_receive(front, &receiver, 0);

    if (r < 0)
        return r;
    if (receiver.nbytes == 0 || receiver.n_fds != 1) {
        close_all(receiver.fds, receiver.n_fds);
        return -EPIPE;
    }
    *ret_kind = (enum wharf_gate_kind)receiver.packet[0];
    return receiver.fds[0];
}

int wharf_gate_main(int fd, pid_t parent)
{
    static const struct wharf_gate_answer started;
    struct rlimit limit = {MOST_FDS, MOST_FDS};

    if (!wharf_disposable_begin("wharfd-gate", parent))
        return 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (wharf_control_send(fd, (const uint8_t *)&started, sizeof(started), NULL, 0, 0) < 0)
        return 1;
    for (;;) {
        enum wharf_gate_kind kind;
        WHARF_CLEANUP_FD int client = next_client(fd, &kind);
        if (client < 0 || serve_one(fd, client, kind) < 0)
            return 0;
    }
}
