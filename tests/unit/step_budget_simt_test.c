/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_budget_simt_test: the step budget of device decoders (kernels/decoder.cuh): that no stream
 * reaches it, on those that ask for the most steps for their size, and what happens at its end.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_rounds.h"

/* ---- streams that ask for the most ---------------------------------------------------------- */

/* Ten bits. */
static void put_empty_fixed(struct test_forge *forge)
{
    test_forge_field(forge, 0 | 1 << 1, 3);
    test_forge_field(forge, 0, 7); /* the end: seven zeros */
}

/* 18 bits, for which places where symbols begin are looked for in vain. */
static void put_short_fixed(struct test_forge *forge)
{
    test_forge_field(forge, 0 | 1 << 1, 3);
    test_forge_field(forge, 0x0c, 8); /* literal 0: 00110000, the first bit lowest */
    test_forge_field(forge, 0, 7);
    forge->out_nbytes++;
}

static void put_empty_stored(struct test_forge *forge)
{
    test_forge_stored(forge, 0, 0);
}

/* The smallest dynamic header: literal 0 has the word 0, the end 1. */
static void put_least_header(struct test_forge *forge)
{
    test_forge_field(forge, 0 | 2 << 1, 3);
    test_forge_field(forge, 0 | 0 << 5 | 14 << 10, 14); /* 257, 1 and 18 lengths */
    /* In the order of the code length code: 18 has one bit, 0 and 1 have two. */
    for (unsigned i = 0; i < 18; i++)
        test_forge_field(forge, i == 2 ? 1 : i == 3 || i == 17 ? 2 : 0, 3);
    test_forge_field(forge, 3, 2); /* 1 */
    test_forge_field(forge, 0 | 127 << 1, 8);
    test_forge_field(forge, 0 | (117 - 11) << 1, 8); /* 138 + 117 times 0 */
    test_forge_field(forge, 3, 2);                   /* 1 */
    test_forge_field(forge, 1, 2);                   /* 0 */
}

static void put_literals(struct test_forge *forge, unsigned n)
{
    put_least_header(forge);
    for (unsigned i = 0; i < n; i++)
        test_forge_field(forge, 0, 1);
    test_forge_field(forge, 1, 1);
    forge->out_nbytes += n;
}

static void put_empty_dynamic(struct test_forge *forge)
{
    put_literals(forge, 0);
}

static void put_short_dynamic(struct test_forge *forge)
{
    put_literals(forge, 1);
}

/* One-bit symbols, more than a region has. */
static void put_one_bit_symbols(struct test_forge *forge)
{
    put_literals(forge, 7000);
}

/* By turns, so that no block finds the tables of the one before. */
static void put_mixed(struct test_forge *forge)
{
    put_short_fixed(forge);
    put_short_dynamic(forge);
}

static void put_drawn(struct test_forge *forge)
{
    test_forge_block(forge, 1, 0);
}

typedef void put_fn(struct test_forge *forge);
static put_fn *const put_block[] = {put_empty_fixed,     put_short_fixed,   put_empty_stored,
                                    put_empty_dynamic,   put_short_dynamic, put_mixed,
                                    put_one_bit_symbols, put_drawn};
enum { N_BLOCKS = sizeof(put_block) / sizeof(put_block[0]) };

static void make_stream(struct test_forge *forge, unsigned k, size_t nbytes)
{
    test_forge_init(forge, k + 1);
    while (test_forge_nbytes(forge) < nbytes)
        put_block[k](forge);
    test_forge_stored(forge, 0, 1);
}

/* Members of no bytes: 20 bytes each. */
static size_t make_empty_members(uint8_t *to, size_t n_members)
{
    static const uint8_t member[20] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3};
    for (size_t i = 0; i < n_members; i++)
        memcpy(to + i * sizeof(member), member, sizeof(member));
    return n_members * sizeof(member);
}

/* ---- decoding with a budget ----------------------------------------------------------------- */

/* Returns the collectives of the warp. */
static uint64_t decode(uint32_t kernel, const uint8_t *in, size_t in_nbytes, size_t out_avail,
                       uint32_t budget, struct wharf_outcome *ret_outcome)
{
    struct test_guard source = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    struct wharf_device_chunk chunk = {.in = source.data,
                                       .in_nbytes = in_nbytes,
                                       .out = out.data,
                                       .out_avail = out_avail,
                                       .codec = kernel & ~WHARF_DEVICE_KERNEL_BITS,
                                       .step_budget = budget};
    struct wharf_device_batch batch = {&chunk, ret_outcome, 1, kernel};
    uint64_t n_steps;
    memset(ret_outcome, 0xff, sizeof(*ret_outcome));
    cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_DESCENDING, budget, &n_steps), 0);
    test_guard_free(&source);
    test_guard_free(&out);
    return n_steps;
}

