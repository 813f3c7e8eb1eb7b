/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuse.c: a FUSE file system whose server does not answer. */
#include "tests/lib/test_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the server ---------------------------------------------------------------------------- */

static void answer(int device, uint64_t request, int error, const void *data, size_t nbytes)
{
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof(header) + nbytes),
        .error = error,
        .unique = request,
    };
    struct iovec iov[2] = {{&header, sizeof(header)}, {(void *)data, nbytes}};

    /* This fails if the process that asked was killed: then nobody waits. */
    if (writev(device, iov, 2) < 0 && errno == EINVAL)
        abort();
}

static struct fuse_attr attributes_of(uint64_t node)
{
    return (struct fuse_attr){
        .ino = node,
        .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0666,
        .nlink = 1,
        .size = 4096,
    };
}

/* A name that is a number has a node of its own; all others share one whose files cannot be
 * closed. */
static uint64_t node_of(const char *name)
{
    return FUSE_ROOT_ID + 1 + (uint64_t)atoi(name);
}

static void serve(int device, const struct fuse_in_header *request)
{
    struct fuse_init_out init = {
        .major = 7, .minor = 31, .max_write = 4096, .flags = FUSE_WRITEBACK_CACHE};
    struct fuse_entry_out entry = {0};
    struct fuse_attr_out attributes = {.attr = attributes_of(request->nodeid)};
    struct fuse_open_out open_out = {.fh = 1};

    switch (request->opcode) {
    case FUSE_INIT:
        answer(device, request->unique, 0, &init, sizeof(init));
        break;
    case FUSE_LOOKUP:
        entry.nodeid = node_of((const char *)(request + 1));
        entry.attr = attributes_of(entry.nodeid);
        answer(device, request->unique, 0, &entry, sizeof(entry));
        break;
    case FUSE_GETATTR:
        answer(device, request->unique, 0, &attributes, sizeof(attributes));
        break;
    case FUSE_OPEN:
        answer(device, request->unique, 0, &open_out, sizeof(open_out));
        break;
    case FUSE_FLUSH: /* close() waits for this */
        if (request->nodeid != node_of(""))
            answer(device, request->unique, 0, NULL, 0);
        break;
    case FUSE_WRITE: /* releasing a file that was written to waits for this */
    case FUSE_FORGET:
        break;
    default:
        answer(device, request->unique, -ENOSYS, NULL, 0);
    }
}

static void run_server(int device)
{
    static char buffer[1 << 17];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t n = read(device, buffer, sizeof(buffer));
        if (n > 0)
            serve(device, (const struct fuse_in_header *)(void *)buffer);
        else if (errno != EINTR)
            _exit(0);
    }
}

/* ---- its life ------------------------------------------------------------------------------ */

int test_fuse_start(struct test_fuse *fuse)
{
    char options[128];
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (device < 0)
        return -errno;
    strcpy(fuse->folder, "/tmp/wharf-fuse.XXXXXX");
    if (!mkdtemp(fuse->folder))
        abort();
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
             device);
    if (mount("wharf-test", fuse->folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        int saved = errno;
        rmdir(fuse->folder);
        close(device);
        return -saved;
    }
    fuse->server = fork();
    if (fuse->server == 0)
        run_server(device);
    close(device);
    return 0;
}

void test_fuse_stop(struct test_fuse *fuse)
{
    kill(fuse->server, SIGKILL);
    waitpid(fuse->server, NULL, 0);
    umount2(fuse->folder, MNT_DETACH);
    rmdir(fuse->folder);
}
