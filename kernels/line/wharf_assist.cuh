/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_assist.cuh: assist warps.  Some warps of a block decode groups of lines of a compressed
 * array (wharf_line.cuh) into shared memory, ahead of the warps that work with them.
 *
 * A group is 4096 bytes of the array without compression.  The block goes through a row of groups:
 * `first`, `first` + `stride` and so on.  Item k of the row is decoded by assist warp k % N_ASSISTS
 * into stage k % N_STAGES, and all workers see all items.  There are at least as many stages as
 * assist warps.
 *
 *   host     line_array as wharf_line.cuh says
 *   kernel   __shared__ wharf::line_assists<WHARF_CODEC_BDI, 4, 2> assists;
 *            if (warp == 0)
 *                wharf::init_line_assists(assists, array, n_workers);
 *            __syncthreads();
 *            if (warp >= n_workers) {
 *                wharf::run_line_assist(assists, array, warp - n_workers, row);
 *                return;  // or goes on as it likes
 *            }
 *            for (uint64_t k = 0; k < row.n; k++) {
 *                bool ok;
 *                const wharf::u32x4 *group = wharf::wait_line_group(assists, k, &ok);
 *                ...      // 256 quads; each worker its part of them
 *                wharf::release_line_group(assists, k);
 *            }
 *
 * TRIGGER, THROTTLE, KILL.  Assist warps begin at once and run ahead until all stages are full;
 * then they wait for the workers.  A worker that needs no more calls stop_line_assists(), and then
 * nobody waits or releases; assist warps end when what they copy has come.
 *
 * HOSTILE ARRAYS are as wharf_line.cuh says: bad lines are zeros, and their lowest number is in the
 * error word.  The bytes that a copy moves, and a barrier waits for, are one number, which was cut
 * to the stream's end before; so no stream makes a block wait for ever.
 *
 * On sm_90 content comes by bulk copies; before that, by ordinary loads.
 */
#ifndef WHARF_KERNELS_LINE_WHARF_ASSIST_CUH
#define WHARF_KERNELS_LINE_WHARF_ASSIST_CUH

#include "kernels/line/wharf_line.cuh"

namespace wharf
{

constexpr uint32_t LINE_GROUP_NQUADS = WHARF_LINE_GROUP_NBYTES / 16;

/* A group's content, on its way or there: one assist warp's. */
struct line_assist_buffer {
    u32x4 content[LINE_GROUP_NQUADS + 2];  /* lanes look at 24 bytes behind a line */
    uint32_t lines[WHARF_LINE_MAX_NLINES]; /* where each begins; above 16 bits its code */
    shared_barrier copied;
};

/* In a block's shared memory.  TYPE is as load_line() has it. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE = LINE_ANY_TYPE>
struct line_assists {
    /* A barrier tells a phase from the one before and no others.  With fewer stages, a warp would
     * wait for one that is two phases ahead, take an old one for it and write to a full stage. */
    static_assert(N_ASSISTS > 0 && N_ASSISTS <= N_STAGES, "each assist warp needs a stage");

    u32x4 stages[N_STAGES][LINE_GROUP_NQUADS];
    line_assist_buffer buffers[N_ASSISTS][2];
    line_table<CODEC> table;
    shared_barrier full[N_STAGES], empty[N_STAGES];
    uint32_t n_bad[N_STAGES]; /* lines */
    uint32_t stop;
};

/* Which groups a block goes through.  All of them exist. */
struct line_row {
    uint64_t first;
    uint64_t stride;
    uint64_t n;
};

/* All 32 lanes of one warp.  The block meets (__syncthreads) before anybody goes on. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void init_line_assists(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s,
                                    const line_array &array, uint32_t n_workers)
{
    if (lane_id() == 0) {
        for (unsigned i = 0; i < N_STAGES; i++) {
            barrier_init(&s.full[i], 1);
            barrier_init(&s.empty[i], n_workers);
        }
        for (unsigned i = 0; i < N_ASSISTS; i++)
            for (unsigned k = 0; k < 2; k++)
                barrier_init(&s.buffers[i][k].copied, 1);
        store_shared_by_device(&s.stop, 0u);
    }
    fill_line_table(s.table, array);
}

/* ---- below: how; the functions to call stand at the end ------------------------------------- */

