/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_group.cuh: a warp decodes whole groups of a compressed array (wharf_line.cuh).
 *
 * A group is 4096 bytes of the array without compression.  What finding a line costs is paid once
 * for all lines of a group, and content comes by one copy, so this is the quickest way through a
 * large part of an array.
 *
 *   host     line_array as wharf_line.cuh says
 *   kernel   __shared__ wharf::line_table<WHARF_CODEC_BDI> table;
 *            __shared__ wharf::line_group_space spaces[WARPS];
 *            if (warp == 0)
 *                wharf::fill_line_table(table, array);
 *            wharf::init_line_group_space(spaces[warp]);
 *            __syncthreads();
 *            uint64_t n_bad = wharf::visit_line_groups(table, spaces[warp], array, row,
 *                [&](uint64_t i, wharf::u32x4 quad) { ... });
 *
 * Lanes receive the array's quads, 16 bytes each, with their numbers, in any order.
 *
 * HOSTILE ARRAYS are as wharf_line.cuh says: bad lines are zeros, and their lowest number is in the
 * error word.  The bytes that a copy moves, and a barrier waits for, are one number, which was cut
 * to the stream's end before; so no stream makes a warp wait for ever.
 *
 * On sm_90 content comes by bulk copies; before that, by ordinary loads.
 */
#ifndef WHARF_KERNELS_LINE_WHARF_GROUP_CUH
#define WHARF_KERNELS_LINE_WHARF_GROUP_CUH

#include "kernels/line/line_kinds.cuh"
#include "kernels/line/wharf_line.cuh"

namespace wharf
{

constexpr uint32_t LINE_GROUP_NQUADS = WHARF_LINE_GROUP_NBYTES / 16;

/* What a warp needs of shared memory. */
struct line_group_space {
    u32x4 content[LINE_GROUP_NQUADS + 2]; /* lanes look at 24 bytes behind a line */
    union {
        uint32_t lines[WHARF_LINE_MAX_NLINES]; /* where each begins; above 16 bits its code */
        line_record records[WARP_LANES];       /* of lines of 128 bytes */
    };
    shared_barrier copied;
    uint32_t turn; /* of the barrier */
};

/* Which groups a warp or block goes through.  All of them exist. */
struct line_row {
    uint64_t first;
    uint64_t stride;
    uint64_t n;
};

/* All 32 lanes of one warp.  Before others use it, the block meets; the warp itself needs not. */
WHARF_DEVICE void init_line_group_space(line_group_space &space)
{
    if (lane_id() == 0) {
        barrier_init(&space.copied, 1);
        store(&space.turn, 0u);
    }
    syncwarp();
}

/* How many groups an array has. */
WHARF_DEVICE uint64_t count_line_groups(const line_array &array)
{
    return (array.n_lines + array.shape.group_nlines() - 1) / array.shape.group_nlines();
}

/* ---- below: how; the functions to call stand at the end ------------------------------------- */

/* What a warp knows of a group. */
struct line_group {
    uint64_t number;
    uint32_t n_lines;
    uint32_t codes;  /* of this lane's lines, from bit 0 on */
    uint64_t at;     /* where its content begins in the stream */
    uint32_t nbytes; /* of it that are copied */
    uint32_t begin;  /* lines of 128 bytes: where this lane's begins in the content */
    line_code code;  /* and what its code means */
    bool is_raw;     /* all lines are raw and in the stream: nothing is copied */
    line_palette palette;
    bool has_palette;
};

/* One lane.  The record and palette, as they stand in the stream. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE line_group load_line_group(const line_array &array, uint64_t number)
{
    const line_shape &shape = array.shape;
    /* Arrays have at most 2^23 groups, whose records take less than 2^30 bytes. */
    uint32_t n = (uint32_t)number, record_at = WHARF_LINE_HEADER_NBYTES + n * shape.record_nbytes;
    uint32_t left = (uint32_t)array.n_lines - n * shape.group_nlines();
    uint32_t nbits = (WHARF_LINE_GROUP_NBYTES / WARP_LANES >> shape.shift) * shape.code_nbits;
    uint32_t bit = nbits * lane_id();
    const uint8_t *codes = array.stream + record_at + shape.codes_at + bit / 8;
    line_group group = {number, shape.group_nlines(), 0,   0, 0, 0, LINE_NO_CODE,
                        false,  {{0, 0, 0, 0}, 3},    true};
    group.n_lines = left < group.n_lines ? left : group.n_lines;
    group.codes = load_nc(codes);
    if (nbits > 8)
        group.codes |= (uint32_t)load_nc(codes + 1) << 8;
    group.codes = group.codes >> (bit & 7) & ((1u << nbits) - 1);
    group.at = array.data_at + (shape.layout == WHARF_LINE_PACKED
                                    ? (uint64_t)load_line_offset<line_constant>(array, record_at) *
                                          WHARF_LINE_UNIT_NBYTES
                                    : number * WHARF_LINE_GROUP_NBYTES);
    if (CODEC == WHARF_CODEC_PALETTE) {
        const uint8_t *head = array.stream + array.heads_at + n * WHARF_LINE_HEAD_NBYTES;
        group.palette.exponents = load_nc(reinterpret_cast<const u32x4 *>(head));
        uint32_t width = group.palette.exponents.w >> 24;
        group.has_palette = width == 3 || (width == 4 && shape.type != WHARF_LINE_E4M3);
        group.has_palette = group.has_palette && is_line_type<TYPE>(shape);
        group.palette.width = group.has_palette ? width : 3;
    }
    return group;
}

