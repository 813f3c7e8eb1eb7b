/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_batch.cuh: decodes up to 32 runs of rle2 at once, of kinds whose values do not depend on
 * each other: short repeats, direct runs, and deltas that are all the same.
 *
 * 1. Link.  Each lane has four bytes of a window.  For each byte, lanes compute where a run that
 *    begins there would end.  Its first two bytes tell, except that a run of deltas ends with the
 *    second number after them; where numbers end is known wherever runs begin.
 * 2. Chase.  From the first run, these links lead to all others, at one load each.  Lane i keeps
 *    run i.  Only the packed numbers of a direct run may be outside the window.
 * 3. Spread.  A scan of the lengths gives the places of values.  Then lanes work on values, 32 at a
 *    time, whatever run a value belongs to.
 *
 * INVARIANT: a batch counts as a whole or not at all.  Anything unusual discards it, and the exact
 * path decodes from its start and finds the reason.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_BATCH_CUH
#define WHARF_KERNELS_RLE2_RLE2_BATCH_CUH

#include "kernels/rle2/rle2_numbers.cuh"
#include "kernels/rle_window.cuh"

namespace wharf
{
namespace rle2
{

using rle::WINDOW_NBYTES;

struct window : rle::window {
    uint16_t ends_of_runs[WINDOW_NBYTES]; /* the place after a run that begins here */
    uint8_t ranks[WINDOW_NBYTES]; /* of deltas: the rank of the second number's end, plus 1 */
};

/* No place: real ones are at most 128 + 2 + 512 * 8. */
constexpr uint32_t NO_PLACE = 0xffff;

/* Lane i holds run i.  Value k is base + k * delta, or number k of a direct run. */
struct run {
    uint32_t n;     /* number of values; 0: no such run */
    uint32_t width; /* of a direct run: bits a number; else 0 */
    uint32_t bit;   /* of a direct run: where its numbers begin */
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

