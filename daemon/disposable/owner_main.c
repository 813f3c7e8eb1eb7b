/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_main.c: the process that looks up owners of uids.  Anything here may hang in what it asks:
 * the core kills it then.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/disposable/disposable.h"
#include "daemon/disposable/owner_lookup.h"

/* A packet of just that size; 0, or -errno, of which the core's end is one. */
static int receive(int fd, void *packet, size_t nbytes)
{
    ssize_t n;

    do {
        n = recv(fd, packet, nbytes, MSG_TRUNC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == nbytes ? 0 : -EPIPE;
}

int wharf_owner_main(int fd, pid_t parent)
{
    static const struct wharf_owner_answer started;
    struct wharf_owner_files files;

    if (!wharf_disposable_begin("wharfd-owners", parent))
        return 1;
    if (send(fd, &started, sizeof(started), MSG_NOSIGNAL) < 0 ||
        receive(fd, &files, sizeof(files)) < 0)
        return 1;
    for (;;) {
        struct wharf_owner_question question;
        struct wharf_owner_answer answer;
        if (receive(fd, &question, sizeof(question)) < 0)
            return 0;
        if (question.kind == WHARF_OWNER_GROUP)
            wharf_owner_find_group(&files, question.uid, &answer);
        else
            wharf_owner_look_up(&files, question.uid, &answer);
        if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
            return 0;
    }
}
