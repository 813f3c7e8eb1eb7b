/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle_window.cuh: what the windows of rle1 and rle2 have in common.
 *
 * A window is 128 bytes of input in shared memory with a list of the bytes that end a varint, that
 * is a byte below 128.  These ends do not depend on where decoding starts, so 32 lanes find them at
 * once.  The second half of this file distributes the values of groups or runs over 32 lanes.
 */
#ifndef WHARF_KERNELS_RLE_WINDOW_CUH
#define WHARF_KERNELS_RLE_WINDOW_CUH

#include "kernels/rle_device.cuh"

namespace wharf
{
namespace rle
{

constexpr uint32_t WINDOW_NBYTES = 128;
static_assert(WINDOW_NBYTES == 4 * WARP_LANES);
/* The top bit of each byte of a word: set in bytes that do not end a varint. */
constexpr uint32_t TOPS = 0x80808080;
/* Words behind the window that code may read; their contents do not matter. */
constexpr uint32_t N_WORDS_BEHIND = 3;

struct window {
    uint32_t words[WINDOW_NBYTES / 4 + N_WORDS_BEHIND];
    uint8_t ends[WINDOW_NBYTES]; /* where the k-th number ends: its last byte */
};

WHARF_DEVICE uint32_t byte_at(const window &w, uint32_t place)
{
    return load(reinterpret_cast<const uint8_t *>(w.words) + place);
}

/* One lane.  Four bytes of the window or of the words behind it. */
WHARF_DEVICE uint32_t word_at(const window &w, uint32_t place)
{
    uint32_t i = place >> 2;
    return funnel_right(load(&w.words[i]), load(&w.words[i + 1]), 8 * (place & 3));
}

/* ---- filling ------------------------------------------------------------------------------ */

/* One lane.  Loads its four bytes of the window, which begins at byte `at` of the input; `left`
 * bytes of input remain there.  Bytes past the end are 0. */
WHARF_DEVICE uint32_t own_word(const input_source &source, uint32_t at, uint32_t left)
{
    uint32_t first = source.begin + at + 4 * lane_id();
    uint32_t i = first >> 2;
    const uint32_t *words = reinterpret_cast<const uint32_t *>(source.aligned);
    /* All aligned words around the window lie within the input. */
    if (at >= 4 && left >= WINDOW_NBYTES + 4)
        return funnel_right(load_nc(words + i), load_nc(words + i + 1), 8 * (first & 3));
    return funnel_right(source.load_word(i), source.load_word(i + 1), 8 * (first & 3));
}

/* The numbers that end in this lane's four bytes, among all that end in the window. */
struct own_ends {
    uint32_t bits; /* bit j: byte j ends one; also of the next lane's four, from bit 4 on */
    uint32_t rank; /* how many end before */
    uint32_t n;    /* how many end in all; the same in all lanes */

