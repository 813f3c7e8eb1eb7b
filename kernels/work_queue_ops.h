/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue_ops.h: the steps of the core and of the worker on a work queue; C and C++.
 *
 * The layout and the rules are in work_queue.h; models/epoch.pml has the steps of waking and
 * leaving, under the same names, for the model checker.  One thread at a time uses a struct here.
 * Nothing blocks.
 */
#ifndef WHARF_KERNELS_WORK_QUEUE_OPS_H
#define WHARF_KERNELS_WORK_QUEUE_OPS_H

#include <string.h>

#include "kernels/work_queue.h"

/* Shared entries are only ever seen as words of this type. */
typedef uint64_t __attribute__((may_alias)) wharf_work_word;

/* ---- the core: items and cancels ---------------------------------------------------------- */

struct wharf_work_submitter {
    struct wharf_work_queue queue;
    uint32_t tail; /* items written; published up to `published` */
    uint32_t published;
    uint32_t cancel_tail; /* likewise */
    uint32_t cancel_published;
    uint32_t passed_end; /* end of the last skipped index */
};

static inline void wharf_work_submitter_init(struct wharf_work_submitter *submitter, void *memory,
                                             uint32_t n_entries)
{
    memset(submitter, 0, sizeof(*submitter));
    submitter->queue = wharf_work_queue_at(memory, n_entries);
    submitter->passed_end = 0 - n_entries;
}

/* Stores a quad, which has its tag or serial in its last word. */
static inline void wharf_work_store_quad(wharf_work_word *to, uint64_t first, uint64_t tagged)
{
    __atomic_store_n(to, first, __ATOMIC_RELAXED);
    /* Orders the quad's first half before its tag. */
    __atomic_store_n(to + 1, tagged, __ATOMIC_RELEASE);
}

/*
 * wharf_work_submit: writes an item and returns its index.  The place must be free: the item
 * n_entries before it has been completed (the caller knows that, since its table of items has a
 * place for each entry), and there is room (wharf_work_room).  Sets the tags.  The kernel sees the
 * item after wharf_work_publish.
 */
static inline uint32_t wharf_work_submit(struct wharf_work_submitter *submitter,
                                         const struct wharf_work_item *item)
{
    uint32_t index = submitter->tail++;
    wharf_work_word *to =
        (wharf_work_word *)(submitter->queue.items + (index & (submitter->queue.n_entries - 1)));
    uint64_t tag = (uint64_t)(index + 1) << 32;
    uint64_t kind = item->flags | (uint32_t)item->opcode << 16 | (uint32_t)item->output << 24;

    /* Member by member, so that the processor can forward the caller's stores; a word that was
     * stored in two parts would stall. */
    wharf_work_store_quad(to, item->src, item->src_nbytes | tag);
    wharf_work_store_quad(to + 2, item->dst, item->dst_nbytes | tag);
    wharf_work_store_quad(to + 4, item->staging, item->attempt | tag);
    wharf_work_store_quad(
        to + 6, item->checksum | (uint64_t)item->codec << 32 | (uint64_t)item->parameter << 48,
        kind | tag);
    return index;
}

static inline uint32_t wharf_work_taken(const struct wharf_work_submitter *submitter)
{
    /* The kernel stores it after its loads of these items; the acquire orders those before stores
     * to their places. */
    return __atomic_load_n(&submitter->queue.kernel->head, __ATOMIC_ACQUIRE);
}

/*
 * wharf_work_room: how many indices can be used now, if their places are free.  A completion shows
 * that the kernel has taken an item; for a skipped index only the kernel's head does.
 */
static inline uint32_t wharf_work_room(const struct wharf_work_submitter *submitter)
{
    uint32_t n_entries = submitter->queue.n_entries;

    if (submitter->tail - submitter->passed_end >= n_entries)
        return n_entries;
    uint32_t n_not_taken = submitter->tail - wharf_work_taken(submitter);
    /* An impossible head beyond the tail also means no room. */
    return n_not_taken < n_entries ? n_entries - n_not_taken : 0;
}

/* wharf_work_can_pass: whether an index can be skipped although its place has a running item, of
 * index `item`. */
static inline int wharf_work_can_pass(const struct wharf_work_submitter *submitter, uint32_t index,
                                      uint32_t item)
{
    return index - item < WHARF_WORK_MOST_PASSED &&
           (int32_t)(wharf_work_taken(submitter) - item) > 0;
}

/* wharf_work_pass: skips the next index.  There is room, and its place is free, or
 * wharf_work_can_pass. */
static inline void wharf_work_pass(struct wharf_work_submitter *submitter)
{
    uint32_t index = submitter->tail++;
    wharf_work_word *to =
        (wharf_work_word *)(submitter->queue.items + (index & (submitter->queue.n_entries - 1)));

    for (unsigned i = 1; i < WHARF_WORK_ENTRY_NBYTES / 8; i += 2) {
        uint32_t low = (uint32_t)__atomic_load_n(to + i, __ATOMIC_RELAXED);
        if (i == WHARF_WORK_ENTRY_NBYTES / 8 - 1)
            low = (low & 0xff00ffffu) | (uint32_t)WHARF_WORK_PASS << 16;
        __atomic_store_n(to + i, low | (uint64_t)(index + 1) << 32, __ATOMIC_RELEASE);
    }
    submitter->passed_end = submitter->tail;
}

