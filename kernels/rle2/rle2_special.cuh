/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_special.cuh: one run of rle2 by all lanes: of patched base, of deltas that are not all the
 * same, and others that are long or stand alone among such, for which a batch would be too much.
 *
 * What is not as it should be stops it: nothing of the run counts then, and somebody else judges.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_SPECIAL_CUH
#define WHARF_KERNELS_RLE2_RLE2_SPECIAL_CUH

#include "kernels/rle2/rle2_batch.cuh"

namespace wharf
{
namespace rle2
{

/* ---- packed numbers ----------------------------------------------------------------------- */

/*
 * collective.  Stores n bytes at `out`: value(u, i) of the i-th number u of those packed from a bit
 * on, up to 8 bits each, 0 for no number.  A lane takes four of them, which lie in two words, and
 * stores a word, as they stand in memory: some lanes at the two ends have fewer.
 */
template <bool CHECKED, typename Value>
WHARF_DEVICE void put_bytes(const number_source &in, uint32_t bit, uint32_t width, uint32_t n,
                            uint8_t *out, Value value)
{
    uint32_t skew = (uint32_t)(reinterpret_cast<uintptr_t>(out) & 3);
    uint32_t begin = in.source.skew_nbits() + bit;
    for (uint32_t first = 0; first < n + skew; first += 4 * WARP_LANES) {
        uint32_t i = first + 4 * lane_id() - skew;
        /* Of the first lane, up to three that are before the run. */
        uint32_t n_before = i > n ? 0 - i : 0;
        n_before = n_before < 4 ? n_before : 0;
        uint32_t from = i + n_before < n ? i + n_before : 0;
        uint32_t at = begin + from * width;
        uint32_t hi = byte_perm(in.word<CHECKED>(at >> 5), 0, 0x0123);
        uint32_t lo = byte_perm(in.word<CHECKED>((at >> 5) + 1), 0, 0x0123);
        uint32_t bits = funnel_left(lo, hi, at & 31) >> n_before * width;
        uint32_t word = 0;
        WHARF_UNROLL
        for (unsigned j = 0; j < 4; j++)
            word |= (value(bits << j * width >> (32 - width), i + j) & 255) << 8 * j;
        if (i < n && n - i >= 4) {
            store(reinterpret_cast<uint32_t *>(out + i), word);
        } else {
            WHARF_UNROLL
            for (unsigned j = 0; j < 4; j++)
                if (i + j < n)
                    store(out + (i + j), (uint8_t)(word >> 8 * j));
        }
    }
}

/* collective.  Stores n values: value(u, i) of the i-th of the numbers that are packed from a bit
 * on. Those past the last one are not asked for. */
template <typename T, bool CHECKED, typename Value>
WHARF_DEVICE void put_packed_values(const number_source &in, uint32_t bit, uint32_t width,
                                    uint32_t n, uint8_t *out, Value value)
{
    rle::value_sink<T> sink;
    sink.init(out);
    WHARF_UNROLL_BY(2)
    for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
        sink.put(i, value(in.number<CHECKED>(bit + i * width, width), i));
}

/* ---- patched base ------------------------------------------------------------------------- */

/* The same in all lanes. */
struct patched_run {
    uint32_t n, width, n_patches, gap_width, patch_width, entry_width;
    uint32_t offsets; /* bits where they begin */
    uint32_t list;
    uint64_t base;
    uint32_t end; /* the byte behind the run */
};

/* One lane.  False if it is not complete, or has no good list for sure. */
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

/* collective.  Lane i gets patch i.  Returns whether all are good. */
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
 * collective.  Stores a run's values, and then those that are patched once more.  False if not all
 * are of the type, with their patches or without: that one without is not means nothing, and is
 * rare.
 */
template <typename T, bool CHECKED>
WHARF_DEVICE bool put_patched(const number_source &in, const patched_run &r, const patch &mine,
                              uint8_t *out, bool is_signed)
{
    uint64_t excess = 0;
    if (sizeof(T) == 1 && r.width <= 8 && (r.base + 0x1000) >> 13 == 0) {
        uint32_t base = (uint32_t)r.base + (is_signed ? 0x80 : 0);
        uint32_t all = 0;
        put_bytes<CHECKED>(in, r.offsets, r.width, r.n, out, [&](uint32_t u, uint32_t i) {
            all |= i < r.n ? base + u : 0;
            return (uint32_t)r.base + u;
        });
        excess = all;
    } else {
        put_packed_values<T, CHECKED>(in, r.offsets, r.width, r.n, out, [&](uint64_t u, uint32_t) {
            excess |= rle::excess_of<T>(r.base + u, is_signed);
            return r.base + u;
        });
    }
    syncwarp(); /* the values, before what patches make of them */
    if (mine.at < r.n) {
        uint64_t v = r.base + (in.number<true>(r.offsets + mine.at * r.width, r.width) | mine.bits);
        excess |= rle::excess_of<T>(v, is_signed);
        rle::store_value<T>(out + mine.at * sizeof(T), v);
    }
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
 * collective.  The first value and, from the second on, n more, of which each but the first differs
 * from the one before by a number of `width` bits at `bit` and so on.
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

/* ---- others ------------------------------------------------------------------------------- */

template <typename T, bool CHECKED>
WHARF_DEVICE bool put_direct(const number_source &in, uint32_t bit, uint32_t width, uint32_t n,
                             uint8_t *out, bool is_signed)
{
    uint64_t all = 0;
    /* What 8 bits hold is of any type. */
    if (sizeof(T) == 1 && width <= 8)
        put_bytes<CHECKED>(in, bit, width, n, out, [=](uint32_t u, uint32_t) {
            return is_signed ? u >> 1 ^ (0 - (u & 1)) : u;
        });
    else
        put_packed_values<T, CHECKED>(in, bit, width, n, out, [&](uint64_t u, uint32_t) {
            all |= u;
            return rle::value_of(u, is_signed);
        });
    return !any_lane(rle::exceeds<T>(all));
}

template <typename T>
WHARF_DEVICE bool decode_direct(const number_source &in, uint32_t &at, const run_head &head,
                                output_stream &out, bool is_signed)
{
    uint32_t width = width_of(head.code);
    uint32_t end = at + 2 + packed_nbytes(head.n, width);
    uint32_t bit = 8 * (at + 2);
    uint8_t *to = out.out + out.position;
    if (end > in.nbytes() || head.n > rle::room_of<T>(out))
        return false;
    if (in.is_inside(at, end) ? !put_direct<T, false>(in, bit, width, head.n, to, is_signed)
                              : !put_direct<T, true>(in, bit, width, head.n, to, is_signed))
        return false;
    at = end;
    out.position += head.n * (uint32_t)sizeof(T);
    return true;
}

/* collective.  A short repeat, or a delta that is always the same. */
template <typename T>
WHARF_DEVICE bool decode_even(const number_source &in, uint32_t &at, const run_head &head,
                              output_stream &out, bool is_signed)
{
    uint32_t end = at + 2;
    uint64_t u, delta = 0;
    if (head.kind == WHARF_RLE2_SHORT_REPEAT) {
        uint32_t n_more = load_nc(in.source.aligned + in.source.begin + at) >> 3 & 7;
        u = in.peek_64<true>(at + 1) >> (56 - 8 * n_more);
        end += n_more;
    } else if (!in.take_varint(end, u) || !in.take_varint(end, delta)) {
        return false;
    }
    delta = rle::unzigzag(delta);
    if (end > in.nbytes() ||
        !is_even_run<T>(rle::value_of(u, is_signed), delta, head.n, is_signed) ||
        !out.write_run<T>((T)rle::value_of(u, is_signed), (T)delta, head.n))
        return false;
    at = end;
    return true;
}

/* ---- all kinds ---------------------------------------------------------------------------- */

/* Values from which on a run is worth being taken alone: of fewer, a batch has less work for each.
 */
constexpr uint32_t N_LONG = 128;
/* Shorter ones that are taken alone behind one that was: a batch is as much work as half a dozen.
 */
constexpr uint32_t MOST_ALONE = 2;

/*
 * collective.  The run at `at`, of which a byte is there, if it is special or long or follows one
 * that is; moves `at` behind it.  False: nothing has changed, but for output behind the position.
 * n_alone, 0 at first, is kept from run to run.
 */
template <typename T>
WHARF_DEVICE bool decode_alone(const number_source &in, uint32_t &at, output_stream &out,
                               bool is_signed, uint32_t &n_alone)
{
    run_head head;
    head.init(in.peek_32<true>(at) >> 16);
    bool is_long = head.is_special() || head.n >= N_LONG;
    if (!is_long && n_alone >= MOST_ALONE)
        return false;
    n_alone = is_long ? 0 : n_alone + 1;
    if (head.kind == WHARF_RLE2_PATCHED_BASE)
        return decode_patched<T>(in, at, out, is_signed);
    if (head.kind == WHARF_RLE2_DIRECT)
        return decode_direct<T>(in, at, head, out, is_signed);
    return head.is_special() ? decode_delta<T>(in, at, out, is_signed)
                             : decode_even<T>(in, at, head, out, is_signed);
}

} // namespace rle2
} // namespace wharf

#endif
