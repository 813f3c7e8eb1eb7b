/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_write.c: writes to a new file on tmpfs by several threads. */
#include "clientlib/cli/mapped_write.h"

#include <errno.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clientlib/cli/crew.h"

enum {
    /* Of the file at a time: mapping and unmapping cost little beside the copies. */
    WINDOW_NBYTES = 64 << 20,
    PIECE_NBYTES = 128 << 10,
    /* Memory is full of them then. */
    MAX_THREADS = 8,
};

struct wharf_cli_mapped {
    int fd;
    struct wharf_cli_crew *crew;
    uint8_t *window; /* of the file from window_offset on, or NULL */
    uint64_t window_offset;

    /* The write under way. */
    uint8_t *to;
    const uint8_t *from;
    size_t nbytes;
};

/* ---- SIGBUS ------------------------------------------------------------------------------- */

/* Where a thread goes on that meets one while it copies; NULL while it does not. */
static _Thread_local sigjmp_buf *volatile on_bus_error;

static void handle_bus_error(int number)
{
    if (on_bus_error)
        siglongjmp(*on_bus_error, 1);
    signal(number, SIG_DFL); /* the access is tried again, and ends the process */
}

static int catch_bus_errors(void)
{
    const struct sigaction action = {.sa_handler = handle_bus_error};

    return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

static int copy(uint8_t *to, const uint8_t *from, size_t nbytes)
{
    sigjmp_buf place;

    if (sigsetjmp(place, 1)) {
        on_bus_error = NULL;
        return -ENOSPC;
    }
    on_bus_error = &place;
    memcpy(to, from, nbytes);
    on_bus_error = NULL;
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int copy_piece(void *context, size_t item, unsigned hand)
{
    const struct wharf_cli_mapped *mapped = context;
    size_t at = item * PIECE_NBYTES;
    size_t nbytes = mapped->nbytes - at < PIECE_NBYTES ? mapped->nbytes - at : PIECE_NBYTES;

    (void)hand;
    return copy(mapped->to + at, mapped->from + at, nbytes);
}

static void unmap(struct wharf_cli_mapped *mapped)
{
    if (mapped->window)
        munmap(mapped->window, WINDOW_NBYTES);
    mapped->window = NULL;
}

/* The window with the byte at `offset`. */
static int map(struct wharf_cli_mapped *mapped, uint64_t offset)
{
    uint64_t begin = offset - offset % WINDOW_NBYTES;
    void *window;

    if (mapped->window && mapped->window_offset == begin)
        return 0;
    unmap(mapped);
    if (begin > INT64_MAX - WINDOW_NBYTES || ftruncate(mapped->fd, (off_t)(begin + WINDOW_NBYTES)))
        return begin > INT64_MAX - WINDOW_NBYTES ? -EFBIG : -errno;
    window =
        mmap(NULL, WINDOW_NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, mapped->fd, (off_t)begin);
    if (window == MAP_FAILED)
        return -errno;
    mapped->window = window;
    mapped->window_offset = begin;
    return 0;
}

/* What of it is in one window. */
static int write_window(struct wharf_cli_mapped *mapped, uint64_t offset, const uint8_t *from,
                        size_t nbytes)
{
    uint64_t ns;
    int r = map(mapped, offset);

    if (r < 0)
        return r;
    mapped->to = mapped->window + offset % WINDOW_NBYTES;
    mapped->from = from;
    mapped->nbytes = nbytes;
    return wharf_cli_crew_run(mapped->crew, copy_piece, mapped,
                              (nbytes + PIECE_NBYTES - 1) / PIECE_NBYTES, &ns);
}

int wharf_cli_mapped_write(struct wharf_cli_mapped *mapped, uint64_t offset, const void *buf,
                           size_t nbytes)
{
    const uint8_t *from = buf;
    int r = 0;

    while (nbytes && r == 0) {
        size_t n = WINDOW_NBYTES - offset % WINDOW_NBYTES;

        n = n < nbytes ? n : nbytes;
        r = write_window(mapped, offset, from, n);
        offset += n;
        from += n;
        nbytes -= n;
    }
    return r;
}

/* ---- beginning and end -------------------------------------------------------------------- */

int wharf_cli_mapped_new(int fd, unsigned n_threads, struct wharf_cli_mapped **ret_mapped)
{
    struct wharf_cli_mapped *mapped;
    struct statfs system;
    int r;

    if (fstatfs(fd, &system) < 0)
        return -errno;
    if (system.f_type != TMPFS_MAGIC || n_threads < WHARF_CLI_MAPPED_LEAST_THREADS)
        return -EOPNOTSUPP;
    mapped = calloc(1, sizeof(*mapped));
    if (!mapped)
        return -ENOMEM;
    mapped->fd = fd;
    r = catch_bus_errors();
    if (r == 0)
        r = wharf_cli_crew_new(n_threads < MAX_THREADS ? n_threads : MAX_THREADS, &mapped->crew);
    if (r < 0) {
        free(mapped);
        return r;
    }
    *ret_mapped = mapped;
    return 0;
}

void wharf_cli_mapped_free(struct wharf_cli_mapped *mapped)
{
    if (!mapped)
        return;
    wharf_cli_crew_free(mapped->crew);
    unmap(mapped);
    free(mapped);
}
