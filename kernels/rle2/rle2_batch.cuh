/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_batch.cuh: up to 32 runs of rle2 at once, of those whose values can be told one by one:
 * short repeats, direct ones, and deltas that are all the same.
 *
 * 1. Chain.  All lanes alike find where the next runs begin, which their first bytes say.
 * 2. Read.  Lane i reads the rest of run i's header.
 * 3. Spread.  A scan of the lengths says where the values go; then 32 values at a time, one a lane,
 *    whatever run they belong to.
 *
 * What is not as it should be stops it: nothing of the batch counts then, and somebody else judges.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_BATCH_CUH
#define WHARF_KERNELS_RLE2_RLE2_BATCH_CUH

#include "kernels/rle2/rle2_numbers.cuh"

namespace wharf
{
namespace rle2
{

/* What lane i holds of run i.  Value k is base + k * delta, or for a direct run number k. */
struct run {
    uint32_t n;     /* its values; 0: no such run */
    uint32_t width; /* of a direct run, else 0 */
    uint32_t bit;   /* of a direct run, where its numbers begin */
    uint64_t base;
    uint64_t delta;
};

/* The first two bytes of a run. */
struct run_head {
    uint32_t kind, code, n;

    WHARF_DEVICE_MEMBER void init(uint32_t bytes)
    {
        kind = bytes >> 14;
        code = bytes >> 9 & 31;
        n = (bytes & 511) + 1;
        if (kind == WHARF_RLE2_SHORT_REPEAT)
            n = (bytes >> 8 & 7) + WHARF_RLE2_REPEAT_MIN;
    }

