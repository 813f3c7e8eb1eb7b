/* SPDX-License-Identifier: Apache-2.0 */
/* Large files that are written past the page cache. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/cli/direct_write.h"

/* By the page cache, then past it. */
enum { MIB = 1 << 20, DIRECT_FROM = WHARF_CLI_DIRECT_TRIAL_NBYTES, NBYTES = 56 * MIB };

/* ---- a disk and a clock that are the test's ---- */

static bool is_fake; /* in a test, not in what runs it */

/* What a byte takes, of the page cache and past it: [1]. */
static uint64_t cost_ns[2] = {2, 1};
static unsigned n_writes[2];
static uint64_t now_ns;

ssize_t pwrite(int fd, const void *buf, size_t nbytes, off_t offset)
{
    const bool is_direct = fcntl(fd, F_GETFL) & O_DIRECT;

    now_ns += cost_ns[is_direct] * nbytes;
    n_writes[is_direct]++;
    return syscall(SYS_pwrite64, fd, buf, nbytes, offset);
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    if (clock != CLOCK_MONOTONIC || !is_fake)
        return (int)syscall(SYS_clock_gettime, clock, ret_now);
    ret_now->tv_sec = (time_t)(now_ns / 1000000000u);
    ret_now->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

/* ---- files ---- */

static uint8_t *data; /* not aligned */
static struct wharf_cli_direct *direct;

/* A file where the system says how to write past its page cache, or skips. */
static int begin(void)
{
    static const char *const folders[] = {"build", "/var/tmp", "/tmp"};

    data = (uint8_t *)malloc(NBYTES + 1) + 1;
    for (size_t i = 0; i < NBYTES; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 19);
    for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0)
            continue;
        if (wharf_cli_direct_new(fd, &direct) == 0) {
            is_fake = true;
            return fd;
        }
        close(fd);
    }
    cr_skip_test("no folder here takes O_DIRECT");
    return -1;
}

static void end(int fd)
{
    is_fake = false;
    wharf_cli_direct_free(direct);
    close(fd);
    free(data - 1);
}

/* Pieces whose ends no file system finds aligned, and small ones.  How much was written. */
static size_t write_pieces(size_t from, size_t to)
{
    static const size_t pieces[] = {MIB, 3 * MIB - 1, 1, 4096, 300001, 4095, MIB + 512};
    size_t at = from;

    for (unsigned i = 0; at < to; i++) {
        size_t left = to - at, piece = pieces[i % (sizeof(pieces) / sizeof(pieces[0]))];
        ssize_t n = wharf_cli_direct_write(direct, at, data + at, piece < left ? piece : left);
        if (n < 0)
            break;
        at += (size_t)n;
    }
    return at;
}

static unsigned count_resident(const void *map, size_t from, size_t to)
{
    static uint8_t is_there[NBYTES / 4096 + 1];
    unsigned n = 0;

    cr_assert_eq(mincore((uint8_t *)map + from, to - from, is_there), 0);
    for (size_t i = 0; i < (to - from) / 4096; i++)
        n += is_there[i] & 1;
    return n;
}

Test(direct_write, what_is_not_aligned_stands_where_it_should)
{
    int fd = begin();

    cr_assert_eq(write_pieces(0, NBYTES), NBYTES);
    cr_assert_eq(lseek(fd, 0, SEEK_END), NBYTES);
    const uint8_t *map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert_neq(map, MAP_FAILED);
    /* But for heads and tails, before anything reads them. */
    const size_t from = DIRECT_FROM + 4 * MIB;
    cr_expect_lt(count_resident(map, from, NBYTES), (NBYTES - from) / 4096 / 4);
    cr_assert_eq(memcmp(map, data, NBYTES), 0);
    munmap((void *)map, NBYTES);
    end(fd);
}

/* A direct write of less than a unit is refused as a wrong call, which is not what is wrong. */
Test(direct_write, a_size_limit_is_told_as_such)
{
    const size_t limit = DIRECT_FROM + 5 * MIB + 777;
    const struct rlimit limits = {limit, limit};
    int fd = begin();

    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limits), 0);
    errno = 0;
    cr_assert_eq(write_pieces(0, NBYTES), limit);
    cr_assert_eq(errno, EFBIG);
    end(fd);
}

/* The trial went on for 32 MiB, however long each write of 8 KiB took. */
Test(direct_write, a_trial_ends_when_it_cannot_win)
{
    enum { PIECE = 8192, N_TRIAL = WHARF_CLI_DIRECT_TRIAL_NBYTES / PIECE };
    int fd = begin();

    cost_ns[0] = 1;
    cost_ns[1] = N_TRIAL / 4;
    for (size_t at = 0; at < NBYTES; at += PIECE)
        cr_assert_eq(wharf_cli_direct_write(direct, at, data + at, PIECE), PIECE);
    cr_expect_eq(n_writes[1], 4);
    cr_expect_eq(n_writes[0], NBYTES / PIECE - 4);
    /* It is not for ever: the page cache becomes slower by far. */
    cost_ns[0] = 1000 * cost_ns[1];
    for (size_t at = 0; at < 2 * MIB; at += PIECE)
        cr_assert_eq(wharf_cli_direct_write(direct, at, data + at, PIECE), PIECE);
    cr_expect_gt(n_writes[1], 2 * MIB / PIECE / 2);
    end(fd);
}

Test(direct_write, memory_has_no_other_way)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    cr_assert_geq(fd, 0);
    cr_assert_eq(wharf_cli_direct_new(fd, &direct), -EOPNOTSUPP);
    close(fd);
}
