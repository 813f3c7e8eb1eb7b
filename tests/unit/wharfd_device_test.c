/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU a daemon has, and how much of it: what is configured reaches the worker, and what it
 * cannot have is said.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

static void expect_share(const char *setting, const char *said)
{
    char config[128];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\n%s\n", setting);
    test_wharfd_start(&wharfd, config);
    cr_expect(test_wharfd_says(&wharfd, said), "%s", setting);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

/* The layer has three warps, of which one polls. */
Test(wharfd_device, share_is_kept_and_said)
{
    expect_share("share = 100", "simt, 2 warps");
    expect_share("share = 70", "has 70 percent of it: fewer warps");
    expect_share("share = 70", "simt, 1 warps");
    expect_share("share = 1", "simt, 1 warps");
}

static void expect_refusal(const char *device)
{
    char config[128], said[128];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\ndevice = %s\n", device);
    snprintf(said, sizeof(said), "there is no device %s: they are 0 to 15", device);
    test_wharfd_prepare(&wharfd, config);
    test_wharfd_spawn(&wharfd);
    cr_expect_eq(test_wharfd_wait(&wharfd), 1);
    cr_expect(test_wharfd_says(&wharfd, said), "%s", device);
    test_wharfd_remove(&wharfd);
}

/* With an engine that was asked for by name the daemon does not start without its device. */
Test(wharfd_device, device_that_is_not_there_is_named)
{
    expect_refusal("16");
    expect_refusal("GPU-5d1f2b3c-0000-1111-2222-333344445555");
    expect_refusal("MIG-5d1f2b3c-0000-1111-2222-333344445555");
}

/* ---- a GPU that is somebody else's for a while ----------------------------------------------- */

/* A worker of which each copy but the first fails as long as there is a file `taken`. */
static void write_worker(const char *path)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

    cr_assert_gt(n, 0);
    program[n] = 0;
    for (unsigned i = 0; i < 2; i++)
        *strrchr(program, '/') = 0;
    FILE *file = fopen(path, "we");
    cr_assert(file);
    fprintf(file, "#!/bin/sh\ntest ! -e %s/taken || exit 1\nexec %s/wharfd-simt \"$@\"\n",
            wharfd.folder, program);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, 0700), 0);
}

static void make_taken(bool is_taken)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/taken", wharfd.folder);
    FILE *file = is_taken ? fopen(path, "we") : NULL;
    cr_assert(is_taken ? file && fclose(file) == 0 : unlink(path) == 0);
}

/* Nor can one be started that is not there. */
static void make_gone(bool is_gone)
{
    char path[128], aside[128];

    snprintf(path, sizeof(path), "%s/worker", wharfd.folder);
    snprintf(aside, sizeof(aside), "%s/aside", wharfd.folder);
    cr_assert_eq(is_gone ? rename(path, aside) : rename(aside, path), 0);
}

/* How often the usual limit, of a minute or less, is waited for what has no limit of its own. */
#define PATIENCE 6

static void expect_said(const char *text)
{
    bool is_said = false;

    for (unsigned i = 0; i < PATIENCE && !is_said && waitpid(wharfd.pid, NULL, WNOHANG) == 0; i++)
        is_said = test_wharfd_says(&wharfd, text);
    cr_assert(is_said, "%s", text);
}

/* How long a worker takes to get ready is not what is looked at. */
static void check_retries(void (*hinder)(bool))
{
    char worker[160], config[256];

    test_wharfd_prepare(&wharfd, "");
    snprintf(worker, sizeof(worker), "%s/worker", wharfd.folder);
    write_worker(worker);
    snprintf(config, sizeof(config), "[gpu]\nengine = simt\nstart_timeout = 10min\nworker = %s\n",
             worker);
    FILE *file = fopen(wharfd.config, "we");
    cr_assert(file && fputs(config, file) >= 0 && fclose(file) == 0);
    test_wharfd_restart(&wharfd);
    /* Later than that the worker is ready: a daemon that sees it end before does not start. */
    expect_said("serves with");
    pid_t pid = test_worker_wait(wharfd.pid, 0);
    cr_assert_neq(pid, 0);
    hinder(true);
    kill(pid, SIGKILL);
    expect_said("jobs do without it; it is tried again");
    hinder(false);
    pid_t next = 0;
    for (unsigned i = 0; i < PATIENCE && next == 0; i++)
        next = test_worker_wait(wharfd.pid, pid);
    cr_expect_neq(next, 0);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

/* It was said each time, for ever. */
Test(wharfd_device, gpu_that_is_taken_is_tried_again_and_said_to_be)
{
    check_retries(make_taken);
}

/* It was said each time, for ever, but never that there will be another try. */
Test(wharfd_device, worker_that_cannot_be_started_is_tried_again_and_said_to_be)
{
    check_retries(make_gone);
}
