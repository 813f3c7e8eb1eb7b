/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clientlib/cli/descriptor_path.h"
#include "clientlib/cli/direct_write.h"
#include "clientlib/cli/mapped_write.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/progress.h"
#include "clientlib/cli/sparse.h"

/* ---- removal on signals ---------------------------------------------------------------- */

/*
 * The files that a signal has to remove.  A name is complete before `is_set` is, and stays until
 * that is unset again, so that a handler sees a whole name or none.
 */
static struct {
    char path[PATH_MAX];
    volatile sig_atomic_t is_set;
} doomed[WHARF_CLI_MAX_OUTPUTS];

static void end_by_signal(int number)
{
    for (int i = 0; i < WHARF_CLI_MAX_OUTPUTS; i++)
        if (doomed[i].is_set)
            unlink(doomed[i].path);
    signal(number, SIG_DFL);
    raise(number);
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
enum { N_ENDING_SIGNALS = sizeof(ending_signals) / sizeof(ending_signals[0]) };

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = SA_RESTART};
    struct sigaction old;

    for (int i = 0; i < N_ENDING_SIGNALS; i++) {
        sigaction(ending_signals[i], NULL, &old);
        if (old.sa_handler == SIG_DFL) /* nohup's SIG_IGN stays */
            sigaction(ending_signals[i], &action, NULL);
    }
}

static void doom(const char *path)
{
    int i = 0;

    catch_signals();
    while (i < WHARF_CLI_MAX_OUTPUTS - 1 && doomed[i].is_set)
        i++;
    strcpy(doomed[i].path, path);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    doomed[i].is_set = 1;
}

static void pardon(const char *path)
{
    for (int i = 0; i < WHARF_CLI_MAX_OUTPUTS; i++)
        if (doomed[i].is_set && strcmp(doomed[i].path, path) == 0)
            doomed[i].is_set = 0;
}

/* ---- opening --------------------------------------------------------------------------- */

/* path's folder, into buf[PATH_MAX].  The path is shorter than that. */
static void folder_of(const char *path, char *buf)
{
    const char *slash = strrchr(path, '/');
    size_t nbytes = slash ? (size_t)(slash - path) : 0;

    if (!slash) {
        strcpy(buf, ".");
        return;
    }
    memcpy(buf, path, nbytes ? nbytes : 1);
    buf[nbytes ? nbytes : 1] = 0;
}

/* Whether a nameless file can be given a name: linkat needs /proc for that. */
static bool can_name(int fd, char *link_path, size_t link_path_nbytes)
{
    snprintf(link_path, link_path_nbytes, "/proc/self/fd/%d", fd);
    return access(link_path, F_OK) == 0;
}

static int open_nameless(const char *path)
{
    char folder[PATH_MAX];
    char link_path[32];
    int fd;

    folder_of(path, folder);
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (!can_name(fd, link_path, sizeof(link_path))) {
        close(fd);
        return -EOPNOTSUPP;
    }
    return fd;
}

/* Fills name with path's folder, a dot, path's last part (cut to what a name may be) and eight
 * random letters.  -ENAMETOOLONG. */
