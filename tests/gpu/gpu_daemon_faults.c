/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_faults.c: jobs that end the GPU's worker, and what becomes of all others. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "proto/wharf_job.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_poison.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

enum { N_JOBS = 48, N_ENTRIES = 64, CHUNK = 16384, SIMT_CHUNK = 500 };
/* After which a warp that does not come back is taken for hung, while one is there. */
#define HANG_TIMEOUT_NS (2 * (uint64_t)WHARF_NS_PER_S)
/* What is promised: jobs of a worker that died are answered, and the GPU is back. */
#define ANSWERED_NS (500 * (uint64_t)WHARF_NS_PER_MS)
#define BACK_NS (1500 * (uint64_t)WHARF_NS_PER_MS)
/* Where the CPU plays the GPU other tests run beside this one. */
#define SIMT_NS (20 * (uint64_t)WHARF_NS_PER_S)
/* The most ended workers: the tenant's own, and those that several tenants may have ended. */
#define MOST_ENDED 8

struct scene {
    uint32_t engine; /* enum wharf_engine */
    uint32_t nbytes; /* of a chunk */
    uint8_t *plain;
    size_t packed_nbytes;
    size_t stride;
};

/* A client with the source at its arena's beginning, and a destination for each job behind it. */
static struct test_client *open_client(struct scene *scene, const char *path)
{
    struct test_client *client = test_client_greeted(path);

    scene->stride = 2 * (size_t)scene->nbytes;
    int r =
        test_client_open_with(client, N_ENTRIES, (N_JOBS + 1) * scene->stride, 0, scene->engine);
    if (r < 0) {
        fprintf(stderr, "no client of %s: %s (%s)\n", path, strerror(-r), client->error);
        exit(1);
    }
    scene->packed_nbytes = test_pack_into(WHARF_CODEC_DEFLATE, scene->plain, scene->nbytes,
                                          client->arena, scene->stride);
    return client;
}

static uint8_t *destination(const struct scene *scene, const struct test_client *client, uint32_t i)
{
    return client->arena + (i + 1) * scene->stride;
}

static bool submit(const struct scene *scene, struct test_client *client, uint32_t i,
                   uint64_t poison)
{
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_DEFLATE,
        .src_nbytes = scene->packed_nbytes,
        .dst_offset = (i + 1) * scene->stride,
        .dst_nbytes = scene->nbytes,
        .user_data = poison | i,
    };

    memset(destination(scene, client, i), 0, scene->nbytes);
    return test_client_submit(client, &s) == 0;
}

static bool reap(const struct scene *scene, struct test_client *client, uint32_t *ret_engine)
{
    struct wharf_completion completion;
    int r = test_client_reap(client, &completion);
    uint32_t i = (uint32_t)completion.user_data & 0xffff;

    *ret_engine = r == 0 ? completion.engine : WHARF_ENGINE_AUTO;
    if (r == 0 && completion.result == WHARF_OK && i < N_JOBS &&
        memcmp(destination(scene, client, i), scene->plain, scene->nbytes) == 0)
        return true;
    if (r < 0)
        printf("# no completion: %s\n", strerror(-r));
    else
        printf("# job %u: result %u, or other bytes\n", i, completion.result);
    return false;
}

static bool run_one(const struct scene *scene, struct test_client *client, uint64_t poison,
                    uint32_t *ret_engine)
{
    return submit(scene, client, 0, poison) && reap(scene, client, ret_engine);
}

/* One job after the other until one is the GPU's; how long that took. */
static uint64_t wait_for_gpu(const struct scene *scene, struct test_client *client)
{
    uint64_t begun_ns = wharf_now_ns();
    uint32_t engine = WHARF_ENGINE_AUTO;

    while (engine != scene->engine && wharf_now_ns() - begun_ns < SIMT_NS) {
        if (!run_one(scene, client, 0, &engine))
            return SIMT_NS;
        usleep(1000);
    }
    return wharf_now_ns() - begun_ns;
}

static bool is_simt(const struct scene *scene)
{
    return scene->engine == WHARF_ENGINE_SIMT;
}

