/* SPDX-License-Identifier: Apache-2.0 */
/* Batches, by handles that work in process and through a daemon. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/async_jobs.h"

enum { N_CHUNKS = 3 };

static struct wharf_batch batch_of(struct wharf *wharf, struct wharf_batch_chunk *chunks,
                                   struct wharf_chunk_result *results)
{
    struct wharf_batch batch = WHARF_BATCH_INIT;

    for (unsigned i = 0; i < N_CHUNKS; i++) {
        struct wharf_job job = job_of(wharf, 0);
        chunks[i] =
            (struct wharf_batch_chunk){job.in, job.out, IN_NBYTES, OUT_NBYTES, job.checksum, 0};
    }
    memset(results, 0xa5, N_CHUNKS * sizeof(*results));
    batch.codec = WHARF_CODEC_ZLIB;
    batch.flags = WHARF_JOB_KNOWN_FLAGS;
    batch.user_data = 42;
    batch.chunks = chunks;
    batch.n_chunks = N_CHUNKS;
    batch.results = results;
    return batch;
}

Test(async_batch, batch_has_sums_or_its_first_bad_chunk)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_batch_chunk chunks[N_CHUNKS];
        struct wharf_chunk_result results[N_CHUNKS];
        struct wharf_batch batch = batch_of(handle.wharf, chunks, results);
        struct wharf_completion completion;

        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0, "%s", wharf_error_message());
        completion = wait_one(handle.wharf);
        cr_expect_eq(completion.user_data, 42);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_eq(completion.in_nbytes, N_CHUNKS * IN_NBYTES);
        cr_expect_eq(completion.out_nbytes, N_CHUNKS * OUT_NBYTES);
        cr_expect_eq(completion.flags, WHARF_COMPLETION_RESULTS);
        cr_expect_arr_eq(chunks[2].out, "wharf", OUT_NBYTES);

        chunks[1].checksum++;
        chunks[2].in_nbytes--;
        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0);
        completion = wait_one(handle.wharf);
        cr_expect_eq(completion.result, WHARF_BAD_CHECKSUM);
        cr_expect_eq(completion.first_bad_chunk, 1);
        cr_expect_eq(completion.out_nbytes, 0);
        cr_expect_eq(results[0].result, WHARF_OK);
        cr_expect_eq(results[0].out_nbytes, OUT_NBYTES);
        cr_expect_eq(results[1].reason, WHARF_REASON_JOB_CHECKSUM);
        cr_expect_eq(results[2].reason, WHARF_REASON_INPUT_TRUNCATED);
    }
}

Test(async_batch, batch_that_makes_no_sense_is_not_begun)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_batch_chunk chunks[N_CHUNKS];
        struct wharf_chunk_result results[N_CHUNKS];
        struct wharf_batch batch = batch_of(handle.wharf, chunks, results);
        struct wharf_completion completion;

        chunks[2].out = (void *)chunks[2].in;
        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0);
        completion = wait_one(handle.wharf);
        cr_expect_eq(completion.result, WHARF_BAD_REQUEST);
        cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_OVERLAP);
        cr_expect_eq(completion.first_bad_chunk, 2);
        cr_expect_eq(completion.flags, 0);
        cr_expect_arr_neq(chunks[0].out, "wharf", OUT_NBYTES);

        batch.codec = 77;
        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0);
        completion = wait_one(handle.wharf);
        cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_CODEC);
        cr_expect_eq(completion.first_bad_chunk, 0);
    }
}

Test(async_batch, batch_is_refused_without_traces)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_batch_chunk chunks[N_CHUNKS];
        struct wharf_chunk_result results[N_CHUNKS];
        struct wharf_batch batch = batch_of(handle.wharf, chunks, results);
        struct wharf_info before = {.struct_nbytes = sizeof(before)}, after = before;
        void *all;

        cr_assert_eq(wharf_get_info(handle.wharf, &before), 0);
        batch.n_chunks = 0;
        cr_expect_eq(wharf_submit_batch(handle.wharf, &batch), -EINVAL);
        batch.n_chunks = N_CHUNKS;
        chunks[1].reserved = 1;
        cr_expect_eq(wharf_submit_batch(handle.wharf, &batch), -EINVAL);
        chunks[1].reserved = 0;
        chunks[2].in = zlib_wharf;
        cr_expect_eq(wharf_submit_batch(handle.wharf, &batch), -EFAULT);
        chunks[2].in = chunks[1].in;
        cr_assert_eq(
            wharf_alloc(handle.wharf, before.arena_nbytes - before.arena_taken_nbytes, &all), 0);
        cr_expect_eq(wharf_submit_batch(handle.wharf, &batch), -ENOBUFS);
        cr_assert_eq(wharf_free(handle.wharf, all), 0);
        cr_assert_eq(wharf_get_info(handle.wharf, &after), 0);
        cr_expect_eq(after.arena_taken_nbytes, before.arena_taken_nbytes);
        cr_expect_eq(after.n_in_flight, 0);

        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0);
        wait_one(handle.wharf);
        cr_assert_eq(wharf_get_info(handle.wharf, &after), 0);
        cr_expect_eq(after.arena_taken_nbytes, before.arena_taken_nbytes, "the table is left");
    }
}
