/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/output_write.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/direct_write.h"
#include "clientlib/cli/mapped_write.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/progress.h"
#include "clientlib/cli/sparse.h"

enum { MAX_PARTS = 16 };

/* ---- the range ----------------------------------------------------------------------------- */

void wharf_cli_output_keep(struct wharf_cli_output *output, uint64_t offset, uint64_t nbytes)
{
    output->is_range = offset > 0 || nbytes != UINT64_MAX;
    output->skip_nbytes = offset;
    output->keep_nbytes = nbytes;
    output->n_passed = 0;
}

void wharf_cli_output_pass(struct wharf_cli_output *output, uint64_t nbytes)
{
    output->skip_nbytes -= nbytes;
    output->n_passed += nbytes;
}

bool wharf_cli_output_is_full(const struct wharf_cli_output *output)
{
    return output->is_range && output->skip_nbytes == 0 && output->keep_nbytes == 0;
}

bool wharf_cli_output_lacks(const struct wharf_cli_output *output, uint64_t *ret_passed)
{
    bool is_open = output->keep_nbytes > UINT64_MAX / 2; /* no file is as long: to the end */

    *ret_passed = output->n_passed;
    return output->is_range && !output->may_end_early &&
           (output->skip_nbytes > 0 || (!is_open && output->keep_nbytes > 0));
}

/* ---- writing ------------------------------------------------------------------------------- */

static void end_mapped(struct wharf_cli_output *output)
{
    wharf_cli_mapped_free(output->mapped);
    output->mapped = NULL;
}

void wharf_cli_output_end_writers(struct wharf_cli_output *output)
{
    end_mapped(output);
    wharf_cli_direct_free(output->direct);
    output->direct = NULL;
}

static void die_of_broken_pipe(void)
{
    sigset_t set;

    wharf_cli_progress_end();
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGPIPE);
}

static int say_write_error(struct wharf_cli_output *output, int error)
{
    if (error == EPIPE)
        die_of_broken_pipe();
    output->failed = true;
    wharf_cli_say("%s: cannot write: %s%s", output->name, wharf_cli_error_text(error),
                  output->is_file ? "; nothing is left of it" : "");
    return -error;
}

/* Waits until a descriptor that somebody made non-blocking takes more. */
static void wait_writable(int fd)
{
    struct pollfd pfd = {fd, POLLOUT, 0};

    poll(&pfd, 1, -1);
}

/* Passes over the first nbytes of the parts; returns the first part that is not empty then, or
 * `end`. */
static struct iovec *skip_parts(struct iovec *part, struct iovec *end, size_t nbytes)
{
    while (part < end && nbytes >= part->iov_len)
        nbytes -= part++->iov_len;
    if (part < end) {
        part->iov_base = (char *)part->iov_base + nbytes;
        part->iov_len -= nbytes;
    }
    return part;
}

/* Cuts the parts down to what of them lies in the range.  Returns the new end. */
static struct iovec *cut_to_range(struct wharf_cli_output *output, struct iovec **part,
                                  struct iovec *end)
{
    uint64_t total = 0;
    uint64_t skip;
    uint64_t keep;

    for (const struct iovec *at = *part; at < end; at++)
        total += at->iov_len;
    skip = output->skip_nbytes < total ? output->skip_nbytes : total;
    keep = total - skip < output->keep_nbytes ? total - skip : output->keep_nbytes;
    output->n_passed += total;
    output->skip_nbytes -= skip;
    output->keep_nbytes -= keep;
    *part = skip_parts(*part, end, (size_t)skip);
    for (struct iovec *at = *part; at < end; at++) {
        if (at->iov_len >= keep) {
            at->iov_len = (size_t)keep;
            return at + 1;
        }
        keep -= at->iov_len;
    }
    return end;
}