/* One lane.  The meaning of a code in this group. */
template <uint32_t CODEC>
WHARF_DEVICE line_code line_code_in(const line_table<CODEC> &table, const line_group &group,
                                    uint32_t number)
{
    return load(&table.codes[(group.palette.width - 3) * table.N_CODES + number]);
}

/* collective.  Begins to copy the group's content, of which its lines take `sum` bytes.
 * `has_others`: this lane has a line that is not raw. */
WHARF_DEVICE void copy_line_group(line_group_space &space, const line_array &array,
                                  line_group &group, uint32_t sum, bool has_others)
{
    uint64_t left = group.at < array.nbytes ? array.nbytes - group.at : 0;
    uint32_t nbytes = (sum + 15) & ~15u;
    group.is_raw = !any_lane(has_others || nbytes > left);
    if (group.is_raw)
        return;
    group.nbytes = uniform(nbytes < left ? nbytes : (uint32_t)left);
    syncwarp();
    copy_ahead(space.content, array.stream + (group.nbytes ? group.at : 0), group.nbytes,
               &space.copied);
}

/* collective.  Writes down where the group's lines begin, and begins to copy their content. */
template <uint32_t CODEC>
WHARF_DEVICE void begin_line_steps(const line_table<CODEC> &table, line_group_space &space,
                                   const line_array &array, line_group &group)
{
    const line_shape &shape = array.shape;
    uint32_t n_own = WHARF_LINE_GROUP_NBYTES / WARP_LANES >> shape.shift;
    uint32_t first = n_own * lane_id(), own = 0, starts[4], numbers[4];
    bool has_others = !group.has_palette;
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t mask = (1u << shape.code_nbits) - 1;
        bool is_there = k < n_own && first + k < group.n_lines;
        numbers[k] = is_there ? group.codes >> k * shape.code_nbits & mask : 0;
        starts[k] = own;
        line_code code = line_code_in(table, group, numbers[k]);
        uint32_t nbytes = code.nbytes();
        has_others = has_others || (is_there && code.scheme() != WHARF_LINE_IS_RAW);
        own += shape.layout == WHARF_LINE_SLOTS ? (is_there ? shape.line_nbytes() : 0) : nbytes;
    }
    uint32_t before = exclusive_add(own), sum = from_lane<WARP_LANES - 1>(before + own);
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++)
        if (k < n_own)
            store(&space.lines[first + k], (before + starts[k]) | numbers[k] << 16);
    copy_line_group(space, array, group, sum, has_others);
}

/* collective.  The same for lines of 128 bytes, of which each lane has one. */
template <uint32_t CODEC>
WHARF_DEVICE void begin_line_kinds(const line_table<CODEC> &table, line_group_space &space,
                                   const line_array &array, line_group &group)
{
    bool is_there = lane_id() < group.n_lines;
    group.code = line_code_in(table, group, is_there ? group.codes : 0);
    uint32_t own = group.code.nbytes();
    if (array.shape.layout == WHARF_LINE_SLOTS)
        own = is_there ? WHARF_LINE_MAX_NBYTES : 0;
    uint32_t end = inclusive_add(own);
    group.begin = end - own;
    copy_line_group(space, array, group, from_lane<WARP_LANES - 1>(end),
                    !group.has_palette || (is_there && group.code.scheme() != WHARF_LINE_IS_RAW));
}