/* What an assist warp knows of a group. */
struct line_group {
    uint64_t number;
    uint32_t n_lines;
    uint32_t codes;  /* of this lane's lines, from bit 0 on */
    uint64_t at;     /* where its content begins in the stream */
    uint32_t nbytes; /* of it in the buffer */
    line_palette palette;
    bool has_palette;
};

/* One lane.  The record and palette, as they stand in the stream. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE line_group load_line_group(const line_array &array, uint64_t number)
{
    const line_shape &shape = array.shape;
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + number * shape.record_nbytes;
    uint64_t left = array.n_lines - number * shape.group_nlines();
    uint32_t nbits = (WHARF_LINE_GROUP_NBYTES / WARP_LANES >> shape.shift) * shape.code_nbits;
    uint32_t bit = nbits * lane_id();
    const uint8_t *codes = array.stream + record_at + shape.codes_at + bit / 8;
    line_group group = {number, shape.group_nlines(), 0, 0, 0, {{0, 0, 0, 0}, 3}, true};
    group.n_lines = left < group.n_lines ? (uint32_t)left : group.n_lines;
    group.codes = load_nc(codes);
    if (nbits > 8)
        group.codes |= (uint32_t)load_nc(codes + 1) << 8;
    group.codes = group.codes >> (bit & 7) & ((1u << nbits) - 1);
    group.at = array.data_at + (shape.layout == WHARF_LINE_PACKED
                                    ? (uint64_t)load_line_offset<line_constant>(array, record_at) *
                                          WHARF_LINE_UNIT_NBYTES
                                    : number * WHARF_LINE_GROUP_NBYTES);
    if (CODEC == WHARF_CODEC_PALETTE) {
        const uint8_t *head = array.stream + array.heads_at + number * WHARF_LINE_HEAD_NBYTES;
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

/* collective.  Writes down where the group's lines begin, and begins to copy their content. */
template <uint32_t CODEC>
WHARF_DEVICE void begin_line_group(const line_table<CODEC> &table, line_assist_buffer &buffer,
                                   const line_array &array, line_group &group)
{
    const line_shape &shape = array.shape;
    uint32_t n_own = WHARF_LINE_GROUP_NBYTES / WARP_LANES >> shape.shift;
    uint32_t first = n_own * lane_id(), own = 0, starts[4], numbers[4];
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t mask = (1u << shape.code_nbits) - 1;
        bool is_there = k < n_own && first + k < group.n_lines;
        numbers[k] = is_there ? group.codes >> k * shape.code_nbits & mask : 0;
        starts[k] = own;
        uint32_t nbytes = line_code_in(table, group, numbers[k]).nbytes();
        own += shape.layout == WHARF_LINE_SLOTS ? (is_there ? shape.line_nbytes() : 0) : nbytes;
    }
    uint32_t before = exclusive_add(own), sum = from_lane<WARP_LANES - 1>(before + own);
    uint64_t left = group.at < array.nbytes ? array.nbytes - group.at : 0;
    uint32_t nbytes = (sum + 15) & ~15u;
    group.nbytes = uniform(nbytes < left ? nbytes : (uint32_t)left);
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++)
        if (k < n_own)
            store(&buffer.lines[first + k], (before + starts[k]) | numbers[k] << 16);
    syncwarp();
    copy_ahead(buffer.content, array.stream + (group.nbytes ? group.at : 0), group.nbytes,
               &buffer.copied);
}

