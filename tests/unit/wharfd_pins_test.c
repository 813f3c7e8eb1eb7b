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
enum { N_TENANTS = 3, PAGE = 4096, BUDGET = 8 };
#define S ((uint64_t)WHARF_NS_PER_S)
static struct wharf_tenant tenants[N_TENANTS];
static struct wharf_session sessions[N_TENANTS];
static struct wharf_gpu_backend *backend;
static int worker, memfd;

static void set_up(void)
{
    int pair[2];

    wharf_config_init(&config);
    cr_assert_eq(wharf_front_init(&front, &config, NULL), 0);
    front.n_gpus = front.gpus_up = 1;
    front.gpu_engine = WHARF_ENGINE_GPU;
    front.gpu_codecs = UINT64_MAX;
    for (unsigned i = 0; i < N_TENANTS; i++) {
        tenants[i] = (struct wharf_tenant){.n_pins = 0};
        wharf_list_init(&tenants[i].gpu_pins.link);
        wharf_list_init(&tenants[i].gpu_pins.pins);
        sessions[i] = (struct wharf_session){.tenant = &tenants[i], .engine = WHARF_ENGINE_GPU};
        wharf_list_init(&sessions[i].waiting);
    }
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

static struct wharf_gpu_memory *add_to(unsigned tenant, bool is_device, unsigned n_pages)
{
    uint64_t nbytes = (uint64_t)n_pages * PAGE;
    struct wharf_session *session = &sessions[tenant];
    struct wharf_gpu_memory *memory =
        is_device ? wharf_gpu_memory_new_device(&front, session, memfd, nbytes)
                  : wharf_gpu_memory_new(&front, session, memfd, nbytes, false);

    cr_assert_not_null(memory);
    wharf_gpu_memory_add(&front, memory);
    return memory;
}

static struct wharf_gpu_memory *add(bool is_device)
{
    return add_to(0, is_device, 1);
}

static void drop(struct wharf_gpu_memory *memory)
{
    wharf_front_enter(&front);
    wharf_gpu_memory_drop(&front, memory, &(struct wharf_use){.n_jobs = 0});
    wharf_front_leave(&front);
}

static void tend_at(uint64_t now_ns)
{
    bool is_more = true;

    while (is_more) {
        backend->forgotten_at_ns = 0;
        front.gpus_wanted = 0;
        backend->pass.is_stale = false;
        is_more = wharf_gpu_pins_tend(backend, now_ns) <= now_ns || front.gpus_wanted & 1;
    }
}

static void tend(void)
{
    tend_at(wharf_now_ns());
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
    cr_assert_eq(front.pinned_nbytes + front.dead_nbytes + tenants[0].n_pins, 0);
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

/* ---- memory that cannot be registered ------------------------------------------------------- */

static void begin(uint32_t number, uint64_t now_ns)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTERING, .number = number};

    wharf_gpu_pins_begun(backend, &message, now_ns);
}

/* The next worker has come up. */
static void come_up(uint64_t now_ns)
{
    while (recv(worker, &(struct wharf_worker_message){.number = 0},
                sizeof(struct wharf_worker_message), MSG_DONTWAIT) > 0)
        ;
    wharf_gpu_pins_lost(backend);
    backend->state = WHARF_GPU_UP;
    backend->up_since_ns = now_ns;
    front.gpus_up = 1;
}

/* A client that punches holes into its memory can make pinning it last for as long as it likes,
 * and nobody else's is registered or let go meanwhile. */
