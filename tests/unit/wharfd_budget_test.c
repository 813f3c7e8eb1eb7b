/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory makes room for whose in the budget of pinned memory. */
#include <criterion/criterion.h>
#include <sys/socket.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/residency.h"
#include "daemon/gpu/gpu_arena_maker.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_arena_pool.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_room.h"
#include "tests/lib/test_pins.h"

#define S ((uint64_t)WHARF_NS_PER_S)

/* Pages. */
enum { BUDGET = 8 };

static void set_up_budget(void)
{
    test_pins_set_up();
    test_pins.core.config.gpu_memory_nbytes = BUDGET * TEST_PINS_PAGE;
}

static struct wharf_gpu_memory *add_pinned(unsigned tenant, unsigned n_pages)
{
    struct wharf_gpu_memory *memory = test_pins_add_to(tenant, false, n_pages);

    test_pins_register_all(&memory, 1);
    return memory;
}

/* A job that names it and nothing else. */
struct named {
    struct wharf_region region;
    struct wharf_job job;
};

static struct wharf_job *job_of(struct named *named, struct wharf_gpu_memory *memory)
{
    named->region = (struct wharf_region){.memory = memory};
    named->job = (struct wharf_job){
        .session = memory->session,
        .source = &named->region,
        .destination = &named->region,
    };
    return &named->job;
}

static void want(struct wharf_gpu_memory *memory, uint64_t now_ns)
{
    struct named named;

    wharf_gpu_room_want(&test_pins.core, job_of(&named, memory), now_ns);
}

/* What the worker lets go of now, and does; NULL in the place of what it is not told. */
static void expect_forgotten(const struct wharf_gpu_memory *memory)
{
    uint32_t number = memory->number;

    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), number);
    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 0);
    test_pins_answer_forgotten(number);
}

/* The one whose turn it is has taken most; of that the memory used longest ago goes. */
Test(wharfd_budget, tenant_with_most_makes_room, .init = set_up_budget, .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own[] = {add_pinned(0, 3), add_pinned(0, 3)},
                            *other = add_pinned(1, 2);
    struct wharf_gpu_memory *wanted = test_pins_add_to(2, false, 2);
    uint64_t now_ns = wharf_now_ns() + 2 * S;
    struct named named;

    wharf_gpu_room_use(test_pins.backend->gpu, job_of(&named, own[0]), now_ns);
    wharf_gpu_end_use(test_pins.backend, &named.job);
    want(wanted, now_ns);
    cr_assert_eq(test_pins.core.fleet.gpus_wanted & 1, 1);
    test_pins_tend_at(now_ns);
    expect_forgotten(own[1]);
    cr_assert_eq(own[1]->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    cr_assert_eq(test_pins.tenants[0].stats.n_evicted, 1);
    cr_assert_eq(test_pins.tenants[0].gpu_pins.pinned_nbytes, 3 * TEST_PINS_PAGE);
    /* It wants to come back, and the room is another one's. */
    want(own[1], now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), wanted->number);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), 0);
    test_pins_answer_registered(wanted->number);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(other->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(test_pins.core.residency.room.promised_nbytes +
                     test_pins.core.residency.room.leaving_nbytes,
                 0);
    cr_assert_eq(own[1]->on[0].state, WHARF_GPU_MEMORY_REFUSED);
}

/* The worker does all that it is told. */
static void obey(void)
{
    struct wharf_worker_message message;

    while (recv(test_pins.worker, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message))
        if (message.kind == WHARF_WORKER_FORGET)
            test_pins_answer_forgotten(message.number);
        else
            test_pins_answer_registered(message.number);
}

/* Where it takes more pieces than go at a time, others follow; where all would not be enough,
 * nothing goes. */
Test(wharfd_budget, many_small_pieces_make_room, .init = set_up_budget, .fini = test_pins_tear_down)
{
    enum { N = 256, WANTED = N / 2 };
    struct wharf_gpu_memory *small[N], *wanted, *more;
    uint64_t now_ns;

    test_pins.core.config.gpu_memory_nbytes = N * TEST_PINS_PAGE;
    for (unsigned i = 0; i < N; i++)
        small[i] = test_pins_add_to(0, false, 1);
    test_pins_register_all(small, N);
    wanted = test_pins_add_to(1, false, WANTED);
    more = test_pins_add_to(2, false, WANTED + 1);
    now_ns = wharf_now_ns() + 2 * S;
    want(more, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins.tenants[0].stats.n_evicted, 0);
    for (unsigned i = 0; i < 20 && wanted->on[0].state != WHARF_GPU_MEMORY_READY; i++) {
        want(wanted, now_ns);
        test_pins_tend_at(now_ns);
        obey();
        now_ns += S / 2;
    }
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(test_pins.tenants[0].stats.n_evicted, WANTED);
    cr_assert_eq(test_pins.tenants[0].gpu_pins.pinned_nbytes, (N - WANTED) * TEST_PINS_PAGE);
    cr_assert_eq(test_pins.core.residency.room.promised_nbytes +
                     test_pins.core.residency.room.leaving_nbytes,
                 0);
}

