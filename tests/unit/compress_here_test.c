/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that compress in this process, by the command's encoders and by libwharf's own. */
#include <criterion/criterion.h>
#include <errno.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_compress.h"

static struct wharf *open_embedded(void)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    return wharf;
}

Test(compress_here, every_encoder_gives_back_what_it_took)
{
    struct wharf *wharf = open_embedded();

    test_compress_every_encoder(wharf);
    wharf_close(wharf);
}

Test(compress_here, too_small_a_destination_is_an_answer_at_each_size)
{
    struct wharf *wharf = open_embedded();

    test_compress_every_room(wharf);
    wharf_close(wharf);
}

Test(compress_here, jobs_that_make_no_sense_are_refused)
{
    struct wharf *wharf = open_embedded();

    test_compress_refusals(wharf);
    wharf_close(wharf);
}

Test(compress_here, arguments_that_cannot_be_are_refused)
{
    struct wharf *wharf = open_embedded();
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome = {.result = 77};

    cr_assert_eq(wharf_compress(NULL, &job, &outcome), -EINVAL);
    cr_assert_eq(wharf_compress(wharf, NULL, &outcome), -EINVAL);
    cr_assert_eq(wharf_compress(wharf, &job, NULL), -EINVAL);
    job.reserved = 1;
    cr_assert_eq(wharf_compress(wharf, &job, &outcome), -EINVAL);
    job.struct_nbytes = 4;
    cr_assert_eq(wharf_compress(wharf, &job, &outcome), -EINVAL);
    cr_assert_eq(outcome.result, 77);
    wharf_close(wharf);
}

/* A program that was compiled before there were encoders to choose. */
Test(compress_here, shorter_struct_asks_for_the_default)
{
    struct wharf *wharf = open_embedded();
    struct wharf_job job = test_compress_job(WHARF_CODEC_STORED, 0, 9, 9);
    struct wharf_outcome outcome;

    cr_assert_eq(wharf_compress(wharf, &job, &outcome), 0);
    cr_assert_eq(outcome.reason, WHARF_REASON_REQUEST_ENCODER);
    job.struct_nbytes = offsetof(struct wharf_job, encoder);
    cr_assert_eq(wharf_compress(wharf, &job, &outcome), 0);
    cr_assert_eq(outcome.result, WHARF_OK);
    wharf_close(wharf);
}

Test(compress_here, bound_is_refused_for_what_cannot_be)
{
    struct wharf_job job = test_compress_job(99, 0, 0, 0);
    size_t bound;

    cr_assert_eq(wharf_compress_bound(NULL, &bound), -EINVAL);
    cr_assert_eq(wharf_compress_bound(&job, &bound), -EINVAL);
    job.codec = WHARF_CODEC_RLE1;
    job.parameter = 8;
    cr_assert_eq(wharf_compress_bound(&job, &bound), -EINVAL);
    job.parameter = 0;
    cr_assert_eq(wharf_compress_bound(&job, NULL), -EINVAL);
    job.in_nbytes = SIZE_MAX;
    cr_assert_eq(wharf_compress_bound(&job, &bound), -EINVAL);
    job.in_nbytes = 1000;
    cr_assert_eq(wharf_compress_bound(&job, &bound), 0);
    cr_assert_geq(bound, 1000);
}
