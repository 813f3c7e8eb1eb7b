/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assist warps (kernels/line/wharf_assist.cuh): blocks of workers and assist warps go through all
 * kinds of arrays, whole and damaged; workers that stop early; barriers of the SIMT layer.  And
 * warps that visit groups (wharf_group.cuh), on the same arrays.
 */
#include <criterion/criterion.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_random.h"
}
#include "kernels/line/wharf_assist.cuh"

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};
constexpr unsigned N_WORKERS = 3;

struct outcome {
    std::vector<uint8_t> bytes; /* of whole groups */
    std::vector<uint8_t> ok;    /* of groups, by each worker */
    uint64_t error = UINT64_MAX;
};

/* A worker copies every third step of each group.  They stop after n_wanted items. */
template <uint32_t CODEC, uint32_t TYPE, unsigned N_STAGES, unsigned N_ASSISTS>
void read_in(line_array array, const line_row &row, uint64_t n_wanted, unsigned order, outcome &got)
{
    using assists = line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE>;
    array.error = &got.error;
    simt::run_block<assists>(
        {ORDERS[order % 3], order}, N_WORKERS + N_ASSISTS, [&](assists &s, unsigned warp) {
            if (warp == 0)
                init_line_assists(s, array, N_WORKERS);
            syncblock();
            if (warp >= N_WORKERS) {
                run_line_assist(s, array, warp - N_WORKERS, row);
                return;
            }
            for (uint64_t k = 0; k < n_wanted; k++) {
                bool ok;
                const u32x4 *group = wait_line_group(s, k, &ok);
                for (unsigned i = warp; i < 8; i += N_WORKERS) {
                    u32x4 quad = load(&group[32 * i + lane_id()]);
                    memcpy(&got.bytes[k * 4096 + 512 * i + 16 * lane_id()], &quad, 16);
                }
                if (lane_id() == 3)
                    got.ok[k * N_WORKERS + warp] = ok;
                release_line_group(s, k);
            }
            if (n_wanted < row.n)
                stop_line_assists(s);
        });
}

/* By as many assist warps as there are stages, or by fewer. */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE>
void read_by(const line_array &array, const line_row &row, uint64_t n_wanted, unsigned order,
             outcome &got)
{
    if (order / 3 % 3 == 0)
        read_in<CODEC, TYPE, 2, 2>(array, row, n_wanted, order, got);
    else if (order / 3 % 3 == 1)
        read_in<CODEC, TYPE, 4, 3>(array, row, n_wanted, order, got);
    else
        read_in<CODEC, TYPE, 3, 3>(array, row, n_wanted, order, got);
}

outcome read_groups(const line_array &array, const line_row &row, uint64_t n_wanted, unsigned order)
{
    outcome got = {std::vector<uint8_t>(n_wanted * 4096, 0xee),
                   std::vector<uint8_t>(n_wanted * N_WORKERS, 2)};
    switch (array.codec) {
    case WHARF_CODEC_BDI:
        read_by<WHARF_CODEC_BDI>(array, row, n_wanted, order, got);
        break;
    case WHARF_CODEC_FPC:
        read_by<WHARF_CODEC_FPC>(array, row, n_wanted, order, got);
        break;
    case WHARF_CODEC_CPACK:
        read_by<WHARF_CODEC_CPACK>(array, row, n_wanted, order, got);
        break;
    case WHARF_CODEC_BEST:
        read_by<WHARF_CODEC_BEST>(array, row, n_wanted, order, got);
        break;
    default:
        if (array.shape.type == WHARF_LINE_BF16 && order % 2)
            read_by<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(array, row, n_wanted, order, got);
        else
            read_by<WHARF_CODEC_PALETTE>(array, row, n_wanted, order, got);
    }
    return got;
}

/* What two warps of a block come to that visit every second group each. */
struct visited {
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> n_visits; /* of quads */
    uint64_t n_bad[2];
    uint64_t error = UINT64_MAX;
};

template <uint32_t CODEC, uint32_t TYPE>
void visit_in(line_array array, unsigned order, visited &got)
{
    struct shared {
        line_table<CODEC> table;
        line_group_space spaces[2];
    };
    array.error = &got.error;
    simt::run_block<shared>({ORDERS[order % 3], order}, 2, [&](shared &s, unsigned warp) {
        if (warp == 0)
            fill_line_table(s.table, array);
        init_line_group_space(s.spaces[warp]);
        syncblock();
        line_row row = {warp, 2, (count_line_groups(array) + 1 - warp) / 2};
        uint64_t n_bad = visit_line_groups<CODEC, TYPE>(s.table, s.spaces[warp], array, row,
                                                        [&](uint64_t i, const u32x4 &quad) {
                                                            memcpy(&got.bytes[16 * i], &quad, 16);
                                                            got.n_visits[i]++;
                                                        });
        if (lane_id() == 7)
            got.n_bad[warp] = n_bad;
    });
}

