/* SPDX-License-Identifier: Apache-2.0 */
/* preload_stats.c: what the environment asks for.  With WHARF_PRELOAD_STATS the end of the program
 * says what was taken; WHARF_PRELOAD_SKIP names libraries that are left alone, which without a
 * daemon are by default those that are faster on a processor than wharf. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "clientlib/preload/preload.h"

bool wharf_preload_counts;

/* Of one library that the program calls. */
static struct {
    atomic_uint_fast64_t streams[WHARF_N_WHYS];
    atomic_uint_fast64_t taken_nbytes, declined_nbytes;
} counts[WHARF_N_LIBRARIES];
static _Atomic(const char *) last_odd_call;

static const char *const libraries[WHARF_N_LIBRARIES] = {"zlib", "libdeflate", "libzstd", "liblz4"};

static const char *const names[WHARF_N_WHYS] = {
    [WHARF_WHY_TAKEN] = "taken",
    [WHARF_WHY_UNKNOWN_ZLIB] = "declined, for this zlib is not known",
    [WHARF_WHY_CHILD] = "declined, in a child after fork",
    [WHARF_WHY_NO_ROOM] = "declined, for there is no room or memory",
    [WHARF_WHY_ODD_CALL] = "handed over to zlib in the middle",
    [WHARF_WHY_BAD] = "declined: bad, of another size than asked for, or of an unknown kind",
    [WHARF_WHY_OVERLAP] = "declined, for input and output overlap or are empty",
    [WHARF_WHY_STACK] = "declined, on a small stack",
    [WHARF_WHY_ODD_CONTEXT] = "declined, after contexts were given dictionaries or parameters",
    [WHARF_WHY_SKIPPED] = "declined, as WHARF_PRELOAD_SKIP or its default says",
};

void wharf_preload_count_stream(enum wharf_preload_library library, enum wharf_preload_why why,
                                const char *call)
{
    if (!wharf_preload_counts)
        return;
    atomic_fetch_add_explicit(&counts[library].streams[why], 1, memory_order_relaxed);
    if (call)
        atomic_store_explicit(&last_odd_call, call, memory_order_relaxed);
}

void wharf_preload_count_bytes(enum wharf_preload_library library, bool taken, uint64_t nbytes)
{
    if (wharf_preload_counts)
        atomic_fetch_add_explicit(taken ? &counts[library].taken_nbytes
                                        : &counts[library].declined_nbytes,
                                  nbytes, memory_order_relaxed);
}

/* "1", or a file that the lines are added to.  Copied: the program may change its environment. */
static char where[PATH_MAX];

static bool is_skipped[WHARF_N_LIBRARIES];

bool wharf_preload_is_skipped(enum wharf_preload_library library)
{
    return is_skipped[library];
}

/* What the environment says of a program that is not setuid. */
static const char *asked(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : getenv(name);
}

/* A list with commas. */
static void read_skipped(void)
{
    const char *list = asked("WHARF_PRELOAD_SKIP"), *daemon = asked("WHARF_PRELOAD_DAEMON");

    if (!list)
        list = daemon && strcmp(daemon, "1") == 0 ? "" : "libzstd,liblz4";
    for (size_t nbytes; list; list = list[nbytes] ? list + nbytes + 1 : NULL) {
        nbytes = strcspn(list, ",");
        for (unsigned i = 0; i < WHARF_N_LIBRARIES; i++)
            is_skipped[i] |= strlen(libraries[i]) == nbytes && !strncmp(list, libraries[i], nbytes);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *value = asked("WHARF_PRELOAD_STATS");

    read_skipped();
    if (!value || (strcmp(value, "1") != 0 && *value != '/'))
        return;
    wharf_preload_counts = snprintf(where, sizeof(where), "%s", value) < (int)sizeof(where);
}

/* All lines at once, so that those of several processes do not mix. */
static void write_lines(const char *lines, size_t nbytes)
{
    int fd = STDERR_FILENO;

    if (*where == '/')
        fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    (void)!write(fd, lines, nbytes);
    if (fd != STDERR_FILENO)
        close(fd);
}

static void add(char *lines, size_t nbytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *lines, size_t nbytes, const char *format, ...)
{
    size_t used = strlen(lines);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(lines + used, nbytes - used, format, arguments);
    va_end(arguments);
}

static void add_library(char *lines, size_t nbytes, enum wharf_preload_library library)
{
    const atomic_uint_fast64_t *streams = counts[library].streams;
    const char *call = last_odd_call;
    uint64_t n_streams = 0;
    char head[64];

    for (unsigned i = 0; i < WHARF_N_WHYS; i++)
        n_streams += streams[i];
    /* Not of the many processes of a script that inflate nothing. */
    if (!n_streams)
        return;
    snprintf(head, sizeof(head), "wharf-preload: %.24s[%ld]: %s", program_invocation_short_name,
             (long)getpid(), libraries[library]);
    add(lines, nbytes, "%s: %" PRIu64 " bytes taken, %" PRIu64 " declined\n", head,
        (uint64_t)counts[library].taken_nbytes, (uint64_t)counts[library].declined_nbytes);
    for (unsigned i = 0; i < WHARF_N_WHYS; i++)
        if (names[i] && streams[i])
            add(lines, nbytes, "%s: %" PRIuFAST64 " streams %s%s%s\n", head, streams[i], names[i],
                i == WHARF_WHY_ODD_CALL && call ? ", last by " : "",
                i == WHARF_WHY_ODD_CALL && call ? call : "");
}

__attribute__((destructor)) static void print(void)
{
    char lines[4096] = "";

    if (!wharf_preload_counts)
        return;
    for (unsigned i = 0; i < WHARF_N_LIBRARIES; i++)
        add_library(lines, sizeof(lines), i);
    if (*lines)
        write_lines(lines, strlen(lines));
}
