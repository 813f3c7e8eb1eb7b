/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blosc on the device against the CPU engine: chunks of our encoder and forged ones, of all ways to
 * shuffle and of blocks of all sizes, as they are, cut off anywhere and damaged; by the phases of a
 * batch and by a warp around the other codecs' decoders; from and to memory at any alignment that
 * ends at untouchable pages.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/blosc/blosc_format.h"
#include "encoders/codec.h"
#include "encoders/little_endian.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"
#include "tests/unit/device_compare.h"

static void expect_same(const uint8_t *stream, size_t nbytes, size_t out_avail, uint32_t parameter,
                        unsigned seed, const char *what)
{
    const struct wharf_device_chunk chunk = {.in = stream,
                                             .in_nbytes = nbytes,
                                             .out_avail = out_avail,
                                             .codec = WHARF_CODEC_BLOSC,
                                             .parameter = parameter};

    compare_on_device(WHARF_CODEC_BLOSC, chunk, seed % 5, seed, what);
    compare_on_device(WHARF_DEVICE_ANY_CODEC, chunk, 0, seed, what);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

struct chunk {
    uint8_t *data;
    size_t nbytes;
    size_t out_nbytes;
};

/* What a forged chunk is made of. */
struct recipe {
    uint8_t element_nbytes;
    uint8_t filters[WHARF_BLOSC_N_FILTERS];
    uint8_t metas[WHARF_BLOSC_N_FILTERS];
    bool is_split;
    uint8_t version;
    size_t out_nbytes, block_nbytes;
};

static size_t put_stream(uint8_t *to, const uint8_t *plain, size_t nbytes,
                         struct test_random *random)
{
    size_t packed_nbytes;
    uint8_t *packed = test_pack(WHARF_CODEC_LZ4, NULL, plain, nbytes, &packed_nbytes);
    uint32_t size = (uint32_t)packed_nbytes;

    if (test_random_one_in(random, 8)) { /* a run */
        uint32_t value = (uint32_t)test_random_below(random, 256);
        size = value ? -value : 0;
        packed_nbytes = value ? 1 : 0;
        packed[0] = 1;
    } else if (packed_nbytes >= nbytes) { /* stored */
        size = (uint32_t)nbytes;
        packed_nbytes = nbytes;
    }
    wharf_store_le32(to, size);
    memcpy(to + 4, size == nbytes ? plain : packed, packed_nbytes);
    free(packed);
    return 4 + packed_nbytes;
}

/* A chunk with an extended header, whatever its filters make of the data. */
static struct chunk forge(const struct recipe *r, struct test_random *random)
{
    const struct test_data_kind *kind =
        &test_data_kinds[test_random_below(random, test_data_n_kinds)];
    uint8_t *plain = test_data_new(kind, test_random_next(random), r->out_nbytes);
    size_t n_blocks = (r->out_nbytes - 1) / r->block_nbytes + 1;
    struct chunk chunk = {.out_nbytes = r->out_nbytes};
    size_t at = WHARF_BLOSC_EXTENDED_NBYTES + 4 * n_blocks;
    uint8_t *data = calloc(1, at + 2 * r->out_nbytes + n_blocks * 256 * 24);

    data[0] = r->version;
    data[2] = WHARF_BLOSC_SHUFFLED | WHARF_BLOSC_BITS_SHUFFLED |
              WHARF_BLOSC_LZ4 << WHARF_BLOSC_CODEC_SHIFT |
              (r->is_split ? 0 : WHARF_BLOSC_NOT_SPLIT);
    data[3] = r->element_nbytes;
    wharf_store_le32(data + 4, (uint32_t)r->out_nbytes);
    wharf_store_le32(data + 8, (uint32_t)r->block_nbytes);
    memcpy(data + 16, r->filters, WHARF_BLOSC_N_FILTERS);
    memcpy(data + 24, r->metas, WHARF_BLOSC_N_FILTERS);
    for (size_t i = 0; i < n_blocks; i++) {
        size_t from = i * r->block_nbytes, left = r->out_nbytes - from;
        size_t nbytes = left < r->block_nbytes ? left : r->block_nbytes;
        size_t n = r->is_split && nbytes == r->block_nbytes ? r->element_nbytes : 1;
        wharf_store_le32(data + WHARF_BLOSC_EXTENDED_NBYTES + 4 * i, (uint32_t)at);
        for (size_t k = 0; k < n; k++)
            at += put_stream(data + at, plain + from + k * (nbytes / n), nbytes / n, random);
    }
    wharf_store_le32(data + 12, (uint32_t)at);
    chunk.data = data;
    chunk.nbytes = at;
    free(plain);
    return chunk;
}

static uint8_t any_filter(struct test_random *random)
{
    static const uint8_t filters[] = {
        WHARF_BLOSC_FILTER_NONE,  WHARF_BLOSC_FILTER_SHUFFLE,  WHARF_BLOSC_FILTER_BITSHUFFLE,
        WHARF_BLOSC_FILTER_DELTA, WHARF_BLOSC_FILTER_TRUNCATE,
    };
    return filters[test_random_below(random, sizeof(filters))];
}

/* Elements of all sizes, of which the common ones have loops of their own. */
static uint8_t any_element(struct test_random *random)
{
    static const uint8_t common[] = {1, 2, 4, 8, 16};

    return test_random_one_in(random, 3) ? (uint8_t)(1 + test_random_below(random, 255))
                                         : common[test_random_below(random, sizeof(common))];
}

static struct recipe any_recipe(struct test_random *random, size_t most_nbytes)
{
    struct recipe r = {
        .element_nbytes = any_element(random),
        .is_split = test_random_one_in(random, 2),
        .version = (uint8_t)(WHARF_BLOSC_VERSION_1 + test_random_below(random, 5)),
        .out_nbytes = 1 + test_random_below(random, most_nbytes),
    };
    size_t most_elements = r.out_nbytes / r.element_nbytes + 1;
    size_t unit = test_random_one_in(random, 4) && !r.is_split ? 1 : r.element_nbytes;

    r.block_nbytes = unit * (1 + test_random_below(random, most_elements));
    if (test_random_one_in(random, 2)) /* what fast loops are for */
        r.block_nbytes = (r.block_nbytes / 128 + 1) * 128 * r.element_nbytes;
    r.filters[5] = any_filter(random);
    if (test_random_one_in(random, 3))
        r.filters[4] = any_filter(random);
    if (test_random_one_in(random, 4))
        r.metas[5] = any_element(random);
    return r;
}

Test(blosc_simt, chunks_of_all_shapes)
{
    struct test_random random = {31};

    for (unsigned i = 0; i < 400; i++) {
        struct recipe r = any_recipe(&random, 3000);
        struct chunk chunk = forge(&r, &random);
        expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes + i % 2 * 9, 0, i, "a chunk");
        free(chunk.data);
    }
}

