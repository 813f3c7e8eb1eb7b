/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4 and snappy on the device against the CPU engine: streams of any sequences, of kinds that the
 * device writes in ways of its own (columns of 8-byte values, many short sequences, matches that
 * reach into the ones before them, matches that are cut into several), and damaged ones, from and
 * to memory at any alignment that ends at untouchable pages.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_random.h"
#include "tests/unit/device_compare.h"

enum { IN_NBYTES = 40000, OUT_NBYTES = 1 << 18 };
/* Of streams that a warp decodes, and of those of which a block takes several parts and batches. */
enum { SHORT_IN = 3000, SHORT_OUT = 12000, LONG_IN = 38000, LONG_OUT = 150000 };

enum kind { COLUMN, TEXT, NEAR, LONG, N_KINDS };

struct writer {
    struct test_random random;
    size_t most_in, most_out; /* about */
    uint64_t n_good;          /* matches, about, to one that is bad */
    uint8_t in[IN_NBYTES];
    size_t n_in;
    size_t n_out; /* what it decodes to */
};

static size_t below(struct writer *w, size_t limit)
{
    return test_random_below(&w->random, limit);
}

static void put(struct writer *w, size_t byte)
{
    w->in[w->n_in++] = (uint8_t)byte;
}

static void put_noise(struct writer *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(w, below(w, 256));
    w->n_out += n;
}

static size_t some_literals(struct writer *w, enum kind kind)
{
    if (test_random_one_in(&w->random, 60))
        return below(w, 330);
    return kind == COLUMN ? below(w, 4) * below(w, 4) : kind == TEXT ? below(w, 6) : below(w, 3);
}

static size_t some_length(struct writer *w, enum kind kind)
{
    size_t most = kind == COLUMN ? 300 : kind == LONG ? 200 : 14;

    return 4 + below(w, test_random_one_in(&w->random, 30) ? 1100 : most);
}

/* At most what is there; seldom more, which is bad. */
static size_t some_distance(struct writer *w, enum kind kind)
{
    size_t most = w->n_out < 60000 ? w->n_out : 60000;

    if (test_random_one_in(&w->random, w->n_good))
        return most + 1;
    if (kind == COLUMN && !test_random_one_in(&w->random, 20) && most >= 8)
        return 8;
    if (kind == NEAR || test_random_one_in(&w->random, 8))
        most = most < 40 ? most : 40;
    return 1 + below(w, most);
}

static void put_lengths(struct writer *w, size_t n)
{
    for (; n >= 255; n -= 255)
        put(w, 255);
    put(w, n);
}

static void put_lz4(struct writer *w, enum kind kind)
{
    put(w, 0xf0); /* 15 literals, so that there is something to copy */
    put(w, 0);
    put_noise(w, 15);
    put(w, 1), put(w, 0);
    w->n_out += 4;
    while (w->n_in < w->most_in && w->n_out < w->most_out) {
        size_t n = some_literals(w, kind), length = some_length(w, kind);
        put(w, (n < 15 ? n : 15) << 4 | (length < 19 ? length - 4 : 15));
        if (n >= 15)
            put_lengths(w, n - 15);
        put_noise(w, n);
        size_t distance = some_distance(w, kind);
        put(w, distance & 255), put(w, distance >> 8);
        if (length >= 19)
            put_lengths(w, length - 19);
        w->n_out += length;
    }
    put(w, 12 << 4);
    put_noise(w, 12);
}

static void put_snappy_literals(struct writer *w, size_t n)
{
    if (n == 0)
        return;
    if (n > 60 || test_random_one_in(&w->random, 50)) {
        bool is_two = n > 256;
        put(w, (is_two ? 61 : 60) << 2);
        put(w, (n - 1) & 255);
        if (is_two)
            put(w, (n - 1) >> 8);
    } else {
        put(w, (n - 1) << 2);
    }
    put_noise(w, n);
}

