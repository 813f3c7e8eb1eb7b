/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_batch_test: the launch layer's own work, around the decoders: batches, job flags, requests
 * that make no sense.  What the CPU engine says of a job is what the device must say.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/decode_job.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

static const uint32_t kernels[] = {WHARF_CODEC_STORED, WHARF_DEVICE_ANY_CODEC};

static void check_same(struct wharf_outcome got, struct wharf_outcome want, const char *what)
{
    cr_assert(test_outcome_same(&got, &want), "%s: %s; not %s", what, test_outcome_text(&got).text,
              test_outcome_text(&want).text);
}

enum { N_CHUNKS = 9, STEP_NBYTES = 50 };

static void check_batch(uint32_t codec, enum wharf_simt_order order)
{
    struct wharf_device_chunk chunks[N_CHUNKS] = {0};
    struct wharf_outcome outcomes[N_CHUNKS];
    struct test_guard in[N_CHUNKS];
    struct test_guard out[N_CHUNKS];
    uint64_t n_steps = 0;

    memset(outcomes, 0xff, sizeof(outcomes));
    for (uint32_t i = 0; i < N_CHUNKS; i++) {
        uint8_t bytes[N_CHUNKS * STEP_NBYTES];
        struct test_random random = {i};
        test_random_fill(&random, bytes, sizeof(bytes));
        in[i] = test_guard_copy(bytes, i * STEP_NBYTES, TEST_GUARD_END);
        out[i] = test_guard_new(i * STEP_NBYTES + i % 2, TEST_GUARD_END);
        chunks[i] = (struct wharf_device_chunk){
            .in = in[i].data,
            .in_nbytes = in[i].nbytes,
            .out = out[i].data,
            .out_avail = out[i].nbytes,
            .codec = WHARF_CODEC_STORED,
        };
    }
    struct wharf_device_batch batch = {chunks, outcomes, N_CHUNKS, codec};
    cr_assert_eq(wharf_simt_decode_batch(&batch, order, 1, &n_steps), 0);
    cr_assert(n_steps > N_CHUNKS);
    for (uint32_t i = 0; i < N_CHUNKS; i++) {
        struct wharf_outcome want = {.in_nbytes = in[i].nbytes, .out_nbytes = in[i].nbytes};
        check_same(outcomes[i], want, "chunk");
        cr_assert_eq(memcmp(out[i].data, in[i].data, in[i].nbytes), 0);
        test_guard_free(&in[i]);
        test_guard_free(&out[i]);
    }
}

Test(simt_batch, every_chunk_of_a_batch_is_decoded)
{
    for (int order = WHARF_SIMT_ASCENDING; order <= WHARF_SIMT_RANDOM; order++)
        for (int k = 0; k < 2; k++)
            check_batch(kernels[k], (enum wharf_simt_order)order);
}

static void check_flags(uint32_t flags, const uint8_t *in, size_t nbytes, size_t out_avail,
                        uint32_t checksum)
{
    uint8_t out[128];
    uint8_t want_out[128];
    struct wharf_outcome got;
    struct wharf_outcome want;
    struct wharf_decode_job job = {
        .flags = flags,
        .checksum = checksum,
        .in = in,
        .in_nbytes = nbytes,
        .out = want_out,
        .out_avail = out_avail,
    };
    struct wharf_device_chunk chunk = {
        .flags = flags,
        .checksum = checksum,
        .in = in,
        .in_nbytes = nbytes,
        .out = out,
        .out_avail = out_avail,
    };
    struct wharf_device_batch batch = {&chunk, &got, 1, WHARF_CODEC_STORED};

    wharf_decode_job_run(&job, 0, &want);
    cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_RANDOM, flags, NULL), 0);
    check_same(got, want, "flags");
}

Test(simt_batch, flags_give_the_outcomes_that_the_cpu_gives)
{
    uint8_t in[100];
    struct test_random random = {7};
    test_random_fill(&random, in, sizeof(in));
    uint32_t crc = (uint32_t)crc32(0, in, sizeof(in));
    for (uint32_t flags = 0; flags <= WHARF_JOB_KNOWN_FLAGS; flags++)
        for (size_t out_avail = 99; out_avail <= 101; out_avail++) {
            check_flags(flags, in, sizeof(in), out_avail, crc);
            check_flags(flags, in, sizeof(in), out_avail, crc ^ 1);
        }
}

Test(simt_batch, requests_that_make_no_sense_are_answered)
{
    const struct wharf_outcome bad_codec = {.result = WHARF_BAD_REQUEST,
                                            .reason = WHARF_REASON_REQUEST_CODEC};
    const struct wharf_outcome too_large = {.result = WHARF_BAD_REQUEST,
                                            .reason = WHARF_REASON_REQUEST_SIZE};
    uint8_t byte = 0;
    struct wharf_outcome outcomes[3];
    struct wharf_device_chunk chunks[3] = {
        {.codec = 0xfffff},
        {.in = &byte, .in_nbytes = WHARF_DEVICE_CHUNK_MAX_NBYTES + UINT64_C(1)},
        {.in = &byte, .in_nbytes = 1, .out_avail = UINT64_C(1) << 40},
    };
    struct wharf_device_batch batch = {chunks, outcomes, 3, 0};
    for (int k = 0; k < 2; k++) {
        batch.codec = kernels[k];
        cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_ASCENDING, 0, NULL), 0);
        check_same(outcomes[0], bad_codec, "codec");
        check_same(outcomes[1], too_large, "in_nbytes");
        check_same(outcomes[2], too_large, "out_avail");
    }
    batch.codec = 77;
    cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_ASCENDING, 0, NULL), -EINVAL);
    batch.codec = WHARF_CODEC_STORED;
    cr_assert_eq(wharf_simt_decode_batch(&batch, (enum wharf_simt_order)3, 0, NULL), -EINVAL);
}

/* The build makes the list of device decoders from the folders of kernels/. */
Test(simt_batch, codecs_with_a_decoder_in_their_folder_have_it_on_the_device)
{
#define X(ID, name, number, summary)                                                               \
    cr_assert_eq(wharf_simt_can_decode(number),                                                    \
                 access("kernels/" #name "/" #name "_decode.cuh", R_OK) == 0 ||                    \
                     access("kernels/" #name "/" #name "_around.cuh", R_OK) == 0,                  \
                 #name);
    WHARF_CODEC_LIST(X)
#undef X
    cr_assert(wharf_simt_can_decode(WHARF_CODEC_STORED));
    cr_assert(!wharf_simt_can_decode(0xfffff));
}
