/* SPDX-License-Identifier: Apache-2.0 */
/* input_file.c: reads a file or a pipe by offset (input_file.h). */
#include "clientlib/cli/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clientlib/cli/message.h"

/* As much as a pipe holds.  Reads of at least as much go past the window. */
enum { WINDOW_NBYTES = 64 << 10 };

void wharf_cli_input_say_error(const struct wharf_cli_input *input, int error)
{
    wharf_cli_say("%s: cannot read: %s", input->name, wharf_cli_error_text(error));
}

bool wharf_cli_input_is_terminal(const struct wharf_cli_input *input)
{
    return isatty(input->fd);
}

/* Whoever names standard input twice finds it at its end the second time. */
static bool standard_input_was_read;

static int open_descriptor(struct wharf_cli_input *input, const char *path)
{
    if (strcmp(path, "-") == 0) {
        input->was_read = standard_input_was_read;
        standard_input_was_read = true;
        input->name = "standard input";
        input->fd = STDIN_FILENO;
        return 0;
    }
    input->name = path;
    input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return input->fd < 0 ? -errno : 0;
}

/* Learns what kind of file it is. */
static int examine(struct wharf_cli_input *input)
{
    off_t base;

    if (fstat(input->fd, &input->status) < 0)
        return -errno;
    if (S_ISDIR(input->status.st_mode))
        return -EISDIR;
    input->nbytes = WHARF_CLI_INPUT_SIZE_UNKNOWN;
    /* Files of size 0 can have content all the same (/proc): they are read like pipes. */
    if (!S_ISREG(input->status.st_mode) || input->status.st_size == 0)
        return 0;
    base = lseek(input->fd, 0, SEEK_CUR);
    if (base < 0)
        return -errno;
    input->is_seekable = true;
    input->base = (uint64_t)base;
    input->nbytes = base < input->status.st_size ? (uint64_t)(input->status.st_size - base) : 0;
    return 0;
}

static int prepare(struct wharf_cli_input *input)
{
    int r = examine(input);

    if (r < 0)
        return r;
    input->window = malloc(WINDOW_NBYTES);
    if (!input->window)
        return -ENOMEM;
    input->window_avail = WINDOW_NBYTES;
    input->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return input->stop_fd < 0 ? -errno : 0;
}

int wharf_cli_input_open(struct wharf_cli_input *ret_input, const char *path)
{
    struct wharf_cli_input input = {.fd = -1, .stop_fd = -1};
    int r = open_descriptor(&input, path);

    if (r < 0) {
        wharf_cli_say("%s: cannot open: %s", input.name, wharf_cli_error_text(r));
        return r;
    }
    r = prepare(&input);
    if (r < 0) {
        wharf_cli_input_say_error(&input, r);
        wharf_cli_input_close(&input);
        return r;
    }
    *ret_input = input;
    return 0;
}

/* Reading by offset has not moved it: who reads it next, perhaps for a second `-`, is to find it at
 * its end, as a filter leaves it. */
static void leave_standard_input(const struct wharf_cli_input *input)
{
    if (input->is_seekable)
        (void)lseek(input->fd, (off_t)(input->base + input->nbytes), SEEK_SET);
}

void wharf_cli_input_close(struct wharf_cli_input *input)
{
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    else if (input->fd == STDIN_FILENO)
        leave_standard_input(input);
    if (input->stop_fd >= 0)
        close(input->stop_fd);
    free(input->window);
}

void wharf_cli_input_stop(struct wharf_cli_input *input)
{
    ssize_t n = write(input->stop_fd, &(uint64_t){1}, sizeof(uint64_t));

    (void)n; /* fails only when it has been stopped 2^64 times */
}

void wharf_cli_input_resume(struct wharf_cli_input *input)
{
    uint64_t count;
    ssize_t n = read(input->stop_fd, &count, sizeof(count));

    (void)n; /* fails when nobody stopped it */
}

/* Waits until the pipe has something, its end included. */
static int wait_readable(const struct wharf_cli_input *input)
{
    struct pollfd fds[] = {{input->stop_fd, POLLIN, 0}, {input->fd, POLLIN, 0}};

    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    return fds[0].revents ? -ECANCELED : 0;
}

