/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c: the event loop.
 *
 * Sources with a party take turns by start-time fair queueing (fair_queue.h), and the processor
 * time of each turn is charged to the party.  All other events are handled before.  io_uring and
 * epoll are two backends behind one interface (loop_backend.h).  A slot's `use` tells a late event
 * of a removed source from one of its successor.
 */
#include "daemon/base/loop.h"

#include <string.h>
#include <sys/eventfd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/base/loop_backend.h"
#include "daemon/base/loop_source.h"

/* ---- slots --------------------------------------------------------------------------------- */

static int slots_grow(struct wharf_loop *loop)
{
    uint32_t n = loop->n_slots ? 2 * loop->n_slots : 64;
    struct wharf_loop_slot *grown = reallocarray(loop->slots, n, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    memset(grown + loop->n_slots, 0, (n - loop->n_slots) * sizeof(*grown));
    loop->slots = grown;
    loop->n_slots = n;
    return 0;
}

static int slot_take(struct wharf_loop *loop, struct wharf_source *source)
{
    uint32_t at = loop->free_hint;

    while (at < loop->n_slots && loop->slots[at].source)
        at++;
    if (at >= loop->n_slots) {
        int r = slots_grow(loop);
        if (r < 0)
            return r;
    }
    loop->slots[at].source = source;
    loop->free_hint = at + 1;
    source->slot = at;
    return 0;
}

static void slot_give_back(struct wharf_loop *loop, struct wharf_source *source)
{
    uint32_t at = source->slot;

    loop->slots[at].source = NULL;
    loop->slots[at].use++;
    if (at < loop->free_hint)
        loop->free_hint = at;
    source->slot = 0;
}

/* ---- sources ------------------------------------------------------------------------------- */

int wharf_loop_add(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                   wharf_source_fn *call)
{
    return wharf_loop_add_of(loop, source, fd, wanted, call, NULL);
}

int wharf_loop_add_of(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                      wharf_source_fn *call, struct wharf_fair_party *party)
{
    *source = (struct wharf_source){.fd = fd, .call = call, .party = party};
    wharf_list_init(&source->turn_link);
    int r = slot_take(loop, source);
    if (r < 0)
        return r;
    r = wharf_loop_want(loop, source, wanted);
    if (r < 0)
        slot_give_back(loop, source);
    return r;
}

int wharf_loop_want(struct wharf_loop *loop, struct wharf_source *source, uint32_t wanted)
{
    uint32_t before = source->wanted;

    if (wanted == before)
        return 0;
    source->wanted = wanted;
    /* A changed request reports readiness again, so a waiting turn is dropped. */
    if (source->party)
        wharf_fair_queue_remove(&loop->turns, source->party, &source->turn_link);
    int r = loop->backend->want(loop, source, before);
    if (r < 0)
        source->wanted = before;
    return r;
}

void wharf_loop_remove(struct wharf_loop *loop, struct wharf_source *source)
{
    if (source->slot == 0)
        return;
    wharf_loop_want(loop, source, 0);
    slot_give_back(loop, source);
}

/* ---- turns --------------------------------------------------------------------------------- */

/* How long turns are taken before the loop asks again which sources are ready. */
#define TURNS_NS (50 * (uint64_t)WHARF_NS_PER_US)

uint64_t wharf_loop_processor_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * WHARF_NS_PER_S + (uint64_t)used.tv_nsec;
}

void wharf_loop_charge(struct wharf_loop *loop, struct wharf_fair_party *party, uint64_t used_ns)
{
    wharf_fair_queue_charge(&loop->turns, party, used_ns);
}

static void call_in_turn(struct wharf_loop *loop, struct wharf_source *source)
{
    uint64_t token = wharf_loop_token(loop, source);
    uint32_t ready = source->ready;

    source->call(source, ready);
    /* The call may have removed the source, or changed what it wants. */
    source = wharf_loop_source(loop, token);
    if (source && source->wanted && !source->is_armed)
        loop->backend->again(loop, source);
}

static void take_turns(struct wharf_loop *loop)
{
    uint64_t begun_ns, since_ns, now_ns;
    struct wharf_list *link;

    if (wharf_fair_queue_is_empty(&loop->turns)) {
        wharf_fair_queue_next(&loop->turns);
        return;
    }
    begun_ns = since_ns = wharf_loop_processor_ns();
    while ((link = wharf_fair_queue_next(&loop->turns))) {
        call_in_turn(loop, WHARF_LIST_ENTRY(link, struct wharf_source, turn_link));
        now_ns = wharf_loop_processor_ns();
        wharf_fair_queue_done(&loop->turns, now_ns - since_ns);
        since_ns = now_ns;
        if (now_ns - begun_ns >= TURNS_NS)
            return;
    }
}

