/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_scrape.c: reads a daemon's metrics from its metrics socket. */
#include "clientlib/cli/metrics_scrape.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clientlib/cli/message.h"
#include "clientlib/now.h"

/* A daemon that serves answers at once, with a head; making the text takes longer where there are
 * thousands of tenants. */
#define HEAD_NS 900000000u
#define TEXT_NS 10000000000u

/* Far above what a daemon sends. */
#define MOST_NBYTES ((size_t)64 << 20)

static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
static const char good_head[] = "HTTP/1.0 200 ";
static const char refused_head[] = "HTTP/1.0 403 ";
static const char last_line[] = "\n# EOF\n";

struct answer {
    char *bytes;
    size_t n, n_room;
};

/* Others, who may not even read metrics, can be before this one: it waits for its turn. */
static int connect_to(const char *path)
{
    const struct timeval patience = {.tv_usec = HEAD_NS / 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static bool grow(struct answer *answer)
{
    size_t n_room = answer->n_room ? 2 * answer->n_room : 65536;
    char *bytes = n_room <= MOST_NBYTES ? realloc(answer->bytes, n_room) : NULL;

    if (!bytes)
        return false;
    answer->bytes = bytes;
    answer->n_room = n_room;
    return true;
}

/* Reads what comes next, until then at most.  1: there is more; 0: the end; or -errno. */
static int read_some(int fd, struct answer *answer, uint64_t until_ns)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    uint64_t now_ns = wharf_client_now_ns();
    ssize_t n;

    if (answer->n + 1 >= answer->n_room && !grow(answer))
        return -ENOMEM;
    if (now_ns >= until_ns)
        return -ETIMEDOUT;
    if (poll(&wanted, 1, (int)((until_ns - now_ns) / 1000000 + 1)) < 0)
        return errno == EINTR ? 1 : -errno;
    n = recv(fd, answer->bytes + answer->n, answer->n_room - answer->n - 1, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
    answer->n += (size_t)n;
    answer->bytes[answer->n] = 0;
    return n > 0;
}

static int ask(int fd, struct answer *answer, uint64_t begun_ns)
{
    int r = 1;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        return -errno;
    while (r > 0)
        r = read_some(fd, answer, begun_ns + (answer->n ? TEXT_NS : HEAD_NS));
    return r;
}

static bool begins_with(const struct answer *answer, const char *text)
{
    return answer->n >= strlen(text) && memcmp(answer->bytes, text, strlen(text)) == 0;
}

static bool is_whole(const struct answer *answer)
{
    size_t n = strlen(last_line);

    return begins_with(answer, good_head) && answer->n >= n &&
           memcmp(answer->bytes + answer->n - n, last_line, n) == 0;
}

static int print_answer(const struct answer *answer)
{
    const char *head_end = strstr(answer->bytes, "\r\n\r\n");
    const char *text = head_end ? head_end + 4 : answer->bytes;

    fwrite(text, 1, answer->n - (size_t)(text - answer->bytes), stdout);
    return wharf_cli_end_output();
}

static int print_down(void)
{
    fputs("# HELP wharf_up 1: the daemon answers.\n# TYPE wharf_up gauge\nwharf_up 0\n# EOF\n",
          stdout);
    return wharf_cli_end_output();
}

int wharf_cli_scrape(const char *path)
{
    struct answer answer = {NULL, 0, 0};
    uint64_t begun_ns = wharf_client_now_ns();
    int fd = connect_to(path), status, r = fd;

    if (fd >= 0) {
        r = ask(fd, &answer, begun_ns);
        close(fd);
    }
    wharf_cli_begin_output();
    if (r == 0 && is_whole(&answer)) {
        status = print_answer(&answer);
    } else if (r == -EACCES || r == -ENAMETOOLONG || begins_with(&answer, refused_head)) {
        wharf_cli_say("%s: %s", path,
                      r < 0 ? strerror(-r)
                            : "only root, the daemon's own user and its observer_group may read "
                              "its metrics");
        status = WHARF_CLI_FAILED;
    } else {
        status = print_down();
    }
    free(answer.bytes);
    return status;
}
