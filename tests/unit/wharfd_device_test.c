/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU a daemon has, and how much of it: what is configured reaches the worker, and what it
 * cannot have is said.
 */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
    expect_share("share = 70", "has 70 percent of its GPU: fewer warps");
    expect_share("share = 70", "simt, 1 warps");
    expect_share("share = 1", "simt, 1 warps");
}

static void expect_refusal(const char *device)
{
    char config[128], said[128];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\ndevice = %s\n", device);
    snprintf(said, sizeof(said), "there is no device %s: the only one is 0", device);
    test_wharfd_prepare(&wharfd, config);
    test_wharfd_spawn(&wharfd);
    cr_expect_eq(test_wharfd_wait(&wharfd), 1);
    cr_expect(test_wharfd_says(&wharfd, said), "%s", device);
    test_wharfd_remove(&wharfd);
}

/* With an engine that was asked for by name the daemon does not start without its device. */
Test(wharfd_device, device_that_is_not_there_is_named)
{
    expect_refusal("1");
    expect_refusal("00");
    expect_refusal("-1");
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

/* It was said each time, for ever. */
Test(wharfd_device, gpu_that_is_taken_is_tried_again_and_said_to_be)
{
    char path[128], worker[160], config[256];

    test_wharfd_start(&wharfd, "");
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(worker, sizeof(worker), "%s/worker", wharfd.folder);
    write_worker(worker);
    snprintf(config, sizeof(config), "[gpu]\nengine = simt\nworker = %s\n", worker);
    FILE *file = fopen(wharfd.config, "we");
    cr_assert(file && fputs(config, file) >= 0 && fclose(file) == 0);
    test_wharfd_restart(&wharfd);
    cr_assert(test_wharfd_says(&wharfd, "is ready after"));
    pid_t pid = test_worker_wait(wharfd.pid, 0);
    cr_assert_neq(pid, 0);
    snprintf(path, sizeof(path), "%s/taken", wharfd.folder);
    cr_assert(file = fopen(path, "we"));
    fclose(file);
    kill(pid, SIGKILL);
    cr_expect(test_wharfd_says(&wharfd, "the CPU runs all jobs; the GPU is tried again"));
    cr_assert_eq(unlink(path), 0);
    cr_expect_neq(test_worker_wait(wharfd.pid, pid), 0);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}