    /* Whether its values depend on one another, or on a list of patches. */
    WHARF_DEVICE_MEMBER bool is_special() const
    {
        return kind == WHARF_RLE2_PATCHED_BASE || (kind == WHARF_RLE2_DELTA && code != 0 && n > 2);
    }
};

/* ---- chain -------------------------------------------------------------------------------- */

/* One lane.  The place behind two varints at `at`, or past the end if they are cut off or long. */
WHARF_DEVICE uint32_t skip_varints(const number_source &in, uint32_t at)
{
    uint64_t ends = ~in.peek_64<true>(at) & 0x8080808080808080u;
    uint32_t hi = (uint32_t)(ends >> 32);
    uint32_t first = hi ? clz(hi) : 32 + clz((uint32_t)ends);
    if (first < 56) {
        /* What ends behind the first one. */
        ends &= ((uint64_t)1 << (63 - first)) - 1;
        hi = (uint32_t)(ends >> 32);
        if (ends)
            return at + (hi ? clz(hi) : 32 + clz((uint32_t)ends)) / 8 + 1;
    }
    uint64_t u;
    if (!in.take_varint(at, u) || !in.take_varint(at, u))
        return 0xffffffff;
    return at;
}

/* One lane.  Where a run that is not special ends, which may be past the end. */
WHARF_DEVICE uint32_t end_of_run(const number_source &in, uint32_t at, const run_head &head,
                                 uint32_t bytes)
{
    if (head.kind == WHARF_RLE2_SHORT_REPEAT)
        return at + 2 + (bytes >> 11 & 7);
    if (head.kind == WHARF_RLE2_DIRECT)
        return at + 2 + packed_nbytes(head.n, width_of(head.code));
    return skip_varints(in, at + 2);
}

/* collective.  Follows runs from `at` on as far as they are complete and not special, and moves it
 * behind them.  Lane i gets where run i begins.  Returns how many there are. */
WHARF_DEVICE uint32_t chain_runs(const number_source &in, uint32_t &at, uint32_t &mine)
{
    uint32_t n_runs = 0;
    while (n_runs < WARP_LANES && at < in.nbytes) {
        uint32_t bytes = in.peek_32<true>(at) >> 16;
        run_head head;
        head.init(bytes);
        if (head.is_special())
            break;
        uint32_t end = end_of_run(in, at, head, bytes);
        if (end > in.nbytes)
            break;
        if (lane_id() == n_runs)
            mine = at;
        n_runs++;
        at = end;
    }
    return n_runs;
}

/* ---- read --------------------------------------------------------------------------------- */

/* One lane.  The run that begins at `at`, which is complete and not special.  False if it is sure
 * that not all of its values are of the type. */
template <typename T>
WHARF_DEVICE bool read_run(const number_source &in, uint32_t at, bool is_signed, run &r)
{
    uint32_t bytes = in.peek_32<true>(at) >> 16;
    run_head head;
    head.init(bytes);
    r = {head.n, 0, 0, 0, 0};
    if (head.kind == WHARF_RLE2_DIRECT) {
        r.width = width_of(head.code);
        r.bit = 8 * (at + 2);
        return true;
    }
    uint64_t u;
    if (head.kind == WHARF_RLE2_SHORT_REPEAT) {
        u = in.peek_64<true>(at + 1) >> (56 - 8 * (bytes >> 11 & 7));
        r.base = rle::value_of(u, is_signed);
        return !rle::exceeds<T>(u);
    }
    at += 2;
    if (!in.take_varint(at, u))
        return false;
    r.base = rle::value_of(u, is_signed);
    if (!in.take_varint(at, u))
        return false;
    r.delta = rle::unzigzag(u);
    /* Two values of a narrow type differ by less than 2^33, and then nothing comes round past 2^64.
     */
    bool is_far = sizeof(T) < 8 && r.n > 1 && (r.delta + ((uint64_t)1 << 33)) >> 34 != 0;
    uint64_t last = r.base + (r.n - 1) * r.delta;
    return !is_far && !rle::exceeds<T>(rle::excess_of<T>(r.base, is_signed) |
                                       rle::excess_of<T>(last, is_signed));
}

/* ---- spread ------------------------------------------------------------------------------- */

/* What other lanes need to know of a run: 14 bits of the offset of its first value, at most 31 *
 * 512, and its width. */
WHARF_DEVICE uint32_t pack_run(const run &r, uint32_t offset)
{
    return offset | r.width << 14;
}

/* A word or two of another lane's. */
template <typename T>
WHARF_DEVICE uint64_t shfl_value(uint64_t v, uint32_t lane)
{
    return sizeof(T) == 8 ? shfl(v, lane) : (uint64_t)shfl((uint32_t)v, lane);
}

/* collective.  Stores the values of all runs, `n` in all, which there is room for.  Returns whether
 * all are good. */
template <typename T, bool CHECKED>
WHARF_DEVICE bool spread(const number_source &in, const run &r, uint32_t offset, uint32_t n,
                         uint8_t *out, bool is_signed)
{
    uint32_t lane = lane_id();
    uint32_t packed = pack_run(r, offset);
    /* A run has either a place or a base. */
    uint64_t base = r.width ? r.bit : r.base;
    uint32_t n_begun = 0;
    uint64_t all = 0;
    for (uint32_t first = 0; first < n; first += WARP_LANES) {
        uint32_t in_round = offset - first;
        bool begins = r.n > 0 && in_round < WARP_LANES;
        uint32_t begins_at = reduce_or(begins ? 1u << in_round : 0);
        uint32_t owner = n_begun + popc(begins_at & ((2u << lane) - 1)) - 1;
        n_begun += popc(begins_at);
        uint32_t theirs = shfl(packed, owner);
        uint64_t their_base = shfl_value<T>(base, owner);
        uint64_t their_delta = shfl_value<T>(r.delta, owner);
        uint32_t i = first + lane;
        if (i < n) {
            uint32_t k = i - (theirs & 16383);
            uint32_t width = theirs >> 14;
            uint64_t v = their_base + k * their_delta;
            if (width) {
                uint64_t u = in.number<CHECKED>((uint32_t)their_base + k * width, width);
                all |= u;
                v = rle::value_of(u, is_signed);
            }
            rle::store_value<T>(out + i * sizeof(T), v);
        }
    }
    return !any_lane(rle::exceeds<T>(all));
}

/* collective.  Decodes the runs from `at` on that are not special, and moves it behind them. False:
 * nothing has changed, but for output behind the position. */
template <typename T>
WHARF_DEVICE bool decode_batch(const number_source &in, uint32_t &at, output_stream &out,
                               bool is_signed)
{
    uint32_t mine = 0;
    uint32_t end = at;
    uint32_t n_runs = chain_runs(in, end, mine);
    run r = {0, 0, 0, 0, 0};
    bool is_good = lane_id() >= n_runs || read_run<T>(in, mine, is_signed, r);
    uint32_t offset = inclusive_add(r.n);
    uint32_t n = shfl(offset, 31);
    offset -= r.n;
    if (n_runs == 0 || any_lane(!is_good) || n > rle::room_of<T>(out))
        return false;
    uint8_t *to = out.out + out.position;
    if (in.is_inside(at, end) ? !spread<T, false>(in, r, offset, n, to, is_signed)
                              : !spread<T, true>(in, r, offset, n, to, is_signed))
        return false;
    at = end;
    out.position += n * (uint32_t)sizeof(T);
    return true;
}

} // namespace rle2
} // namespace wharf

#endif