visited visit_groups(const line_array &array, unsigned order)
{
    size_t n_quads = array.n_lines << (array.shape.shift - 4);
    visited got = {std::vector<uint8_t>(16 * n_quads), std::vector<uint8_t>(n_quads), {9, 9}};
    switch (array.codec) {
    case WHARF_CODEC_BDI:
        visit_in<WHARF_CODEC_BDI, LINE_ANY_TYPE>(array, order, got);
        break;
    case WHARF_CODEC_FPC:
        visit_in<WHARF_CODEC_FPC, LINE_ANY_TYPE>(array, order, got);
        break;
    case WHARF_CODEC_CPACK:
        visit_in<WHARF_CODEC_CPACK, LINE_ANY_TYPE>(array, order, got);
        break;
    case WHARF_CODEC_BEST:
        visit_in<WHARF_CODEC_BEST, LINE_ANY_TYPE>(array, order, got);
        break;
    default:
        if (array.shape.type == WHARF_LINE_BF16 && order % 2)
            visit_in<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(array, order, got);
        else
            visit_in<WHARF_CODEC_PALETTE, LINE_ANY_TYPE>(array, order, got);
    }
    return got;
}

line_array open_at_guard(struct test_guard *guard, const uint8_t *stream, size_t nbytes)
{
    line_array array;
    *guard = test_guard_copy(stream, nbytes, TEST_GUARD_END);
    if (open_line_array(&array, guard->data, guard->data, nbytes, nullptr) != 0)
        array.n_lines = 0;
    return array;
}

/* Damaged streams give what the reference gives: its output, or its bad line. */
void expect_as_reference(uint32_t codec, const uint8_t *stream, size_t nbytes, size_t n,
                         unsigned order)
{
    struct test_guard guard;
    line_array array = open_at_guard(&guard, stream, nbytes);
    std::vector<uint8_t> want(n + 1);
    struct wharf_outcome result;
    wharf_line_decode_reference(codec, stream, nbytes, want.data(), n, NULL, &result);
    if (array.n_lines > 0 && array.codec == codec && array.raw_nbytes <= n) {
        uint64_t n_groups = count_line_groups(array);
        outcome got = read_groups(array, {0, 1, n_groups}, n_groups, order);
        bool all_ok = true;
        for (uint8_t ok : got.ok)
            all_ok = all_ok && ok;
        cr_assert_eq(all_ok, got.error == UINT64_MAX);
        if (result.result == WHARF_OK) {
            cr_assert(all_ok);
            cr_assert_eq(memcmp(got.bytes.data(), want.data(), array.raw_nbytes), 0);
        }
        if (result.reason == WHARF_REASON_LINE_CONTENT)
            cr_assert(!all_ok);
        visited visits = visit_groups(array, order);
        cr_assert_eq(visits.error, got.error);
        cr_assert_eq(visits.n_bad[0] + visits.n_bad[1] == 0, all_ok);
        cr_assert_eq(memcmp(visits.bytes.data(), got.bytes.data(), visits.bytes.size()), 0);
        for (uint8_t n_visits : visits.n_visits)
            cr_assert_eq(n_visits, 1);
    }
    test_guard_free(&guard);
}

} // namespace

Test(line_assist_simt, arrays_of_all_kinds_of_data)
{
    static uint8_t raw[30001];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = kind == TEST_LINES_MIXED ? sizeof(raw) : 300 + 4000 * ((c + kind) % 3), size;
            test_lines_fill((enum test_lines_kind)kind, c, raw, n);
            uint8_t *stream = test_lines_encode(&choice, raw, n, &size);
            expect_as_reference(choice.codec, stream, size, n, c + kind);
            free(stream);
        }
    }
}

Test(line_assist_simt, some_groups_of_an_array_and_none)
{
    static uint8_t raw[60000];
    struct wharf_line_choice choice = {WHARF_CODEC_FPC, 64, WHARF_LINE_PACKED, 0};
    struct test_guard guard;
    size_t size;

    test_lines_fill(TEST_LINES_WORDS, 5, raw, sizeof(raw));
    uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &size);
    line_array array = open_at_guard(&guard, stream, size);
    for (unsigned order = 0; order < 30; order++) {
        line_row row = {order % 4, 1 + order % 3, order % 5};
        outcome got = read_groups(array, row, row.n, order);
        for (uint64_t k = 0; k < row.n; k++)
            cr_assert_eq(
                memcmp(&got.bytes[4096 * k], raw + 4096 * (row.first + k * row.stride), 4096), 0);
    }
    test_guard_free(&guard);
    free(stream);
}