Test(wharfd_pins, worker_that_is_kept_by_memory_is_killed, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory *culprit = add_to(0, false, 1), *other = add_to(1, false, 1);
    uint64_t now_ns = wharf_now_ns(), limit_ns = front.config.gpu_hang_timeout_ns;

    for (unsigned i = 0; i < WHARF_GPU_MOST_STALLS; i++) {
        cr_assert_eq(tenants[0].gpu_trust.banned_until_ns, 0);
        now_ns += 10 * S;
        tend_at(now_ns);
        /* Others come first, once it is known. */
        if (i > 0)
            cr_assert_eq(told(WHARF_WORKER_REGISTER), other->number);
        if (i > 0)
            answer_registered(other->number);
        cr_assert_eq(told(WHARF_WORKER_REGISTER), culprit->number);
        begin(culprit->number, now_ns);
        cr_assert_eq(wharf_gpu_pins_see_to_stalls(backend, now_ns), now_ns + limit_ns);
        cr_assert_eq(backend->state, WHARF_GPU_UP);
        wharf_gpu_pins_see_to_stalls(backend, now_ns + limit_ns);
        cr_assert_eq(backend->state, WHARF_GPU_DYING);
        cr_assert_not(backend->was_killed);
        cr_assert_eq(culprit->n_stalls, i + 1);
        come_up(now_ns + limit_ns);
        tend_at(now_ns + limit_ns);
        if (i == 0)
            cr_assert_eq(culprit->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    }
    cr_assert_gt(tenants[0].gpu_trust.banned_until_ns, now_ns);
    cr_assert_eq(tenants[1].gpu_trust.banned_until_ns, 0);
    cr_assert_eq(culprit->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    /* Nor is other memory of that tenant's registered for a while. */
    struct wharf_gpu_memory *more = add_to(0, false, 1);
    tend_at(now_ns + S);
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    tend_at(tenants[0].gpu_trust.banned_until_ns);
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_ASKED);
}

/* It hangs so long after what it said last, and for nobody's fault. */
static void expect_silence_to_end_it(uint64_t limit_ns)
{
    uint64_t until_ns = wharf_gpu_pins_see_to_stalls(backend, 0);

    cr_assert_leq(until_ns, wharf_now_ns() + limit_ns);
    cr_assert_gt(until_ns, wharf_now_ns() + limit_ns - 60 * S);
    cr_assert_eq(wharf_gpu_pins_see_to_stalls(backend, until_ns - 1), until_ns);
    cr_assert_eq(backend->state, WHARF_GPU_UP);
    wharf_gpu_pins_see_to_stalls(backend, until_ns);
    cr_assert_eq(backend->state, WHARF_GPU_DYING);
    cr_assert_not(backend->was_killed);
    cr_assert_eq(tenants[0].gpu_trust.n_stalls, 0);
    come_up(wharf_now_ns());
    cr_assert_eq(wharf_gpu_pins_see_to_stalls(backend, wharf_now_ns()), WHARF_NEVER);
}

/* One that hung before it began with what it was told, and had nothing to decode, was waited for
 * for ever. */
Test(wharfd_pins, worker_that_says_nothing_is_killed, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory *memory = add_to(0, false, 1 << 18), *other = add(false);
    uint64_t hang_ns = front.config.gpu_hang_timeout_ns = 100 * S;

    tend();
    expect_silence_to_end_it(hang_ns);
    cr_assert_eq(memory->n_stalls, 0);
    /* What it had to register is registered; what it has to let go takes as long. */
    tend();
    cr_assert_eq(told(WHARF_WORKER_REGISTER), memory->number);
    begin(memory->number, wharf_now_ns());
    answer_registered(memory->number);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), other->number);
    cr_assert_neq(wharf_gpu_pins_see_to_stalls(backend, wharf_now_ns()), WHARF_NEVER);
    answer_registered(other->number);
    cr_assert_eq(wharf_gpu_pins_see_to_stalls(backend, wharf_now_ns()), WHARF_NEVER);
    drop(memory);
    tend();
    expect_silence_to_end_it(hang_ns + 10 * S);
}

/* To let go of memory it has to end what it decodes, which can be done by now. */
Test(wharfd_pins, worker_that_decodes_has_more_time, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory *memory = add(false);
    struct wharf_gpu_piece longest = {.patience_ns = 900 * S}, later = {.patience_ns = 300 * S};
    uint64_t hang_ns = front.config.gpu_hang_timeout_ns = 100 * S;

    tend();
    answer_registered(memory->number);
    drop(memory);
    tend();
    wharf_list_append(&backend->under_way, &longest.link);
    wharf_list_append(&backend->under_way, &later.link);
    wharf_gpu_pins_see_to_stalls(backend, wharf_now_ns());
    wharf_list_remove(&longest.link);
    wharf_gpu_pins_see_to_stalls(backend, wharf_now_ns());
    wharf_list_remove(&later.link);
    expect_silence_to_end_it(hang_ns + 900 * S);
    /* The next one has not decoded that. */
    add(false);
    tend();
    expect_silence_to_end_it(hang_ns);
}