/*
 * wharf_work_withdraw: cancels an item.  It still completes, soon: with CANCELLED, or with its
 * result if that was faster.  Returns 1; or 0 if there is no room now: publish, and try again
 * later.  The kernel sees it after wharf_work_publish.
 */
static inline int wharf_work_withdraw(struct wharf_work_submitter *submitter, uint32_t item,
                                      uint32_t attempt)
{
    uint32_t head = __atomic_load_n(&submitter->queue.kernel->cancel_head, __ATOMIC_ACQUIRE);

    /* A head beyond the tail, which no kernel writes, means no room too. */
    if (submitter->cancel_tail - head >= WHARF_WORK_N_CANCELS)
        return 0;
    struct wharf_work_cancel cancel = {item, attempt};
    wharf_work_word *to = (wharf_work_word *)&submitter->queue.core
                              ->cancels[submitter->cancel_tail & (WHARF_WORK_N_CANCELS - 1)];
    uint64_t word;
    memcpy(&word, &cancel, sizeof(word));
    __atomic_store_n(to, word, __ATOMIC_RELAXED);
    submitter->cancel_tail++;
    return 1;
}

/*
 * wharf_work_publish: publishes items and cancels.  Returns 1 if the worker must be woken, which
 * then starts a kernel (superfluous wake-ups are harmless), else 0.
 */
static inline int wharf_work_publish(struct wharf_work_submitter *submitter)
{
    struct wharf_work_core *core = submitter->queue.core;

    if (submitter->tail == submitter->published &&
        submitter->cancel_tail == submitter->cancel_published)
        return 0;
    /* Orders the stores of items and cancels before those of the tails. */
    __atomic_store_n(&core->tail, submitter->tail, __ATOMIC_RELEASE);
    __atomic_store_n(&core->cancel_tail, submitter->cancel_tail, __ATOMIC_RELEASE);
    submitter->published = submitter->tail;
    submitter->cancel_published = submitter->cancel_tail;
    /* Orders the stores of the tails before the load of the state.  Without it the tails may
     * still be in this processor's store buffer when the state is loaded, as RUNNING, while the
     * kernel, which then stores LEAVING, loads the old tails. */
    __sync_synchronize();
    uint32_t state = __atomic_load_n(&submitter->queue.kernel->state, __ATOMIC_RELAXED);
    return WHARF_WORK_STATE_OF(state) != WHARF_WORK_RUNNING;
}

/* ---- the core: completions ------------------------------------------------------------------ */

struct wharf_work_reaper {
    struct wharf_work_completion *ring;
    uint32_t n_entries;
    uint32_t head; /* completions taken */
};

static inline void wharf_work_reaper_init(struct wharf_work_reaper *reaper,
                                          struct wharf_work_completion *ring, uint32_t n_entries)
{
    reaper->ring = ring;
    reaper->n_entries = n_entries;
    reaper->head = 0;
}

/* wharf_work_ready: whether wharf_work_reap would find one. */
static inline int wharf_work_ready(const struct wharf_work_reaper *reaper)
{
    const struct wharf_work_completion *from =
        reaper->ring + (reaper->head & (reaper->n_entries - 1));

    uint32_t serial = reaper->head + 1;
    return __atomic_load_n(&from->serial_0, __ATOMIC_ACQUIRE) == serial &&
           __atomic_load_n(&from->serial_1, __ATOMIC_ACQUIRE) == serial &&
           __atomic_load_n(&from->serial_2, __ATOMIC_ACQUIRE) == serial &&
           __atomic_load_n(&from->serial_3, __ATOMIC_ACQUIRE) == serial;
}

/* wharf_work_reap: takes the next completion.  Returns 1 with *ret_completion filled, or 0. */
static inline int wharf_work_reap(struct wharf_work_reaper *reaper,
                                  struct wharf_work_completion *ret_completion)
{
    const struct wharf_work_completion *from =
        reaper->ring + (reaper->head & (reaper->n_entries - 1));

    /* Orders the loads of the serials before those of the other members and of the output. */
    if (!wharf_work_ready(reaper))
        return 0;
    uint64_t words[WHARF_WORK_ENTRY_NBYTES / 8];
    for (unsigned i = 0; i < WHARF_WORK_ENTRY_NBYTES / 8; i++)
        words[i] = __atomic_load_n((const wharf_work_word *)from + i, __ATOMIC_RELAXED);
    memcpy(ret_completion, words, sizeof(words));
    reaper->head++;
    return 1;
}

/*
 * wharf_work_completion_good: whether a completion is possible for a running item of this index, by
 * the caller's own copy of the item.
 */
