/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd on the device against the CPU engine: libzstd's frames of data of all kinds at levels 1 to
 * 19, with and without what a frame may have, cut off, damaged, and joined; from and to memory at
 * any alignment that ends at untouchable pages.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/unit/device_compare.h"

enum { N_LEVELS = 19, CHUNK_NBYTES = 131072 };

struct frame {
    uint8_t *data;
    size_t nbytes;
    size_t out_nbytes;
};

/* A frame of nbytes of data that random chooses, in blocks that end wherever. */
static struct frame make_frame(struct test_random *random, int level, size_t nbytes)
{
    const struct test_data_kind *kind =
        &test_data_kinds[test_random_below(random, test_data_n_kinds)];
    uint8_t *plain = test_data_new(kind, test_random_next(random), nbytes);
    size_t capacity = ZSTD_compressBound(nbytes) + 4096;
    struct frame frame = {.data = malloc(capacity), .out_nbytes = nbytes};
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_inBuffer in = {plain, 0, 0};
    ZSTD_outBuffer out = {frame.data, capacity, 0};

    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, test_random_one_in(random, 2));
    if (test_random_one_in(random, 2))
        ZSTD_CCtx_setPledgedSrcSize(context, nbytes);
    if (test_random_one_in(random, 3))
        ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 10 + (int)test_random_below(random, 8));
    for (unsigned i = 0; i < 6 && in.size < nbytes; i++) {
        in.size += test_random_below(random, nbytes - in.size + 1);
        cr_assert(!ZSTD_isError(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush)));
    }
    in.size = nbytes;
    cr_assert_eq(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0);
    frame.nbytes = out.pos;
    ZSTD_freeCCtx(context);
    free(plain);
    return frame;
}

static void expect_same(const uint8_t *stream, size_t nbytes, size_t out_avail, unsigned seed,
                        const char *what)
{
    const struct wharf_device_chunk chunk = {
        .in = stream, .in_nbytes = nbytes, .out_avail = out_avail, .codec = WHARF_CODEC_ZSTD};

    compare_on_device(WHARF_CODEC_ZSTD, chunk, 0, seed, what);
    compare_on_device(WHARF_DEVICE_CREW | WHARF_CODEC_ZSTD, chunk, 0, seed, what);
}

Test(zstd_simt, frames_of_all_levels_and_sizes)
{
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 1000, 20000};
    struct test_random random = {11};

    for (int level = 1; level <= N_LEVELS; level++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct frame frame = make_frame(&random, level, sizes[i]);
            expect_same(frame.data, frame.nbytes, frame.out_nbytes + i % 3 * 100,
                        (unsigned)level * 8 + (unsigned)i, "a frame");
            free(frame.data);
        }
}

/* Blocks as large as they may be, and several of them. */
Test(zstd_simt, whole_chunks)
{
    static const int levels[] = {1, 3, 9, 19};
    struct test_random random = {12};

    for (unsigned i = 0; i < 8; i++) {
        size_t nbytes = CHUNK_NBYTES - 1 + i % 3 + (i == 7 ? CHUNK_NBYTES : 0);
        struct frame frame = make_frame(&random, levels[i % 4], nbytes);
        expect_same(frame.data, frame.nbytes, frame.out_nbytes, i, "a chunk");
        free(frame.data);
    }
}

Test(zstd_simt, frames_cut_off_anywhere)
{
    struct test_random random = {13};

    for (unsigned k = 0; k < 4; k++) {
        struct frame frame = make_frame(&random, 3 + 4 * (int)k, 700);
        for (size_t nbytes = 0; nbytes < frame.nbytes; nbytes++)
            expect_same(frame.data, nbytes, frame.out_nbytes, (unsigned)nbytes, "cut off");
        for (size_t avail = 0; avail < frame.out_nbytes; avail += 17)
            expect_same(frame.data, frame.nbytes, avail, (unsigned)avail, "less room");
        free(frame.data);
    }
}

