/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs in GPU memory that clients made themselves.  The worker's engine is the GPU's own code on
 * the CPU, for which a memfd stands for such memory: all is as on a GPU but for the descriptor.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/clock.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define MiB ((uint64_t)1 << 20)
/* Longer than any of this takes on a loaded machine. */
#define PATIENCE_MS 60000

static struct test_wharfd wharfd;

static void start(const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\npin_after = 0\n%s", more);
    test_wharfd_start(&wharfd, config);
}

static void finish(void)
{
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

static struct wharf *open_handle(uint32_t engine)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.engine = engine;
    options.patience_ms = PATIENCE_MS;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

/* What a client has instead of cuMemCreate's memory. */
struct device {
    int fd;
    uint8_t *at;
    size_t nbytes;
};

static struct device device_new(size_t nbytes)
{
    struct device device = {.fd = test_memfd(nbytes, SEALS), .nbytes = nbytes};

    cr_assert_geq(device.fd, 0);
    device.at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, device.fd, 0);
    cr_assert_neq(device.at, MAP_FAILED);
    return device;
}

static void device_free(struct device *device)
{
    munmap(device->at, device->nbytes);
    close(device->fd);
}

static int register_device(struct wharf *wharf, const struct device *device)
{
    return wharf_register_gpu(wharf, device->fd, (uintptr_t)device->at, device->nbytes);
}

static double metric(const char *name, const char *label)
{
    struct test_client *client = test_client_start(wharfd.socket, 2, 0);
    double value = test_client_metric(client, name, "", label);

    test_client_free(client);
    return value;
}

static void wait_for_metric(const char *name, double value)
{
    for (unsigned n = 0; n < PATIENCE_MS / 10 && metric(name, NULL) != value; n++)
        usleep(10000);
    cr_assert_eq(metric(name, NULL), value);
}

/* ---- what works ---------------------------------------------------------------------------- */

static void check_storm(uint32_t engine, uint64_t seed)
{
    struct test_chunks chunks;

    start("");
    test_chunks_init(&chunks, seed, 60, 1000, 8);
    struct wharf *wharf = open_handle(engine);
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = &chunks,
        .seed = seed,
        .n_jobs = 600,
        .n_in_flight = 32,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .limit_s = 60,
    };
    struct device device = device_new((test_storm_out_nbytes(&storm) + 4095) & ~(size_t)4095);
    storm.out_memory = device.at;
    cr_assert_eq(register_device(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(test_storm_run(&storm), 0, "%s", storm.error);
    cr_expect_gt(storm.n_bad, 10);
    cr_expect_gt(metric("wharf_placements_total", "gpu_memory"), 200);
    cr_expect_eq(metric("wharf_gpu_memory_bytes", NULL), (double)device.nbytes);
    cr_assert_eq(wharf_unregister(wharf, device.at), 0);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    wharf_close(wharf);
    device_free(&device);
    test_chunks_deinit(&chunks);
    finish();
}

/* Every codec, good and bad, chunks and batches, at any alignment, some outputs in the arena. */
Test(wharfd_gpu_memory, storm_into_gpu_memory_by_who_wants_the_gpu)
{
    check_storm(WHARF_ENGINE_SIMT, 1);
}

Test(wharfd_gpu_memory, storm_into_gpu_memory_by_who_wants_any_engine)
{
    check_storm(WHARF_ENGINE_AUTO, 2);
}
