/* SPDX-License-Identifier: Apache-2.0 */
/* Results of GPU batches that cannot be written to the client's memory for a while. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/gpu/gpu_state.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_slow.h"
#include "tests/lib/test_small.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)
/* Where in the arena, on a page of their own. */
enum { RESULTS = 12288 };

static void set_up(void)
{
    test_core_config_simt();
    test_core_config.gpu_pin_after_ns = 0;
    test_core_start(1);
    test_core_wait_until_up();
}

static void wait_until_reached(void)
{
    cr_assert(TEST_WAIT(test_slow_n_reached() > 0));
}

/* A batch whose results are to be on the slow page. */
static struct wharf_submission put_small_batch(const struct test_core_client *client)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(client->arena + 4096);

    for (uint32_t i = 0; i < 4; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = 16, .dst_offset = 8192, .dst_nbytes = 16};
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .src_offset = 4096,
        .src_nbytes = 4 * sizeof(*table),
        .dst_offset = RESULTS,
        .dst_nbytes = 4 * sizeof(struct wharf_chunk_result),
    };
}

/* The thread of the GPU wrote the results of batches with the core lock held: whoever can make a
 * store to its arena wait kept everybody waiting. */
static void check_slow_results(uint64_t gpu_memory_nbytes, uint32_t result)
{
    struct test_core_client slow, other;

    set_up();
    TEST_CORE_LOCKED(test_core.config.gpu_memory_nbytes = gpu_memory_nbytes);
    test_core_client_init(&slow, 1, "uid:1", 16, MiB);
    test_core_engine = WHARF_ENGINE_CPU;
    test_core_client_init(&other, 2, "uid:2", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    test_slow_begin(&slow, RESULTS, 4096);
    test_core_submit(&slow, &s);
    wait_until_reached();
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(test_small_run(&other, 0).engine, WHARF_ENGINE_CPU);
    test_slow_release();
    cr_assert_eq(test_core_reap(&slow).result, result);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + RESULTS);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(results[i].result, result);
    test_core_client_deinit(&slow);
    test_core_client_deinit(&other);
    test_core_stop();
}

Test(wharfd_slow_results, results_that_cannot_be_written_now_keep_nobody_else_waiting,
     .timeout = 600)
{
    check_slow_results(64 * MiB, WHARF_OK);
}

/* The same for jobs whose memory the worker does not get. */
Test(wharfd_slow_results, refusals_that_cannot_be_written_now_keep_nobody_else_waiting,
     .timeout = 600)
{
    check_slow_results(0, WHARF_NO_MEMORY);
}

/* A job whose results cannot be written for so long. */
static void run_slow(struct test_core_client *slow, const struct wharf_submission *job,
                     useconds_t us)
{
    test_slow_begin(slow, RESULTS, 4096);
    test_core_submit(slow, job);
    wait_until_reached();
    usleep(us);
    test_slow_release();
    cr_assert_eq(test_core_reap(slow).result, WHARF_OK);
}

static bool is_banned(const struct test_core_client *client)
{
    return TEST_CORE_LOCKED(client->session->tenant->gpu_trust.banned_until_ns) > 0;
}

enum { MOST_SLOW = 100 };

/* Whose results can often not be written keeps the thread of the GPU from others' jobs: threads of
 * the CPU, of which there are more, have its jobs for a while. */
Test(wharfd_slow_results, who_keeps_the_thread_of_the_gpu_waiting_has_the_cpu, .timeout = 600)
{
    struct test_core_client slow;

    set_up();
    test_core_client_init(&slow, 1, "uid:1", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + RESULTS);
    /* Time in which others have the processor does not count; under load it takes longer. */
    for (unsigned i = 0; i < 3 || (i < MOST_SLOW && !is_banned(&slow)); i++) {
        cr_assert_not(is_banned(&slow));
        run_slow(&slow, &s, 100000);
        cr_assert_eq(results[3].engine, WHARF_ENGINE_SIMT);
    }
    cr_assert(is_banned(&slow));
    test_core_submit(&slow, &s);
    cr_assert_eq(test_core_reap(&slow).result, WHARF_OK);
    cr_assert_eq(results[3].engine, WHARF_ENGINE_CPU);
    test_core_client_deinit(&slow);
    test_core_stop();
}

/* ---- waits of a thread that others keep from its processor ---------------------------------- */

static pid_t gpu_thread;
static _Atomic bool is_hogged, hog_ends;

/* The processor that the thread of the GPU is on, or nothing. */
static void *hog(void *data)
{
    (void)data;
    while (!hog_ends)
        if (!is_hogged)
            usleep(1000);
    return NULL;
}

/* One line of a thread's file there. */
static void read_file(pid_t thread, const char *name, char *ret_line, size_t nbytes)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    if (!fgets(ret_line, (int)nbytes, file))
        ret_line[0] = 0;
    fclose(file);
}

static pid_t find_gpu_thread(void)
{
    char name[32];
    pid_t found = 0;
    const struct dirent *entry;
    DIR *folder = opendir("/proc/self/task");

    while (!found && (entry = readdir(folder))) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread == 0)
            continue;
        read_file(thread, "comm", name, sizeof(name));
        found = strcmp(name, "wharf-gpu-0\n") == 0 ? thread : 0;
    }
    closedir(folder);
    return found;
}

/* For how long the thread of the GPU was ready and had no processor. */
static uint64_t gpu_delay_ns(void)
{
    char line[64], *end;

    read_file(gpu_thread, "schedstat", line, sizeof(line));
    strtoull(line, &end, 10);
    return strtoull(end, NULL, 10);
}