Test(zstd_simt, damaged_frames)
{
    struct test_random random = {14};

    for (unsigned k = 0; k < 60; k++) {
        struct frame frame =
            make_frame(&random, 1 + (int)test_random_below(&random, N_LEVELS), 60 * k);
        for (unsigned i = 0; i < 10; i++) {
            size_t reach = i % 2 && frame.nbytes > 40 ? 40 : frame.nbytes;
            uint8_t *byte = &frame.data[test_random_below(&random, reach)], before = *byte;
            *byte ^= (uint8_t)(1u << test_random_below(&random, 8));
            expect_same(frame.data, frame.nbytes, frame.out_nbytes + i * 40, 10 * k + i, "damaged");
            *byte = before;
        }
        free(frame.data);
    }
}

/* Matches do not reach into the frame before, and what follows frames is one. */
Test(zstd_simt, frames_joined_with_skippable_ones)
{
    static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
    struct test_random random = {15};

    for (unsigned k = 0; k < 6; k++) {
        struct frame one = make_frame(&random, 3, 900), other = make_frame(&random, 19, 500);
        size_t nbytes = one.nbytes + sizeof(skippable) + other.nbytes;
        uint8_t *joined = malloc(nbytes + 1);
        memcpy(joined, one.data, one.nbytes);
        memcpy(joined + one.nbytes, skippable, sizeof(skippable));
        memcpy(joined + one.nbytes + sizeof(skippable), other.data, other.nbytes);
        joined[nbytes] = 0x28;
        expect_same(joined, nbytes, 1400, k, "joined");
        expect_same(joined, nbytes + 1, 1400, k, "joined, and a byte behind");
        free(joined);
        free(one.data);
        free(other.data);
    }
}

/* A crew's workers with chunks of all kinds, some of them damaged, more than there are workers. */
Test(zstd_simt, many_chunks_for_a_crew)
{
    enum { N = 40 };
    static const struct wharf_codec_setting setting = {0};
    static struct wharf_device_chunk chunks[N];
    static struct wharf_outcome got[N], want[N];
    struct test_random random = {16};

    for (unsigned seed = 0; seed < 6; seed++) {
        uint8_t *want_out[N];
        struct wharf_device_batch batch = {chunks, got, N, WHARF_DEVICE_CREW | WHARF_CODEC_ZSTD};
        for (unsigned i = 0; i < N; i++) {
            struct frame frame = make_frame(&random, 1 + (int)test_random_below(&random, N_LEVELS),
                                            test_random_below(&random, 9000));
            if (test_random_one_in(&random, 3))
                frame.data[test_random_below(&random, frame.nbytes)] ^=
                    (uint8_t)(1u << test_random_below(&random, 8));
            want_out[i] = malloc(frame.out_nbytes + 1);
            chunks[i] = (struct wharf_device_chunk){.in = frame.data,
                                                    .in_nbytes = frame.nbytes,
                                                    .out = malloc(frame.out_nbytes + 1),
                                                    .out_avail = frame.out_nbytes,
                                                    .codec = WHARF_CODEC_ZSTD};
            wharf_codec_find(WHARF_CODEC_ZSTD)
                ->ops->decode(frame.data, frame.nbytes, want_out[i], frame.out_nbytes, &setting,
                              &want[i]);
        }
        cr_assert_eq(wharf_simt_decode_batch(&batch, (enum wharf_simt_order)(seed % 3), seed, NULL),
                     0);
        for (unsigned i = 0; i < N; i++) {
            cr_assert(test_outcome_same(&got[i], &want[i]), "seed %u, chunk %u: %s, not %s", seed,
                      i, test_outcome_text(&got[i]).text, test_outcome_text(&want[i]).text);
            if (want[i].result == WHARF_OK)
                cr_assert_eq(memcmp(chunks[i].out, want_out[i], want[i].out_nbytes), 0,
                             "seed %u, chunk %u", seed, i);
            free(want_out[i]);
            free(chunks[i].out);
            free((uint8_t *)chunks[i].in);
        }
    }
}
