/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_mover.c: copies of outputs by the copy engine, and their completions, in the order of the
 * calls.
 */
#include "kernels/work_mover.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Completions of items whose copies are under way stand in `taken`, from n_posted to n_taken;
 * ends[] says how far each call of the engine's move reaches.
 */
struct wharf_work_mover {
    const struct wharf_epoch_ops *ops;
    struct wharf_epoch *epoch;
    struct wharf_work_queue queue;
    struct wharf_work_reaper to_move;
    struct wharf_work_poster moved;
    uint64_t n_calls, n_calls_done;
    uint32_t n_taken, n_posted;
    uint32_t ends[WHARF_EPOCH_MAX_MOVE_CALLS];
    struct wharf_work_completion taken[]; /* n_entries: no more items are under way */
};

int wharf_work_mover_new(const struct wharf_epoch_ops *ops, struct wharf_epoch *epoch, void *queue,
                         uint32_t n_entries, struct wharf_work_mover **ret_mover)
{
    struct wharf_work_mover *mover =
        calloc(1, sizeof(*mover) + n_entries * sizeof(mover->taken[0]));

    if (!mover)
        return -ENOMEM;
    mover->ops = ops;
    mover->epoch = epoch;
    mover->queue = wharf_work_queue_at(queue, n_entries);
    wharf_work_reaper_init(&mover->to_move, mover->queue.to_move, n_entries);
    wharf_work_poster_init(&mover->moved, queue, n_entries);
    *ret_mover = mover;
    return 0;
}

void wharf_work_mover_free(struct wharf_work_mover *mover)
{
    free(mover);
}

static struct wharf_work_completion *place(struct wharf_work_mover *mover, uint32_t index)
{
    return &mover->taken[index & (mover->queue.n_entries - 1)];
}

/*
 * Adds an output to the copies of a call, in which there is room for one.  Outputs that lie side by
 * side may lie in two regions, which one copy cannot reach; so each is a copy of its own.
 */
static void add_move(struct wharf_epoch_move *moves, uint32_t *n_moves,
                     const struct wharf_work_item *item, size_t nbytes)
{
    if (nbytes > 0)
        moves[(*n_moves)++] =
            (struct wharf_epoch_move){(void *)(uintptr_t)item->dst, item->staging, nbytes};
}

/* One call of the engine for what has come.  How many items it is for, or -errno. */
static int begin_copies(struct wharf_work_mover *mover)
{
    struct wharf_epoch_move moves[WHARF_EPOCH_MAX_MOVES];
    uint32_t n_moves = 0;
    uint32_t first = mover->n_taken;

    if (mover->n_calls - mover->n_calls_done == WHARF_EPOCH_MAX_MOVE_CALLS)
        return 0;
    while (wharf_work_ready(&mover->to_move) && n_moves < WHARF_EPOCH_MAX_MOVES) {
        struct wharf_work_completion *done = place(mover, mover->n_taken);
        wharf_work_reap(&mover->to_move, done);
        struct wharf_work_item item = wharf_work_item_at(&mover->queue, done->item);
        mover->n_taken++;
        add_move(moves, &n_moves, &item, done->out_nbytes);
    }
    if (mover->n_taken == first)
        return 0;
    int r = mover->ops->move(mover->epoch, moves, n_moves);
    if (r < 0)
        return r;
    mover->ends[mover->n_calls++ % WHARF_EPOCH_MAX_MOVE_CALLS] = mover->n_taken;
    return (int)(mover->n_taken - first);
}

/* Completes what was copied.  How many items, or -errno. */
static int end_copies(struct wharf_work_mover *mover)
{
    uint64_t n_calls;
    int n = 0;

    if (mover->n_calls == mover->n_calls_done)
        return 0;
    int r = mover->ops->moved(mover->epoch, &n_calls);
    if (r < 0)
        return r;
    for (; mover->n_calls_done < n_calls; mover->n_calls_done++)
        for (uint32_t end = mover->ends[mover->n_calls_done % WHARF_EPOCH_MAX_MOVE_CALLS];
             mover->n_posted != end; mover->n_posted++, n++)
            wharf_work_post(&mover->moved, place(mover, mover->n_posted));
    return n;
}

int wharf_work_mover_step(struct wharf_work_mover *mover, uint32_t *ret_n_posted)
{
    int n_begun = begin_copies(mover);
    int n_ended = n_begun < 0 ? n_begun : end_copies(mover);

    if (n_ended < 0)
        return n_ended;
    if (ret_n_posted)
        *ret_n_posted = (uint32_t)n_ended;
    return n_begun || n_ended || mover->n_calls != mover->n_calls_done;
}
