/* SPDX-License-Identifier: Apache-2.0 */
/* async_jobs.h: jobs for tests of the calls that submit them and take completions. */
#ifndef WHARF_TESTS_ASYNC_JOBS_H
#define WHARF_TESTS_ASYNC_JOBS_H

#include <criterion/criterion.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "encoders/checksum.h"
#include "tests/lib/test_handle.h"

/* "wharf", as zlib -9 packs it. */
static const uint8_t zlib_wharf[] = {0x78, 0xda, 0x2b, 0xcf, 0x48, 0x2c, 0x4a,
                                     0x03, 0x00, 0x06, 0x65, 0x02, 0x19};
enum { IN_NBYTES = sizeof(zlib_wharf), OUT_NBYTES = 5 };

#define SECOND_NS INT64_C(1000000000)
#define LONG_NS (60 * SECOND_NS)
/* Runs the rest of the test for each kind. */
#define FOR_EACH_KIND(handle, options)                                                             \
    for (struct test_handle handle = test_handle_open(TEST_HANDLE_EMBEDDED, options);              \
         handle.wharf; handle = next_kind(&handle, options))

static inline struct test_handle next_kind(struct test_handle *handle,
                                           const struct wharf_options *options)
{
    enum test_handle_kind kind = handle->kind + 1;

    test_handle_close(handle);
    if (kind < TEST_N_HANDLE_KINDS)
        return test_handle_open(kind, options);
    return (struct test_handle){.wharf = NULL};
}

/* A good job in memory from wharf_alloc, which is never given back. */
static inline struct wharf_job job_of(struct wharf *wharf, uint64_t user_data)
{
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;

    cr_assert_eq(wharf_alloc(wharf, IN_NBYTES, &in), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, OUT_NBYTES, &out), 0);
    memcpy(in, zlib_wharf, IN_NBYTES);
    memset(out, 0, OUT_NBYTES);
    job.codec = WHARF_CODEC_ZLIB;
    job.in = in;
    job.in_nbytes = IN_NBYTES;
    job.out = out;
    job.out_avail = OUT_NBYTES;
    job.flags = WHARF_JOB_KNOWN_FLAGS;
    job.checksum = wharf_crc32(WHARF_CRC32_INIT, "wharf", OUT_NBYTES);
    job.user_data = user_data;
    return job;
}

static inline struct wharf_completion wait_one(struct wharf *wharf)
{
    struct wharf_completion completion;

    memset(&completion, 0xa5, sizeof(completion));
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, LONG_NS), 1, "%s", wharf_error_message());
    return completion;
}

static inline struct wharf_completion run_one(struct wharf *wharf, const struct wharf_job *job)
{
    cr_assert_eq(wharf_submit(wharf, job, 1), 1, "%s", wharf_error_message());
    return wait_one(wharf);
}

#endif