/* By several threads, if that pays.  False: the part is to be written otherwise. */
static bool write_mapped(struct wharf_cli_output *output, const struct iovec *part)
{
    if (!output->is_file || output->n_threads < WHARF_CLI_MAPPED_LEAST_THREADS ||
        part->iov_len < WHARF_CLI_MAPPED_LEAST_NBYTES)
        return false;
    if (!output->mapped &&
        wharf_cli_mapped_new(output->fd, output->n_threads, &output->mapped) < 0) {
        output->n_threads = 1;
        return false;
    }
    output->was_mapped = true;
    if (wharf_cli_mapped_write(output->mapped, output->nbytes, part->iov_base, part->iov_len) == 0)
        return true;
    end_mapped(output);
    output->n_threads = 1;
    return false;
}

static ssize_t write_file(struct wharf_cli_output *output, const struct iovec *part, int n_parts)
{
    if (!output->direct && !output->has_no_direct &&
        output->nbytes >= WHARF_CLI_DIRECT_LEAST_FILE_NBYTES)
        output->has_no_direct = wharf_cli_direct_new(output->fd, &output->direct) < 0;
    if (output->direct)
        return wharf_cli_direct_write(output->direct, output->nbytes, part->iov_base,
                                      part->iov_len);
    return pwritev(output->fd, part, n_parts, (off_t)output->nbytes);
}

/* What of the parts is neither left out nor goes nowhere is written by this. */
static ssize_t write_some(struct wharf_cli_output *output, const struct iovec *part, int n_parts)
{
    size_t nbytes = 0;

    if (output->is_sparse && output->is_file)
        return wharf_cli_sparse_write(output->fd, output->nbytes, part);
    if (write_mapped(output, part))
        return (ssize_t)part->iov_len;
    if (output->is_file)
        return write_file(output, part, n_parts);
    if (!output->is_sink)
        return writev(output->fd, part, n_parts);
    for (int i = 0; i < n_parts; i++)
        nbytes += part[i].iov_len;
    return (ssize_t)nbytes;
}

/* Writes all the parts, changing them. */
static int write_all(struct wharf_cli_output *output, struct iovec *part, struct iovec *end)
{
    part = skip_parts(part, end, 0);
    if (output->is_range)
        end = cut_to_range(output, &part, end);
    part = skip_parts(part, end, 0);
    while (part < end) {
        ssize_t n = write_some(output, part, (int)(end - part));

        if (n < 0 && errno == EAGAIN)
            wait_writable(output->fd);
        else if (n < 0 && errno != EINTR)
            return say_write_error(output, errno);
        if (n <= 0)
            continue;
        output->nbytes += (uint64_t)n;
        part = skip_parts(part, end, (size_t)n);
    }
    return 0;
}

int wharf_cli_output_write(struct wharf_cli_output *output, const void *buf, size_t nbytes)
{
    struct iovec part = {(void *)(uintptr_t)buf, nbytes};

    return write_all(output, &part, &part + 1);
}

int wharf_cli_output_write_parts(struct wharf_cli_output *output, const struct iovec *parts,
                                 int n_parts)
{
    struct iovec own[MAX_PARTS];

    for (int done = 0, n; done < n_parts; done += n) {
        int r;

        n = n_parts - done < MAX_PARTS ? n_parts - done : MAX_PARTS;
        memcpy(own, parts + done, (size_t)n * sizeof(own[0]));
        r = write_all(output, own, own + n);
        if (r < 0)
            return r;
    }
    return 0;
}

int wharf_cli_output_write_at(const struct wharf_cli_output *output, uint64_t offset,
                              const void *buf, size_t nbytes)
{
    const uint8_t *at = buf;

    while (nbytes > 0) {
        ssize_t n = pwrite(output->fd, at, nbytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        offset += (uint64_t)n;
        nbytes -= (size_t)n;
    }
    return 0;
}

void wharf_cli_output_say_error(struct wharf_cli_output *output, int error)
{
    say_write_error(output, -error);
}