    /* Whether its values depend on each other or on a list of patches (rle2_special.cuh). */
    WHARF_DEVICE_MEMBER bool is_special() const
    {
        return kind == WHARF_RLE2_PATCHED_BASE || (kind == WHARF_RLE2_DELTA && code != 0 && n > 2);
    }
};

/* ---- link --------------------------------------------------------------------------------- */

/*
 * One lane.  The place after a run whose first two bytes, `bytes`, are at a place of the window.
 * `rank` numbers end up to these two bytes.  NO_PLACE if the run is special; if anything but a
 * direct run's numbers is outside the window; or if its numbers are outside the input.
 */
WHARF_DEVICE uint32_t end_of_run(const window &w, uint32_t bytes, uint32_t place, uint32_t rank,
                                 uint32_t n_ends, uint32_t avail, uint32_t left)
{
    run_head head;
    head.init(bytes);
    uint32_t end = place + 2 + (bytes >> 11 & 7);
    uint32_t most = avail;
    if (head.kind == WHARF_RLE2_DIRECT) {
        end = place + 2 + packed_nbytes(head.n, width_of(head.code));
        most = left;
    } else if (head.kind == WHARF_RLE2_DELTA) {
        end = rank + 1 < n_ends ? (uint32_t)load(&w.ends[rank + 1]) + 1 : NO_PLACE;
    }
    return head.is_special() || place + 2 > avail || end > most ? NO_PLACE : end;
}

/* collective.  Fills the window at byte `at`, of `avail` bytes, and its links.  `left` bytes of
 * input are left. */
WHARF_DEVICE void fill(window &w, const number_source &in, uint32_t at, uint32_t avail,
                       uint32_t left)
{
    uint32_t lane = lane_id();
    uint32_t word = rle::own_word(in.source, at, left);
    rle::own_ends own = rle::fill(w, word, avail);
    /* The last lane's `above` is not valid, but it is outside the window. */
    uint32_t above = shfl_down(word, 1);
    uint32_t ranks = 0;
    WHARF_UNROLL
    for (unsigned j = 0; j < 4; j++) {
        uint32_t bytes = byte_perm(funnel_right(word, above, 8 * j), 0, 0x4401);
        uint32_t rank = own.before(j + 2);
        uint32_t end = end_of_run(w, bytes, 4 * lane + j, rank, own.n, avail, left);
        store(&w.ends_of_runs[4 * lane + j], (uint16_t)end);
        ranks |= (rank + 1) << 8 * j;
    }
    store(reinterpret_cast<uint32_t *>(w.ranks) + lane, ranks);
    syncwarp();
}

/* ---- read --------------------------------------------------------------------------------- */

/*
 * One lane.  Reads the run at a place of the window, which begins at byte `at` of the input; the
 * run has a link.  False if a value is surely outside the type, or a number has more bytes than 64
 * bits need.
 */
template <typename T>
WHARF_DEVICE bool read_run(const window &w, uint32_t at, uint32_t place, bool is_signed, run &r)
{
    uint32_t bytes = byte_perm(rle::word_at(w, place), 0, 0x4401);
    run_head head;
    head.init(bytes);
    r = {head.n, 0, 0, 0, 0};
    if (head.kind == WHARF_RLE2_DIRECT) {
        r.width = width_of(head.code);
        r.bit = 8 * (at + place + 2);
        return true;
    }
    uint64_t u;
    if (head.kind == WHARF_RLE2_SHORT_REPEAT) {
        u = (uint64_t)byte_perm(rle::word_at(w, place + 1), 0, 0x0123) << 32 |
            byte_perm(rle::word_at(w, place + 5), 0, 0x0123);
        u >>= 56 - 8 * (bytes >> 11 & 7);
        r.base = rle::value_of(u, is_signed);
        return !rle::exceeds<T>(u);
    }
    uint32_t rank = load(&w.ranks[place]);
    uint32_t first_end = load(&w.ends[rank - 1]);
    bool is_bad = false;
    u = rle::number_at<T>(w, place + 2, first_end, is_bad);
    r.base = rle::value_of(u, is_signed);
    r.delta = rle::unzigzag(rle::number_at<T>(w, first_end + 1, load(&w.ends[rank]), is_bad));
    /* Good values of a narrow type differ by less than 2^33.  With such a delta, no value of the
     * run wraps past 2^64, and the first and the last one are enough to check. */
    bool is_far = sizeof(T) < 8 && r.n > 1 && (r.delta + ((uint64_t)1 << 33)) >> 34 != 0;
    uint64_t last = r.base + (r.n - 1) * r.delta;
    return !is_bad && !is_far &&
           !rle::exceeds<T>(rle::excess_of<T>(r.base, is_signed) |
                            rle::excess_of<T>(last, is_signed));
}

/* ---- spread ------------------------------------------------------------------------------- */

/* Packs what other lanes need of a run: the offset of its first value (at most 31 * 512) in 14
 * bits, and its width. */
WHARF_DEVICE uint32_t pack_run(const run &r, uint32_t offset)
{
    return offset | r.width << 14;
}

/* collective.  Stores the values of all runs, n in all, for which there is room.  Returns whether
 * all are good. */
template <typename T, bool CHECKED>
WHARF_DEVICE bool spread(const number_source &in, const run &r, uint32_t offset, uint32_t n,
                         uint8_t *out, bool is_signed)
{
    uint32_t packed = pack_run(r, offset);
    /* A run has either a place in the input or a base, so they share a register. */
    uint64_t base = r.width ? r.bit : r.base;
    uint64_t all = 0;
    rle::value_sink<T> sink;
    sink.init(out);
    rle::share_values(r.n > 0 ? offset : 0xffffffff, n, [&](uint32_t i, uint32_t owner) {
        uint32_t theirs = shfl(packed, owner);
        /* A place in bits may need more bits than T has. */
        uint32_t base_low = shfl((uint32_t)base, owner);
        uint32_t base_high = sizeof(T) == 8 ? shfl((uint32_t)(base >> 32), owner) : 0;
        uint64_t delta = rle::shfl_value<T>(r.delta, owner);
        uint32_t k = i - (theirs & 16383);
        uint32_t width = theirs >> 14;
        if (i >= n)
            return;
        if (width) {
            uint64_t u = in.number<CHECKED>(base_low + k * width, width);
            all |= u;
            sink.put(i, rle::value_of(u, is_signed));
        } else {
            sink.put(i, ((uint64_t)base_high << 32 | base_low) + k * delta);
        }
    });
    return !any_lane(rle::exceeds<T>(all));
}

/*
 * collective.  Decodes runs from `at` on, up to the first special one, and moves `at` past them.
 * False: nothing has changed, except for output after the position.
 */
template <typename T>
WHARF_DEVICE bool decode_batch(window &w, const number_source &in, uint32_t &at, output_stream &out,
                               bool is_signed)
{
    uint32_t left = in.nbytes() - at;
    uint32_t avail = left < WINDOW_NBYTES ? left : WINDOW_NBYTES;
    fill(w, in, at, avail, left);
    uint32_t place = 0;
    uint32_t nbytes = 0;
    uint32_t n_runs = rle::chase(nbytes, NO_PLACE - 1, 0, WARP_LANES, place, [&](uint32_t p) {
        return p < avail ? (uint32_t)load(&w.ends_of_runs[p]) : NO_PLACE;
    });
    run r = {0, 0, 0, 0, 0};
    bool is_good = lane_id() >= n_runs || read_run<T>(w, at, place, is_signed, r);
    uint32_t offset = inclusive_add(r.n);
    uint32_t n = shfl(offset, 31);
    offset -= r.n;
    if (n_runs == 0 || any_lane(!is_good) || n > rle::room_of<T>(out))
        return false;
    uint8_t *to = out.out + out.position;
    if (in.is_inside(at, at + nbytes) ? !spread<T, false>(in, r, offset, n, to, is_signed)
                                      : !spread<T, true>(in, r, offset, n, to, is_signed))
        return false;
    at += nbytes;
    out.position += n * (uint32_t)sizeof(T);
    return true;
}

} // namespace rle2
} // namespace wharf

#endif