/* Others have its processor while that is so. */
static void set_hogged(bool hogged)
{
    struct sched_param parameter = {.sched_priority = 0};

    is_hogged = hogged;
    cr_assert_eq(sched_setscheduler(gpu_thread, hogged ? SCHED_IDLE : SCHED_OTHER, &parameter), 0);
}

static void start_hog(pthread_t *ret_hog)
{
    cpu_set_t cpus;

    cr_assert(TEST_WAIT((gpu_thread = find_gpu_thread()) != 0));
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    cr_assert_eq(sched_setaffinity(gpu_thread, sizeof(cpus), &cpus), 0);
    cr_assert_eq(pthread_create(ret_hog, NULL, hog, NULL), 0);
    cr_assert_eq(pthread_setaffinity_np(*ret_hog, sizeof(cpus), &cpus), 0);
}

/* The thread is ready for so long that no wait here is longer, and others have its processor. */
static void lose_processor(struct test_core_client *client, const struct wharf_submission *job)
{
    uint64_t before_ns = gpu_delay_ns();

    for (unsigned n = 0; gpu_delay_ns() - before_ns < 60 * WHARF_NS_PER_MS; n++) {
        cr_assert_lt(n, 1000);
        set_hogged(true);
        test_core_submit(client, job);
        usleep(20000);
        set_hogged(false);
        cr_assert_eq(test_core_reap(client).result, WHARF_OK);
    }
}

/* All that the thread was ready in since it had last waited went off a wait: where other programs
 * had its processor now and then, who punched holes into its table was never found out. */
Test(wharfd_slow_results, waits_count_where_others_have_the_processor_now_and_then, .timeout = 600)
{
    struct test_core_client slow;
    pthread_t hog_thread;
    bool is_banned = false;

    set_up();
    test_core_client_init(&slow, 1, "uid:1", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    start_hog(&hog_thread);
    for (unsigned i = 0; i < 60 && !is_banned; i++) {
        lose_processor(&slow, &s);
        run_slow(&slow, &s, 20000);
        is_banned = TEST_CORE_LOCKED(slow.session->tenant->gpu_trust.banned_until_ns) != 0;
    }
    cr_assert(is_banned);
    hog_ends = true;
    pthread_join(hog_thread, NULL);
    test_core_client_deinit(&slow);
    test_core_stop();
}

/* ---- many short waits ---------------------------------------------------------------------- */

static struct wharf_core core;
static struct wharf_gpu_backend backend = {.core = &core, .name = "0"};
static struct wharf_tenant tenant = {.name = "uid:1"};

static bool is_banned_after(uint64_t waited_ns, uint64_t now_ns)
{
    wharf_gpu_recovery_blame_waits(&backend, &tenant, waited_ns, now_ns);
    return tenant.gpu_trust.banned_until_ns > now_ns;
}

/* Who punched holes into its table kept the thread for 4 to 9 % of the time, and each wait was
 * below what counts as long. */
Test(wharfd_slow_results, short_waits_of_one_tenant_are_added_up)
{
    const uint64_t ms = WHARF_NS_PER_MS, begin_ns = WHARF_NS_PER_S;
    uint64_t now_ns = begin_ns, n = 1;

    core.config.gpu_ban_ns = 600 * (uint64_t)WHARF_NS_PER_S;
    /* 5 %. */
    while (!is_banned_after(5 * ms, now_ns)) {
        now_ns += 100 * ms;
        n++;
    }
    cr_assert_eq(n, 21);
    /* It starts again when that is over. */
    cr_assert_eq(tenant.gpu_trust.banned_until_ns, now_ns + core.config.gpu_ban_ns);
    cr_assert_not(is_banned_after(5 * ms, tenant.gpu_trust.banned_until_ns));
}

/* Half of that is nobody's fault, nor are two waits that the machine made long. */
Test(wharfd_slow_results, rare_waits_are_nobodys_fault)
{
    const uint64_t ms = WHARF_NS_PER_MS;
    uint64_t now_ns = WHARF_NS_PER_S;

    core.config.gpu_ban_ns = 600 * (uint64_t)WHARF_NS_PER_S;
    for (unsigned i = 0; i < 10000; i++, now_ns += 200 * ms)
        cr_assert_not(is_banned_after(ms, now_ns));
    now_ns += 20000 * ms;
    cr_assert_not(is_banned_after(400 * ms, now_ns));
    cr_assert_not(is_banned_after(400 * ms, now_ns + ms));
    cr_assert(is_banned_after(400 * ms, now_ns + 2 * ms));
}

/* Threads of several GPUs look at the clock before they wait for a table, and have the lock later:
 * a time before the last one was taken for one long after it, and all began anew. */
Test(wharfd_slow_results, waits_of_several_gpus_are_added_up)
{
    const uint64_t ms = WHARF_NS_PER_MS, now_ns = 1000 * (uint64_t)WHARF_NS_PER_S;
    unsigned n = 1;

    core.config.gpu_ban_ns = 600 * (uint64_t)WHARF_NS_PER_S;
    while (n < 100 && !is_banned_after(5 * ms, now_ns - n * ms))
        n++;
    cr_assert_eq(n, 21);
    tenant.gpu_trust.banned_until_ns = 0;
    for (n = 0; n < 3; n++)
        wharf_gpu_recovery_blame_slow(&backend, &tenant, now_ns - n * ms);
    cr_assert_gt(tenant.gpu_trust.banned_until_ns, now_ns);
}