static struct wharf_outcome decode_cpu(uint32_t kernel, const uint8_t *in, size_t in_nbytes,
                                       size_t out_avail)
{
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    const struct wharf_codec_setting setting = {0};
    struct wharf_outcome want;
    uint32_t codec = kernel & ~WHARF_DEVICE_KERNEL_BITS;
    wharf_codec_find(codec)->ops->decode(in, in_nbytes, out.data, out_avail, &setting, &want);
    test_guard_free(&out);
    return want;
}

static bool is_spent(const struct wharf_outcome *a, size_t in_nbytes)
{
    return a->result == WHARF_INTERNAL && a->reason == WHARF_REASON_STEP_BUDGET &&
           a->bit_offset <= 8 * in_nbytes && a->in_nbytes == 0 && a->out_nbytes == 0;
}

/*
 * The budget counts turns of loops.  What a turn costs is bounded by constants, so that
 * collectives, which the SIMT layer counts, are in proportion to it: fixed blocks of one literal,
 * for which nothing else is dearer, ask for 1.3 for each unit of their whole budget.
 */
enum { COLLECTIVES_PER_STEP = 3 };

/* Half of the budget is enough, and the warp's real steps are in proportion to it. */
static void check_margin(uint32_t kernel, const uint8_t *in, size_t in_nbytes, size_t out_avail,
                         const char *what, unsigned number)
{
    uint32_t budget = wharf_simt_step_budget((uint32_t)in_nbytes, (uint32_t)out_avail);
    struct wharf_outcome want = decode_cpu(kernel, in, in_nbytes, out_avail);
    struct wharf_outcome got;
    uint64_t n_steps = decode(kernel, in, in_nbytes, out_avail, budget / 2, &got);
    cr_assert(test_outcome_same(&got, &want), "%s %u, %zu bytes: got %s at bit %" PRIu64, what,
              number, in_nbytes, wharf_reason_name(got.reason), got.bit_offset);
    cr_assert_lt(n_steps, (uint64_t)COLLECTIVES_PER_STEP * budget,
                 "%s %u: %" PRIu64 " collectives, a budget of %u", what, number, n_steps, budget);
}

Test(step_budget_simt, half_of_it_is_enough_for_what_asks_for_the_most)
{
    for (unsigned k = 0; k < N_BLOCKS; k++) {
        struct test_forge forge;
        /* Many times what a stream has beside its blocks, at a third too. */
        make_stream(&forge, k, TEST_ROUNDS(3000));
        size_t nbytes = test_forge_nbytes(&forge);
        check_margin(WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes, "blocks", k);
        check_margin(WHARF_DEVICE_SERIAL | WHARF_CODEC_DEFLATE, forge.data, nbytes,
                     forge.out_nbytes, "serial", k);
        check_margin(WHARF_DEVICE_BLOCK | WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes,
                     "block", k);
        /* The exact path once more over the last region, or over what is cut off. */
        if (forge.out_nbytes)
            check_margin(WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes - 1, "full", k);
        check_margin(WHARF_CODEC_DEFLATE, forge.data, nbytes - 6, forge.out_nbytes, "cut", k);
        test_forge_deinit(&forge);
    }
}

Test(step_budget_simt, half_of_it_is_enough_for_many_empty_members)
{
    static uint8_t members[200 * 20];
    size_t nbytes = make_empty_members(members, 200);
    check_margin(WHARF_CODEC_GZIP, members, nbytes, 0, "members", 0);
    check_margin(WHARF_CODEC_GZIP, members, nbytes - 3, 0, "members", 1);
}

/* Elements of Snappy and sequences of LZ4 that none of the paths for many at a time takes: a
 * literal with two bytes and with four that say so, a match that says its distance in four bytes,
 * and one of 562 bytes with three length bytes. */
static const struct unusual {
    uint32_t codec;
    uint32_t out_nbytes;
    uint32_t nbytes;
    uint8_t bytes[8];
} unusual[] = {
    {WHARF_CODEC_SNAPPY, 1, 4, {61 << 2, 0, 0, 'x'}},
    {WHARF_CODEC_SNAPPY, 1, 6, {63 << 2, 0, 0, 0, 0, 'x'}},
    {WHARF_CODEC_SNAPPY, 1, 5, {3, 1, 0, 0, 0}},
    {WHARF_CODEC_LZ4, 562, 6, {0x0f, 1, 0, 255, 255, 33}},
};
enum { N_UNUSUAL = sizeof(unusual) / sizeof(unusual[0]), N_REPEATED = 400 };

