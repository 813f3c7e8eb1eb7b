/* SPDX-License-Identifier: Apache-2.0 */
/* test_pins.c: plays a GPU's worker for the code that registers memory. */
#include "tests/lib/test_pins.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "tests/lib/test_bare.h"
#include "tests/lib/test_client.h"

struct test_pins test_pins;

static void expect(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "pinned memory: %s\n", what);
    abort();
}

void test_pins_set_up(void)
{
    int pair[2];

    test_bare_core_init(&test_pins.core, 1);
    wharf_totals_init_boundless(&test_pins.core.tenants.totals);
    for (unsigned i = 0; i < TEST_PINS_N_TENANTS; i++) {
        test_pins.tenants[i] = (struct wharf_tenant){.totals = &test_pins.core.tenants.totals};
        wharf_list_init(&test_pins.tenants[i].gpu_pins.link);
        wharf_list_init(&test_pins.tenants[i].gpu_pins.pins);
        test_pins.sessions[i] =
            (struct wharf_session){.tenant = &test_pins.tenants[i], .engine = WHARF_ENGINE_GPU};
        wharf_list_init(&test_pins.sessions[i].placing.waiting);
        wharf_list_init(&test_pins.sessions[i].placing.due);
        wharf_list_init(&test_pins.sessions[i].placing.due_link);
        wharf_list_init(&test_pins.sessions[i].placing.held);
        wharf_list_init(&test_pins.sessions[i].placing.held_link);
        wharf_list_init(&test_pins.sessions[i].activity.stale_link);
    }
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "no sockets");
    test_pins.backend = calloc(1, sizeof(*test_pins.backend));
    expect(test_pins.backend != NULL, "out of memory");
    test_pins.backend->core = &test_pins.core;
    test_pins.backend->view = &test_pins.core.fleet.gpus[0];
    test_pins.backend->engine = WHARF_ENGINE_GPU;
    test_pins.backend->state = WHARF_GPU_UP;
    test_pins.backend->link = (struct wharf_worker_link){.socket = pair[0], .pidfd = -1};
    expect(wharf_gpu_items_init(test_pins.backend) == 0, "no items");
    test_pins.worker = pair[1];
    test_pins.memfd = test_memfd(TEST_PINS_PAGE, F_SEAL_SHRINK | F_SEAL_GROW);
}

void test_pins_tear_down(void)
{
    wharf_gpu_pins_lost(test_pins.backend);
    wharf_gpu_items_deinit(test_pins.backend);
    close(test_pins.backend->link.socket);
    close(test_pins.worker);
    close(test_pins.memfd);
    free(test_pins.backend);
    wharf_core_deinit(&test_pins.core);
}

struct wharf_gpu_memory *test_pins_add_to(unsigned tenant, bool is_device, unsigned n_pages)
{
    uint64_t nbytes = (uint64_t)n_pages * TEST_PINS_PAGE;
    struct wharf_session *session = &test_pins.sessions[tenant];
    struct wharf_gpu_memory *memory =
        is_device ? wharf_gpu_memory_new_device(&test_pins.core, session, test_pins.memfd, nbytes)
                  : wharf_gpu_memory_new(&test_pins.core, session, test_pins.memfd, nbytes, false);

    expect(memory != NULL, "no memory");
    wharf_gpu_memory_add(&test_pins.core, memory);
    return memory;
}

struct wharf_gpu_memory *test_pins_add(bool is_device)
{
    return test_pins_add_to(0, is_device, 1);
}

void test_pins_drop(struct wharf_gpu_memory *memory)
{
    wharf_core_enter(&test_pins.core);
    wharf_gpu_memory_drop(&test_pins.core, memory, &(struct wharf_use){.n_jobs = 0});
    wharf_core_leave(&test_pins.core);
}

void test_pins_tend_at(uint64_t now_ns)
{
    bool is_more = true;

    while (is_more) {
        test_pins.backend->told.forgotten_at_ns = 0;
        test_pins.core.fleet.gpus_wanted = 0;
        test_pins.backend->told.pass.is_stale = false;
        is_more = wharf_gpu_pins_tend(test_pins.backend, now_ns) <= now_ns ||
                  test_pins.core.fleet.gpus_wanted & 1;
    }
}

void test_pins_tend(void)
{
    test_pins_tend_at(wharf_now_ns());
}

uint32_t test_pins_told(uint32_t kind)
{
    struct wharf_worker_message message;

    if (recv(test_pins.worker, &message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
        return 0;
    expect(message.kind == kind, "the worker is told something else");
    return message.number;
}

void test_pins_answer_registered(uint32_t number)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTERED, .number = number};

    wharf_gpu_answers_registered(test_pins.backend, &message);
}

void test_pins_answer_forgotten(uint32_t number)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_FORGOTTEN, .number = number};

    wharf_gpu_answers_forgotten(test_pins.backend, &message);
}

void test_pins_register_all(struct wharf_gpu_memory *memories[], unsigned n)
{
    for (unsigned n_done = 0; n_done < n;) {
        test_pins_tend();
        for (uint32_t number = test_pins_told(WHARF_WORKER_REGISTER); number;
             number = test_pins_told(WHARF_WORKER_REGISTER), n_done++)
            test_pins_answer_registered(number);
    }
    for (unsigned i = 0; i < n; i++)
        expect(memories[i]->on[0].state == WHARF_GPU_MEMORY_READY, "some is not registered");
}
