/* SPDX-License-Identifier: Apache-2.0 */
/* work_queue_test: what tells that an item or a completion is there whole. */
#include <criterion/criterion.h>
#include <string.h>

#include "kernels/work_queue_ops.h"

enum { N_ENTRIES = 64 };

static _Alignas(128) uint8_t memory[4096 + 4 * N_ENTRIES * 64];

/* Each member has a value of its own. */
static const struct wharf_work_item item = {
    .src = UINT64_MAX,
    .src_nbytes = 1,
    .dst = UINT64_MAX - 1,
    .dst_nbytes = 2,
    .staging = UINT64_MAX - 2,
    .attempt = 3,
    .checksum = 4,
    .codec = 5,
    .parameter = 6,
    .flags = 7,
    .opcode = 8,
    .output = 9,
};

/* Whether what stands at an index has its tags, and is that item but for its opcode. */
static bool stands_at(const struct wharf_work_queue *queue, uint32_t index, unsigned opcode)
{
    struct wharf_work_item seen = wharf_work_item_at(queue, index), like = item;

    like.tag_0 = like.tag_1 = like.tag_2 = like.tag_3 = index + 1;
    like.opcode = (uint8_t)opcode;
    return memcmp(&seen, &like, sizeof(seen)) == 0;
}

/* A kernel that finds a tag of an older item takes the quad for one that is still to come. */
Test(work_queue, tags_each_quad_of_an_item_with_its_index)
{
    struct wharf_work_submitter submitter;

    cr_assert_leq(wharf_work_queue_nbytes(N_ENTRIES), sizeof(memory));
    wharf_work_submitter_init(&submitter, memory, N_ENTRIES);
    for (uint32_t i = 0; i < 2 * N_ENTRIES; i++) {
        cr_assert_eq(wharf_work_submit(&submitter, &item), i);
        cr_expect(stands_at(&submitter.queue, i, item.opcode));
    }
}

/* A kernel stores a completion's quads in no order. */
Test(work_queue, takes_a_completion_when_all_its_quads_are_there)
{
    struct wharf_work_queue queue = wharf_work_queue_at(memory, N_ENTRIES);
    struct wharf_work_completion completion = {
        .item = 7, .attempt = 8, .epoch = 9, .decode_ns = 10, .part = 11};
    struct wharf_work_completion seen;
    struct wharf_work_reaper reaper;
    wharf_work_reaper_init(&reaper, queue.done, N_ENTRIES);
    for (uint32_t i = 0; i < 2 * N_ENTRIES; i++) {
        struct wharf_work_completion *at = &queue.done[i % N_ENTRIES];
        uint32_t *serials[] = {&at->serial_0, &at->serial_1, &at->serial_2, &at->serial_3};
        for (unsigned k = 0; k < 4; k++) {
            cr_expect_eq(wharf_work_reap(&reaper, &seen), 0);
            unsigned quad = (i + 3 * k) % 4;
            memcpy((uint8_t *)at + 16 * quad, (uint8_t *)&completion + 16 * quad, 12);
            *serials[quad] = i + 1;
        }
        cr_expect_eq(wharf_work_reap(&reaper, &seen), 1);
        cr_expect(seen.item == 7 && seen.attempt == 8 && seen.epoch == 9 && seen.decode_ns == 10);
    }
    cr_expect_eq(wharf_work_reap(&reaper, &seen), 0);
}

/* What stands in the place of an item under way is told from it by its tags and its opcode alone:
 * the worker looks up there where the item's output goes. */
Test(work_queue, passes_an_item_by_without_changing_where_it_goes)
{
    struct wharf_work_submitter submitter;

    memset(memory, 0, sizeof(memory));
    wharf_work_submitter_init(&submitter, memory, N_ENTRIES);
    cr_assert_eq(wharf_work_submit(&submitter, &item), 0);
    for (uint32_t i = 1; i < N_ENTRIES; i++)
        wharf_work_submit(&submitter, &(struct wharf_work_item){.attempt = i});
    cr_assert_not(wharf_work_can_pass(&submitter, N_ENTRIES, 0), "no kernel has taken it");
    submitter.queue.kernel->head = 1;
    cr_assert(wharf_work_can_pass(&submitter, N_ENTRIES, 0));
    cr_assert_not(wharf_work_can_pass(&submitter, N_ENTRIES + 1, 1), "this one was not");
    cr_assert_not(wharf_work_can_pass(&submitter, WHARF_WORK_MOST_PASSED, 0));
    wharf_work_pass(&submitter);
    cr_expect(stands_at(&submitter.queue, N_ENTRIES, WHARF_WORK_PASS));
}

/* Of an index that was given to nothing no completion tells that it was taken: its place was used
 * again while no kernel was there, and what the next one waited for never came. */
Test(work_queue, has_no_room_for_more_than_a_round_that_no_kernel_took)
{
    struct wharf_work_submitter submitter;

    memset(memory, 0, sizeof(memory));
    wharf_work_submitter_init(&submitter, memory, N_ENTRIES);
    cr_assert_eq(wharf_work_room(&submitter), N_ENTRIES);
    wharf_work_pass(&submitter);
    for (uint32_t i = 1; i < N_ENTRIES; i++) {
        cr_assert_eq(wharf_work_room(&submitter), N_ENTRIES - i);
        wharf_work_submit(&submitter, &(struct wharf_work_item){.attempt = 1});
    }
    cr_assert_eq(wharf_work_room(&submitter), 0);
    submitter.queue.kernel->head = 1;
    cr_assert_eq(wharf_work_room(&submitter), 1);
    wharf_work_submit(&submitter, &(struct wharf_work_item){.attempt = 1});
    cr_assert_eq(wharf_work_room(&submitter), N_ENTRIES, "items tell by being completed");
    wharf_work_pass(&submitter);
    cr_assert_eq(wharf_work_room(&submitter), 0);
    submitter.queue.kernel->head = 4;
    cr_assert_eq(wharf_work_room(&submitter), 2);
    submitter.queue.kernel->head = submitter.tail + 1;
    cr_assert_eq(wharf_work_room(&submitter), 0, "no kernel writes that");
}