/* So many of them between what makes a stream of it. */
static size_t make_unusual(const struct unusual *unit, uint8_t *to, size_t *ret_out_nbytes)
{
    static const uint8_t last[] = {0x50, '1', '2', '3', '4', '5'};
    size_t out_nbytes = 1 + (size_t)N_REPEATED * unit->out_nbytes;
    bool is_lz4 = unit->codec == WHARF_CODEC_LZ4;
    size_t n = 0;

    if (is_lz4) {
        /* The first match belongs to the literal's sequence. */
        memcpy(to, (const uint8_t[]){0x1f, 'y', 1, 0, 255, 255, 33}, 7);
        n = 7;
        out_nbytes += unit->out_nbytes + 5;
    } else {
        to[n++] = (uint8_t)(out_nbytes | 128);
        to[n++] = (uint8_t)(out_nbytes >> 7);
        to[n++] = 0;
        to[n++] = 'y';
    }
    for (unsigned i = 0; i < N_REPEATED; i++, n += unit->nbytes)
        memcpy(to + n, unit->bytes, unit->nbytes);
    if (is_lz4)
        memcpy(to + n, last, sizeof(last));
    *ret_out_nbytes = out_nbytes;
    return n + (is_lz4 ? sizeof(last) : 0);
}

Test(step_budget_simt, half_of_it_is_enough_for_sequences_that_are_taken_alone)
{
    for (unsigned k = 0; k < N_UNUSUAL; k++) {
        uint8_t stream[16 + N_REPEATED * 8];
        size_t out_nbytes;
        size_t nbytes = make_unusual(&unusual[k], stream, &out_nbytes);
        struct wharf_outcome want = decode_cpu(unusual[k].codec, stream, nbytes, out_nbytes);
        cr_assert_eq(want.result, WHARF_OK, "%u: %s", k, wharf_reason_name(want.reason));
        check_margin(unusual[k].codec, stream, nbytes, out_nbytes, "unusual", k);
        check_margin(unusual[k].codec, stream, nbytes - 9, out_nbytes, "unusual, cut", k);
        check_margin(WHARF_DEVICE_BLOCK | unusual[k].codec, stream, nbytes, out_nbytes,
                     "unusual, by a block", k);
    }
}

/* What a frame of zstd may have over and over: blocks but for their header's last bit; of several
 * bytes of output for one of input each is bounded by its output.  Then frames. */
static const struct repeated {
    uint32_t out_nbytes;
    uint32_t is_frame;
    uint32_t nbytes;
    uint8_t bytes[24];
} repeated[] = {
    {0, 0, 3, {0, 0, 0}},                               /* nothing, raw */
    {1, 0, 4, {1 << 3, 0, 0, 'x'}},                     /* a byte, raw */
    {0, 0, 4, {1 << 1, 0, 0, 'x'}},                     /* no byte, RLE */
    {0, 0, 5, {2 << 1 | 2 << 3, 0, 0, 0, 0}},           /* neither literals nor sequences */
    {1, 0, 6, {2 << 1 | 3 << 3, 0, 0, 1 << 3, 'x', 0}}, /* a literal */
    /* A sequence without bits: tables of one symbol, a literal, the last offset, three bytes. */
    {4, 0, 11, {2 << 1 | 8 << 3, 0, 0, 1 << 3, 'x', 1, 0x54, 1, 0, 0, 1}},
    /* A hundred of them, and as many literals of RLE. */
    {400, 0, 12, {2 << 1 | 9 << 3, 0, 0, 0x45, 6, 'x', 100, 0x54, 1, 0, 0, 1}},
    {0, 1, 8, {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}},       /* a skippable frame */
    {0, 1, 9, {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}}, /* a frame of nothing */
    {0, 1, 13, {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51}}, /* checksum */
};
enum { N_REPEATED_KINDS = sizeof(repeated) / sizeof(repeated[0]) };

/* So many of them: blocks are those of one frame, which ends with a raw one of nothing. */
static size_t make_repeated(const struct repeated *unit, unsigned n_units, uint8_t *to)
{
    static const uint8_t header[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00}, last[] = {1, 0, 0};
    size_t n = unit->is_frame ? 0 : sizeof(header);

    memcpy(to, header, n);
    for (unsigned i = 0; i < n_units; i++, n += unit->nbytes)
        memcpy(to + n, unit->bytes, unit->nbytes);
    if (!unit->is_frame) {
        memcpy(to + n, last, sizeof(last));
        n += sizeof(last);
    }
    return n;
}