static void put_snappy_match(struct writer *w, size_t length, size_t distance)
{
    for (size_t part; length > 0; length -= part, w->n_out += part) {
        part = length < 64 ? length : 64;
        if (part >= 4 && part < 12 && distance < 2048) {
            put(w, 1 | (part - 4) << 2 | distance >> 8 << 5);
            put(w, distance & 255);
        } else {
            put(w, 2 | (part - 1) << 2);
            put(w, distance & 255), put(w, distance >> 8);
        }
    }
}

static void put_snappy(struct writer *w, enum kind kind)
{
    w->n_in = 3; /* the length, when it is known */
    put_snappy_literals(w, 9);
    while (w->n_in < w->most_in && w->n_out < w->most_out) {
        put_snappy_literals(w, some_literals(w, kind));
        put_snappy_match(w, some_length(w, kind), some_distance(w, kind));
    }
    for (unsigned i = 0; i < 3; i++)
        w->in[i] = (uint8_t)((w->n_out >> 7 * i & 127) | (i < 2 ? 128 : 0));
}

static void expect_same(uint32_t kernel, const uint8_t *stream, size_t nbytes, size_t out_avail,
                        enum wharf_simt_order order)
{
    const struct wharf_device_chunk chunk = {.in = stream,
                                             .in_nbytes = nbytes,
                                             .out_avail = out_avail,
                                             .codec = kernel & ~WHARF_DEVICE_KERNEL_BITS};

    compare_on_device(kernel, chunk, 0, 3 * nbytes + order, "a stream");
}

static void try_kinds(uint32_t kernel, unsigned n_streams, bool are_long)
{
    uint32_t codec = kernel & ~WHARF_DEVICE_KERNEL_BITS;
    static struct writer w;
    unsigned n_good = 0;

    for (unsigned i = 0; i < n_streams; i++) {
        w = (struct writer){.random = {i + 1},
                            .most_in = are_long ? LONG_IN : SHORT_IN,
                            .most_out = are_long ? LONG_OUT : SHORT_OUT,
                            .n_good = are_long ? 20000 : 400};
        if (codec == WHARF_CODEC_LZ4)
            put_lz4(&w, (enum kind)(i % N_KINDS));
        else
            put_snappy(&w, (enum kind)(i % N_KINDS));
        size_t room = w.n_out < OUT_NBYTES ? w.n_out : OUT_NBYTES;
        struct wharf_outcome outcome;
        static uint8_t out[OUT_NBYTES];
        wharf_codec_find(codec)->ops->decode(w.in, w.n_in, out, room, NULL, &outcome);
        n_good += outcome.result == WHARF_OK;
        expect_same(kernel, w.in, w.n_in, room, (enum wharf_simt_order)(i % 3));
        /* Behind the bytes that say how long all is. */
        w.in[3 + below(&w, w.n_in - 3)] ^= (uint8_t)(1u << below(&w, 8));
        expect_same(kernel, w.in, w.n_in, room, (enum wharf_simt_order)(i % 3));
        expect_same(kernel, w.in, below(&w, w.n_in), room, WHARF_SIMT_RANDOM);
    }
    cr_assert(n_good > n_streams / 3, "only %u streams are good", n_good);
}

Test(lz_simt, lz4_of_all_kinds)
{
    try_kinds(WHARF_CODEC_LZ4, 80, false);
}

Test(lz_simt, snappy_of_all_kinds)
{
    try_kinds(WHARF_CODEC_SNAPPY, 80, false);
}

Test(lz_simt, lz4_of_all_kinds_by_a_block)
{
    try_kinds(WHARF_DEVICE_BLOCK | WHARF_CODEC_LZ4, 12, false);
    try_kinds(WHARF_DEVICE_BLOCK | WHARF_CODEC_LZ4, 4, true);
}

Test(lz_simt, snappy_of_all_kinds_by_a_block)
{
    try_kinds(WHARF_DEVICE_BLOCK | WHARF_CODEC_SNAPPY, 12, false);
    try_kinds(WHARF_DEVICE_BLOCK | WHARF_CODEC_SNAPPY, 4, true);
}
