/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's start with a GPU that was asked for by name: a worker that somebody kills before it
 * gets ready is followed by another one; one that ends by itself is the end of the start.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static char folder[64], script[96], mark[96];

/* A worker that does so before it becomes the real one, as long as the mark is not there: `$mark`.
 * What goes on beside it lets go of what the worker was given. */
static void write_script(const char *before)
{
    strcpy(folder, "/tmp/wharf-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(script, sizeof(script), "%s/worker", folder);
    snprintf(mark, sizeof(mark), "%s/mark", folder);
    FILE *file = fopen(script, "w");
    cr_assert_not_null(file);
    fprintf(file, "#!/bin/sh\nmark=%s\nif [ ! -e $mark ]; then\n%s\nfi\nexec %s \"$@\"\n", mark,
            before, test_worker_program());
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(script, 0755), 0);
}

static void remove_script(void)
{
    unlink(script);
    unlink(mark);
    rmdir(folder);
}

static void start(struct test_wharfd *daemon)
{
    char more[160];

    snprintf(more, sizeof(more), "worker = %s\n", script);
    test_wharfd_start_gpu(daemon, "simt", more);
}

/* The GPU is there, after so many workers have been killed. */
static void expect_gpu(struct test_wharfd *daemon)
{
    struct wharf *wharf = test_wharfd_open(daemon, WHARF_ENGINE_SIMT, 4, 65536);

    wharf_close(wharf);
    test_wharfd_finish(daemon);
}

Test(wharfd_gpu_start, worker_that_is_killed_as_soon_as_it_runs_is_followed_by_another)
{
    struct test_wharfd daemon;

    write_script("touch $mark\nkill -9 $$");
    start(&daemon);
    cr_expect(test_wharfd_says(&daemon, "ended by SIGKILL"));
    expect_gpu(&daemon);
    remove_script();
}

Test(wharfd_gpu_start, workers_that_are_killed_one_after_the_other_do_not_end_the_start)
{
    struct test_wharfd daemon;

    write_script("echo >> $mark.n\n[ $(wc -l < $mark.n) -lt 5 ] || touch $mark\nkill -9 $$");
    start(&daemon);
    expect_gpu(&daemon);
    strcat(mark, ".n");
    unlink(mark);
    mark[strlen(mark) - 2] = 0;
    remove_script();
}

/* Anywhere between its first step and when it takes items: in steps of time, each of which is some
 * point or other. */
Test(wharfd_gpu_start, worker_that_is_killed_at_any_point_is_followed_by_another)
{
    struct test_wharfd daemon;
    char before[256];

    for (unsigned ms = 0; ms < 64; ms += 1 + ms / 2) {
        snprintf(before, sizeof(before),
                 "(exec 3>&- 4>&- </dev/null >/dev/null 2>&1\nsleep 0.%03u\nkill -9 $$\n"
                 "touch $mark.done) &\ntouch $mark",
                 ms);
        write_script(before);
        start(&daemon);
        strcat(mark, ".done");
        cr_assert(TEST_WAIT(access(mark, F_OK) == 0));
        unlink(mark);
        mark[strlen(mark) - 5] = 0;
        cr_assert(test_wharfd_says(&daemon, "ended by SIGKILL"), "after %u ms", ms);
        expect_gpu(&daemon);
        remove_script();
    }
}

Test(wharfd_gpu_start, worker_that_ends_by_itself_ends_the_start)
{
    struct test_wharfd daemon;
    char config[256];

    write_script("exit 3");
    snprintf(config, sizeof(config), "[gpu]\nengine = simt\ndevice = 0\nworker = %s\n", script);
    test_wharfd_prepare(&daemon, config);
    test_wharfd_spawn(&daemon);
    cr_expect_neq(test_wharfd_wait(&daemon), 0);
    cr_expect(test_wharfd_says(&daemon, "ended with status 3"));
    test_wharfd_remove(&daemon);
    remove_script();
}