/* A job in flight uses memory that has been pinned for long enough, which is to make room for what
 * is wanted.  Returns when that is. */
static uint64_t want_what_is_used(struct named *named, struct wharf_gpu_memory *own,
                                  struct wharf_gpu_memory *wanted)
{
    uint64_t now_ns = wharf_now_ns() + 2 * S;

    wharf_gpu_room_use(test_pins.backend->gpu, job_of(named, own), now_ns);
    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    return now_ns;
}

/* A flood has a job in flight at any time: nothing more is handed over, and when the worker has
 * none it lets go. */
Test(wharfd_budget, memory_in_use_goes_when_its_pieces_are_done, .init = set_up_budget,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = test_pins_add_to(1, false, 4);
    struct named named;
    uint64_t now_ns = want_what_is_used(&named, own, wanted);

    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 0);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_LEAVING);
    cr_assert_eq(wharf_gpu_memory_of_job(&named.job, 0), WHARF_GPU_MEMORY_LEAVING);
    test_pins.backend->told.pass.is_stale = false;
    wharf_gpu_end_use(test_pins.backend, &named.job);
    cr_assert(test_pins.backend->told.pass.is_stale);
    test_pins_tend_at(now_ns);
    expect_forgotten(own);
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), wanted->number);
    test_pins_answer_registered(wanted->number);
}