/* collective.  The 16 bytes of a lane of the step at `base`, and whether the line is good. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE u32x4 decode_line_step(const line_table<CODEC> &table,
                                    const line_assist_buffer &buffer, const line_array &array,
                                    const line_group &group, uint32_t base, bool *ret_ok)
{
    const line_shape &shape = array.shape;
    uint32_t off = base + 16 * lane_id(), line = off >> shape.shift;
    uint32_t entry = load(&buffer.lines[line]), begin = entry & 0xffff;
    line_code code = line_code_in(table, group, entry >> 16);
    bool is_good = group.has_palette && code.scheme() != WHARF_LINE_IS_INVALID &&
                   begin + code.nbytes() <= group.nbytes;
    is_good = is_good || line >= group.n_lines;
    if (!is_good || line >= group.n_lines) {
        code = make_line_code(WHARF_LINE_IS_ZEROS, 0, 0, 0);
        begin = 0;
    }
    bool is_bad;
    u32x4 quad = line_quad<CODEC, TYPE>(&buffer.content[0].x, table.steps, shape, group.palette,
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

/* collective.  Whether the phase of that parity ends before the assist warps are to stop. */
WHARF_DEVICE bool wait_or_stop(shared_barrier *barrier, uint32_t parity, const uint32_t *stop)
{
    while (!barrier_try(barrier, parity))
        if (any_lane(load_shared_by_device(stop) != 0))
            return false;
    return true;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/*
 * All 32 lanes of assist warp `number`, from 0 to N_ASSISTS - 1.  Returns when all of its items are
 * decoded, or when the assist warps are stopped.
 */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void run_line_assist(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s,
                                  const line_array &array, uint32_t number, const line_row &row)
{
    line_assist_buffer *buffers = s.buffers[number];
    uint64_t k = number;
    uint32_t n_done = 0; /* copies that have come */
    if (k >= row.n)
        return;
    line_group group = load_line_group<CODEC, TYPE>(array, row.first + k * row.stride);
    begin_line_group(s.table, buffers[0], array, group);
    for (; k < row.n; k += N_ASSISTS) {
        line_group next = group;
        bool has_next = k + N_ASSISTS < row.n;
        if (has_next) {
            next = load_line_group<CODEC, TYPE>(array, row.first + (k + N_ASSISTS) * row.stride);
            begin_line_group(s.table, buffers[(n_done + 1) & 1], array, next);
        }
        line_assist_buffer &buffer = buffers[n_done & 1];
        while (!barrier_try(&buffer.copied, n_done >> 1 & 1))
            ;
        n_done++;
        uint32_t stage = (uint32_t)(k % N_STAGES), turn = (uint32_t)(k / N_STAGES);
        if (!wait_or_stop(&s.empty[stage], (turn & 1) ^ 1, &s.stop)) {
            if (has_next) /* it writes to shared memory until it has come */
                while (!barrier_try(&buffers[n_done & 1].copied, n_done >> 1 & 1))
                    ;
            return;
        }
        uint32_t n_bad = 0;
        for (uint32_t base = 0; base < WHARF_LINE_GROUP_NBYTES; base += 16 * WARP_LANES) {
            bool ok;
            u32x4 quad = decode_line_step<CODEC, TYPE>(s.table, buffer, array, group, base, &ok);
            store(&s.stages[stage][base / 16 + lane_id()], quad);
            n_bad += ok ? 0 : 1;
        }
        n_bad = reduce_add(n_bad) / (array.shape.line_nbytes() / 16);
        if (lane_id() == 0)
            store(&s.n_bad[stage], n_bad);
        syncwarp();
        if (lane_id() == 0)
            barrier_arrive(&s.full[stage]);
        group = next;
    }
}

/*
 * All 32 lanes of a worker.  Waits for item k of the row: 256 quads, the group's bytes in order;
 * behind the array's end they are zeros.  They are there until the worker releases the item.
 * Workers take items in order.  *ret_ok: no line of the group is bad.
 */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE const u32x4 *wait_line_group(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s,
                                          uint64_t k, bool *ret_ok)
{
    uint32_t stage = (uint32_t)(k % N_STAGES), turn = (uint32_t)(k / N_STAGES);
    while (!barrier_try(&s.full[stage], turn & 1))
        ;
    *ret_ok = load(&s.n_bad[stage]) == 0;
    return s.stages[stage];
}

/* All 32 lanes of a worker, once for each item that it waited for. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void release_line_group(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s, uint64_t k)
{
    syncwarp();
    if (lane_id() == 0)
        barrier_arrive(&s.empty[k % N_STAGES]);
}

/* One lane or more of any warp. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void stop_line_assists(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s)
{
    store_shared_by_device(&s.stop, 1u);
}

/* How many groups an array has. */
WHARF_DEVICE uint64_t count_line_groups(const line_array &array)
{
    return (array.n_lines + array.shape.group_nlines() - 1) / array.shape.group_nlines();
}

} // namespace wharf

#endif
