/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory of clients a GPU's worker is told to register and to let go, and what it answers. */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/residency.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "tests/lib/test_pins.h"
#include "tests/lib/test_worker.h"

#define S ((uint64_t)WHARF_NS_PER_S)

/* Whose turn it is to be answered is known: nobody looks for it among all that there is, and a
 * worker that answers anything else is out of its mind. */
Test(wharfd_pins, worker_that_answers_out_of_turn_is_killed, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    test_pins_add(false);
    test_pins_add(false);
    test_pins_tend();
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), 1);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), 2);
    test_pins_answer_registered(1);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_UP);
    test_pins_answer_registered(1);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_DYING);
}

Test(wharfd_pins, worker_that_lets_go_out_of_turn_is_killed, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *memories[] = {test_pins_add(false), test_pins_add(false)};

    test_pins_register_all(memories, 2);
    test_pins_drop(memories[0]);
    test_pins_drop(memories[1]);
    test_pins_tend();
    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 1);
    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 2);
    test_pins_answer_forgotten(2);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_DYING);
}

Test(wharfd_pins, memory_is_freed_when_the_worker_has_let_go, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    enum { N = 100 };
    struct wharf_gpu_memory *memories[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        memories[i] = test_pins_add(false);
    test_pins_register_all(memories, N);
    cr_assert_eq(test_pins.core.residency.pinned_nbytes, N * 4096);
    for (unsigned i = 0; i < N; i++)
        test_pins_drop(memories[i]);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + N);
    test_pins_tend();
    for (uint32_t number; (number = test_pins_told(WHARF_WORKER_FORGET));)
        test_pins_answer_forgotten(number);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_UP);
    cr_assert_eq(test_pins.core.residency.pinned_nbytes + test_pins.core.residency.dead_nbytes +
                     test_pins.tenants[0].n_references,
                 0);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds);
}

/* GPU memory that no worker has was looked for among all memory, from the beginning again for each
 * piece of it. */
Test(wharfd_pins, memory_that_no_worker_has_is_in_a_list_of_its_own, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    enum { N = 200 };
    struct wharf_gpu_memory *devices[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        devices[i] = test_pins_add(true);
    struct wharf_gpu_memory *other = test_pins_add(false);
    for (unsigned i = 0; i < N; i++)
        test_pins_drop(devices[i]);
    cr_assert_eq(test_pins.core.residency.memories.next, &other->link);
    cr_assert_eq(test_pins.core.residency.memories.prev, &other->link);
    cr_assert_eq(test_pins.core.fleet.gpus_wanted & 1, 1);
    wharf_gpu_pins_retire(test_pins.backend);
    cr_assert(wharf_list_is_empty(&test_pins.core.residency.unheld));
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + 1);
}

/* More than is closed at a time, some of it given up. */
Test(wharfd_pins, worker_that_ends_takes_all_registrations_with_it, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    enum { N = 600 };
    struct wharf_gpu_memory *memories[N];
    int n_fds = test_process_n_fds(getpid());

    for (unsigned i = 0; i < N; i++)
        memories[i] = test_pins_add(false);
    test_pins_register_all(memories, N);
    for (unsigned i = 0; i < N; i += 3)
        test_pins_drop(memories[i]);
    test_pins_add(false);
    test_pins_tend();
    wharf_gpu_pins_lost(test_pins.backend);
    cr_assert_eq(test_pins.backend->told.n_asked, 0);
    cr_assert(wharf_list_is_empty(&test_pins.backend->told.asked));
    cr_assert(wharf_list_is_empty(&test_pins.backend->told.forgotten));
    cr_assert_eq(test_pins.core.residency.pinned_nbytes + test_pins.core.residency.dead_nbytes, 0);
    cr_assert_eq(test_process_n_fds(getpid()), n_fds + 1 + N - N / 3);
    for (unsigned i = 1; i < N; i += 3)
        cr_assert_eq(memories[i]->on[0].state, WHARF_GPU_MEMORY_ABSENT);
}

/* ---- memory that cannot be registered ------------------------------------------------------- */