/* collective.  The 16 bytes of a lane of the step at `base`, and whether the line is good. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE u32x4 decode_line_step(const line_table<CODEC> &table, const line_group_space &space,
                                    const line_array &array, const line_group &group, uint32_t base,
                                    bool *ret_ok)
{
    const line_shape &shape = array.shape;
    uint32_t off = base + 16 * lane_id(), line = off >> shape.shift;
    uint32_t entry = load(&space.lines[line]), begin = entry & 0xffff;
    line_code code = line_code_in(table, group, entry >> 16);
    bool is_good = group.has_palette && code.scheme() != WHARF_LINE_IS_INVALID &&
                   begin + code.nbytes() <= group.nbytes;
    is_good = is_good || line >= group.n_lines;
    if (!is_good || line >= group.n_lines) {
        code = make_line_code(WHARF_LINE_IS_ZEROS, 0, 0, 0);
        begin = 0;
    }
    bool is_bad = false;
    u32x4 quad = line_quad<CODEC, TYPE>(&space.content[0].x, table.steps, shape, group.palette,
                                        code, begin, off & (shape.line_nbytes() - 1), &is_bad);
    uint32_t n_lanes = shape.line_nbytes() / 16, place = lane_id() & (n_lanes - 1);
    uint32_t team = ((1u << n_lanes) - 1) << (lane_id() - place);
    *ret_ok = (ballot(!is_good || is_bad) & team) == 0;
    if (*ret_ok)
        return quad;
    if (place == 0 && array.error != nullptr)
        atomic_min(array.error, group.number * shape.group_nlines() + line);
    return {0, 0, 0, 0};
}

/* collective.  Decodes a group that has come, in steps of 512 bytes.  How many lines are bad. */
template <uint32_t CODEC, uint32_t TYPE, typename Sink>
WHARF_DEVICE uint32_t decode_line_steps(const line_table<CODEC> &table,
                                        const line_group_space &space, const line_array &array,
                                        const line_group &group, bool fills, const Sink &sink)
{
    uint32_t n_bad = 0;
    for (uint32_t base = 0; base < WHARF_LINE_GROUP_NBYTES; base += 16 * WARP_LANES) {
        bool ok;
        u32x4 quad = decode_line_step<CODEC, TYPE>(table, space, array, group, base, &ok);
        uint32_t i = base / 16 + lane_id();
        if (fills || i >> (array.shape.shift - 4) < group.n_lines)
            sink(i, quad);
        n_bad += ok ? 0 : 1;
    }
    return reduce_add(n_bad) / (array.shape.line_nbytes() / 16);
}

/* collective.  The same for lines of 128 bytes, kind by kind. */
template <uint32_t CODEC, typename Sink>
WHARF_DEVICE uint32_t decode_line_kinds(const line_table<CODEC> &table, line_group_space &space,
                                        const line_array &array, const line_group &group,
                                        bool fills, const Sink &sink)
{
    uint32_t line = lane_id(), begin = group.begin, kind;
    line_code code = group.code;
    bool is_there = line < group.n_lines;
    bool is_good = group.has_palette && code.scheme() != WHARF_LINE_IS_INVALID &&
                   begin + code.nbytes() <= group.nbytes;
    if (!is_there || !is_good) {
        code = make_line_code(WHARF_LINE_IS_ZEROS, 0, 0, 0);
        begin = 0;
    }
    line_team team = {reinterpret_cast<const uint8_t *>(space.content), opaque(line % 8)};
    bool is_whole;
    line_record own = make_line_record<CODEC>(team, code, begin, line, &kind, &is_whole);
    line_sorter<CODEC, Sink> sorter = {table.steps, team, group.palette.exponents, sink};
    sorter.decode_group(space.records, own, is_there || fills ? kind : (uint32_t)LINE_KIND_NONE);
    uint32_t bad = ballot(is_there && !(is_good && is_whole));
    if (bad != 0 && lane_id() == 0 && array.error != nullptr)
        atomic_min(array.error, group.number * array.shape.group_nlines() + ffs(bad) - 1);
    return popc(bad);
}

/* Whether lines are decoded kind by kind: those of 128 bytes, of palette only if they are known to
 * be bf16. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE bool line_goes_by_kinds(const line_array &array)
{
    return (CODEC != WHARF_CODEC_PALETTE || TYPE == WHARF_LINE_BF16) &&
           array.shape.shift == WHARF_LINE_MAX_SHIFT;
}

/* An array that goes by kinds, or not, with a shape of which the compiler knows as much. */
template <uint32_t CODEC, bool BY_KINDS>
WHARF_DEVICE line_array with_known_shape(line_array array)
{
    line_shape &shape = array.shape;
    if (BY_KINDS) {
        shape.shift = WHARF_LINE_MAX_SHIFT;
        shape.code_nbits = line_has_nibbles(CODEC) ? 4 : 8;
        shape.codes_at = shape.layout == WHARF_LINE_PACKED ? (uint32_t)WHARF_LINE_OFFSET_NBYTES : 0;
        shape.record_nbytes = shape.codes_at + WARP_LANES * shape.code_nbits / 8;
    }
    return array;
}

/* collective.  Begins to copy a group whose record was loaded.  The space is free. */
template <uint32_t CODEC, bool BY_KINDS>
WHARF_DEVICE void begin_line_group(const line_table<CODEC> &table, line_group_space &space,
                                   const line_array &array, line_group &group)
{
    if (BY_KINDS)
        begin_line_kinds(table, space, array, group);
    else
        begin_line_steps(table, space, array, group);
}

