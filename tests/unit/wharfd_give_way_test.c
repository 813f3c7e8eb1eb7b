/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant's no-ops without end keep a worker busy, and other tenants' clients and the loop thread
 * need its processor: the worker offers it to them again and again.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/config.h"
#include "daemon/cpu/slices.h"
#include "daemon/dispatch/intake.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

/* ---- workers ------------------------------------------------------------------------------- */

/* The rings of all of them have more than 1900 times what is taken in one look. */
enum { N_CLIENTS = 15, N_ENTRIES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows, against the worker */
static struct test_core_client clients[N_CLIENTS];
static uint32_t n_clients;
static uint32_t n_offers; /* of the processor, while a ring has something to take */

static bool all_are_answered(void)
{
    for (uint32_t i = 0; i < n_clients; i++)
        if (__atomic_load_n(&clients[i].ring.d->cq_tail, __ATOMIC_ACQUIRE) != N_ENTRIES)
            return false;
    return true;
}

/* The daemon's parts call this one in place of the C library's. */
int sched_yield(void)
{
    pthread_mutex_lock(&lock);
    n_offers += n_clients > 0 && !all_are_answered();
    pthread_mutex_unlock(&lock);
    return 0;
}

static void fill_rings(void)
{
    static const struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};

    for (uint32_t i = 0; i < N_CLIENTS; i++) {
        test_core_client_init(&clients[i], i + 1, "uid:1", N_ENTRIES, 4096);
        for (uint32_t k = 0; k < N_ENTRIES; k++)
            wharf_ring_submit(&clients[i].ring, &noop);
    }
    pthread_mutex_lock(&lock);
    n_clients = N_CLIENTS;
    pthread_mutex_unlock(&lock);
}

static uint32_t stop_counting(void)
{
    pthread_mutex_lock(&lock);
    n_clients = 0;
    pthread_mutex_unlock(&lock);
    return n_offers;
}

static void ring_all(void)
{
    wharf_core_enter(&test_core);
    for (uint32_t i = 0; i < N_CLIENTS; i++)
        if (wharf_ring_publish_submissions(&clients[i].ring))
            wharf_core_doorbell(&test_core, clients[i].session, 1);
    wharf_core_leave(&test_core);
}

/* It offered the processor only after looks that had found nothing, of which there was none: other
 * threads waited for the next tick of the scheduler, and their p99 was 3 ms. */
Test(wharfd_give_way, worker_offers_its_processor_while_rings_are_full)
{
    wharf_config_init(&test_core_config);
    test_core_start(1);
    fill_rings();
    ring_all();
    cr_expect(TEST_WAIT(all_are_answered()));
    cr_expect_geq(stop_counting(), 30u);
    for (uint32_t i = 0; i < N_CLIENTS; i++)
        test_core_client_deinit(&clients[i]);
    test_core_stop();
}

/* ---- the loop thread ----------------------------------------------------------------------- */

/* Linux's struct sched_attr, as far as it is looked at. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

static uint64_t slice_ns(pid_t thread)
{
    struct scheduling attr = {.size = sizeof(attr)};

    cr_assert_eq(syscall(SYS_sched_getattr, thread, &attr, sizeof(attr), 0), 0);
    return attr.runtime_ns;
}

static pid_t find_thread(pid_t process, const char *name)
{
    char path[300], found[32];
    pid_t thread = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    DIR *folder = opendir(path);
    cr_assert_not_null(folder);
    for (struct dirent *entry; !thread && (entry = readdir(folder));) {
        snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)process, entry->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(found, sizeof(found), file) && strcspn(found, "\n") == strlen(name) &&
            strncmp(found, name, strlen(name)) == 0)
            thread = atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    closedir(folder);
    return thread;
}

/* Of two threads with slices of the same length the one that wakes may have to wait for a tick. */
Test(wharfd_give_way, loop_thread_goes_before_workers)
{
    struct test_wharfd daemon;
    pid_t worker;

    if (wharf_slices_shorten(WHARF_SLICE_LOOP_NS) < 0)
        cr_skip_test("this kernel has no slices of a length that is asked for");
    test_wharfd_start(&daemon, "[cpu]\nworkers = 1\n");
    cr_assert(TEST_WAIT((worker = find_thread(daemon.pid, "wharf-cpu-0")) != 0));
    cr_expect(TEST_WAIT(slice_ns(worker) == WHARF_SLICE_WORKER_NS));
    cr_expect(TEST_WAIT(slice_ns(daemon.pid) == WHARF_SLICE_LOOP_NS));
    cr_expect_lt(slice_ns(daemon.pid), slice_ns(worker));
    test_wharfd_finish(&daemon);
}

/* ---- background compression ---------------------------------------------------------------- */

Test(wharfd_give_way, a_thread_gives_way_to_all_others_and_comes_back)
{
    cr_assert_eq(setpriority(PRIO_PROCESS, 0, 3), 0);
    if (wharf_slices_lower() == -EPERM)
        cr_skip_test("this user may not come back from there");
    cr_expect_eq(sched_getscheduler(0), SCHED_IDLE);
    cr_expect_eq(wharf_slices_raise(WHARF_SLICE_WORKER_NS), 0);
    cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
    cr_expect_eq(getpriority(PRIO_PROCESS, 0), 3);
}

/* Who could not come back does not go. */
Test(wharfd_give_way, a_thread_without_the_right_to_come_back_stays)
{
    static const struct rlimit none = {0, 0};

    cr_assert_eq(setrlimit(RLIMIT_NICE, &none), 0);
    if (geteuid() == 0)
        cr_assert_eq(setuid(65534), 0);
    cr_expect_eq(wharf_slices_lower(), -EPERM);
    cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
}

/* Nor does one whose policy somebody chose. */
Test(wharfd_give_way, a_thread_of_another_policy_keeps_it)
{
    static const struct sched_param none = {0};

    cr_assert_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    cr_expect_lt(wharf_slices_lower(), 0);
    cr_expect_eq(sched_getscheduler(0), SCHED_BATCH);
}