/* One poisoned job among many of the same client. */
static void check_one(struct scene *scene, uint32_t opcode, const char *what, uint64_t noticed_ns)
{
    struct test_client *client = open_client(scene, gpu_daemon_wharfd()->socket);
    uint64_t answered_ns = noticed_ns + (is_simt(scene) ? SIMT_NS : ANSWERED_NS);
    uint64_t back_ns = is_simt(scene) ? SIMT_NS : BACK_NS;
    unsigned n_good = 0, n_by_cpu = 0;
    pid_t worker = test_worker_wait(gpu_daemon_pid(), 0);

    (void)wait_for_gpu(scene, client);
    uint64_t begun_ns = wharf_now_ns();
    for (uint32_t i = 0; i < N_JOBS; i++)
        n_good += submit(scene, client, i, i == N_JOBS / 2 ? TEST_POISON(opcode) : 0);
    bool good = n_good == N_JOBS;
    for (uint32_t i = 0, engine; good && i < N_JOBS; i++) {
        good = reap(scene, client, &engine);
        n_by_cpu += engine == WHARF_ENGINE_CPU;
    }
    uint64_t took_ns = wharf_now_ns() - begun_ns;
    test_tap_report(good && n_by_cpu > 0 && test_worker_pid(gpu_daemon_pid()) != worker,
                    "%s ends the worker, and %d jobs are done, %u of them by the CPU", what, N_JOBS,
                    n_by_cpu);
    test_tap_report(took_ns < answered_ns, "all are answered after %lu ms, of at most %lu",
                    (unsigned long)(took_ns / WHARF_NS_PER_MS),
                    (unsigned long)(answered_ns / WHARF_NS_PER_MS));
    (void)wait_for_gpu(scene, client);
    took_ns = wharf_now_ns() - begun_ns;
    test_tap_report(took_ns < noticed_ns + back_ns, "the GPU is back after %lu ms, of at most %lu",
                    (unsigned long)(took_ns / WHARF_NS_PER_MS),
                    (unsigned long)((noticed_ns + back_ns) / WHARF_NS_PER_MS));
    test_client_free(client);
}

/* Two tenants, of which one does it whenever it can. */
static void check_culprit(struct scene *scene)
{
    char path[128];
    bool good = true;
    uint32_t engine = WHARF_ENGINE_AUTO;
    unsigned n_ended = 0, n_alone = 0;
    pid_t worker = 0;

    snprintf(path, sizeof(path), "%s/other", gpu_daemon_wharfd()->folder);
    struct test_client *culprit = open_client(scene, path);
    struct test_client *innocent = open_client(scene, gpu_daemon_wharfd()->socket);
    /* Once it is banned it does no harm any more. */
    while (good && n_alone < 10 && n_ended <= MOST_ENDED) {
        pid_t now = test_worker_wait(gpu_daemon_pid(), 0);
        n_ended += worker && now != worker;
        n_alone = now == worker ? n_alone + 1 : 0;
        worker = now;
        good = wait_for_gpu(scene, innocent) < SIMT_NS &&
               run_one(scene, culprit, TEST_POISON(WHARF_WORK_FAULT), &engine);
    }
    test_tap_report(good && n_ended <= MOST_ENDED && engine == WHARF_ENGINE_CPU,
                    "who ends workers runs on the CPU alone, after %u of them", n_ended);
    good = run_one(scene, innocent, 0, &engine);
    test_tap_report(good && engine == scene->engine && test_worker_pid(gpu_daemon_pid()) == worker,
                    "and the other tenant has the GPU");
    test_client_free(culprit);
    test_client_free(innocent);
}

static unsigned n_reloads(void)
{
    static const char said[] = "read the configuration again";
    size_t nbytes;
    uint8_t *log = test_file_read(gpu_daemon_wharfd()->log, &nbytes);
    unsigned n = 0;

    for (const char *at = (char *)log; at && (at = strstr(at, said)); at++)
        n++;
    free(log);
    return n;
}

/* A worker that is late for another reason is not to be taken for hung. */
static void set_hang_timeout(uint64_t timeout_ns)
{
    unsigned n_before = n_reloads();
    FILE *config = fopen(gpu_daemon_wharfd()->config, "ae");

    if (!config ||
        fprintf(config, "[gpu]\nhang_timeout = %lums\n",
                (unsigned long)(timeout_ns / WHARF_NS_PER_MS)) < 0 ||
        fclose(config) < 0)
        abort();
    kill(gpu_daemon_pid(), SIGHUP);
    test_tap_report(TEST_WAIT(n_reloads() > n_before), "the configuration is read again");
}

void gpu_daemon_faults(uint32_t engine)
{
    struct scene scene = {
        .engine = engine,
        .nbytes = engine == WHARF_ENGINE_SIMT ? SIMT_CHUNK : CHUNK,
    };

    scene.plain = test_data_new(test_data_find("text"), 1, scene.nbytes);
    check_one(&scene, WHARF_WORK_FAULT, "an error of the device", 0);
    set_hang_timeout(HANG_TIMEOUT_NS);
    /* Its time, and sixteen times what it was estimated to take. */
    check_one(&scene, WHARF_WORK_HANG, "a warp that does not come back", 2 * HANG_TIMEOUT_NS);
    set_hang_timeout(600 * (uint64_t)WHARF_NS_PER_S);
    check_culprit(&scene);
    free(scene.plain);
}
