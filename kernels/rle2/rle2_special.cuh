/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_special.cuh: decodes one run of rle2 with all lanes, 32 values at a time, of the kinds whose
 * values depend on other data: patched base, and deltas that differ.
 *
 * Patches are few, so all values are stored first, and the patched ones once more.  Values of
 * deltas are sums of all steps before them, which a scan over the lanes gives.
 *
 * INVARIANT: a run counts as a whole or not at all.  Anything unusual discards it, and the exact
 * path decodes it again and finds the reason.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_SPECIAL_CUH
#define WHARF_KERNELS_RLE2_RLE2_SPECIAL_CUH

#include "kernels/rle2/rle2_batch.cuh"

namespace wharf
{
namespace rle2
{

/* ---- patched base ------------------------------------------------------------------------- */

/* A patched run's header.  The same in all lanes. */
struct patched_run {
    uint32_t n, width, n_patches, gap_width, patch_width, entry_width;
    uint32_t offsets; /* bit where the values' offsets from the base begin */
    uint32_t list;
    uint64_t base;
    uint32_t end; /* offset of the byte after the run */
};

/* One lane.  False if the run is incomplete, or its list of patches is surely bad. */
WHARF_DEVICE bool read_patched_run(const number_source &in, uint32_t at, patched_run &r)
{
    uint32_t bytes = in.peek_32<true>(at);
    uint32_t base_nbytes = (bytes >> 13 & 7) + 1;
    r.n = (bytes >> 16 & 511) + 1;
    r.width = width_of(bytes >> 25 & 31);
    r.patch_width = width_of(bytes >> 8 & 31);
    r.gap_width = (bytes >> 5 & 7) + 1;
    r.n_patches = bytes & 31;
    r.entry_width = widened(r.gap_width + r.patch_width);
    r.base = of_sign_and_size(in.peek_64<true>(at + 4) >> (64 - 8 * base_nbytes), 8 * base_nbytes);
    uint32_t offsets_at = at + 4 + base_nbytes;
    uint32_t list_at = offsets_at + packed_nbytes(r.n, r.width);
    r.offsets = 8 * offsets_at;
    r.list = 8 * list_at;
    r.end = list_at + packed_nbytes(r.n_patches, r.entry_width);
    return r.n_patches > 0 && r.gap_width + r.patch_width <= 64 && r.end <= in.nbytes();
}

/* collective.  Reads patch i into lane i.  Returns whether all are good. */
WHARF_DEVICE bool read_patches(const number_source &in, const patched_run &r, patch &mine)
{
    bool has_one = lane_id() < r.n_patches;
    uint64_t entry =
        has_one ? in.number<true>(r.list + lane_id() * r.entry_width, r.entry_width) : 0;
    uint32_t gap = low_bits((uint32_t)(entry >> r.patch_width), r.gap_width);
    uint32_t at = inclusive_add(gap);
    mine = {0xffffffff, 0};
    if (has_one) {
        mine.at = at;
        mine.bits = r.width < 64 ? (entry & (((uint64_t)1 << r.patch_width) - 1)) << r.width : 0;
    }
    return !any_lane(has_one && (at >= r.n || (gap == 0 && lane_id() > 0)));
}

/*
 * collective.  Stores a run's values, then stores those with patches again.  False if a value is
 * outside the type, with or without its patch.  A bad value without its patch is no error, but so
 * rare that the exact path may find out.
 */
template <typename T, bool CHECKED>
WHARF_DEVICE bool put_patched(const number_source &in, const patched_run &r, const patch &mine,
                              uint8_t *out, bool is_signed)
{
    uint64_t excess = 0;
    rle::value_sink<T> sink;
    sink.init(out);
    auto put = [&](uint32_t i, uint64_t patch_bits) {
        uint64_t v = r.base + (in.number<CHECKED>(r.offsets + i * r.width, r.width) | patch_bits);
        excess |= rle::excess_of<T>(v, is_signed);
        sink.put(i, v);
    };
    WHARF_UNROLL_BY(2)
    for (uint32_t i = lane_id(); i < r.n; i += WARP_LANES)
        put(i, 0);
    syncwarp(); /* a value must be stored before its patched form */
    if (mine.at < r.n)
        put(mine.at, mine.bits);
    return !any_lane(rle::exceeds<T>(excess));
}

template <typename T>
WHARF_DEVICE bool decode_patched(const number_source &in, uint32_t &at, output_stream &out,
                                 bool is_signed)
{
    patched_run r;
    patch mine;
    if (!read_patched_run(in, at, r) || !read_patches(in, r, mine) || r.n > rle::room_of<T>(out))
        return false;
    uint8_t *to = out.out + out.position;
    if (in.is_inside(at, r.end) ? !put_patched<T, false>(in, r, mine, to, is_signed)
                                : !put_patched<T, true>(in, r, mine, to, is_signed))
        return false;
    at = r.end;
    out.position += r.n * (uint32_t)sizeof(T);
    return true;
}

/* ---- delta -------------------------------------------------------------------------------- */

/*
 * collective.  Stores the first value, and n more from `second` on.  Each of those after the second
 * differs from the one before by the next number of `width` bits, from bit `bit` on.
 */
template <typename T>
WHARF_DEVICE bool put_steps(const number_source &in, uint64_t base, uint64_t second, bool is_down,
                            uint32_t n, uint32_t bit, uint32_t width, uint8_t *out, bool is_signed)
{
    uint64_t excess = rle::excess_of<T>(base, is_signed);
    uint64_t last = second;
    if (lane_id() == 0)
        rle::store_value<T>(out, base);
    for (uint32_t first = 0; first < n; first += WARP_LANES) {
        uint32_t i = first + lane_id();
        uint64_t step = i > 0 && i < n ? in.number<true>(bit + (i - 1) * width, width) : 0;
        uint64_t v = last + inclusive_add_64(is_down ? 0 - step : step);
        last = shfl(v, 31);
        if (i < n) {
            excess |= rle::excess_of<T>(v, is_signed);
            rle::store_value<T>(out + (i + 1) * sizeof(T), v);
        }
    }
    return !any_lane(rle::exceeds<T>(excess));
}

template <typename T>
WHARF_DEVICE bool decode_delta(const number_source &in, uint32_t &at, output_stream &out,
                               bool is_signed)
{
    run_head head;
    head.init(in.peek_32<true>(at) >> 16);
    uint32_t width = width_of(head.code);
    uint32_t steps_at = at + 2;
    uint64_t u, first;
    if (!in.take_varint(steps_at, u) || !in.take_varint(steps_at, first))
        return false;
    uint32_t end = steps_at + packed_nbytes(head.n - 2, width);
    if (end > in.nbytes() || head.n > rle::room_of<T>(out))
        return false;
    uint64_t base = rle::value_of(u, is_signed);
    uint64_t delta = rle::unzigzag(first);
    if (!put_steps<T>(in, base, base + delta, (int64_t)delta < 0, head.n - 1, 8 * steps_at, width,
                      out.out + out.position, is_signed))
        return false;
    at = end;
    out.position += head.n * (uint32_t)sizeof(T);
    return true;
}

/*
 * collective.  Decodes the run at `at`, which has a byte of input, if it is special, and moves `at`
 * past it.  False: nothing has changed, except for output after the position.
 */
template <typename T>
WHARF_DEVICE bool decode_special(const number_source &in, uint32_t &at, output_stream &out,
                                 bool is_signed)
{
    run_head head;
    head.init(in.peek_32<true>(at) >> 16);
    if (!head.is_special())
        return false;
    return head.kind == WHARF_RLE2_DELTA ? decode_delta<T>(in, at, out, is_signed)
                                         : decode_patched<T>(in, at, out, is_signed);
}

} // namespace rle2
} // namespace wharf

#endif