/* Nobody who has no more than an even share loses anything, whoever wants what. */
Test(wharfd_budget, even_shares_stay, .init = set_up_budget, .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *a = add_pinned(0, 4), *b = add_pinned(1, 4);
    struct wharf_gpu_memory *more = test_pins_add_to(0, false, 1),
                            *large = test_pins_add_to(2, false, 5);
    uint64_t now_ns = a->pinned_ns + 5 * S;

    want(more, now_ns);
    want(large, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 0);
    cr_assert_eq(a->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(b->on[0].state, WHARF_GPU_MEMORY_READY);
    /* Who wants nothing but a GPU is told so. */
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    cr_assert_eq(large->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    cr_assert_eq(
        test_pins.core.residency.room.leaving_nbytes + test_pins.tenants[0].stats.n_evicted, 0);
}

/* Where all that may go is not enough, nothing goes. */
Test(wharfd_budget, nothing_goes_in_vain, .init = set_up_budget, .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *a[] = {add_pinned(0, 1), add_pinned(0, 1), add_pinned(0, 2)};
    struct wharf_gpu_memory *b = add_pinned(1, 2), *c = add_pinned(2, 2);
    struct wharf_gpu_memory *wanted = test_pins_add_to(1, false, 2);
    uint64_t now_ns = wharf_now_ns() + 2 * S;

    /* A third is two pages and a part: of the first tenant's four, two would go, and then it would
     * have less than who wants them. */
    test_pins.tenants[1].gpu_pins.in_vain_ns = 0;
    test_pins_drop(c);
    want(wanted, now_ns);
    test_pins.core.config.gpu_memory_nbytes = 5 * TEST_PINS_PAGE;
    test_pins_tend_at(now_ns);
    expect_forgotten(c);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(a[i]->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(b->on[0].state, WHARF_GPU_MEMORY_READY);
    /* In the order of before. */
    cr_assert_eq(test_pins.tenants[0].gpu_pins.pins.next, &a[0]->pin_link);
    cr_assert_eq(test_pins.tenants[0].gpu_pins.pins.prev, &a[2]->pin_link);
    cr_assert_eq(test_pins.tenants[0].gpu_pins.leaving_nbytes +
                     test_pins.core.residency.room.leaving_nbytes,
                 0);
}

/* What was pinned just now stays for a while; who waits for it is not refused. */
Test(wharfd_budget, memory_stays_pinned_for_a_while, .init = set_up_budget,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = test_pins_add_to(1, false, 4);
    uint64_t now_ns = own->pinned_ns;

    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    cr_assert_leq(test_pins.backend->told.pass.next_ns, now_ns + S);
    want(wanted, now_ns + S);
    test_pins_tend_at(now_ns + 2 * S);
    expect_forgotten(own);
}

/* Of two that want more than an even share each has it for a while. */
Test(wharfd_budget, those_who_want_more_than_a_share_take_turns, .init = set_up_budget,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = test_pins_add_to(1, false, 6);
    uint64_t now_ns = own->pinned_ns + 5 * S;

    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    now_ns += 6 * S;
    own->pin_used_ns = now_ns;
    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    expect_forgotten(own);
}

/* What nobody has used for long goes, whoever has how much. */
Test(wharfd_budget, unused_memory_makes_room, .init = set_up_budget, .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = test_pins_add_to(0, false, 7);
    uint64_t now_ns = own->pin_used_ns + 9 * S;

    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    /* Without a job that wants it, it is not tried again. */
    test_pins_tend_at(now_ns + 2 * S);
    cr_assert_eq(test_pins_told(WHARF_WORKER_FORGET), 0);
    want(wanted, now_ns + 2 * S);
    test_pins_tend_at(now_ns + 2 * S);
    expect_forgotten(own);
    test_pins_tend_at(now_ns + 2 * S);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), wanted->number);
}

/* Arenas that are ready for sessions to come are in nobody's way, and do not come back before there
 * is room for them. */
Test(wharfd_budget, pooled_arenas_make_room, .init = set_up_budget, .fini = test_pins_tear_down)
{
    struct wharf_segment segment;
    struct wharf_gpu_memory *memory, *wanted;
    uint64_t now_ns = wharf_now_ns();

    cr_assert_not(
        wharf_gpu_arena_pool_take(&test_pins.core, 3 * TEST_PINS_PAGE, &segment, &memory));
    while (wharf_gpu_arena_maker_refill(&test_pins.core, 0))
        ;
    cr_assert_eq(test_pins.core.residency.arena_pool.nbytes, 6 * TEST_PINS_PAGE);
    test_pins_tend();
    test_pins_answer_registered(test_pins_told(WHARF_WORKER_REGISTER));
    test_pins_answer_registered(test_pins_told(WHARF_WORKER_REGISTER));
    cr_assert_eq(test_pins.core.residency.pinned_nbytes, 6 * TEST_PINS_PAGE);
    wanted = test_pins_add_to(0, false, 4);
    want(wanted, now_ns);
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins.core.residency.arena_pool.nbytes, 3 * TEST_PINS_PAGE);
    cr_assert_not(wharf_gpu_arena_maker_refill(&test_pins.core, 0));
    cr_assert_eq(test_pins.core.residency.arena_pool.nbytes, 3 * TEST_PINS_PAGE);
    test_pins_tend_at(now_ns);
    test_pins_answer_forgotten(test_pins_told(WHARF_WORKER_FORGET));
    test_pins_tend_at(now_ns);
    cr_assert_eq(test_pins_told(WHARF_WORKER_REGISTER), wanted->number);
    test_pins_answer_registered(wanted->number);
    cr_assert_eq(test_pins.core.residency.pinned_nbytes, 7 * TEST_PINS_PAGE);
    wharf_gpu_pins_lost(test_pins.backend);
    wharf_gpu_arena_maker_deinit(&test_pins.core);
}

/* Whose memory is given up while it waits, or while it makes room, is neither any more. */
Test(wharfd_budget, memory_that_is_given_up_meanwhile_is_not_counted, .init = set_up_budget,
     .fini = test_pins_tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = test_pins_add_to(1, false, 4);
    struct named named;
    uint64_t now_ns = want_what_is_used(&named, own, wanted);

    cr_assert_eq(test_pins.core.residency.room.leaving_nbytes, 6 * TEST_PINS_PAGE);
    cr_assert_eq(test_pins.core.residency.room.promised_nbytes, 4 * TEST_PINS_PAGE);
    test_pins_drop(wanted);
    wharf_gpu_end_use(test_pins.backend, &named.job);
    test_pins_drop(own);
    cr_assert_eq(test_pins.core.residency.room.leaving_nbytes +
                     test_pins.core.residency.room.promised_nbytes,
                 0);
    cr_assert_eq(test_pins.core.residency.dead_nbytes, 6 * TEST_PINS_PAGE);
    test_pins_tend_at(now_ns);
    test_pins_answer_forgotten(test_pins_told(WHARF_WORKER_FORGET));
    cr_assert_eq(test_pins.core.residency.dead_nbytes + test_pins.core.residency.pinned_nbytes +
                     test_pins.core.residency.room.n_tenants,
                 0);
    cr_assert(wharf_list_is_empty(&test_pins.core.residency.memories));
}