/* ---- timers -------------------------------------------------------------------------------- */

void wharf_timer_set(struct wharf_loop *loop, struct wharf_timer *timer, uint64_t at_ns,
                     wharf_timer_fn *call)
{
    wharf_heap_remove(&loop->timers, &timer->node);
    timer->call = call;
    if (at_ns != WHARF_NEVER)
        wharf_heap_insert(&loop->timers, &timer->node, at_ns);
}

void wharf_timer_clear(struct wharf_loop *loop, struct wharf_timer *timer)
{
    wharf_heap_remove(&loop->timers, &timer->node);
}

static uint64_t time_to_next_timer(const struct wharf_loop *loop)
{
    uint64_t now;

    if (!loop->timers.root)
        return WHARF_NEVER;
    now = wharf_now_ns();
    return loop->timers.root->key > now ? loop->timers.root->key - now : 0;
}

/* A timer whose call sets it to a past time waits for the next turn of the loop: hence the
 * limit. */
static void run_timers(struct wharf_loop *loop)
{
    uint64_t now = wharf_now_ns();

    for (unsigned n = 0; n < 256; n++) {
        struct wharf_heap_node *first = loop->timers.root;
        if (!first || first->key > now)
            return;
        struct wharf_timer *timer = WHARF_LIST_ENTRY(first, struct wharf_timer, node);
        wharf_heap_remove(&loop->timers, first);
        timer->call(timer);
    }
}

/* ---- wakes --------------------------------------------------------------------------------- */

void wharf_loop_wake(struct wharf_loop *loop)
{
    /* Only the thread that finds 0 writes.  take_wake stores 0 before the loop looks for its work,
     * so no wake is lost. */
    if (__atomic_exchange_n(&loop->wake_pending, 1, __ATOMIC_ACQ_REL) == 0)
        eventfd_write(loop->wake_source.fd, 1);
}

void wharf_loop_on_wake(struct wharf_loop *loop, void (*woken)(void *context), void *context)
{
    loop->woken = woken;
    loop->woken_context = context;
}

static void take_wake(struct wharf_source *source, uint32_t ready)
{
    struct wharf_loop *loop = WHARF_LIST_ENTRY(source, struct wharf_loop, wake_source);
    eventfd_t count;

    (void)ready;
    eventfd_read(source->fd, &count);
    __atomic_exchange_n(&loop->wake_pending, 0, __ATOMIC_ACQ_REL);
    if (loop->woken)
        loop->woken(loop->woken_context);
}

/* ---- the loop ------------------------------------------------------------------------------ */

int wharf_loop_turn(struct wharf_loop *loop)
{
    bool has_turns = !wharf_fair_queue_is_empty(&loop->turns);
    int r = loop->backend->wait(loop, has_turns ? 0 : time_to_next_timer(loop));

    if (r < 0)
        return r;
    run_timers(loop);
    take_turns(loop);
    return 0;
}

enum wharf_loop_kind wharf_loop_kind(const struct wharf_loop *loop)
{
    return loop->kind;
}

static int init(struct wharf_loop *loop, enum wharf_loop_kind kind)
{
    const struct wharf_loop_backend *backend =
        kind == WHARF_LOOP_URING ? &wharf_loop_uring : &wharf_loop_epoll;

    loop->kind = kind;
    loop->free_hint = 1;
    loop->wake_source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_source.fd < 0)
        return -errno;
    int r = backend->init(loop);
    if (r < 0)
        return r;
    loop->backend = backend;
    return wharf_loop_add(loop, &loop->wake_source, loop->wake_source.fd, POLLIN, take_wake);
}

int wharf_loop_new(enum wharf_loop_kind kind, struct wharf_loop **ret_loop)
{
    struct wharf_loop *loop = calloc(1, sizeof(*loop));
    int r;

    if (!loop)
        return -ENOMEM;
    loop->wake_source.fd = -1;
    r = init(loop, kind);
    if (r < 0) {
        wharf_loop_free(loop);
        return r;
    }
    *ret_loop = loop;
    return 0;
}

void wharf_loop_free(struct wharf_loop *loop)
{
    if (!loop)
        return;
    if (loop->backend) {
        wharf_loop_remove(loop, &loop->wake_source);
        loop->backend->deinit(loop);
    }
    wharf_close_fd(loop->wake_source.fd);
    free(loop->slots);
    free(loop);
}
