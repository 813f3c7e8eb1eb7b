/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_assist_read.cuh: the ways in which the kernels of the study read an array: raw, line by line,
 * group by group, by assist warps.
 *
 * All functions are called by all lanes of a block's warps, and give each quad of the array to a
 * consumer (gpu_assist_consumers.cuh) once.  Arrays are whole groups of lines of 128 bytes.
 */
#ifndef WHARF_TESTS_GPU_ASSIST_READ_CUH
#define WHARF_TESTS_GPU_ASSIST_READ_CUH

#include "kernels/line/wharf_assist.cuh"
#include "tests/gpu/gpu_assist_consumers.cuh"

namespace wharf
{

/* What is known of palette's values; of the other codecs there is nothing to know. */
constexpr uint32_t STUDY_TYPE = WHARF_LINE_BF16;

/* Of all warps or blocks that go through an array, which one this is. */
struct study_part {
    uint32_t number;
    uint32_t n;
};

/* The groups of a part: neighbours for consumers in rows, else every n-th one. */
template <typename C>
WHARF_DEVICE line_row study_row(study_part part, uint32_t n_groups)
{
    if (C::IN_ROWS) {
        uint32_t first = (uint32_t)((uint64_t)n_groups * part.number / part.n);
        uint32_t next = (uint32_t)((uint64_t)n_groups * (part.number + 1) / part.n);
        return {first, 1, next - first};
    }
    uint32_t first = part.number;
    return {first, part.n, first < n_groups ? (n_groups - first + part.n - 1) / part.n : 0};
}

/* One lane.  Quad i of a raw array, of which the memory has `share` of 65536 parts: the same bytes
 * come again and again, so that as many move as of a compressed array. */
template <bool IS_IDEAL>
WHARF_DEVICE u32x4 study_raw_quad(const u32x4 *quads, uint32_t share, uint32_t i)
{
    return load_nc(quads + (IS_IDEAL ? (uint32_t)((uint64_t)i * share >> 16) : i));
}

/* The warp's part of a raw array. */
template <typename C, bool IS_IDEAL>
WHARF_DEVICE void study_read_raw(C &consumer, const u32x4 *quads, uint32_t n_groups, uint32_t share,
                                 study_part warp)
{
    constexpr uint32_t N = LINE_GROUP_NQUADS / WARP_LANES;
    if (C::IN_ROWS) {
        line_row row = study_row<C>(warp, n_groups);
        for (uint64_t k = 0; k < row.n; k++) {
            uint32_t i = (uint32_t)(row.first + k) * LINE_GROUP_NQUADS + lane_id();
            u32x4 all[N];
            WHARF_UNROLL
            for (unsigned m = 0; m < N; m++)
                all[m] = study_raw_quad<IS_IDEAL>(quads, share, i + m * WARP_LANES);
            WHARF_UNROLL
            for (unsigned m = 0; m < N; m++)
                consumer.template take<true>(i + m * WARP_LANES, all[m]);
        }
        return;
    }
    uint32_t n = n_groups * LINE_GROUP_NQUADS, stride = warp.n * WARP_LANES;
    uint32_t i = warp.number * WARP_LANES + lane_id();
    for (; i + 3 * stride < n; i += 4 * stride) {
        u32x4 all[4];
        WHARF_UNROLL
        for (unsigned m = 0; m < 4; m++)
            all[m] = study_raw_quad<IS_IDEAL>(quads, share, i + m * stride);
        WHARF_UNROLL
        for (unsigned m = 0; m < 4; m++)
            consumer.template take<true>(i + m * stride, all[m]);
    }
    for (; i < n; i += stride)
        consumer.template take<true>(i, study_raw_quad<IS_IDEAL>(quads, share, i));
}

/* The warp's lines of the first n_groups groups, four at a time. */
template <typename C, uint32_t CODEC>
WHARF_DEVICE void study_read_lines(C &consumer, const line_table<CODEC> &table,
                                   const line_array &array, uint32_t n_groups, study_part warp)
{
    uint32_t team = lane_id() / STUDY_ROW_NQUADS;
    uint32_t first = warp.number, end = 8 * n_groups, stride = warp.n;
    if (C::IN_ROWS) {
        line_row row = study_row<C>(warp, n_groups);
        first = 8 * (uint32_t)row.first;
        end = first + 8 * (uint32_t)row.n;
        stride = 1;
    }
    for (uint32_t four = first; four < end; four += stride) {
        bool ok;
        uint32_t line = 4 * four + team;
        u32x4 quad = load_line<CODEC, STUDY_TYPE>(table, array, line, &ok);
        consumer.template take<true>(line * STUDY_ROW_NQUADS + lane_id() % STUDY_ROW_NQUADS, quad);
    }
}

/* The warp's part of n_groups groups from `first` on. */
template <typename C, uint32_t CODEC>
WHARF_DEVICE void study_read_groups(C &consumer, const line_table<CODEC> &table,
                                    line_group_space &space, const line_array &array,
                                    uint32_t first, uint32_t n_groups, study_part warp)
{
    line_row row = study_row<C>(warp, n_groups);
    row.first += first;
    visit_line_groups<CODEC, STUDY_TYPE>(
        table, space, array, row,
        [&](uint64_t i, const u32x4 &quad) { consumer.template take<false>((uint32_t)i, quad); });
}

/* The block's groups, by a worker.  Assist warps do run_line_assist() with the same row. */
template <typename C, typename Assists>
WHARF_DEVICE void study_work(C &consumer, Assists &assists, const line_row &row, study_part worker)
{
    for (uint64_t k = 0; k < row.n; k++) {
        bool ok;
        const u32x4 *group = wait_line_group(assists, k, &ok);
        uint32_t first = (uint32_t)(row.first + k * row.stride) * LINE_GROUP_NQUADS;
        for (uint32_t i = worker.number * WARP_LANES; i < LINE_GROUP_NQUADS;
             i += worker.n * WARP_LANES)
            consumer.template take<true>(first + i + lane_id(), load(group + i + lane_id()));
        release_line_group(assists, k);
    }
}

} // namespace wharf

#endif