static int make_temporary_name(const char *path, char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    unsigned char random[8];
    char suffix[sizeof(random) + 1] = {0};
    int n;

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    for (size_t i = 0; i < sizeof(random); i++)
        suffix[i] = letters[random[i] % 32];
    n = snprintf(name, PATH_MAX, "%.*s.%.200s.%s", (int)(last - path), path, last, suffix);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A file with a temporary name: its descriptor, and the name in *ret_name. */
static int open_named(const char *path, char **ret_name)
{
    char name[PATH_MAX];
    int r = make_temporary_name(path, name);
    int fd;

    if (r < 0)
        return r;
    *ret_name = strdup(name);
    if (!*ret_name)
        return -ENOMEM;
    doom(name);
    fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    r = -errno;
    pardon(name);
    free(*ret_name);
    *ret_name = NULL;
    return r;
}

/* Open fails with these where the file system or kernel has no nameless files. */
static bool lacks_nameless(int error)
{
    return error == -EOPNOTSUPP || error == -EISDIR || error == -EINVAL || error == -ENOENT;
}

static int open_file(struct wharf_cli_output *output)
{
    output->is_file = true;
    output->fd = open_nameless(output->path);
    if (output->fd < 0 && lacks_nameless(output->fd))
        output->fd = open_named(output->path, &output->temporary);
    return output->fd < 0 ? output->fd : 0;
}

/* Remembers which file it is, if it is one. */
static void identify(struct wharf_cli_output *output, const struct stat *status)
{
    output->has_identity = S_ISREG(status->st_mode);
    output->device = status->st_dev;
    output->inode = status->st_ino;
}

/* What is there under the output's name already: is it to be written into, replaced or left? */
static int open_path(struct wharf_cli_output *output)
{
    struct stat status;

    if (strlen(output->path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (lstat(output->path, &status) < 0)
        return errno == ENOENT ? open_file(output) : -errno;
    if (S_ISLNK(status.st_mode) && stat(output->path, &status) < 0 && errno != ENOENT)
        return -errno;
    if (S_ISLNK(status.st_mode)) /* still: one that leads nowhere */
        return output->may_replace ? open_file(output) : -EEXIST;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)) {
        output->fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return output->fd < 0 ? -errno : 0;
    }
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    identify(output, &status);
    return output->may_replace ? open_file(output) : -EEXIST;
}

static void say_open_error(const struct wharf_cli_output *output, int error)
{
    if (error == -EEXIST)
        wharf_cli_say("%s: exists already; -f replaces it, -o NAME writes elsewhere", output->name);
    else if (error == -EINVAL)
        wharf_cli_say("%s: is neither a file nor a pipe nor a character device", output->name);
    else
        wharf_cli_say("%s: cannot create: %s", output->name, wharf_cli_error_text(error));
}

/* What is not a new file: which one it is, and whether somebody reads it meanwhile. */
static void look_at_stream(struct wharf_cli_output *output)
{
    struct stat status;

    if (output->is_file || fstat(output->fd, &status) < 0)
        return;
    identify(output, &status);
    output->is_watched = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || isatty(output->fd);
}

/* What is open already.  Closing is part of writing, and several inputs can go there one after the
 * other. */
static int open_descriptor(struct wharf_cli_output *output, int fd)
{
    if (fd == STDOUT_FILENO)
        output->name = "standard output";
    output->path = NULL;
    output->descriptor = fd;
    output->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return output->fd < 0 ? -errno : 0;
}

int wharf_cli_output_open(struct wharf_cli_output *ret_output, const char *path, bool may_replace)
{
    struct wharf_cli_output output = {.path = path, .name = path, .may_replace = may_replace};
    int fd = wharf_cli_descriptor_of(path);
    int r = fd < 0 ? open_path(&output) : open_descriptor(&output, fd);

    if (r < 0) {
        say_open_error(&output, r);
        return r;
    }
    look_at_stream(&output);
    *ret_output = output;
    return 0;
}

void wharf_cli_output_use_threads(struct wharf_cli_output *output, unsigned n_threads)
{
    output->n_threads = n_threads;
}

void wharf_cli_output_open_sink(struct wharf_cli_output *ret_output)
{
    *ret_output = (struct wharf_cli_output){.name = "the output", .fd = -1, .is_sink = true};
}

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

bool wharf_cli_output_is_input(const struct wharf_cli_output *output, const struct stat *input)
{
    if (!output->has_identity || !S_ISREG(input->st_mode) || output->device != input->st_dev ||
        output->inode != input->st_ino)
        return false;
    wharf_cli_say("%s: is the input itself, which would be lost: -o NAME writes elsewhere",
                  output->name);
    return true;
}

/* The folder that the output's name is in.  False if that cannot be looked at. */
static bool look_at_folder(const struct wharf_cli_output *output, struct stat *ret_status)
{
    char folder[PATH_MAX];

    folder_of(output->path, folder);
    return stat(folder, ret_status) == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool wharf_cli_output_is_same(const struct wharf_cli_output *a, const struct wharf_cli_output *b)
{
    struct stat folder_a, folder_b;

    if (!a->path && !b->path)
        return a->descriptor == b->descriptor;
    return a->is_file && b->is_file && strcmp(last_part(a->path), last_part(b->path)) == 0 &&
           look_at_folder(a, &folder_a) && look_at_folder(b, &folder_b) &&
           folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
}

/* Parts of one system call; the system takes many more. */
enum { MAX_PARTS = 16 };

/* ---- writing --------------------------------------------------------------------------- */

static void end_mapped(struct wharf_cli_output *output)
{
    wharf_cli_mapped_free(output->mapped);
    output->mapped = NULL;
}

static void end_direct(struct wharf_cli_output *output)
{
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

/* ---- the end --------------------------------------------------------------------------- */

static void forget_temporary(struct wharf_cli_output *output)
{
    if (!output->temporary)
        return;
    pardon(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
}

void wharf_cli_output_discard(struct wharf_cli_output *output)
{
    end_mapped(output);
    end_direct(output);
    if (output->fd > STDERR_FILENO)
        close(output->fd);
    output->fd = -1;
    if (output->temporary)
        unlink(output->temporary);
    forget_temporary(output);
}

/*
 * Owner, permissions and times as gzip keeps them: the group first; if it cannot be kept, its
 * permissions are not given to another group; the owner last and only if we may, since after
 * that the permissions may no longer be ours to change.
 */
static int copy_metadata(int fd, const struct stat *like)
{
    struct timespec times[2];

    mode_t mode;

    if (!like || !S_ISREG(like->st_mode)) {
        mode = umask(0);
        umask(mode);
        return fchmod(fd, 0666 & ~mode) < 0 ? -errno : 0;
    }
    mode = like->st_mode & 0777;
    if (fchown(fd, (uid_t)-1, like->st_gid) < 0)
        mode &= (mode_t)~070;
    if (fchmod(fd, mode) < 0)
        return -errno;
    times[0] = like->st_atim;
    times[1] = like->st_mtim;
    (void)futimens(fd, times); /* some file systems keep none */
    return fchown(fd, like->st_uid, (gid_t)-1) < 0 && errno != EPERM ? -errno : 0;
}

/* Gives a file with a temporary name its own, without replacing another. */
static int move_to_free_name(const char *temporary, const char *path)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A file system without that flag: a second name, then the first one goes. */
    if (link(temporary, path) < 0)
        return -errno;
    unlink(temporary);
    return 0;
}

static int move_to_name(struct wharf_cli_output *output)
{
    if (!output->may_replace)
        return move_to_free_name(output->temporary, output->path);
    return rename(output->temporary, output->path) < 0 ? -errno : 0;
}

static int link_nameless(int fd, const char *path)
{
    char link_path[32];

    snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* A name can only be replaced by a file that has one: for a moment a temporary one. */
static int name_temporarily(struct wharf_cli_output *output)
{
    char name[PATH_MAX];
    int r = make_temporary_name(output->path, name);

    if (r < 0)
        return r;
    output->temporary = strdup(name);
    if (!output->temporary)
        return -ENOMEM;
    doom(name);
    r = link_nameless(output->fd, name);
    if (r < 0)
        forget_temporary(output);
    return r;
}

static int give_name(struct wharf_cli_output *output)
{
    int r;

    if (!output->temporary) {
        r = link_nameless(output->fd, output->path);
        if (r != -EEXIST || !output->may_replace)
            return r;
        r = name_temporarily(output);
        if (r < 0)
            return r;
    }
    return move_to_name(output);
}

/* Closing a descriptor is where network file systems tell that the disk is full: close another
 * one of the same file first, while the file can still be given up. */
static int flush(int fd)
{
    int other = dup(fd);

    if (other < 0)
        return -errno;
    return close(other) < 0 ? -errno : 0;
}

/* Remembers which file stands under the name now, unless there was one before. */
static void note_new(struct wharf_cli_output *output)
{
    struct stat status;

    if (output->has_identity || fstat(output->fd, &status) < 0)
        return;
    identify(output, &status);
    output->is_new = true;
}

static int finish_file(struct wharf_cli_output *output, const struct stat *like)
{
    int r = 0;

    end_mapped(output);
    end_direct(output);
    /* A hole at the end is only there when the size says so, and a mapping reaches beyond it. */
    if ((output->is_sparse || output->was_mapped) &&
        ftruncate(output->fd, (off_t)output->nbytes) < 0)
        r = -errno;
    if (r == 0)
        r = copy_metadata(output->fd, like);
    if (r == 0)
        r = flush(output->fd);
    if (r == 0)
        r = give_name(output);
    if (r < 0)
        return r;
    forget_temporary(output);
    note_new(output);
    close(output->fd);
    output->fd = -1;
    return 0;
}

static int finish_stream(struct wharf_cli_output *output)
{
    int fd = output->fd;

    output->fd = -1;
    if (output->is_sink)
        return 0;
    return close(fd) < 0 ? -errno : 0;
}

int wharf_cli_output_commit(struct wharf_cli_output *output, const struct stat *like)
{
    int r = output->is_file ? finish_file(output, like) : finish_stream(output);

    if (r < 0) {
        if (r == -EEXIST)
            say_open_error(output, r);
        else
            say_write_error(output, -r);
        wharf_cli_output_discard(output);
    }
    return r;
}

void wharf_cli_output_take_back(const struct wharf_cli_output *output)
{
    struct stat status;

    if (output->is_new && lstat(output->path, &status) == 0 && output->device == status.st_dev &&
        output->inode == status.st_ino)
        unlink(output->path);
}
