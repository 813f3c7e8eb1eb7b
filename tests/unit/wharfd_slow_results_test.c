/* SPDX-License-Identifier: Apache-2.0 */
/* Results of batches that were on a GPU and cannot be written to the client's memory for a while.
 */
#include <criterion/criterion.h>
#include <unistd.h>

#include "proto/wharf_job.h"
#include "tests/lib/test_slow.h"
#include "tests/lib/test_small.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)
/* Where in the arena, on a page of their own. */
enum { RESULTS = 12288 };

static void set_up(void)
{
    test_front_config_simt();
    test_front_config.gpu_pin_after_ns = 0;
    test_front_start(1);
    test_front_wait_until_up();
}

static void wait_until_reached(void)
{
    cr_assert(TEST_WAIT(test_slow_n_reached() > 0));
}

/* A batch whose results are to be on the slow page. */
static struct wharf_submission put_small_batch(const struct test_front_client *client)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(client->arena + 4096);

    for (uint32_t i = 0; i < 4; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = 16, .dst_offset = 8192, .dst_nbytes = 16};
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .src_offset = 4096,
        .src_nbytes = 4 * sizeof(*table),
        .dst_offset = RESULTS,
        .dst_nbytes = 4 * sizeof(struct wharf_chunk_result),
    };
}

/* The thread of the GPU wrote the results of batches with the front lock held: whoever can make a
 * store to its arena wait kept everybody waiting. */
static void check_slow_results(uint64_t gpu_memory_nbytes, uint32_t result)
{
    struct test_front_client slow, other;

    set_up();
    TEST_FRONT_LOCKED(test_front.config.gpu_memory_nbytes = gpu_memory_nbytes);
    test_front_client_init(&slow, 1, "uid:1", 16, MiB);
    test_front_engine = WHARF_ENGINE_CPU;
    test_front_client_init(&other, 2, "uid:2", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    test_slow_begin(&slow, RESULTS, 4096);
    test_front_submit(&slow, &s);
    wait_until_reached();
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(test_small_run(&other, 0).engine, WHARF_ENGINE_CPU);
    test_slow_release();
    cr_assert_eq(test_front_reap(&slow).result, result);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + RESULTS);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(results[i].result, result);
    test_front_client_deinit(&slow);
    test_front_client_deinit(&other);
    test_front_stop();
}

Test(wharfd_slow_results, results_that_cannot_be_written_now_keep_nobody_else_waiting,
     .timeout = 60)
{
    check_slow_results(64 * MiB, WHARF_OK);
}

/* The same for jobs whose memory the worker does not get. */
Test(wharfd_slow_results, refusals_that_cannot_be_written_now_keep_nobody_else_waiting,
     .timeout = 60)
{
    check_slow_results(0, WHARF_NO_MEMORY);
}

/* Whose results can often not be written keeps the thread of the GPU from others' jobs: threads of
 * the CPU, of which there are more, have its jobs for a while. */
Test(wharfd_slow_results, who_keeps_the_thread_of_the_gpu_waiting_has_the_cpu, .timeout = 60)
{
    struct test_front_client slow;

    set_up();
    test_front_client_init(&slow, 1, "uid:1", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + RESULTS);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(TEST_FRONT_LOCKED(slow.session->tenant->gpu_trust.banned_until_ns), 0);
        test_slow_begin(&slow, RESULTS, 4096);
        test_front_submit(&slow, &s);
        wait_until_reached();
        usleep(100000);
        test_slow_release();
        cr_assert_eq(test_front_reap(&slow).result, WHARF_OK);
        cr_assert_eq(results[3].engine, WHARF_ENGINE_SIMT);
    }
    cr_assert_gt(TEST_FRONT_LOCKED(slow.session->tenant->gpu_trust.banned_until_ns), 0);
    test_front_submit(&slow, &s);
    cr_assert_eq(test_front_reap(&slow).result, WHARF_OK);
    cr_assert_eq(results[3].engine, WHARF_ENGINE_CPU);
    test_front_client_deinit(&slow);
    test_front_stop();
}
