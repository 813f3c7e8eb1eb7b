/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter_main.c: the filter's own process.  Anything here may hang in close(): nobody waits for
 * it.
 */
#include <string.h>
#include <sys/resource.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/file_protocol.h"
#include "daemon/core/segment.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/fd_filter_protocol.h"

/* Standard streams, the core, the client, what it sent; some for the libraries. */
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

/* What the core asks. */
struct question {
    struct wharf_fd_filter_question is;
    int client;
    int files; /* the socket to the process for files; -1: none */
};

static int check(int fd, uint32_t kind)
{
    unsigned seals;
    uint64_t nbytes;

    return kind == WHARF_FD_FILTER_GPU ? wharf_segment_check_gpu(fd)
                                       : wharf_segment_check(fd, &seals, &nbytes);
}

static int send_on(const struct question *question, int fd)
{
    struct wharf_file_request request = {
        .op = WHARF_FILE_TAKE,
        .file = question->is.file,
        .nbytes = question->is.kind == WHARF_FD_FILTER_FILE_WRITE,
    };

    return wharf_control_send(question->files, (const uint8_t *)&request, sizeof(request), &fd, 1,
                              MSG_DONTWAIT);
}

/* Keeps the descriptor if it is the only one, good and for the core; returns it, or -1. */
static int sort_out(const struct wharf_control_receiver *receiver, const struct question *question,
                    struct wharf_fd_filter_answer *answer)
{
    bool is_file = wharf_fd_filter_is_file(question->is.kind);

    answer->n_fds = (uint32_t)receiver->n_fds;
    if (receiver->n_fds == 1) {
        answer->verdict = is_file ? send_on(question, receiver->fds[0])
                                  : check(receiver->fds[0], question->is.kind);
        if (answer->verdict == 0 && !is_file)
            return receiver->fds[0];
    }
    close_all(receiver->fds, receiver->n_fds);
    return -1;
}

/* Receives the packet that waits in a client's socket, and answers.  Returns 0 or -errno of talking
 * to the core. */
static int serve_one(int core, const struct question *question)
{
    static struct wharf_control_receiver receiver;
    static uint8_t message[sizeof(struct wharf_fd_filter_answer) + WHARF_CONTROL_MAX_NBYTES];
    struct wharf_fd_filter_answer answer = {
        .error = wharf_control_receive(question->client, &receiver, MSG_DONTWAIT),
    };
    WHARF_CLEANUP_FD int kept = sort_out(&receiver, question, &answer);

    answer.packet_nbytes = answer.error ? 0 : (uint32_t)receiver.nbytes;
    memcpy(message, &answer, sizeof(answer));
    memcpy(message + sizeof(answer), receiver.packet, answer.packet_nbytes);
    return wharf_control_send(core, message, sizeof(answer) + answer.packet_nbytes, &kept,
                              kept >= 0, 0);
}

/* The core's packets: what is asked for, a client's socket, and that to the files. */
static int next_question(int core, struct question *ret_question)
{
    struct wharf_control_receiver receiver;
    int r = wharf_control_receive(core, &receiver, 0);

    if (r < 0)
        return r;
    if (receiver.nbytes == sizeof(ret_question->is)) {
        memcpy(&ret_question->is, receiver.packet, sizeof(ret_question->is));
        if (receiver.n_fds == 1u + wharf_fd_filter_is_file(ret_question->is.kind)) {
            ret_question->client = receiver.fds[0];
            ret_question->files = receiver.n_fds == 2 ? receiver.fds[1] : -1;
            return 0;
        }
    }
    close_all(receiver.fds, receiver.n_fds);
    return -EPIPE;
}

int wharf_fd_filter_main(int fd, pid_t parent)
{
    static const struct wharf_fd_filter_answer started;
    struct rlimit limit = {MOST_FDS, MOST_FDS};

    if (!wharf_disposable_begin("wharfd-filter", parent))
        return 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (wharf_control_send(fd, (const uint8_t *)&started, sizeof(started), NULL, 0, 0) < 0)
        return 1;
    for (;;) {
        struct question question = {.client = -1, .files = -1};
        if (next_question(fd, &question) < 0)
            return 0;
        int r = serve_one(fd, &question);
        wharf_close_fd(question.client);
        wharf_close_fd(question.files);
        if (r < 0)
            return 0;
    }
}