/* Large memory is given longer. */
Test(wharfd_pins, large_memory_has_more_time, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_memory *memory = add_to(0, false, 1 << 18);
    uint64_t now_ns = wharf_now_ns();

    tend_at(now_ns);
    begin(told(WHARF_WORKER_REGISTER), now_ns);
    wharf_gpu_pins_see_to_stalls(backend, now_ns + 9 * S);
    cr_assert_eq(backend->state, WHARF_GPU_UP);
    answer_registered(memory->number);
    cr_assert_eq(wharf_gpu_pins_see_to_stalls(backend, now_ns + 100 * S), WHARF_NEVER);
    cr_assert_eq(memory->on[0].state, WHARF_GPU_MEMORY_READY);
}

/* ---- room in the budget -------------------------------------------------------------------- */

static void set_up_budget(void)
{
    set_up();
    front.config.gpu_memory_nbytes = BUDGET * PAGE;
}

static struct wharf_gpu_memory *add_pinned(unsigned tenant, unsigned n_pages)
{
    struct wharf_gpu_memory *memory = add_to(tenant, false, n_pages);

    register_all(&memory, 1);
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

    wharf_gpu_room_want(&front, job_of(&named, memory), now_ns);
}

/* What the worker lets go of now, and does; NULL in the place of what it is not told. */
static void expect_forgotten(const struct wharf_gpu_memory *memory)
{
    uint32_t number = memory->number;

    cr_assert_eq(told(WHARF_WORKER_FORGET), number);
    cr_assert_eq(told(WHARF_WORKER_FORGET), 0);
    answer_forgotten(number);
}

/* The one whose turn it is has taken most; of that the memory used longest ago goes. */
Test(wharfd_pins, tenant_with_most_makes_room, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_gpu_memory *own[] = {add_pinned(0, 3), add_pinned(0, 3)},
                            *other = add_pinned(1, 2);
    struct wharf_gpu_memory *wanted = add_to(2, false, 2);
    uint64_t now_ns = wharf_now_ns() + 2 * S;
    struct named named;

    wharf_gpu_room_use(backend, job_of(&named, own[0]), now_ns);
    wharf_gpu_room_end_use(backend, &named.job);
    want(wanted, now_ns);
    cr_assert_eq(front.gpus_wanted & 1, 1);
    tend_at(now_ns);
    expect_forgotten(own[1]);
    cr_assert_eq(own[1]->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    cr_assert_eq(tenants[0].stats.n_evicted, 1);
    cr_assert_eq(tenants[0].gpu_pins.pinned_nbytes, 3 * PAGE);
    /* It wants to come back, and the room is another one's. */
    want(own[1], now_ns);
    tend_at(now_ns);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), wanted->number);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), 0);
    answer_registered(wanted->number);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(other->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(front.room.promised_nbytes + front.room.leaving_nbytes, 0);
    cr_assert_eq(own[1]->on[0].state, WHARF_GPU_MEMORY_REFUSED);
}

/* The worker does all that it is told. */
static void obey(void)
{
    struct wharf_worker_message message;

    while (recv(worker, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message))
        if (message.kind == WHARF_WORKER_FORGET)
            answer_forgotten(message.number);
        else
            answer_registered(message.number);
}

/* Where it takes more pieces than go at a time, others follow; where all would not be enough,
 * nothing goes. */
