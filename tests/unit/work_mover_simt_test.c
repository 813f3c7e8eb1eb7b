/* SPDX-License-Identifier: Apache-2.0 */
/* work_mover_simt_test: which copies the mover asks an engine for, and when it completes items. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "kernels/work_mover.h"

enum { N_ENTRIES = 64, N_ITEMS = 20, NBYTES = 4096 };

/* An engine that copies nothing: it notes what it is asked for. */
struct wharf_epoch {
    struct wharf_epoch_move moves[2 * N_ENTRIES];
    uint32_t n_moves;
    uint64_t n_calls, n_calls_done;
    int rc;
};

static int note_moves(struct wharf_epoch *epoch, const struct wharf_epoch_move *moves,
                      uint32_t n_moves)
{
    for (uint32_t i = 0; i < n_moves; i++)
        epoch->moves[epoch->n_moves++] = moves[i];
    epoch->n_calls++;
    return epoch->rc;
}

static int tell_moved(struct wharf_epoch *epoch, uint64_t *ret_n_calls)
{
    *ret_n_calls = epoch->n_calls_done;
    return 0;
}

static const struct wharf_epoch_ops noting_engine = {.move = note_moves, .moved = tell_moved};

static _Alignas(128) uint8_t
    queue_memory[WHARF_WORK_ITEMS_OFFSET + 4 * N_ENTRIES * WHARF_WORK_ENTRY_NBYTES];
static struct wharf_epoch engine;

/* Items whose outputs lie side by side, in staging memory and where they go, all decoded. */
static struct wharf_work_mover *mover_with_items(uint32_t out_nbytes)
{
    struct wharf_work_queue queue = wharf_work_queue_at(queue_memory, N_ENTRIES);
    struct wharf_work_mover *mover;
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        queue.items[i] = (struct wharf_work_item){
            .dst = 0x10000 + i * NBYTES, .staging = 0x900000 + i * NBYTES, .dst_nbytes = NBYTES};
        queue.to_move[i] = (struct wharf_work_completion){
            .item = i,
            .attempt = 7,
            .out_nbytes = out_nbytes,
            .serial_0 = i + 1,
            .serial_1 = i + 1,
            .serial_2 = i + 1,
            .serial_3 = i + 1,
        };
    }
    cr_assert_eq(wharf_work_mover_new(&noting_engine, &engine, queue_memory, N_ENTRIES, &mover), 0);
    return mover;
}

/* Neighbours may lie in two regions, and one copy into both is an error of the driver. */
Test(work_mover, copies_each_output_by_itself)
{
    struct wharf_work_mover *mover = mover_with_items(NBYTES);
    uint32_t n_posted = 0;
    cr_expect_eq(wharf_work_mover_step(mover, &n_posted), 1);
    cr_expect_eq(n_posted, 0);
    cr_assert_eq(engine.n_moves, N_ITEMS);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        cr_expect_eq((uintptr_t)engine.moves[i].to, 0x10000 + i * NBYTES);
        cr_expect_eq(engine.moves[i].from, 0x900000 + i * NBYTES);
        cr_expect_eq(engine.moves[i].nbytes, NBYTES);
    }
    wharf_work_mover_free(mover);
}

Test(work_mover, completes_items_when_their_copies_have_ended)
{
    struct wharf_work_queue queue = wharf_work_queue_at(queue_memory, N_ENTRIES);
    struct wharf_work_mover *mover = mover_with_items(NBYTES);
    uint32_t n_posted = 0;
    wharf_work_mover_step(mover, &n_posted);
    cr_expect_eq(wharf_work_mover_step(mover, &n_posted), 1);
    cr_expect_eq(n_posted, 0);
    cr_expect_eq(queue.moved[0].serial_3, 0);
    engine.n_calls_done = engine.n_calls;
    cr_expect_eq(wharf_work_mover_step(mover, &n_posted), 1);
    cr_expect_eq(n_posted, N_ITEMS);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        cr_expect_eq(queue.moved[i].serial_3, i + 1);
        cr_expect_eq(queue.moved[i].item, i);
        cr_expect_eq(queue.moved[i].attempt, 7);
    }
    cr_expect_eq(wharf_work_mover_step(mover, &n_posted), 0);
    wharf_work_mover_free(mover);
}

/* An output without bytes has no address that could be copied to. */
Test(work_mover, copies_nothing_for_empty_outputs)
{
    struct wharf_work_mover *mover = mover_with_items(0);
    uint32_t n_posted = 0;
    cr_expect_eq(wharf_work_mover_step(mover, &n_posted), 1);
    cr_expect_eq(engine.n_moves, 0);
    engine.n_calls_done = engine.n_calls;
    wharf_work_mover_step(mover, &n_posted);
    cr_expect_eq(n_posted, N_ITEMS);
    wharf_work_mover_free(mover);
}

Test(work_mover, passes_on_an_engines_error)
{
    struct wharf_work_mover *mover = mover_with_items(NBYTES);
    engine.rc = -EIO;
    cr_expect_eq(wharf_work_mover_step(mover, NULL), -EIO);
    wharf_work_mover_free(mover);
}