Test(step_budget_simt, half_of_it_is_enough_for_small_parts_of_zstd)
{
    static const uint32_t kernels[] = {WHARF_CODEC_ZSTD, WHARF_DEVICE_CREW | WHARF_CODEC_ZSTD};

    for (unsigned k = 0; k < N_REPEATED_KINDS; k++) {
        const struct repeated *unit = &repeated[k];
        uint8_t stream[16 + N_REPEATED * sizeof(unit->bytes)];
        size_t out_nbytes = (size_t)N_REPEATED * unit->out_nbytes;
        size_t nbytes = make_repeated(unit, N_REPEATED, stream);
        struct wharf_outcome want = decode_cpu(WHARF_CODEC_ZSTD, stream, nbytes, out_nbytes);
        cr_assert_eq(want.result, WHARF_OK, "%u: %s", k, wharf_reason_name(want.reason));
        cr_assert_eq(want.out_nbytes, out_nbytes, "%u", k);
        for (unsigned i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
            check_margin(kernels[i], stream, nbytes, out_nbytes, "zstd", k);
            check_margin(kernels[i], stream, nbytes - 1, out_nbytes, "zstd, cut", k);
        }
    }
}

/* The least budget with which the stream ends as it should; with any less it ends as spent. */
static uint32_t find_least(uint32_t kernel, const uint8_t *in, size_t in_nbytes, size_t out_avail)
{
    struct wharf_outcome want = decode_cpu(kernel, in, in_nbytes, out_avail);
    uint32_t low = 0;
    uint32_t high = wharf_simt_step_budget((uint32_t)in_nbytes, (uint32_t)out_avail);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        struct wharf_outcome got;
        decode(kernel, in, in_nbytes, out_avail, middle, &got);
        if (test_outcome_same(&got, &want)) {
            high = middle;
        } else {
            cr_assert(is_spent(&got, in_nbytes), "budget %u: %s at bit %" PRIu64, middle,
                      wharf_reason_name(got.reason), got.bit_offset);
            low = middle;
        }
    }
    return high;
}

Test(step_budget_simt, a_chunk_that_reaches_it_ends_as_internal)
{
    for (unsigned k = 0; k < N_BLOCKS; k++) {
        struct test_forge forge;
        struct wharf_outcome got;
        make_stream(&forge, k, 300);
        size_t nbytes = test_forge_nbytes(&forge);
        uint32_t least = find_least(WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes);
        cr_assert_gt(least, 6, "blocks %u", k);
        for (uint32_t budget = 1; budget < least; budget += 1 + least / 40) {
            decode(WHARF_CODEC_DEFLATE, forge.data, nbytes, forge.out_nbytes, budget, &got);
            cr_assert(is_spent(&got, nbytes), "blocks %u, budget %u: %s", k, budget,
                      wharf_reason_name(got.reason));
        }
        test_forge_deinit(&forge);
    }
}

/* A budget is one of the chunk: members share it. */
Test(step_budget_simt, members_take_from_one_budget)
{
    uint8_t members[40 * 20];
    size_t nbytes = make_empty_members(members, 40);
    uint32_t few = find_least(WHARF_CODEC_GZIP, members, nbytes / 4, 0);
    uint32_t many = find_least(WHARF_CODEC_GZIP, members, nbytes, 0);
    cr_assert_eq(many, 4 * few);
}

/* As many blocks, as much of it. */
Test(step_budget_simt, blocks_of_zstd_take_from_it)
{
    for (unsigned k = 0; k < N_REPEATED_KINDS; k++) {
        const struct repeated *unit = &repeated[k];
        uint8_t stream[16 + 80 * sizeof(unit->bytes)];
        if (unit->is_frame)
            continue;
        size_t few_nbytes = make_repeated(unit, 20, stream);
        uint32_t few = find_least(WHARF_CODEC_ZSTD, stream, few_nbytes, 20 * unit->out_nbytes);
        size_t many_nbytes = make_repeated(unit, 80, stream);
        uint32_t many = find_least(WHARF_CODEC_ZSTD, stream, many_nbytes, 80 * unit->out_nbytes);
        cr_assert_gt(few, 20, "%u", k);
        /* The last block is one more. */
        cr_assert_gt(many, 3 * few, "%u: %u, and %u", k, many, few);
    }
}