static void begin(uint32_t number, uint64_t now_ns)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTERING, .number = number};

    wharf_gpu_answers_begun(test_pins.backend, &message, now_ns);
}

/* The next worker has come up. */
static void come_up(uint64_t now_ns)
{
    while (recv(test_pins.worker, &(struct wharf_worker_message){.number = 0},
                sizeof(struct wharf_worker_message), MSG_DONTWAIT) > 0)
        ;
    wharf_gpu_pins_lost(test_pins.backend);
    test_pins.backend->state = WHARF_GPU_UP;
    test_pins.backend->life.up_since_ns = now_ns;
    test_pins.core.fleet.gpus_up = 1;
}

/* A client that punches holes into its memory can make pinning it last for as long as it likes,
 * and nobody else's is registered or let go meanwhile. */
Test(wharfd_pins, worker_that_is_kept_by_memory_is_killed, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *faulting = test_pins_add_to(0, false, 1),
                            *other = test_pins_add_to(1, false, 1);
    uint64_t now_ns = wharf_now_ns(), limit_ns = test_pins.core.config.gpu_hang_timeout_ns;

    for (unsigned i = 0; i < WHARF_GPU_MOST_STALLS; i++) {
        cr_assert_eq(test_pins.tenants[0].gpu_trust.banned_until_ns, 0);
        now_ns += 10 * S;
        test_pins_tend_at(now_ns);
        /* Others come first, once it is known. */
        if (i > 0)
            cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), other->number);
        if (i > 0)
            test_pins_answer_registered(other->number);
        cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), faulting->number);
        begin(faulting->number, now_ns);
        cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, now_ns), now_ns + limit_ns);
        cr_assert_eq(test_pins.backend->state, WHARF_GPU_UP);
        wharf_gpu_answers_see_to_stalls(test_pins.backend, now_ns + limit_ns);
        cr_assert_eq(test_pins.backend->state, WHARF_GPU_DYING);
        cr_assert_not(test_pins.backend->life.was_killed);
        cr_assert_eq(faulting->n_stalls, i + 1);
        come_up(now_ns + limit_ns);
        test_pins_tend_at(now_ns + limit_ns);
        if (i == 0)
            cr_assert_eq(faulting->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    }
    cr_assert_gt(test_pins.tenants[0].gpu_trust.banned_until_ns, now_ns);
    cr_assert_eq(test_pins.tenants[1].gpu_trust.banned_until_ns, 0);
    cr_assert_eq(faulting->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    /* Nor is other memory of that tenant's registered for a while. */
    struct wharf_gpu_memory *more = test_pins_add_to(0, false, 1);
    test_pins_tend_at(now_ns + S);
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    test_pins_tend_at(test_pins.tenants[0].gpu_trust.banned_until_ns);
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_ASKED);
}

/* It hangs so long after what it said last, and for nobody's fault. */
static void expect_silence_to_end_it(uint64_t limit_ns)
{
    uint64_t until_ns = wharf_gpu_answers_see_to_stalls(test_pins.backend, 0);

    cr_assert_leq(until_ns, wharf_now_ns() + limit_ns);
    cr_assert_gt(until_ns, wharf_now_ns() + limit_ns - 60 * S);
    cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, until_ns - 1), until_ns);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_UP);
    wharf_gpu_answers_see_to_stalls(test_pins.backend, until_ns);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_DYING);
    cr_assert_not(test_pins.backend->life.was_killed);
    cr_assert_eq(test_pins.tenants[0].gpu_trust.n_stalls, 0);
    come_up(wharf_now_ns());
    cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, wharf_now_ns()), WHARF_NEVER);
}

/* One that hung before it began with what it was told, and had nothing to decode, was waited for
 * for ever. */
