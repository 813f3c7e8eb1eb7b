/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ORC's run lengths by every decoder: the reference, the CPU engine and the device's code, in all
 * orders of its lanes and by both serial kernels.  Streams of any groups, good ones and damaged
 * ones, from and to memory at any alignment that ends at untouchable pages.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_rle.h"

enum { OUT_NBYTES = 1 << 17 };

static const uint32_t codecs[] = {WHARF_CODEC_RLE1, WHARF_CODEC_RLE2, WHARF_CODEC_BYTERLE,
                                  WHARF_CODEC_BOOLRLE};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

struct trial {
    uint32_t codec;
    uint32_t parameter;
    const uint8_t *in;
    size_t in_nbytes;
    size_t out_avail;
    struct wharf_outcome want;
    uint8_t *want_out;
};

static void expect_same(const struct trial *trial, const char *decoder,
                        const struct wharf_outcome *got, const uint8_t *out)
{
    const struct wharf_outcome *want = &trial->want;

    cr_assert(test_outcome_same(got, want), "%s, codec %u, type %u, %zu bytes: %s; not %s", decoder,
              trial->codec, trial->parameter, trial->in_nbytes, test_outcome_text(got).text,
              test_outcome_text(want).text);
    if (want->result == WHARF_OK && want->out_nbytes)
        cr_assert_eq(memcmp(out, trial->want_out, want->out_nbytes), 0,
                     "%s, codec %u, type %u, %zu bytes: another output", decoder, trial->codec,
                     trial->parameter, trial->in_nbytes);
}

