/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the study of assist warps (tests/gpu/gpu_assist_read.cuh): each consumer comes to
 * the same by each way to read an array; and arrays that are units again and again.
 */
#include <cerrno>
#include <criterion/criterion.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
}
#include "tests/gpu/gpu_assist_data.h"
#include "tests/gpu/gpu_assist_read.cuh"

using namespace wharf;

namespace
{

constexpr unsigned N_WARPS = 3;
constexpr uint32_t CODEC = WHARF_CODEC_BDI;
constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

/* What a consumer writes to, and the vector. */
struct results {
    std::vector<uint64_t> totals = std::vector<uint64_t>(STUDY_N_BINS);
    std::vector<float> rows;
    std::vector<float> vector;
    study_memory memory;

    results(assist_consumer consumer, const assist_array &array)
        : rows(assist_n_rows(consumer, &array) + 1), vector(assist_n_vector(consumer, &array) + 8)
    {
        for (uint32_t i = 0; i < vector.size(); i++)
            vector[i] = assist_vector(consumer, i);
        memory = {totals.data(), rows.data(), vector.data(), (uint32_t)vector.size() - 8,
                  (uint32_t)rows.size() - 1};
    }
};

template <typename C>
void read_raw(const assist_array &array, const study_memory &memory, simt::options options)
{
    std::vector<uint8_t> raw(assist_raw_nbytes(&array) + 16);
    uint8_t *quads = raw.data() + (16 - (uintptr_t)raw.data() % 16) % 16;
    assist_array_write_raw(&array, quads);
    simt::run_block<study_shared>(options, N_WARPS, [&](study_shared &s, unsigned warp) {
        C consumer;
        unsigned thread = 32 * warp + lane_id();
        consumer.memory = memory;
        consumer.begin(s, thread, 32 * N_WARPS);
        syncblock();
        study_read_raw<C, false>(consumer, reinterpret_cast<const u32x4 *>(quads),
                                 (uint32_t)(assist_raw_nbytes(&array) / 4096), 65536,
                                 {warp, N_WARPS});
        syncblock();
        consumer.end(s, thread, 32 * N_WARPS);
    });
}

struct by_warps {
    study_shared consumer;
    line_table<CODEC> table;
    line_group_space spaces[N_WARPS];
};

template <typename C, bool IS_BY_LINES>
void read_compressed(const line_array &array, const study_memory &memory, simt::options options)
{
    uint32_t n_groups = (uint32_t)count_line_groups(array);
    simt::run_block<by_warps>(options, N_WARPS, [&](by_warps &s, unsigned warp) {
        C consumer;
        unsigned thread = 32 * warp + lane_id();
        consumer.memory = memory;
        consumer.begin(s.consumer, thread, 32 * N_WARPS);
        if (warp == 0)
            fill_line_table(s.table, array);
        init_line_group_space(s.spaces[warp]);
        syncblock();
        if (IS_BY_LINES)
            study_read_lines(consumer, s.table, array, n_groups, {warp, N_WARPS});
        else
            study_read_groups(consumer, s.table, s.spaces[warp], array, 0, n_groups,
                              {warp, N_WARPS});
        syncblock();
        consumer.end(s.consumer, thread, 32 * N_WARPS);
    });
}

template <typename C>
void read_by_assists(const line_array &array, const study_memory &memory, simt::options options)
{
    constexpr unsigned N_WORKERS = 2;
    using assists = line_assists<CODEC, 3, 2, STUDY_TYPE>;
    struct shared {
        study_shared consumer;
        assists warps;
    };
    simt::run_block<shared>(options, N_WORKERS + 2, [&](shared &s, unsigned warp) {
        C consumer;
        unsigned thread = 32 * warp + lane_id();
        consumer.memory = memory;
        consumer.begin(s.consumer, thread, 32 * (N_WORKERS + 2));
        if (warp == 0)
            init_line_assists(s.warps, array, N_WORKERS);
        syncblock();
        line_row row = study_row<C>({0, 1}, (uint32_t)count_line_groups(array));
        if (warp >= N_WORKERS)
            run_line_assist(s.warps, array, warp - N_WORKERS, row);
        else
            study_work(consumer, s.warps, row, {warp, N_WORKERS});
        syncblock();
        consumer.end(s.consumer, thread, 32 * (N_WORKERS + 2));
    });
}

template <typename C>
void expect_right(assist_consumer number, const assist_array &array, const char *what,
                  const std::function<void(const study_memory &)> &read)
{
    results got(number, array);
    read(got.memory);
    cr_assert(assist_is_right(number, &array, got.totals.data(), got.rows.data()), "%s %s",
              assist_consumer_names[number], what);
    /* The check sees one wrong bit. */
    if (got.memory.n_rows > 0)
        got.rows[got.memory.n_rows / 2] += 3;
    else
        got.totals[number == ASSIST_HISTOGRAM ? 255 : 0] ^= 1;
    cr_assert(!assist_is_right(number, &array, got.totals.data(), got.rows.data()), "%s %s",
              assist_consumer_names[number], what);
}

template <typename C>
void expect_all_ways(assist_consumer number, const assist_array &stored, const line_array &array,
                     simt::options options)
{
    expect_right<C>(number, stored, "raw",
                    [&](const study_memory &m) { read_raw<C>(stored, m, options); });
    expect_right<C>(number, stored, "load",
                    [&](const study_memory &m) { read_compressed<C, true>(array, m, options); });
    expect_right<C>(number, stored, "groups",
                    [&](const study_memory &m) { read_compressed<C, false>(array, m, options); });
    expect_right<C>(number, stored, "assists",
                    [&](const study_memory &m) { read_by_assists<C>(array, m, options); });
}

/* Grains of data, so that groups of all kinds of lines come. */
std::vector<uint8_t> make_data(enum test_lines_kind kind)
{
    std::vector<uint8_t> data(2 * ASSIST_GRAIN_NBYTES + 5);
    test_lines_fill(kind, 3, data.data(), data.size());
    for (size_t at = 1; at < data.size(); at += 2)
        data[at] &= 0xbf; /* as numbers of 2 bytes they are below 2 */
    return data;
}

} // namespace