Test(wharfd_pins, many_small_pieces_make_room, .init = set_up_budget, .fini = tear_down)
{
    enum { N = 256, WANTED = N / 2 };
    struct wharf_gpu_memory *small[N], *wanted, *more;
    uint64_t now_ns;

    front.config.gpu_memory_nbytes = N * PAGE;
    for (unsigned i = 0; i < N; i++)
        small[i] = add_to(0, false, 1);
    register_all(small, N);
    wanted = add_to(1, false, WANTED);
    more = add_to(2, false, WANTED + 1);
    now_ns = wharf_now_ns() + 2 * S;
    want(more, now_ns);
    tend_at(now_ns);
    cr_assert_eq(tenants[0].stats.n_evicted, 0);
    for (unsigned i = 0; i < 20 && wanted->on[0].state != WHARF_GPU_MEMORY_READY; i++) {
        want(wanted, now_ns);
        tend_at(now_ns);
        obey();
        now_ns += S / 2;
    }
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(tenants[0].stats.n_evicted, WANTED);
    cr_assert_eq(tenants[0].gpu_pins.pinned_nbytes, (N - WANTED) * PAGE);
    cr_assert_eq(front.room.promised_nbytes + front.room.leaving_nbytes, 0);
}

/* A flood has a job in flight at any time: nothing more is handed over, and when the worker has
 * none it lets go. */
Test(wharfd_pins, memory_in_use_goes_when_its_pieces_are_done, .init = set_up_budget,
     .fini = tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = add_to(1, false, 4);
    uint64_t now_ns = wharf_now_ns() + 2 * S;
    struct named named;

    wharf_gpu_room_use(backend, job_of(&named, own), now_ns);
    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(told(WHARF_WORKER_FORGET), 0);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_LEAVING);
    cr_assert_eq(wharf_gpu_memory_of_job(&named.job, 0), WHARF_GPU_MEMORY_LEAVING);
    backend->pass.is_stale = false;
    wharf_gpu_room_end_use(backend, &named.job);
    cr_assert(backend->pass.is_stale);
    tend_at(now_ns);
    expect_forgotten(own);
    tend_at(now_ns);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), wanted->number);
    answer_registered(wanted->number);
}

