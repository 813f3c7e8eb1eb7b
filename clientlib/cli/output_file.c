/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clientlib/cli/descriptor_path.h"
#include "clientlib/cli/message.h"

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
    wharf_cli_remove_on_signal(name);
    fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    r = -errno;
    wharf_cli_keep_on_signal(name);
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
/* ---- the end --------------------------------------------------------------------------- */

static void forget_temporary(struct wharf_cli_output *output)
{
    if (!output->temporary)
        return;
    wharf_cli_keep_on_signal(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
}

void wharf_cli_output_discard(struct wharf_cli_output *output)
{
    wharf_cli_output_end_writers(output);
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
    wharf_cli_remove_on_signal(name);
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

    wharf_cli_output_end_writers(output);
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
            wharf_cli_output_say_error(output, r);
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
