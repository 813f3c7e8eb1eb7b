/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory of clients a GPU's worker is told to register and to let go, and what it answers:
 * the test is the worker. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/front/front.h"
#include "daemon/gpu/gpu_memory.h"
#include "daemon/gpu/gpu_state.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_worker.h"

static struct wharf_config config;
static struct wharf_front front;
static struct wharf_tenant tenant;
static struct wharf_session session;
static struct wharf_gpu_backend *backend;
static int worker, memfd;

static void set_up(void)
{
    int pair[2];

    wharf_config_init(&config);
    cr_assert_eq(wharf_front_init(&front, &config, NULL), 0);
    front.n_gpus = front.gpus_up = 1;
    front.gpu_engine = WHARF_ENGINE_GPU;
    session = (struct wharf_session){.tenant = &tenant, .engine = WHARF_ENGINE_GPU};
    wharf_list_init(&session.waiting);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    backend = calloc(1, sizeof(*backend));
    cr_assert_not_null(backend);
    backend->front = &front;
    backend->view = &front.gpus[0];
    backend->engine = WHARF_ENGINE_GPU;
    backend->state = WHARF_GPU_UP;
    backend->link = (struct wharf_worker_link){.socket = pair[0], .pidfd = -1};
    cr_assert_eq(wharf_gpu_items_init(backend), 0);
    worker = pair[1];
    memfd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
}

static void tear_down(void)
{
    wharf_gpu_pins_lost(backend);
    wharf_gpu_items_deinit(backend);
    close(backend->link.socket);
    close(worker);
    close(memfd);
    free(backend);
    wharf_front_deinit(&front);
}

static struct wharf_gpu_memory *add(bool is_device)
{
    struct wharf_gpu_memory *memory =
        is_device ? wharf_gpu_memory_new_device(&front, &session, memfd, 4096)
                  : wharf_gpu_memory_new(&front, &session, memfd, 4096, false);

    cr_assert_not_null(memory);
    wharf_gpu_memory_add(&front, memory);
    return memory;
}

static void drop(struct wharf_gpu_memory *memory)
{
    wharf_front_enter(&front);
    wharf_gpu_memory_drop(&front, memory, &(struct wharf_use){.n_jobs = 0});
    wharf_front_leave(&front);
}

static void tend(void)
{
    uint64_t now_ns = wharf_now_ns();

    backend->forgotten_at_ns = 0;
    while (wharf_gpu_pins_tend(backend, now_ns) <= now_ns)
        backend->pass.is_stale = false;
}

/* The number that the worker is told next, of what it is told so; 0: nothing. */
static uint32_t told(uint32_t kind)
{
    struct wharf_worker_message message;

    if (recv(worker, &message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
        return 0;
    cr_assert_eq(message.kind, kind);
    return message.number;
}

static void answer_registered(uint32_t number)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTERED, .number = number};

    wharf_gpu_pins_registered(backend, &message);
}

static void answer_forgotten(uint32_t number)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_FORGOTTEN, .number = number};

    wharf_gpu_pins_forgotten(backend, &message);
}

/* All of this memory is registered. */
static void register_all(struct wharf_gpu_memory *memories[], unsigned n)
{
    for (unsigned n_done = 0; n_done < n;) {
        tend();
        for (uint32_t number = told(WHARF_WORKER_REGISTER); number;
             number = told(WHARF_WORKER_REGISTER), n_done++)
            answer_registered(number);
    }
    for (unsigned i = 0; i < n; i++)
        cr_assert_eq(memories[i]->on[0].state, WHARF_GPU_MEMORY_READY);
}

/* Whose turn it is to be answered is known: nobody looks for it among all that there is, and a
 * worker that answers anything else is out of its mind. */
Test(wharfd_pins, worker_that_answers_out_of_turn_is_killed, .init = set_up, .fini = tear_down)
{
    add(false);
    add(false);
    tend();
    cr_assert_eq(told(WHARF_WORKER_REGISTER), 1);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), 2);
    answer_registered(1);
    cr_assert_eq(backend->state, WHARF_GPU_UP);
    answer_registered(1);
    cr_assert_eq(backend->state, WHARF_GPU_DYING);
}

Test(wharfd_pins, worker_that_lets_go_out_of_turn_is_killed, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory *memories[] = {add(false), add(false)};

    register_all(memories, 2);
    drop(memories[0]);
    drop(memories[1]);
    tend();
    cr_assert_eq(told(WHARF_WORKER_FORGET), 1);
    cr_assert_eq(told(WHARF_WORKER_FORGET), 2);
    answer_forgotten(2);
    cr_assert_eq(backend->state, WHARF_GPU_DYING);
}

Test(wharfd_pins, memory_is_freed_when_the_worker_has_let_go, .init = set_up, .fini = tear_down)
{
    enum { N = 100 };
    struct wharf_gpu_memory *memories[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        memories[i] = add(false);
    register_all(memories, N);
    cr_assert_eq(front.pinned_nbytes, N * 4096);
    for (unsigned i = 0; i < N; i++)
        drop(memories[i]);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + N);
    tend();
    for (uint32_t number; (number = told(WHARF_WORKER_FORGET));)
        answer_forgotten(number);
    cr_assert_eq(backend->state, WHARF_GPU_UP);
    cr_assert_eq(front.pinned_nbytes + front.dead_nbytes + tenant.n_pins, 0);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds);
}

/* GPU memory that no worker has was looked for among all memory, from the beginning again for each
 * piece of it. */
Test(wharfd_pins, memory_that_no_worker_has_is_in_a_list_of_its_own, .init = set_up,
     .fini = tear_down)
{
    enum { N = 200 };
    struct wharf_gpu_memory *devices[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        devices[i] = add(true);
    struct wharf_gpu_memory *other = add(false);
    for (unsigned i = 0; i < N; i++)
        drop(devices[i]);
    cr_assert_eq(front.memories.next, &other->link);
    cr_assert_eq(front.memories.prev, &other->link);
    cr_assert_eq(front.gpus_wanted & 1, 1);
    wharf_gpu_pins_bury(backend);
    cr_assert(wharf_list_is_empty(&front.unheld));
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + 1);
}

/* More than is closed at a time, some of it given up. */
Test(wharfd_pins, worker_that_ends_takes_all_registrations_with_it, .init = set_up,
     .fini = tear_down)
{
    enum { N = 600 };
    struct wharf_gpu_memory *memories[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        memories[i] = add(false);
    register_all(memories, N);
    for (unsigned i = 0; i < N; i += 3)
        drop(memories[i]);
    add(false);
    tend();
    wharf_gpu_pins_lost(backend);
    cr_assert_eq(backend->n_asked, 0);
    cr_assert(wharf_list_is_empty(&backend->asked));
    cr_assert(wharf_list_is_empty(&backend->forgotten));
    cr_assert_eq(front.pinned_nbytes + front.dead_nbytes, 0);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + 1 + N - N / 3);
    for (unsigned i = 1; i < N; i += 3)
        cr_assert_eq(memories[i]->on[0].state, WHARF_GPU_MEMORY_ABSENT);
}