Test(wharfd_pins, worker_that_says_nothing_is_killed, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *memory = test_pins_add_to(0, false, 1 << 18),
                            *other = test_pins_add(false);
    uint64_t hang_ns = test_pins.core.config.gpu_hang_timeout_ns = 100 * S;

    test_pins_tend();
    expect_silence_to_end_it(hang_ns);
    cr_assert_eq(memory->n_stalls, 0);
    /* What it had to register is registered; what it has to let go takes as long. */
    test_pins_tend();
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), memory->number);
    begin(memory->number, wharf_now_ns());
    test_pins_answer_registered(memory->number);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), other->number);
    cr_assert_neq(wharf_gpu_answers_see_to_stalls(test_pins.backend, wharf_now_ns()), WHARF_NEVER);
    test_pins_answer_registered(other->number);
    cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, wharf_now_ns()), WHARF_NEVER);
    test_pins_drop(memory);
    test_pins_tend();
    expect_silence_to_end_it(hang_ns + 10 * S);
}

/* To let go of memory it has to end what it decodes, which can be done by now. */
Test(wharfd_pins, worker_that_decodes_has_more_time, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *memory = test_pins_add(false);
    struct wharf_gpu_piece longest = {.patience_ns = 900 * S}, later = {.patience_ns = 300 * S};
    uint64_t hang_ns = test_pins.core.config.gpu_hang_timeout_ns = 100 * S;

    test_pins_tend();
    test_pins_answer_registered(memory->number);
    test_pins_drop(memory);
    test_pins_tend();
    wharf_list_append(&test_pins.backend->under_way, &longest.link);
    wharf_list_append(&test_pins.backend->under_way, &later.link);
    wharf_gpu_answers_see_to_stalls(test_pins.backend, wharf_now_ns());
    wharf_list_remove(&longest.link);
    wharf_gpu_answers_see_to_stalls(test_pins.backend, wharf_now_ns());
    wharf_list_remove(&later.link);
    expect_silence_to_end_it(hang_ns + 900 * S);
    /* The next one has not decoded that. */
    test_pins_add(false);
    test_pins_tend();
    expect_silence_to_end_it(hang_ns);
}

/* One that somebody kills while it registers memory, or that crashes there, has not been kept by
 * that: nobody is blamed, and its successor is asked at once. */
Test(wharfd_pins, worker_that_is_killed_while_it_registers_blames_nobody, .init = test_pins_set_up,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *first = test_pins_add_to(0, false, 1),
                            *second = test_pins_add_to(1, false, 1);
    uint64_t now_ns = wharf_now_ns(), limit_ns = test_pins.core.config.gpu_hang_timeout_ns;

    for (unsigned i = 0; i <= WHARF_GPU_MOST_STALLS; i++) {
        now_ns += 10 * S;
        test_pins_tend_at(now_ns);
        cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), first->number);
        cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), second->number);
        begin(first->number, now_ns);
        come_up(now_ns + limit_ns / 2);
        cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, now_ns + limit_ns),
                     WHARF_NEVER);
        cr_assert_eq(first->on[0].state, WHARF_GPU_MEMORY_ABSENT);
        cr_assert_eq(first->n_stalls, 0);
    }
    test_pins_tend_at(now_ns + 10 * S);
    test_pins_answer_registered(first->number);
    cr_assert_eq(first->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(test_pins.core.residency.pinned_nbytes, 2 * TEST_PINS_PAGE);
    cr_assert_eq(test_pins.tenants[0].gpu_trust.n_stalls, 0);
}

/* Large memory is given longer. */
Test(wharfd_pins, large_memory_has_more_time, .init = test_pins_set_up, .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *memory = test_pins_add_to(0, false, 1 << 18);
    uint64_t now_ns = wharf_now_ns();

    test_pins_tend_at(now_ns);
    begin(test_pins_told(WHARF_WORKER_REGISTER), now_ns);
    wharf_gpu_answers_see_to_stalls(test_pins.backend, now_ns + 9 * S);
    cr_assert_eq(test_pins.backend->state, WHARF_GPU_UP);
    test_pins_answer_registered(memory->number);
    cr_assert_eq(wharf_gpu_answers_see_to_stalls(test_pins.backend, now_ns + 100 * S), WHARF_NEVER);
    cr_assert_eq(memory->on[0].state, WHARF_GPU_MEMORY_READY);
}
