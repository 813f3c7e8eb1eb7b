/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command with daemons that do what no daemon must do: it ends, says what was wrong, and writes
 * nothing that is not right.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test_container.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_file.h"

enum { RAW_NBYTES = 3 << 20, LIMIT_S = 600 };

/* The program beside this one: build/VARIANT/tests/NAME has build/VARIANT/wharf. */
static const char *program(void)
{
    static char path[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    cr_assert_gt(n, 0);
    path[n] = 0;
    for (unsigned i = 0; i < 2; i++)
        *strrchr(path, '/') = 0;
    return strcat(path, "/wharf");
}

/* Runs `wharf COMMAND --socket ...` in the daemon's folder.  Returns its status. */
static int run(const struct test_daemon *daemon, const char *command)
{
    char line[2 * PATH_MAX];

    snprintf(line, sizeof(line),
             "cd %s && timeout -s KILL %d %s %s --socket socket --patience 1 > out 2> message",
             daemon->folder, LIMIT_S, program(), command);
    int status = system(line);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static uint8_t *read_file(const struct test_daemon *daemon, const char *name, size_t *ret_nbytes)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", daemon->folder, name);
    uint8_t *bytes = test_file_read(path, ret_nbytes);
    cr_assert_not_null(bytes);
    return bytes;
}

/* Lines of its own kind, without anything that the daemon could do to a terminal. */
static void expect_message(const struct test_daemon *daemon, const char *misdeed)
{
    size_t nbytes;
    uint8_t *text = read_file(daemon, "message", &nbytes);

    cr_expect(nbytes > 7 && memcmp(text, "wharf: ", 7) == 0, "%s", misdeed);
    for (size_t i = 0; i < nbytes; i++)
        cr_assert(text[i] == '\n' || isprint(text[i]), "%s: byte %u", misdeed, text[i]);
    free(text);
}

/* All of it, or after a failure some of its beginning. */
static void expect_output(const struct test_daemon *daemon, const uint8_t *raw, int status,
                          const char *misdeed)
{
    size_t nbytes;
    uint8_t *out = read_file(daemon, "out", &nbytes);

    cr_expect(status ? nbytes < RAW_NBYTES : nbytes == RAW_NBYTES, "%s: %zu bytes", misdeed,
              nbytes);
    cr_expect(nbytes <= RAW_NBYTES && memcmp(out, raw, nbytes) == 0, "%s", misdeed);
    free(out);
}

static struct test_daemon *new_daemon(enum test_misdeed misdeed, const struct test_bytes *file)
{
    struct test_daemon *daemon = test_daemon_new();
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/file", daemon->folder);
    FILE *to = fopen(path, "we");
    cr_assert(to && fwrite(file->data, 1, file->nbytes, to) == file->nbytes && fclose(to) == 0);
    daemon->misdeed = misdeed;
    test_daemon_start(daemon);
    return daemon;
}

static void free_daemon(struct test_daemon *daemon)
{
    static const char *const names[] = {"file", "out", "message"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", daemon->folder, names[i]);
        unlink(path);
    }
    test_daemon_free(daemon);
}

static void try_misdeed(enum test_misdeed misdeed, const struct test_bytes *file,
                        const uint8_t *raw)
{
    static const char *const others[] = {"stats --prometheus", "ping"};
    const char *name = test_misdeed_name(misdeed);
    struct test_daemon *daemon = new_daemon(misdeed, file);
    int status = run(daemon, "cat file");

    cr_expect(status == 0 || status == 3 || status == 4, "%s: cat ends with %d", name, status);
    if (status)
        expect_message(daemon, name);
    /* What is done to output that was right cannot be noticed. */
    if (misdeed != TEST_MISDEED_SCRIBBLE)
        expect_output(daemon, raw, status, name);
    /* Daemons that misbehave before a queue is opened do it to these as well. */
    for (size_t i = 0; misdeed >= TEST_MISDEED_TAIL_JUMPS && i < 2; i++) {
        status = run(daemon, others[i]);
        cr_expect(status == 0 || status == 3 || status == 4, "%s: %s ends with %d", name, others[i],
                  status);
        if (status)
            expect_message(daemon, name);
    }
    free_daemon(daemon);
}

Test(hostile_daemon_command, ends_and_writes_nothing_wrong)
{
    const struct test_container_options options = {.codec = WHARF_CODEC_DEFLATE,
                                                   .chunk_nbytes = 10000};
    struct test_bytes file = {NULL, 0, 0};
    uint8_t *raw = test_data_new(test_data_find("text"), 1, RAW_NBYTES);

    test_container_add(&file, &options, raw, RAW_NBYTES);
    for (enum test_misdeed misdeed = TEST_MISDEED_NONE; misdeed < TEST_N_MISDEEDS; misdeed++)
        try_misdeed(misdeed, &file, raw);
    test_bytes_free(&file);
    free(raw);
}