static inline int wharf_work_completion_good(const struct wharf_work_completion *completion,
                                             const struct wharf_work_item *item, uint32_t index)
{
    return completion->item == index && completion->attempt == item->attempt &&
           completion->in_nbytes <= item->src_nbytes && completion->out_nbytes <= item->dst_nbytes;
}

/* ---- the worker: starting and stopping ------------------------------------------------------ */

/*
 * wharf_work_begin_epoch: call before starting a kernel, after the last one has ended.  Sets the
 * state RUNNING and returns the kernel's number, not 0; 0 if a kernel runs.
 */
static inline uint32_t wharf_work_begin_epoch(const struct wharf_work_queue *queue)
{
    uint32_t state = __atomic_load_n(&queue->kernel->state, __ATOMIC_ACQUIRE);
    uint32_t epoch = WHARF_WORK_EPOCH_OF(state) + 1;

    if (WHARF_WORK_STATE_OF(state) == WHARF_WORK_RUNNING ||
        WHARF_WORK_STATE_OF(state) == WHARF_WORK_LEAVING)
        return 0;
    epoch += WHARF_WORK_STATE(epoch, 0) == 0; /* the number has 30 bits in the word */
    __atomic_store_n(&queue->kernel->state, WHARF_WORK_STATE(epoch, WHARF_WORK_RUNNING),
                     __ATOMIC_RELEASE);
    return WHARF_WORK_EPOCH_OF(WHARF_WORK_STATE(epoch, 0));
}

/* wharf_work_pending: items and cancels that no kernel has taken. */
static inline uint32_t wharf_work_pending(const struct wharf_work_queue *queue)
{
    return __atomic_load_n(&queue->core->tail, __ATOMIC_ACQUIRE) -
           __atomic_load_n(&queue->kernel->head, __ATOMIC_RELAXED) +
           __atomic_load_n(&queue->core->cancel_tail, __ATOMIC_ACQUIRE) -
           __atomic_load_n(&queue->kernel->cancel_head, __ATOMIC_RELAXED);
}

/*
 * wharf_work_must_start: whether a kernel left work for which the core will not wake the worker
 * again.  Call it after wait().
 */
static inline int wharf_work_must_start(const struct wharf_work_queue *queue)
{
    /* Orders the load of the state before those of the tails: the core, which loaded RUNNING
     * after its stores of the tails, did so before the kernel stored OUT_MORE. */
    uint32_t state = __atomic_load_n(&queue->kernel->state, __ATOMIC_ACQUIRE);

    return WHARF_WORK_STATE_OF(state) == WHARF_WORK_OUT_MORE && wharf_work_pending(queue) != 0;
}

/* wharf_work_park: parks the running kernel and all later ones, until unparked. */
static inline void wharf_work_park(const struct wharf_work_queue *queue, int park)
{
    __atomic_store_n(&queue->worker->park, (uint32_t)park, __ATOMIC_RELEASE);
}

/* wharf_work_quit: ends the kernel for good; the queue must not be used again. */
static inline void wharf_work_quit(const struct wharf_work_queue *queue)
{
    __atomic_store_n(&queue->worker->quit, 1, __ATOMIC_RELEASE);
}

/* ---- completions by whoever stands in for a kernel ------------------------------------------ */

struct wharf_work_poster {
    struct wharf_work_queue queue;
    uint32_t tail; /* completions posted */
};

static inline void wharf_work_poster_init(struct wharf_work_poster *poster, void *memory,
                                          uint32_t n_entries)
{
    poster->queue = wharf_work_queue_at(memory, n_entries);
    poster->tail = 0;
}

/*
 * wharf_work_post: completes an item for the core, whose output has arrived; sets the serials.
 */
static inline void wharf_work_post(struct wharf_work_poster *poster,
                                   const struct wharf_work_completion *completion)
{
    uint32_t index = poster->tail++;
    wharf_work_word *to =
        (wharf_work_word *)(poster->queue.done + (index & (poster->queue.n_entries - 1)));
    uint64_t words[WHARF_WORK_ENTRY_NBYTES / 8];

    memcpy(words, completion, sizeof(words));
    for (unsigned i = 0; i < WHARF_WORK_ENTRY_NBYTES / 8; i += 2) {
        uint64_t last = (uint32_t)words[i + 1] | (uint64_t)(index + 1) << 32;
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
        /* Orders the output and the quad's first half before the serial. */
        __atomic_store_n(&to[i + 1], last, __ATOMIC_RELEASE);
    }
}

/* wharf_work_item_at: a copy of a running item, as the core wrote it, for the worker. */
static inline struct wharf_work_item wharf_work_item_at(const struct wharf_work_queue *queue,
                                                        uint32_t index)
{
    const wharf_work_word *from =
        (const wharf_work_word *)(queue->items + (index & (queue->n_entries - 1)));
    uint64_t words[WHARF_WORK_ENTRY_NBYTES / 8];
    struct wharf_work_item item;

    for (unsigned i = 0; i < WHARF_WORK_ENTRY_NBYTES / 8; i++)
        words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
    memcpy(&item, words, sizeof(item));
    return item;
}

#endif