    /* One lane.  How many end before byte j. */
    WHARF_DEVICE_MEMBER uint32_t before(unsigned j) const
    {
        return rank + popc(bits & low_bits(0xffffffff, j));
    }
};

/* One lane.  Bit j of the result: byte j of the word ends a number and is one of its first n. */
WHARF_DEVICE uint32_t ends_of(uint32_t word, uint32_t n)
{
    uint32_t ends = (~word & low_bits(TOPS, n < 4 ? 8 * n : 32)) >> 7;
    return (ends | ends >> 7 | ends >> 14 | ends >> 21) & 15;
}

/* collective.  Fills the window with each lane's word; `avail` bytes are valid.  Synchronises
 * before it writes and after. */
WHARF_DEVICE own_ends fill(window &w, uint32_t word, uint32_t avail)
{
    uint32_t lane = lane_id();
    own_ends own;
    own.bits = ends_of(word, avail > 4 * lane ? avail - 4 * lane : 0);
    own.rank = inclusive_add(popc(own.bits));
    own.n = shfl(own.rank, 31);
    own.rank -= popc(own.bits);
    uint32_t above = shfl_down(own.bits, 1);
    own.bits |= (lane < 31 ? above : 0) << 4;
    syncwarp();
    store(&w.words[lane], word);
    WHARF_UNROLL
    for (unsigned j = 0; j < 4; j++)
        if (own.bits >> j & 1)
            store(&w.ends[own.before(j)], (uint8_t)(4 * lane + j));
    syncwarp();
    return own;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* One lane.  Joins the lower 7 bits of each of four bytes. */
WHARF_DEVICE uint32_t close_gaps(uint32_t v)
{
    return (v & 0x7f) | (v >> 1 & 0x3f80) | (v >> 2 & 0x1fc000) | (v >> 3 & 0xfe00000);
}

/* One lane.  The lower n bytes of a word, for any n. */
WHARF_DEVICE uint32_t low_bytes(uint32_t v, uint32_t n)
{
    return low_bits(v, n < 4 ? 8 * n : 32);
}

/*
 * One lane.  The number at places first to last.  Sets `is_bad` if it has more than 64 bits, or,
 * for a T shorter than 8 bytes, more bytes than a T needs.
 */
template <typename T>
WHARF_DEVICE uint64_t number_at(const window &w, uint32_t first, uint32_t last, bool &is_bad)
{
    constexpr uint32_t MOST = sizeof(T) < 8 ? 5 : 10;
    uint32_t n = last - first + 1;
    uint64_t u = close_gaps(low_bytes(word_at(w, first), n));
    is_bad |= n > MOST;
    if (n <= 4)
        return u;
    if (sizeof(T) < 8) {
        u |= (uint64_t)(byte_at(w, first + 4) & 0x7f) << 28;
    } else {
        uint32_t top = low_bytes(word_at(w, first + 8), n < 8 ? 0 : n - 8);
        u |= (uint64_t)close_gaps(low_bytes(word_at(w, first + 4), n - 4)) << 28;
        u |= (uint64_t)(top & 0x7f) << 56 | (uint64_t)(top >> 8 & 1) << 63;
        is_bad |= (top >> 9 & 0x7f) != 0;
    }
    return u;
}

/* ---- groups and values -------------------------------------------------------------------- */

/*
 * collective.  Walks from group to group, from place `at` on, over at most `most` groups.  next(at)
 * is the place behind the group that begins at `at`, or above `limit` if there is no such group.
 * Returns the number of groups.  Lane `first` gets the first group's place, and so on.
 */
template <typename Next>
WHARF_DEVICE uint32_t chase(uint32_t &at, uint32_t limit, uint32_t first, uint32_t most,
                            uint32_t &place, Next next)
{
    uint32_t mine = lane_id() - first;
    uint32_t n = 0;
    WHARF_UNROLL_BY(4)
    for (; n < most; n++) {
        uint32_t behind = next(at);
        if (behind > limit)
            break;
        place = mine == n ? at : place;
        at = behind;
    }
    return n;
}

/*
 * collective.  Goes through n values, 32 at a time.  All lanes call put(i, owner), also for i past
 * the last value; `owner` is the lane whose group contains value i.  `begins` is the index of the
 * first value of this lane's group, or 0xffffffff without a group.  Groups are in the order of
 * lanes, and the first one begins with value 0.
 */
template <typename Put>
WHARF_DEVICE void share_values(uint32_t begins, uint32_t n, Put put)
{
    uint32_t lane = lane_id();
    uint32_t up_to_lane = (2u << lane) - 1;
    uint32_t n_begun = 0xffffffff;
    for (uint32_t first = 0; first < n; first += WARP_LANES) {
        uint32_t in_round = begins - first;
        uint32_t begun = reduce_or(in_round < WARP_LANES ? 1u << in_round : 0);
        put(first + lane, n_begun + popc(begun & up_to_lane));
        n_begun += popc(begun);
    }
}

/* Stores values of type T from `out` on, of any alignment. */
template <typename T>
struct value_sink {
    uint8_t *out;
    bool is_aligned;

    WHARF_DEVICE_MEMBER void init(uint8_t *o)
    {
        out = o;
        is_aligned = reinterpret_cast<uintptr_t>(o) % sizeof(T) == 0;
    }

    /* One lane.  Value number i. */
    WHARF_DEVICE_MEMBER void put(uint32_t i, uint64_t v) const
    {
        if (is_aligned)
            store(reinterpret_cast<T *>(out) + i, (T)v);
        else
            store_value<T>(out + i * sizeof(T), v);
    }
};

} // namespace rle
} // namespace wharf

#endif