Test(gpu_assist_simt, all_consumers_by_all_ways)
{
    struct wharf_line_choice choice = {CODEC, 128, WHARF_LINE_PACKED, 0};

    for (unsigned order = 0; order < 6; order++) {
        std::vector<uint8_t> data = make_data(order % 2 ? TEST_LINES_WORDS : TEST_LINES_BASES);
        simt::options options = {ORDERS[order % 3], order};
        struct assist_array stored;
        line_array array;
        cr_assert_eq(assist_array_init(&stored, &choice, data.data(), data.size(), 2 * data.size()),
                     0);
        struct test_guard guard =
            test_guard_copy(stored.stream, stored.stream_nbytes, TEST_GUARD_END);
        cr_assert_eq(open_line_array(&array, guard.data, guard.data, stored.stream_nbytes, nullptr),
                     0);
        expect_all_ways<study_sum>(ASSIST_SUM, stored, array, options);
        expect_all_ways<study_filter>(ASSIST_FILTER, stored, array, options);
        expect_all_ways<study_histogram>(ASSIST_HISTOGRAM, stored, array, options);
        expect_all_ways<study_sparse>(ASSIST_SPARSE, stored, array, options);
        expect_all_ways<study_matrix>(ASSIST_MATRIX, stored, array, options);
        test_guard_free(&guard);
        assist_array_deinit(&stored);
    }
}

/* The stream of units again and again is the one that the encoder gives for all of them. */
Test(gpu_assist_simt, repeated_units_are_what_an_encoder_makes_of_them)
{
    std::vector<uint8_t> data = make_data(TEST_LINES_MIXED);

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        struct assist_array stored;
        size_t nbytes;
        cr_assert_eq(
            assist_array_init(&stored, &choice, data.data(), data.size(), 5 * ASSIST_GRAIN_NBYTES),
            0);
        cr_assert_eq(stored.n_units, 2);
        std::vector<uint8_t> raw(assist_raw_nbytes(&stored));
        assist_array_write_raw(&stored, raw.data());
        uint8_t *want = test_lines_encode(&choice, raw.data(), raw.size(), &nbytes);
        cr_assert_eq(stored.stream_nbytes, nbytes);
        cr_assert_eq(memcmp(stored.stream, want, nbytes), 0);
        free(want);
        assist_array_deinit(&stored);
    }
}

Test(gpu_assist_simt, less_than_a_grain_is_refused)
{
    static const uint8_t data[ASSIST_GRAIN_NBYTES - 1] = {0};
    struct wharf_line_choice choice = {CODEC, 128, WHARF_LINE_PACKED, 0};
    struct assist_array stored;

    cr_assert_eq(assist_array_init(&stored, &choice, data, sizeof(data), 1 << 20), -EINVAL);
}