Test(line_assist_simt, a_kernel_of_another_type_finds_all_lines_bad)
{
    static uint8_t raw[9000];
    struct wharf_line_choice choice = {WHARF_CODEC_PALETTE, 128, WHARF_LINE_PACKED,
                                       WHARF_LINE_E5M2};
    struct test_guard guard;
    size_t size;

    test_lines_fill(TEST_LINES_BYTES, 5, raw, sizeof(raw));
    uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &size);
    line_array array = open_at_guard(&guard, stream, size);
    outcome got = {std::vector<uint8_t>(3 * 4096, 0xee), std::vector<uint8_t>(3 * N_WORKERS, 2)};
    read_by<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(array, {0, 1, 3}, 3, 1, got);
    for (uint8_t ok : got.ok)
        cr_assert_eq(ok, 0);
    for (uint8_t byte : got.bytes)
        cr_assert_eq(byte, 0);
    cr_assert_eq(got.error, 0);
    test_guard_free(&guard);
    free(stream);
}

/* Nobody waits for ever, and no copy is left to come. */
Test(line_assist_simt, workers_that_stop_early_stop_the_assist_warps)
{
    static uint8_t raw[60000];
    struct wharf_line_choice choice = {WHARF_CODEC_BDI, 128, WHARF_LINE_PACKED, 0};
    struct test_guard guard;
    size_t size;

    test_lines_fill(TEST_LINES_BASES, 5, raw, sizeof(raw));
    uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &size);
    line_array array = open_at_guard(&guard, stream, size);
    for (unsigned order = 0; order < 60; order++) {
        uint64_t n_wanted = order % 13;
        outcome got = read_groups(array, {0, 1, 14}, n_wanted, order);
        cr_assert(n_wanted == 0 || memcmp(got.bytes.data(), raw, 4096 * n_wanted) == 0);
    }
    test_guard_free(&guard);
    free(stream);
}

Test(line_assist_simt, every_bit_flipped_and_forged_streams)
{
    static const unsigned choices[] = {0, 7, 14, 20, 25, 34, 45};
    static uint8_t raw[9001];
    struct test_random random = {7};
    size_t size;

    for (unsigned c : choices) {
        struct wharf_line_choice choice = test_lines_choice(c);
        test_lines_fill(TEST_LINES_MIXED, c, raw, 300);
        uint8_t *stream = test_lines_encode(&choice, raw, 300, &size);
        for (size_t bit = 0; bit < 8 * size; bit += 1 + c % 3) {
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_as_reference(choice.codec, stream, size, 300, (unsigned)bit);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(stream);
    }
    for (unsigned i = 0; i < 2 * TEST_LINES_N_CHOICES; i++) {
        struct wharf_line_choice choice = test_lines_choice(i % TEST_LINES_N_CHOICES);
        test_lines_fill(TEST_LINES_MIXED, i, raw, sizeof(raw));
        uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &size);
        size_t from = i % 4 < 2 ? 16 : test_random_below(&random, size);
        for (size_t k = from < 16 ? 16 : from; k < size; k++)
            stream[k] = (uint8_t)test_random_next(&random);
        size_t cut = size - 16 * test_random_below(&random, size / 16);
        expect_as_reference(choice.codec, stream, i % 3 ? size : cut, sizeof(raw), i);
        free(stream);
    }
}

namespace
{

struct one_barrier {
    shared_barrier barrier;
    u32x4 there[8];
};

} // namespace

/* A warp that waits for what nobody does ends the program, instead of never. */
Test(line_assist_simt, a_block_that_waits_for_ever_is_named, .signal = SIGABRT)
{
    simt::run_block<one_barrier>({}, 2, [](one_barrier &s, unsigned warp) {
        if (warp == 0 && lane_id() == 0)
            barrier_init(&s.barrier, 2);
        syncblock();
        if (warp == 0 && lane_id() == 0)
            barrier_arrive(&s.barrier);
        while (!barrier_try(&s.barrier, 0))
            ;
    });
}

Test(line_assist_simt, a_copy_that_outlives_its_block_is_named, .signal = SIGABRT)
{
    alignas(16) static const uint8_t from[128] = {1};
    for (unsigned i = 0; i < 64; i++)
        simt::run_block<one_barrier>({simt::lane_order::random, i}, 1,
                                     [](one_barrier &s, unsigned) {
                                         if (lane_id() == 0)
                                             barrier_init(&s.barrier, 1);
                                         syncblock();
                                         copy_ahead(s.there, from, 128, &s.barrier);
                                     });
}
