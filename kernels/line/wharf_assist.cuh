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
 * Content comes as wharf_group.cuh says.
 */
#ifndef WHARF_KERNELS_LINE_WHARF_ASSIST_CUH
#define WHARF_KERNELS_LINE_WHARF_ASSIST_CUH

#include "kernels/line/wharf_group.cuh"

namespace wharf
{

/* One lane arrives at a barrier for its warp, behind __syncwarp().  compute-sanitizer's racecheck
 * follows only lanes that arrive themselves, with cuda::barrier too: for it all of them do. */
#ifdef WHARF_ALL_LANES_ARRIVE
constexpr uint32_t LINE_ARRIVING_LANES = WARP_LANES;
#else
constexpr uint32_t LINE_ARRIVING_LANES = 1;
#endif

/* In a block's shared memory.  TYPE is as load_line() has it. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE = LINE_ANY_TYPE>
struct line_assists {
    /* A barrier tells a phase from the one before and no others.  With fewer stages, a warp would
     * wait for one that is two phases ahead, take an old one for it and write to a full stage. */
    static_assert(N_ASSISTS > 0 && N_ASSISTS <= N_STAGES, "each assist warp needs a stage");

    u32x4 stages[N_STAGES][LINE_GROUP_NQUADS];
    line_group_space spaces[N_ASSISTS];
    line_table<CODEC> table;
    shared_barrier full[N_STAGES], empty[N_STAGES];
    uint32_t n_bad[N_STAGES]; /* lines */
    uint32_t stop;
};

/* All 32 lanes of one warp.  The block meets (__syncthreads) before anybody goes on. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void init_line_assists(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s,
                                    const line_array &array, uint32_t n_workers)
{
    if (lane_id() == 0) {
        for (unsigned i = 0; i < N_STAGES; i++) {
            barrier_init(&s.full[i], LINE_ARRIVING_LANES);
            barrier_init(&s.empty[i], LINE_ARRIVING_LANES * n_workers);
        }
        store_shared_by_device(&s.stop, 0u);
    }
    for (unsigned i = 0; i < N_ASSISTS; i++)
        init_line_group_space(s.spaces[i]);
    fill_line_table(s.table, array);
}

/* ---- below: how; the functions to call stand at the end ------------------------------------- */

/* All lanes of a warp. */
WHARF_DEVICE void arrive_as_warp(shared_barrier *barrier)
{
    syncwarp();
    if (lane_id() < LINE_ARRIVING_LANES)
        barrier_arrive(barrier);
}

/* collective.  Whether the phase of that parity ends before the assist warps are to stop. */
WHARF_DEVICE bool wait_or_stop(shared_barrier *barrier, uint32_t parity, const uint32_t *stop)
{
    while (!barrier_try(barrier, parity))
        if (any_lane(load_shared_by_device(stop) != 0))
            return false;
    return true;
}

template <bool BY_KINDS, uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void run_line_assist_by(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s,
                                     const line_array &given, uint32_t number, const line_row &row)
{
    const line_array array = with_known_shape<CODEC, BY_KINDS>(given);
    line_group_space &space = s.spaces[number];
    uint64_t k = number;
    if (k >= row.n)
        return;
    line_group group = load_line_group<CODEC, TYPE>(array, row.first + k * row.stride);
    begin_line_group<CODEC, BY_KINDS>(s.table, space, array, group);
    for (; k < row.n; k += N_ASSISTS) {
        line_group next = group;
        bool has_next = k + N_ASSISTS < row.n;
        if (has_next)
            next = load_line_group<CODEC, TYPE>(array, row.first + (k + N_ASSISTS) * row.stride);
        wait_for_line_copy(space, group); /* before it returns, too: the copy writes there */
        uint32_t stage = (uint32_t)(k % N_STAGES), turn = (uint32_t)(k / N_STAGES);
        if (!wait_or_stop(&s.empty[stage], (turn & 1) ^ 1, &s.stop))
            return;
        u32x4 *out = s.stages[stage];
        uint32_t n_bad = decode_line_group<CODEC, TYPE, BY_KINDS>(
            s.table, space, array, group, true,
            [&](uint32_t i, const u32x4 &quad) { store(&out[i], quad); });
        if (has_next)
            begin_line_group<CODEC, BY_KINDS>(s.table, space, array, next);
        if (lane_id() == 0)
            store(&s.n_bad[stage], n_bad);
        arrive_as_warp(&s.full[stage]);
        group = next;
    }
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
    if (line_goes_by_kinds<CODEC, TYPE>(array))
        run_line_assist_by<true>(s, array, number, row);
    else
        run_line_assist_by<false>(s, array, number, row);
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
    arrive_as_warp(&s.empty[k % N_STAGES]);
}

/* One lane or more of any warp. */
template <uint32_t CODEC, unsigned N_STAGES, unsigned N_ASSISTS, uint32_t TYPE>
WHARF_DEVICE void stop_line_assists(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE> &s)
{
    store_shared_by_device(&s.stop, 1u);
}

} // namespace wharf

#endif