/* One read of the descriptor, at `offset` if that can be chosen. */
static int64_t read_once(struct wharf_cli_input *input, uint64_t offset, void *buf, size_t nbytes)
{
    ssize_t n;

    if (input->is_at_end)
        return 0;
    do {
        int r = input->is_seekable ? 0 : wait_readable(input);

        if (r < 0)
            return r;
        n = input->is_seekable ? pread(input->fd, buf, nbytes, (off_t)(input->base + offset))
                               : read(input->fd, buf, nbytes);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        return -errno;
    if (n == 0 && !input->is_seekable)
        input->is_at_end = true;
    return n;
}

static uint64_t window_end(const struct wharf_cli_input *input)
{
    return input->window_offset + input->window_nbytes;
}

static int window_has(const struct wharf_cli_input *input, uint64_t offset)
{
    return offset >= input->window_offset && offset < window_end(input);
}

/* Reads on behind the window, and forgets no more of it than has to be. */
static int64_t extend_window(struct wharf_cli_input *input)
{
    int64_t n;

    if (input->window_nbytes + WINDOW_NBYTES > input->window_avail) {
        size_t forgotten = input->window_nbytes - input->keep_nbytes;

        memmove(input->window, input->window + forgotten, input->keep_nbytes);
        input->window_offset += forgotten;
        input->window_nbytes = input->keep_nbytes;
    }
    n = read_once(input, window_end(input), input->window + input->window_nbytes, WINDOW_NBYTES);
    if (n > 0)
        input->window_nbytes += (size_t)n;
    return n;
}

static int64_t fill_window(struct wharf_cli_input *input, uint64_t offset)
{
    int64_t n;

    /* Only what cannot seek remembers, and that is read where the window ends. */
    if (input->keep_nbytes)
        return extend_window(input);
    n = read_once(input, offset, input->window, WINDOW_NBYTES);

    if (n > 0) {
        input->window_offset = offset;
        input->window_nbytes = (size_t)n;
    }
    return n;
}

/* The same for nbytes at `offset`.  Who goes back in a file goes on backwards, from one end frame
 * to the one before: then the window ends with them, not to be filled again for each. */
static int64_t fill_window_around(struct wharf_cli_input *input, uint64_t offset, size_t nbytes)
{
    uint64_t end = offset + nbytes;

    if (input->is_seekable && offset < input->window_offset && end > WINDOW_NBYTES) {
        int64_t n = fill_window(input, end - WINDOW_NBYTES);

        if (n < 0 || window_has(input, offset))
            return n;
    }
    return fill_window(input, offset);
}

/* Passes over what lies before `offset` in something that cannot seek.  1, 0 at the end. */
static int64_t skip_to(struct wharf_cli_input *input, uint64_t offset)
{
    if (offset < input->window_offset)
        return -ESPIPE;
    while (window_end(input) < offset) {
        int64_t n = fill_window(input, window_end(input));

        if (n <= 0)
            return n;
    }
    return 1;
}

static int64_t read_past_window(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                size_t nbytes)
{
    int64_t n = read_once(input, offset, buf, nbytes);

    if (n > 0) {
        input->window_offset = offset + (uint64_t)n;
        input->window_nbytes = 0;
    }
    return n;
}

int64_t wharf_cli_input_read_some(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes)
{
    int64_t n = 1;

    if (nbytes == 0)
        return 0;
    if (!input->is_seekable)
        n = skip_to(input, offset);
    if (n > 0 && !window_has(input, offset)) {
        if (nbytes >= WINDOW_NBYTES && !input->keep_nbytes)
            return read_past_window(input, offset, buf, nbytes);
        n = fill_window_around(input, offset, nbytes);
    }
    if (n <= 0)
        return n;
    n = (int64_t)(window_end(input) - offset);
    if ((uint64_t)n > nbytes)
        n = (int64_t)nbytes;
    memcpy(buf, input->window + (offset - input->window_offset), (size_t)n);
    return n;
}

int64_t wharf_cli_input_read_bare(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes)
{
    size_t done = 0;

    while (done < nbytes) {
        int64_t n = read_once(input, offset + done, (uint8_t *)buf + done, nbytes - done);

        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

int wharf_cli_input_unread(struct wharf_cli_input *input, uint64_t offset, const void *bytes,
                           size_t nbytes)
{
    /* What the window has behind them was not read yet, and a pipe gives it only once. */
    uint64_t end = offset + nbytes;
    size_t n_ahead = window_has(input, end) ? (size_t)(window_end(input) - end) : 0;
    size_t avail = nbytes + n_ahead > input->window_avail ? nbytes + n_ahead : input->window_avail;
    uint8_t *window = malloc(avail);

    if (!window)
        return -ENOMEM;
    memcpy(window, bytes, nbytes);
    memcpy(window + nbytes, input->window + input->window_nbytes - n_ahead, n_ahead);
    free(input->window);
    input->window = window;
    input->window_avail = avail;
    input->window_offset = offset;
    input->window_nbytes = nbytes + n_ahead;
    return 0;
}

int wharf_cli_input_remember(struct wharf_cli_input *input, size_t nbytes)
{
    size_t avail = 2 * nbytes + WINDOW_NBYTES;
    uint8_t *window;

    if (input->is_seekable)
        return 0;
    if (avail > input->window_avail) {
        window = realloc(input->window, avail);
        if (!window)
            return -ENOMEM;
        input->window = window;
        input->window_avail = avail;
    }
    input->keep_nbytes = nbytes;
    return 0;
}

int64_t wharf_cli_input_read_at(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                size_t nbytes)
{
    size_t done = 0;

    while (done < nbytes) {
        int64_t n =
            wharf_cli_input_read_some(input, offset + done, (uint8_t *)buf + done, nbytes - done);

        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}