/* Nobody who has no more than an even share loses anything, whoever wants what. */
Test(wharfd_pins, even_shares_stay, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_gpu_memory *a = add_pinned(0, 4), *b = add_pinned(1, 4);
    struct wharf_gpu_memory *more = add_to(0, false, 1), *large = add_to(2, false, 5);
    uint64_t now_ns = wharf_now_ns() + 5 * S;

    want(more, now_ns);
    want(large, now_ns);
    tend_at(now_ns);
    cr_assert_eq(told(WHARF_WORKER_FORGET), 0);
    cr_assert_eq(a->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(b->on[0].state, WHARF_GPU_MEMORY_READY);
    /* Who wants nothing but a GPU is told so. */
    cr_assert_eq(more->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    cr_assert_eq(large->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    cr_assert_eq(front.room.leaving_nbytes + tenants[0].stats.n_evicted, 0);
}

/* Where all that may go is not enough, nothing goes. */
Test(wharfd_pins, nothing_goes_in_vain, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_gpu_memory *a[] = {add_pinned(0, 1), add_pinned(0, 1), add_pinned(0, 2)};
    struct wharf_gpu_memory *b = add_pinned(1, 2), *c = add_pinned(2, 2);
    struct wharf_gpu_memory *wanted = add_to(1, false, 2);
    uint64_t now_ns = wharf_now_ns() + 2 * S;

    /* A third is two pages and a part: of the first tenant's four, two would go, and then it would
     * have less than who wants them. */
    tenants[1].gpu_pins.in_vain_ns = 0;
    drop(c);
    want(wanted, now_ns);
    front.config.gpu_memory_nbytes = 5 * PAGE;
    tend_at(now_ns);
    expect_forgotten(c);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(a[i]->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(b->on[0].state, WHARF_GPU_MEMORY_READY);
    /* In the order of before. */
    cr_assert_eq(tenants[0].gpu_pins.pins.next, &a[0]->pin_link);
    cr_assert_eq(tenants[0].gpu_pins.pins.prev, &a[2]->pin_link);
    cr_assert_eq(tenants[0].gpu_pins.leaving_nbytes + front.room.leaving_nbytes, 0);
}

/* What was pinned just now stays for a while; who waits for it is not refused. */
Test(wharfd_pins, memory_stays_pinned_for_a_while, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = add_to(1, false, 4);
    uint64_t now_ns = wharf_now_ns();

    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    cr_assert_leq(backend->pass.next_ns, now_ns + S);
    want(wanted, now_ns + S);
    tend_at(now_ns + 2 * S);
    expect_forgotten(own);
}

/* Of two that want more than an even share each has it for a while. */
Test(wharfd_pins, those_who_want_more_than_a_share_take_turns, .init = set_up_budget,
     .fini = tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = add_to(1, false, 6);
    uint64_t now_ns = wharf_now_ns() + 5 * S;

    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_ABSENT);
    now_ns += 6 * S;
    own->pin_used_ns = now_ns;
    want(wanted, now_ns);
    tend_at(now_ns);
    expect_forgotten(own);
}

/* What nobody has used for long goes, whoever has how much. */
Test(wharfd_pins, unused_memory_makes_room, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = add_to(0, false, 7);
    uint64_t now_ns = wharf_now_ns() + 9 * S;

    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(own->on[0].state, WHARF_GPU_MEMORY_READY);
    cr_assert_eq(wanted->on[0].state, WHARF_GPU_MEMORY_REFUSED);
    /* Without a job that wants it, it is not tried again. */
    tend_at(now_ns + 2 * S);
    cr_assert_eq(told(WHARF_WORKER_FORGET), 0);
    want(wanted, now_ns + 2 * S);
    tend_at(now_ns + 2 * S);
    expect_forgotten(own);
    tend_at(now_ns + 2 * S);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), wanted->number);
}

/* Arenas that are ready for sessions to come are in nobody's way, and do not come back before there
 * is room for them. */
Test(wharfd_pins, spares_make_room, .init = set_up_budget, .fini = tear_down)
{
    struct wharf_segment segment;
    struct wharf_gpu_memory *memory, *wanted;
    uint64_t now_ns = wharf_now_ns();

    cr_assert_not(wharf_gpu_spares_take(&front, 3 * PAGE, &segment, &memory));
    while (wharf_gpu_spares_refill(&front, 0))
        ;
    cr_assert_eq(front.spares.nbytes, 6 * PAGE);
    tend();
    answer_registered(told(WHARF_WORKER_REGISTER));
    answer_registered(told(WHARF_WORKER_REGISTER));
    cr_assert_eq(front.pinned_nbytes, 6 * PAGE);
    wanted = add_to(0, false, 4);
    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(front.spares.nbytes, 3 * PAGE);
    cr_assert_not(wharf_gpu_spares_refill(&front, 0));
    cr_assert_eq(front.spares.nbytes, 3 * PAGE);
    tend_at(now_ns);
    answer_forgotten(told(WHARF_WORKER_FORGET));
    tend_at(now_ns);
    cr_assert_eq(told(WHARF_WORKER_REGISTER), wanted->number);
    answer_registered(wanted->number);
    cr_assert_eq(front.pinned_nbytes, 7 * PAGE);
    wharf_gpu_pins_lost(backend);
    wharf_gpu_spares_deinit(&front);
}

/* Whose memory is given up while it waits, or while it makes room, is neither any more. */
Test(wharfd_pins, memory_that_is_given_up_meanwhile_is_not_counted, .init = set_up_budget,
     .fini = tear_down)
{
    struct wharf_gpu_memory *own = add_pinned(0, 6), *wanted = add_to(1, false, 4);
    uint64_t now_ns = wharf_now_ns() + 2 * S;
    struct named named;

    wharf_gpu_room_use(backend, job_of(&named, own), now_ns);
    want(wanted, now_ns);
    tend_at(now_ns);
    cr_assert_eq(front.room.leaving_nbytes, 6 * PAGE);
    cr_assert_eq(front.room.promised_nbytes, 4 * PAGE);
    drop(wanted);
    wharf_gpu_room_end_use(backend, &named.job);
    drop(own);
    cr_assert_eq(front.room.leaving_nbytes + front.room.promised_nbytes, 0);
    cr_assert_eq(front.dead_nbytes, 6 * PAGE);
    tend_at(now_ns);
    answer_forgotten(told(WHARF_WORKER_FORGET));
    cr_assert_eq(front.dead_nbytes + front.pinned_nbytes + front.room.n_tenants, 0);
    cr_assert(wharf_list_is_empty(&front.memories));
}