/* collective.  Gives the quads of a group of raw lines, straight from the stream. */
template <typename Sink>
WHARF_DEVICE void take_raw_lines(const line_array &array, const line_group &group, bool fills,
                                 const Sink &sink)
{
    const u32x4 *quads = reinterpret_cast<const u32x4 *>(array.stream + group.at) + lane_id();
    uint32_t n = group.n_lines << (array.shape.shift - 4);
    if (n == LINE_GROUP_NQUADS) {
        u32x4 all[LINE_GROUP_NQUADS / WARP_LANES];
        WHARF_UNROLL
        for (uint32_t k = 0; k < LINE_GROUP_NQUADS / WARP_LANES; k++)
            all[k] = load_nc(quads + k * WARP_LANES);
        WHARF_UNROLL
        for (uint32_t k = 0; k < LINE_GROUP_NQUADS / WARP_LANES; k++)
            sink(k * WARP_LANES + lane_id(), all[k]);
        return;
    }
    for (uint32_t i = lane_id(); i < LINE_GROUP_NQUADS; i += WARP_LANES)
        if (i < n)
            sink(i, load_nc(quads + (i - lane_id())));
        else if (fills)
            sink(i, u32x4{0, 0, 0, 0});
}

/* collective.  Waits for the copy of a group that was begun. */
WHARF_DEVICE void wait_for_line_copy(line_group_space &space, const line_group &group)
{
    if (group.is_raw)
        return;
    uint32_t turn = load(&space.turn);
    while (!barrier_try(&space.copied, turn & 1))
        ;
    if (lane_id() == 0)
        store(&space.turn, turn + 1);
    syncwarp();
}

/* collective.  Decodes the group in the space, which is free then.  `fills`: lines that the last
 * group lacks are zeros; otherwise nobody receives them.  How many lines are bad. */
template <uint32_t CODEC, uint32_t TYPE, bool BY_KINDS, typename Sink>
WHARF_DEVICE uint32_t decode_line_group(const line_table<CODEC> &table, line_group_space &space,
                                        const line_array &array, const line_group &group,
                                        bool fills, const Sink &sink)
{
    uint32_t n_bad = 0;
    if (group.is_raw)
        take_raw_lines(array, group, fills, sink);
    else if (BY_KINDS)
        n_bad = decode_line_kinds(table, space, array, group, fills, sink);
    else
        n_bad = decode_line_steps<CODEC, TYPE>(table, space, array, group, fills, sink);
    syncwarp();
    return n_bad;
}

template <uint32_t CODEC, uint32_t TYPE, bool BY_KINDS, typename Visit>
WHARF_DEVICE uint64_t visit_line_groups_by(const line_table<CODEC> &table, line_group_space &space,
                                           const line_array &given, const line_row &row,
                                           const Visit &visit)
{
    const line_array array = with_known_shape<CODEC, BY_KINDS>(given);
    uint64_t n_bad = 0;
    if (row.n == 0)
        return 0;
    line_group group = load_line_group<CODEC, TYPE>(array, row.first);
    begin_line_group<CODEC, BY_KINDS>(table, space, array, group);
    for (uint64_t k = 0; k < row.n; k++) {
        line_group next = group;
        if (k + 1 < row.n)
            next = load_line_group<CODEC, TYPE>(array, row.first + (k + 1) * row.stride);
        wait_for_line_copy(space, group);
        uint64_t first = group.number * LINE_GROUP_NQUADS;
        n_bad += decode_line_group<CODEC, TYPE, BY_KINDS>(
            table, space, array, group, false,
            [&](uint32_t i, const u32x4 &quad) { visit(first + i, quad); });
        if (k + 1 < row.n)
            begin_line_group<CODEC, BY_KINDS>(table, space, array, next);
        group = next;
    }
    return n_bad;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/*
 * All 32 lanes of a warp.  Decodes the row's groups, one after another.  `visit(i, quad)` receives
 * each quad of the array that these groups hold from some lane, once: 16 bytes, those from 16 i on.
 * Lanes call it in any order and not together, so it must not wait for other lanes.  The last
 * line's bytes behind the array's end are zeros.  Ends with syncwarp().
 *
 * Returns how many lines are bad; the same in all lanes.
 */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE, typename Visit>
WHARF_DEVICE uint64_t visit_line_groups(const line_table<CODEC> &table, line_group_space &space,
                                        const line_array &array, const line_row &row,
                                        const Visit &visit)
{
    return line_goes_by_kinds<CODEC, TYPE>(array)
               ? visit_line_groups_by<CODEC, TYPE, true>(table, space, array, row, visit)
               : visit_line_groups_by<CODEC, TYPE, false>(table, space, array, row, visit);
}

} // namespace wharf

#endif