static void run_cpu(const struct trial *trial)
{
    const struct wharf_codec_setting setting = {.parameter = trial->parameter};
    struct test_guard in = test_guard_copy(trial->in, trial->in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(trial->out_avail, TEST_GUARD_END);
    struct wharf_outcome got;

    wharf_codec_find(trial->codec)
        ->ops->decode(in.data, in.nbytes, out.data, out.nbytes, &setting, &got);
    expect_same(trial, "CPU", &got, out.data);
    test_guard_free(&in);
    test_guard_free(&out);
}

static void run_device(const struct trial *trial, uint32_t serial, enum wharf_simt_order order)
{
    struct test_guard in = test_guard_copy(trial->in, trial->in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(trial->out_avail, TEST_GUARD_END);
    struct wharf_device_chunk chunk = {.in = in.data,
                                       .in_nbytes = in.nbytes,
                                       .out = out.data,
                                       .out_avail = out.nbytes,
                                       .codec = trial->codec,
                                       .parameter = trial->parameter};
    struct wharf_outcome got;
    struct wharf_device_batch batch = {&chunk, &got, 1, trial->codec | serial};

    cr_assert_eq(wharf_simt_decode_batch(&batch, order, trial->in_nbytes, NULL), 0);
    expect_same(trial, serial ? "serial" : "device", &got, out.data);
    test_guard_free(&in);
    test_guard_free(&out);
}

/* On all decoders, or for speed on some of the device's. */
static void run(struct trial *trial, unsigned number)
{
    const struct wharf_codec_setting setting = {.parameter = trial->parameter};

    wharf_codec_find(trial->codec)
        ->ops->decode_reference(trial->in, trial->in_nbytes, trial->want_out, trial->out_avail,
                                &setting, &trial->want);
    run_cpu(trial);
    run_device(trial, 0, (enum wharf_simt_order)(number % 3));
    if (number % 8 == 0 && wharf_simt_can_decode(trial->codec | WHARF_DEVICE_SERIAL)) {
        run_device(trial, WHARF_DEVICE_SERIAL, WHARF_SIMT_RANDOM);
        run_device(trial, WHARF_DEVICE_SERIAL_REGISTERS, WHARF_SIMT_RANDOM);
        run_device(trial, WHARF_DEVICE_SERIAL_PREFETCH, WHARF_SIMT_RANDOM);
    }
}

static void damage(struct test_random *random, uint8_t *in, size_t *nbytes)
{
    if (*nbytes && test_random_one_in(random, 2))
        in[test_random_below(random, *nbytes)] ^= (uint8_t)(1 << test_random_below(random, 8));
    if (test_random_one_in(random, 2))
        *nbytes = test_random_below(random, *nbytes + 1);
}

/* Streams of up to max_nbytes: good as they are made, damaged, and with any room. */
static void try_streams(uint32_t codec, size_t max_nbytes, unsigned n)
{
    static uint8_t in[8192];
    struct test_random random = {codec + 1};
    struct trial trial = {.codec = codec, .in = in, .want_out = malloc(OUT_NBYTES)};
    unsigned n_good = 0;

    for (unsigned i = 0; i < n; i++) {
        trial.parameter = codec <= WHARF_CODEC_RLE2 ? (uint32_t)test_random_below(&random, 8) : 0;
        unsigned nbits = 8u << trial.parameter % 4;
        size_t avail = test_random_below(&random, max_nbytes + 1);
        /* Numbers that make up values of the type, mostly. */
        trial.in_nbytes = test_rle_stream(&random, codec, nbits - (nbits > 8) * 4, in, avail);
        if (i % 3 == 1)
            damage(&random, in, &trial.in_nbytes);
        trial.out_avail = i % 4 == 3 ? test_random_below(&random, 3000) : OUT_NBYTES;
        run(&trial, i);
        if (trial.want.result == WHARF_OK && trial.want.out_nbytes) {
            n_good++;
            trial.out_avail = trial.want.out_nbytes;
            run(&trial, i + 1);
            trial.out_avail--;
            run(&trial, i + 2);
        }
    }
    cr_assert_gt(n_good, n / 4, "of %u streams of codec %u only %u are good", n, codec, n_good);
    free(trial.want_out);
}

Test(rle_simt, all_decoders_say_the_same_of_short_streams)
{
    for (unsigned k = 0; k < N_CODECS; k++)
        try_streams(codecs[k], 60, 300);
}

Test(rle_simt, all_decoders_say_the_same_of_long_streams)
{
    for (unsigned k = 0; k < N_CODECS; k++)
        try_streams(codecs[k], 6000, 60);
}

/* What is asked to end at each of its bytes ends alike. */
Test(rle_simt, streams_cut_off_anywhere)
{
    uint8_t in[400];
    struct trial trial = {.in = in, .out_avail = OUT_NBYTES, .want_out = malloc(OUT_NBYTES)};

    for (unsigned k = 0; k < N_CODECS; k++) {
        struct test_random random = {77 + k};
        trial.codec = codecs[k];
        trial.parameter = trial.codec <= WHARF_CODEC_RLE2 ? WHARF_RLE_I64 : 0;
        size_t nbytes = test_rle_stream(&random, trial.codec, 60, in, sizeof(in));
        for (trial.in_nbytes = 0; trial.in_nbytes <= nbytes; trial.in_nbytes++)
            run(&trial, (unsigned)trial.in_nbytes);
    }
    free(trial.want_out);
}

/* On the device input and output may be at any address, for values of any size. */
Test(rle_simt, any_alignment)
{
    static uint8_t in[300 + 16], out[OUT_NBYTES + 16], want_out[OUT_NBYTES];

    for (uint32_t parameter = 0; parameter < 8; parameter++)
        for (unsigned shift = 0; shift < 16; shift++)
            for (unsigned k = 0; k < 2; k++) {
                struct test_random random = {parameter + 1};
                const struct wharf_codec_setting setting = {.parameter = parameter};
                size_t nbytes = test_rle_stream(&random, codecs[k], 7, in + shift, 300);
                struct wharf_outcome got, want;
                struct wharf_device_chunk chunk = {.in = in + shift,
                                                   .in_nbytes = nbytes,
                                                   .out = out + (5 * shift) % 16,
                                                   .out_avail = OUT_NBYTES,
                                                   .codec = codecs[k],
                                                   .parameter = parameter};
                struct wharf_device_batch batch = {&chunk, &got, 1, codecs[k]};
                wharf_codec_find(codecs[k])->ops->decode(in + shift, nbytes, want_out, OUT_NBYTES,
                                                         &setting, &want);
                cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_RANDOM, shift, NULL), 0);
                cr_assert(got.result == want.result && got.bit_offset == want.bit_offset);
                if (want.result == WHARF_OK)
                    cr_assert_eq(memcmp(chunk.out, want_out, want.out_nbytes), 0);
            }
}