/* Blocks that the least stage does not hold are cut into columns, these again, and what is left at
 * the ends of planes is put in order by itself. */
Test(blosc_simt, blocks_larger_than_the_stage)
{
    static const struct {
        uint8_t filter, element_nbytes;
        size_t nbytes;
    } shapes[] = {
        {WHARF_BLOSC_FILTER_SHUFFLE, 4, 16368},     {WHARF_BLOSC_FILTER_SHUFFLE, 4, 16372},
        {WHARF_BLOSC_FILTER_SHUFFLE, 2, 65536},     {WHARF_BLOSC_FILTER_SHUFFLE, 7, 40001},
        {WHARF_BLOSC_FILTER_BITSHUFFLE, 4, 65536},  {WHARF_BLOSC_FILTER_BITSHUFFLE, 8, 33333},
        {WHARF_BLOSC_FILTER_BITSHUFFLE, 1, 100000}, {WHARF_BLOSC_FILTER_BITSHUFFLE, 3, 98304},
        {WHARF_BLOSC_FILTER_SHUFFLE, 255, 70000},   {WHARF_BLOSC_FILTER_BITSHUFFLE, 255, 300000},
    };
    struct test_random random = {32};

    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct recipe r = {.element_nbytes = shapes[i].element_nbytes,
                                 .filters = {[5] = shapes[i].filter},
                                 .version = WHARF_BLOSC_VERSION_MAX,
                                 .out_nbytes = shapes[i].nbytes,
                                 .block_nbytes = shapes[i].nbytes};
        struct chunk chunk = forge(&r, &random);
        expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes, 0, 2 * i, "a large block");
        free(chunk.data);
    }
}

/* ---- the encoder's chunks -------------------------------------------------------------------- */

static const char *const encoders[] = {"shuffle4",    "shuffle2",    "shuffle8", "bitshuffle4",
                                       "bitshuffle2", "bitshuffle8", "bytes"};
enum { N_ENCODERS = sizeof(encoders) / sizeof(encoders[0]) };

static struct chunk encode(unsigned encoder, struct test_random *random, size_t nbytes)
{
    const struct wharf_encoder_options options = {.name = encoders[encoder],
                                                  .level = WHARF_LEVEL_DEFAULT};
    const struct test_data_kind *kind =
        &test_data_kinds[test_random_below(random, test_data_n_kinds)];
    uint8_t *plain = test_data_new(kind, test_random_next(random), nbytes);
    struct chunk chunk = {.out_nbytes = nbytes};

    chunk.data = test_pack(WHARF_CODEC_BLOSC, &options, plain, nbytes, &chunk.nbytes);
    free(plain);
    return chunk;
}

