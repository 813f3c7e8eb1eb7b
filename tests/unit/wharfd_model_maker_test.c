/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that makes registered models ready: whose turn it is, and memory that is not there. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/loop.h"
#include "daemon/control/model.h"
#include "daemon/core/segment.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_rans.h"

#define PAGE 4096u

static struct wharf_loop *loop;
static struct wharf_model_maker *maker;
static struct test_rans rans;

/* ---- memory that is not there -------------------------------------------------------------- */

/* Of a program under ThreadSanitizer mmap is the sanitizer's own: there the test of this is not. */
#ifndef __SANITIZE_THREAD__

/* The protection of mappings of files whose first page is taken away; 0: of none. */
static int taken_protection;

/* A page past the end of a file gives the same as one that the system has promised to somebody
 * else. */
static void take_first_page(void *address, int protection)
{
    int fd = memfd_create("empty", MFD_CLOEXEC);

    if (fd < 0 || syscall(SYS_mmap, address, PAGE, protection, MAP_SHARED | MAP_FIXED, fd, 0) < 0)
        abort();
    close(fd);
}

void *mmap(void *at, size_t nbytes, int protection, int flags, int fd, off_t offset)
{
    void *address = (void *)syscall(SYS_mmap, at, nbytes, protection, flags, fd, offset);

    if (address != MAP_FAILED && fd >= 0 &&
        protection == __atomic_load_n(&taken_protection, __ATOMIC_SEQ_CST))
        take_first_page(address, protection);
    return address;
}

static void take_from(int protection)
{
    __atomic_store_n(&taken_protection, protection, __ATOMIC_SEQ_CST);
}

#endif

/* ---- the scene ----------------------------------------------------------------------------- */

static void set_up(void)
{
    static const struct test_rans_plan plan = {11, 1, 1, 1000, 1, 250, 1};

    test_core_set_up();
    rans = test_rans_new_registered(&plan);
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &loop), 0);
    cr_assert_eq(wharf_model_maker_new(&test_core, loop, &maker), 0);
}

static void tear_down(void)
{
    wharf_model_maker_free(maker);
    wharf_loop_free(loop);
    test_rans_free(&rans);
    test_core_stop();
}

static struct wharf_tenant *tenant_of(const char *name)
{
    return TEST_CORE_LOCKED(wharf_tenants_get(&test_core.tenants, name, &test_core_config));
}

static void ask_for(void *connection, struct wharf_tenant *tenant, uint32_t request)
{
    struct wharf_model_order order = {
        .connection = connection,
        .tenant = tenant,
        .request = request,
        .number = WHARF_FIRST_MODEL,
        .codec = WHARF_CODEC_RANS,
    };
    int fd = memfd_create("model", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert_eq(write(fd, rans.model, rans.model_nbytes), (ssize_t)rans.model_nbytes);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    cr_assert_eq(wharf_segment_adopt(fd, rans.model_nbytes, true, &order.segment), 0);
    close(fd);
    cr_assert_eq(wharf_model_maker_ask(maker, &order), 0);
}

static void ask(struct wharf_tenant *tenant, uint32_t request)
{
    ask_for(NULL, tenant, request);
}

/* Waits for the next, and gives back what it has. */
static struct wharf_model_made next(void)
{
    struct wharf_model_made made;

    while (!wharf_model_maker_next(maker, &made))
        usleep(1000);
    if (made.error == 0) {
        wharf_segment_free(&made.segment);
        wharf_core_enter(&test_core);
        wharf_tenant_give_back(made.order.tenant, &made.use);
        wharf_core_leave(&test_core);
    }
    return made;
}

/* ---- whose turn it is ---------------------------------------------------------------------- */

/* Two that asked for many took turns, and a third one waited for all of theirs. */
Test(wharfd_model_maker, nobody_waits_for_more_than_one_of_each_other, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    struct wharf_tenant *tenants[3] = {tenant_of("uid:1"), tenant_of("uid:2"), tenant_of("uid:3")};

    /* The thread gets no further than to the lock, at the first one, before all have asked. */
    wharf_core_enter(&test_core);
    for (uint32_t i = 0; i < 10; i++)
        ask(tenants[0], i);
    for (uint32_t i = 10; i < 20; i++)
        ask(tenants[1], i);
    ask(tenants[2], 20);
    wharf_core_leave(&test_core);
    static const uint32_t first[] = {0, 10, 20, 1, 11, 2};
    for (unsigned i = 0; i < 21; i++) {
        struct wharf_model_made made = next();
        cr_assert_eq(made.error, 0);
        if (i < sizeof(first) / sizeof(first[0]))
            cr_assert_eq(made.order.request, first[i], "%u came as number %u", made.order.request,
                         i);
    }
}

/* Once, orders of closed connections stayed, with all that they held. */
Test(wharfd_model_maker, what_nobody_waits_for_is_not_made, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    enum { N = 10 };
    static char connections[N];
    struct wharf_tenant *tenant = tenant_of("uid:1");
    struct wharf_model_order order;
    unsigned n = 0;

    wharf_core_enter(&test_core);
    for (uint32_t i = 0; i < N; i++)
        ask_for(&connections[i], tenant, i);
    for (uint32_t i = 0; i < N; i++) {
        if (!wharf_model_maker_forget(maker, (void *)&connections[i], &order))
            continue;
        n++;
        cr_assert_eq(order.request, i);
        wharf_segment_free(&order.segment);
        cr_assert_not(wharf_model_maker_forget(maker, (void *)&connections[i], &order));
    }
    wharf_core_leave(&test_core);
    cr_assert_geq(n, N - 1);
    ask(tenant, N);
    if (n < N)
        cr_assert_null(next().order.connection);
    cr_assert_eq(next().order.request, N);
}

/* ---- memory -------------------------------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__
/* It was the daemon's end. */
Test(wharfd_model_maker, model_whose_memory_cannot_be_had_is_refused, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    static const int protections[] = {PROT_READ, PROT_READ | PROT_WRITE};
    struct wharf_tenant *tenant = tenant_of("uid:1");

    for (unsigned i = 0; i < 2; i++) {
        take_from(protections[i]);
        ask(tenant, i);
        cr_assert_eq(next().error, -ENOMEM);
        take_from(0);
        cr_assert_eq(TEST_CORE_LOCKED(tenant->used.memory_nbytes), 0);
        cr_assert_eq(TEST_CORE_LOCKED(tenant->used.n_descriptors), 0);
        ask(tenant, i);
        cr_assert_eq(next().error, 0);
    }
}
#endif
