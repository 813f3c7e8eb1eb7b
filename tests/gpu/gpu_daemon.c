/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon.c: the daemon that is tested, and handles of it. */
#include "tests/gpu/gpu_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wait.h"

struct gpu_daemon_options gpu_daemon_options = {
    .engine = "cuda", .output = "kernel", .worker = "", .setting = ""};

static struct test_wharfd wharfd;

void gpu_daemon_start(const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config),
             "output = %s\nworker = %s\n%s\n%s[quota]\nmax_memory = 64G\nmax_arena = 4G\n",
             gpu_daemon_options.output, gpu_daemon_options.worker, gpu_daemon_options.setting,
             more);
    test_wharfd_start_gpu(&wharfd, gpu_daemon_options.engine, config);
}

void gpu_daemon_finish(void)
{
    if (test_wharfd_stop(&wharfd) != 0)
        test_tap_report(0, "the daemon ends as it should");
    test_wharfd_remove(&wharfd);
}

uint32_t gpu_daemon_engine(void)
{
    return strcmp(gpu_daemon_options.engine, "simt") == 0 ? WHARF_ENGINE_SIMT : WHARF_ENGINE_GPU;
}

pid_t gpu_daemon_pid(void)
{
    return wharfd.pid;
}

struct test_wharfd *gpu_daemon_wharfd(void)
{
    return &wharfd;
}

struct wharf *gpu_daemon_open(uint32_t wanted, uint32_t max_jobs, size_t arena_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.patience_ms = TEST_PATIENCE_MS;
    options.engine = wanted;
    options.max_jobs = max_jobs;
    options.arena_nbytes = arena_nbytes;
    options.spin_us = gpu_daemon_options.spin_us;
    if (wharf_open(&options, &wharf) < 0) {
        fprintf(stderr, "cannot open: %s\n", wharf_error_message());
        exit(1);
    }
    return wharf;
}

void gpu_daemon_keep_nothing(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[512];

    snprintf(more, sizeof(more),
             "%s:quarantine_size_mb=0:thread_local_quarantine_size_kb=0:"
             "detect_stack_use_after_return=0",
             options ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
}