Test(blosc_simt, chunks_of_our_encoder)
{
    static const size_t sizes[] = {0, 1, 31, 32, 33, 1000, 65536, 150001};
    struct test_random random = {33};

    for (unsigned k = 0; k < N_ENCODERS; k++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct chunk chunk = encode(k, &random, sizes[i]);
            expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes, 0, 8 * k + (unsigned)i,
                        encoders[k]);
            free(chunk.data);
        }
}

/* ---- damage ---------------------------------------------------------------------------------- */

Test(blosc_simt, chunks_cut_off_anywhere)
{
    struct test_random random = {34};

    for (unsigned k = 0; k < 4; k++) {
        struct recipe r = any_recipe(&random, 500);
        struct chunk chunk = forge(&r, &random);
        for (size_t nbytes = 0; nbytes < chunk.nbytes; nbytes++)
            expect_same(chunk.data, nbytes, chunk.out_nbytes, 0, (unsigned)nbytes, "cut off");
        for (size_t avail = 0; avail < chunk.out_nbytes; avail += 17)
            expect_same(chunk.data, chunk.nbytes, avail, 0, (unsigned)avail, "less room");
        free(chunk.data);
    }
}

/* Each bit of headers and starts, and others of what follows. */
Test(blosc_simt, damaged_chunks)
{
    struct test_random random = {35};

    for (unsigned k = 0; k < 24; k++) {
        struct recipe r = any_recipe(&random, 700);
        struct chunk chunk = k % 4 ? forge(&r, &random) : encode(k / 4, &random, 50 * k);
        for (unsigned i = 0; i < 150; i++) {
            size_t at = i < 48 ? i : test_random_below(&random, chunk.nbytes);
            uint8_t flip = (uint8_t)(1 << test_random_below(&random, 8));
            if (at >= chunk.nbytes)
                continue;
            chunk.data[at] ^= flip;
            expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes, 0, i, "damaged");
            if (at < WHARF_BLOSC_EXTENDED_NBYTES || i % 4 != 0) /* every fourth stays */
                chunk.data[at] ^= flip;
        }
        free(chunk.data);
    }
}

/* ---- bitshuffle's framing -------------------------------------------------------------------- */

static void store_be32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A frame of `n` elements in blocks of `eights` times eight. */
static struct chunk frame(unsigned element_nbytes, size_t n, size_t eights,
                          struct test_random *random)
{
    size_t nbytes = n * element_nbytes, block = 8 * eights * element_nbytes;
    size_t rest = nbytes % (8 * element_nbytes), at = WHARF_BLOSC_FRAME_NBYTES;
    const struct test_data_kind *kind =
        &test_data_kinds[test_random_below(random, test_data_n_kinds)];
    uint8_t *plain = test_data_new(kind, test_random_next(random), nbytes);
    struct chunk chunk = {.data = calloc(1, 2 * nbytes + 64 * n + 64), .out_nbytes = nbytes};

    store_be32(chunk.data + 4, (uint32_t)nbytes);
    store_be32(chunk.data + 8, (uint32_t)block);
    for (size_t done = 0; done < nbytes - rest;) {
        size_t left = nbytes - rest - done, now = left < block ? left : block, packed_nbytes;
        uint8_t *packed = test_pack(WHARF_CODEC_LZ4, NULL, plain + done, now, &packed_nbytes);
        store_be32(chunk.data + at, (uint32_t)packed_nbytes);
        memcpy(chunk.data + at + 4, packed, packed_nbytes);
        at += 4 + packed_nbytes;
        done += now;
        free(packed);
    }
    memcpy(chunk.data + at, plain + nbytes - rest, rest);
    chunk.nbytes = at + rest;
    free(plain);
    return chunk;
}

Test(blosc_simt, frames_whole_cut_off_and_damaged)
{
    struct test_random random = {36};

    for (unsigned k = 0; k < 60; k++) {
        unsigned element = any_element(&random);
        uint32_t parameter = WHARF_BLOSC_PARAMETER_LZ4 + element;
        size_t n = test_random_below(&random, 3000 / element + 20);
        struct chunk chunk = frame(element, n, 1 + test_random_below(&random, 40), &random);
        expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes, parameter, k, "a frame");
        for (unsigned i = 0; i < 20; i++) {
            size_t at = i < 12 ? i : test_random_below(&random, chunk.nbytes);
            expect_same(chunk.data, at, chunk.out_nbytes, parameter, i, "a frame cut off");
            chunk.data[at] ^= (uint8_t)(1 << i % 8);
            expect_same(chunk.data, chunk.nbytes, chunk.out_nbytes, parameter, i, "damaged");
            chunk.data[at] ^= (uint8_t)(i % 8 == 7 ? 0 : 1 << i % 8);
        }
        free(chunk.data);
    }
}
