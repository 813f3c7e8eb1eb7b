/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_stream.cuh: parses a rans stream on the device: header, fields of the body, splits.
 *
 * Invariant: the result, errors included, is that of encoders/rans/rans_stream.c and rans_body.c.
 * encoders/rans/rans_format.h has the layout and the rules.
 */
#ifndef WHARF_KERNELS_RANS_RANS_STREAM_CUH
#define WHARF_KERNELS_RANS_RANS_STREAM_CUH

#include "encoders/rans/rans_format.h"
#include "kernels/input_stream.cuh"

namespace wharf
{
namespace rans
{

/* encoders/rans/rans_model.h: slots, and ranges, of a model that stands in its stream. */
constexpr uint32_t INLINE_NSLOTS = 65536;
/* Of a registered one. */
constexpr uint32_t REGISTERED_NSLOTS = 1u << 24;

/* A split: start and state are this lane's, all else is the same in all lanes. */
struct split {
    uint32_t number;    /* n_splits: there is none */
    uint32_t starts_at; /* in bits of the body */
    uint32_t first_group, last_group;
    int64_t first_word;
    uint32_t start, state;
};

/* The same in all lanes but for splits.  Places are bytes of the stream, or bits where they say
 * so. */
struct stream {
    input_source source;
    uint32_t n_bits, symbol_nbytes, n_distributions, alphabet;
    uint32_t model_nbytes, indexes_at, body_at;
    uint32_t n_splits, n_symbols, n_groups;
    uint32_t cut_nbits, group_nbits;
    uint32_t cuts_at, groups_at, starts_at; /* bits of the body */
    uint32_t split_states_at, words_at;
    int32_t n_words;
    split quarters[3]; /* quarter_split 1 to 3, where they are */
};

/* One lane.  Byte i of the stream, which is there. */
WHARF_DEVICE uint32_t byte_at(const stream &in, uint32_t i)
{
    return load_nc(in.source.aligned + in.source.begin + i);
}

WHARF_DEVICE uint32_t le16_at(const stream &in, uint32_t i)
{
    return byte_at(in, i) | byte_at(in, i + 1) << 8;
}

WHARF_DEVICE uint32_t le32_at(const stream &in, uint32_t i)
{
    return le16_at(in, i) | le16_at(in, i + 2) << 16;
}

/* One lane.  n bits (0 to 33) of the body from bit `at` on, all of them there: words of 16 bits,
 * most significant bit first. */
WHARF_DEVICE uint64_t near_body_bits(const stream &in, uint32_t at, uint32_t n)
{
    uint32_t first = in.source.begin + in.body_at + 2 * (at / 16);
    uint32_t a = in.source.load_word(first / 4), b = in.source.load_word(first / 4 + 1);
    uint32_t low = funnel_right(a, b, 8 * (first % 4));
    uint32_t high = funnel_right(b, in.source.load_word(first / 4 + 2), 8 * (first % 4));
    /* Three words, of which n bits begin at the most in the 16th. */
    uint64_t words = (uint64_t)(low & 0xffff) << 32 | (low & 0xffff0000) | (high & 0xffff);
    return words >> (48 - at % 16 - n) & ((1ull << n) - 1);
}

/* The same, not inlined: it is called from many places. */
WHARF_DEVICE_NOINLINE uint64_t long_body_bits(const stream &in, uint32_t at, uint32_t n)
{
    return near_body_bits(in, at, n);
}

/* One lane.  The same of 1 to 16 bits, of which there are a dozen in a chunk's fields: they lie in
 * two words. */
WHARF_DEVICE uint32_t short_body_bits(const stream &in, uint32_t at, uint32_t n)
{
    uint32_t first = in.source.begin + in.body_at + 2 * (at / 16);
    uint32_t v = funnel_right(in.source.load_word(first / 4), in.source.load_word(first / 4 + 1),
                              8 * (first % 4));
    return (v << 16 | v >> 16) << at % 16 >> (32 - n);
}

constexpr uint32_t MAX_SHORT_NBITS = 16;

/* One lane.  1 to 33 bits. */
WHARF_DEVICE uint64_t body_bits(const stream &in, uint32_t at, uint32_t n)
{
    return n <= MAX_SHORT_NBITS ? short_body_bits(in, at, n) : long_body_bits(in, at, n);
}

/* One lane.  A sign and n bits. */
WHARF_DEVICE int64_t signed_bits(const stream &in, uint32_t at, uint32_t n)
{
    uint64_t v = body_bits(in, at, 1 + n);
    int64_t magnitude = (int64_t)(v & ((1ull << n) - 1));
    return v >> n ? -magnitude : magnitude;
}

/* Fields one after the other, as far as they are there. */
struct field_reader {
    uint32_t at, n_bits;
    bool truncated;

    WHARF_DEVICE_MEMBER bool skip(uint32_t n)
    {
        truncated |= n > n_bits - at;
        at += truncated ? 0 : n;
        return !truncated;
    }

    WHARF_DEVICE_MEMBER uint32_t read(const stream &in, uint32_t n)
    {
        uint32_t from = at;
        return skip(n) ? (uint32_t)body_bits(in, from, n) : 0;
    }
};

WHARF_DEVICE uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* How a decode ends that is stopped: no reason of the data's. */
constexpr uint32_t STOPPED = 0xffffffffu;

/* Splits that are gone through between two looks whether the decode is stopped: each waits for
 * memory some times, eight microseconds in all where that is the host's. */
constexpr uint32_t SPLITS_BETWEEN_LOOKS = 16;

/* collective.  Before split `number`, in a loop over splits. */
WHARF_DEVICE bool is_stopped_at(const stop_word &stop, uint32_t number)
{
    return number % SPLITS_BETWEEN_LOOKS == 0 && is_stopped(stop);
}

/* ---- splits -------------------------------------------------------------------------------- */

/* Behind all groups and above all words: what no window is. */
constexpr uint32_t NO_GROUP = 0xffffffffu;

/* There is none any more: no group is in its window, and no word is one of its words. */
WHARF_DEVICE void close_split(const stream &in, split &s)
{
    s.number = in.n_splits;
    s.first_group = s.last_group = s.start = NO_GROUP;
    s.first_word = -(1ll << 31);
}

/* collective.  Split `number`, from 1 to n_splits - 1, whose starts stand at bit starts_at.  Not
 * inlined: it is long, and seldom called from many places. */
WHARF_DEVICE_NOINLINE split read_split(const stream &in, uint32_t number, uint32_t starts_at)
{
    split s;
    uint32_t before = number - 1;
    s.number = number;
    s.first_word = signed_bits(in, in.cuts_at + before * (1 + in.cut_nbits), in.cut_nbits) +
                   (int64_t)(in.n_splits - number) * ceil_div((uint32_t)in.n_words, in.n_splits);
    int64_t group = signed_bits(in, in.groups_at + before * (1 + in.group_nbits), in.group_nbits) +
                    (int64_t)number * ceil_div(in.n_groups, in.n_splits);
    int64_t most = 0xffffffffu - WHARF_RANS_MAX_ALPHABET;
    uint32_t base = (uint32_t)(group < 0 || group > most ? most : group);
    uint32_t n = short_body_bits(in, starts_at, 4) + 1;
    s.start = base + short_body_bits(in, starts_at + 4 + lane_id() * n, n);
    s.state =
        le16_at(in, in.split_states_at + before * WHARF_RANS_SPLIT_STATES_NBYTES + 2 * lane_id());
    s.starts_at = starts_at + 4 + WARP_LANES * n;
    s.first_group = reduce_min(s.start);
    s.last_group = reduce_max(s.start);
    return s;
}

/* collective.  Goes on to the split that comes next, if one does. */
WHARF_DEVICE void next_split(const stream &in, split &s)
{
    if (s.number + 1 >= in.n_splits)
        close_split(in, s);
    else
        s = read_split(in, s.number + 1, s.starts_at);
}

/* collective.  In front of the first split. */
WHARF_DEVICE void first_split(const stream &in, split &s)
{
    s.number = 0;
    s.starts_at = in.starts_at;
    next_split(in, s);
}

/* The split at which the q-th quarter of the splits begins, q from 1 to 3. */
WHARF_DEVICE uint32_t quarter_split(const stream &in, unsigned q)
{
    return q * in.n_splits / 4;
}

/* collective.  Rule 4, or STOPPED; keeps the quarters' splits. */
WHARF_DEVICE uint32_t check_splits(stream &in, const stop_word &stop)
{
    split s;
    int64_t word_before = in.n_words;
    int64_t group_before = -1;
    s.number = 0;
    s.starts_at = in.starts_at;
    for (;;) {
        next_split(in, s);
        if (s.number >= in.n_splits)
            return WHARF_REASON_NONE;
        if (is_stopped_at(stop, s.number))
            return STOPPED;
        if (s.first_word < 0 || s.first_word >= word_before)
            return WHARF_REASON_RANS_SPLIT;
        if ((int64_t)s.first_group <= group_before || s.last_group >= in.n_groups)
            return WHARF_REASON_RANS_SPLIT;
        word_before = s.first_word;
        group_before = s.last_group;
        WHARF_UNROLL
        for (unsigned q = 1; q < 4; q++)
            if (s.number == quarter_split(in, q))
                in.quarters[q - 1] = s;
    }
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* collective.  Past the starts of all splits; false if the decode is stopped.  Each turn of the
 * inner loop leaves 36 bits behind at least. */
WHARF_DEVICE bool skip_starts(const stream &in, field_reader &reader, const stop_word &stop)
{
    uint32_t n = in.n_splits - 1;
    for (uint32_t first = 0; first < n && !any_lane(reader.truncated);
         first += SPLITS_BETWEEN_LOOKS) {
        uint32_t end = n - first < SPLITS_BETWEEN_LOOKS ? n : first + SPLITS_BETWEEN_LOOKS;
        if (first > 0 && is_stopped(stop))
            return false;
        for (uint32_t s = first; s < end && !reader.truncated; s++)
            reader.skip(WARP_LANES * (reader.read(in, 4) + 1));
    }
    return true;
}

/* collective.  Items 4 to 8; false if the decode is stopped. */
WHARF_DEVICE bool read_split_fields(stream &in, field_reader &reader, const stop_word &stop)
{
    uint32_t n = in.n_splits - 1;
    in.cut_nbits = reader.read(in, 5) + 1;
    in.cuts_at = reader.at;
    reader.skip(n * (1 + in.cut_nbits));
    in.group_nbits = reader.read(in, 5) + 1;
    in.groups_at = reader.at;
    reader.skip(n * (1 + in.group_nbits));
    in.starts_at = reader.at;
    return skip_starts(in, reader, stop);
}

/* What parsing ends with where fields are not at hand: no reason of the data's. */
constexpr uint32_t NOT_AT_HAND = 0xfffffffdu;

/* collective.  Rule 3 of the body's fields, of which the first bytes are at hand; the reason, or
 * STOPPED. */
WHARF_DEVICE uint32_t parse_fields(stream &in, uint32_t body_nbytes, uint32_t at_hand_nbytes,
                                   const stop_word &stop)
{
    field_reader reader = {0, 8 * at_hand_nbytes, false};
    uint32_t truncated =
        at_hand_nbytes < body_nbytes ? NOT_AT_HAND : (uint32_t)WHARF_REASON_INPUT_TRUNCATED;
    if (body_nbytes % 2 != 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (!reader.skip(8 * WHARF_RANS_STATES_NBYTES))
        return truncated;
    in.n_splits = uniform(reader.read(in, reader.read(in, 4) + 1));
    in.n_symbols = uniform(reader.read(in, reader.read(in, 5) + 1));
    if (reader.truncated)
        return truncated;
    if (in.n_splits == 0 || in.n_symbols > WHARF_RANS_MAX_SYMBOLS)
        return WHARF_REASON_RANS_HEADER;
    in.n_groups = ceil_div(in.n_symbols, WARP_LANES);
    if (in.n_splits > 1 && !read_split_fields(in, reader, stop))
        return STOPPED;
    uint32_t states_at = reader.at / 16 + 1; /* in words */
    uint32_t n_states = (in.n_splits - 1) * WARP_LANES;
    if (reader.truncated)
        return truncated;
    if (states_at + n_states > body_nbytes / 2)
        return WHARF_REASON_INPUT_TRUNCATED;
    in.split_states_at = in.body_at + 2 * states_at;
    in.words_at = in.split_states_at + 2 * n_states;
    in.n_words = (int32_t)(body_nbytes / 2 - states_at - n_states);
    return WHARF_REASON_NONE;
}

constexpr uint32_t QUAD = sizeof(u32x4);

/* One lane.  Whether each of four bytes is less than n, 1 to 256: even and odd ones apart, each
 * with room above, so that what is taken off shows there. */
WHARF_DEVICE bool bytes_are_below(uint32_t v, uint32_t n)
{
    uint32_t most = (n - 1) * 0x00010001u | 0x01000100u;
    uint32_t even = most - (v & 0x00ff00ffu), odd = most - (v >> 8 & 0x00ff00ffu);
    return (even & odd & 0x01000100u) == 0x01000100u;
}

/* collective.  Rule 3, of indexes. */
WHARF_DEVICE bool indexes_are_good(const stream &in)
{
    if (in.n_distributions == 1)
        return true;
    if (in.body_at - in.indexes_at != in.n_symbols)
        return false;
    uint32_t begin = in.source.begin + in.indexes_at;
    uint32_t quads_at = (begin + QUAD - 1) / QUAD * QUAD, n_before = quads_at - begin;
    if (n_before > in.n_symbols)
        n_before = in.n_symbols;
    uint32_t n_quads = (in.n_symbols - n_before) / QUAD;
    uint32_t behind = n_before + QUAD * n_quads;
    bool good = true;
    if (lane_id() < n_before)
        good = byte_at(in, in.indexes_at + lane_id()) < in.n_distributions;
    if (behind + lane_id() < in.n_symbols)
        good &= byte_at(in, in.indexes_at + behind + lane_id()) < in.n_distributions;
    const u32x4 *quads = reinterpret_cast<const u32x4 *>(in.source.aligned + quads_at);
    WHARF_UNROLL_BY(4)
    for (uint32_t i = lane_id(); i < n_quads; i += WARP_LANES) {
        u32x4 v = load_nc(quads + i);
        good &= bytes_are_below(v.x, in.n_distributions);
        good &= bytes_are_below(v.y, in.n_distributions);
        good &= bytes_are_below(v.z, in.n_distributions);
        good &= bytes_are_below(v.w, in.n_distributions);
    }
    return !any_lane(!good);
}

/* Rule 1, and sizes. */
WHARF_DEVICE bool shape_is_good(const stream &in, uint32_t flags, uint32_t indexes_nbytes)
{
    uint32_t most = in.model_nbytes > 0 ? INLINE_NSLOTS : REGISTERED_NSLOTS;
    return flags == 0 && in.n_bits >= WHARF_RANS_MIN_NBITS && in.n_bits <= WHARF_RANS_MAX_NBITS &&
           in.symbol_nbytes - 1 < 2 && in.alphabet <= (in.symbol_nbytes == 1 ? 256u : 65536u) &&
           in.n_distributions <= WHARF_RANS_MAX_DISTRIBUTIONS &&
           in.n_distributions << in.n_bits <= most && in.n_distributions * in.alphabet <= most &&
           (in.n_distributions > 1 || indexes_nbytes == 0);
}

/* Header, model, states and the fields of a few splits: sectors of 32 bytes. */
constexpr uint32_t PREFETCHED_NBYTES = 32 * WARP_LANES;

/*
 * collective.  Rules 1 to 3 of a stream of in_nbytes, of which the first at_hand_nbytes are at
 * hand; but not what indexes are worth.  `ret_at` is the byte at which a reason stands, which may
 * be STOPPED.
 */
WHARF_DEVICE uint32_t parse_front(stream &in, uint32_t in_nbytes, uint32_t at_hand_nbytes,
                                  const stop_word &stop, uint32_t &ret_at)
{
    ret_at = 0;
    if (in_nbytes < WHARF_RANS_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (byte_at(in, 0) != WHARF_RANS_VERSION)
        return WHARF_REASON_RANS_VERSION;
    in.n_bits = uniform(byte_at(in, 1));
    in.symbol_nbytes = uniform(byte_at(in, 2));
    in.n_distributions = uniform(le16_at(in, 4) + 1);
    in.alphabet = uniform(le16_at(in, 6) + 1);
    in.model_nbytes = uniform(le32_at(in, 8));
    uint32_t indexes_nbytes = uniform(le32_at(in, 12));
    if (!shape_is_good(in, byte_at(in, 3), indexes_nbytes))
        return WHARF_REASON_RANS_HEADER;
    ret_at = WHARF_RANS_HEADER_NBYTES;
    if (in.model_nbytes > in_nbytes - ret_at)
        return WHARF_REASON_INPUT_TRUNCATED;
    ret_at += in.model_nbytes;
    if (indexes_nbytes > in_nbytes - ret_at)
        return WHARF_REASON_INPUT_TRUNCATED;
    in.indexes_at = ret_at;
    ret_at += indexes_nbytes;
    in.body_at = ret_at;
    if (at_hand_nbytes < in.body_at)
        return NOT_AT_HAND;
    return parse_fields(in, in_nbytes - in.body_at, at_hand_nbytes - in.body_at, stop);
}

/* collective.  Takes a stream apart; `ret_at` is the byte at which a reason stands, or STOPPED. Not
 * inlined: once a stream, and what it needs would take registers from the loops behind it. */
WHARF_DEVICE_NOINLINE uint32_t parse(stream &in, const chunk_job &job, uint32_t &ret_at)
{
    in.source.init(job.in, job.in_nbytes);
    /* Its fields are found one behind the other: so that only the first one waits for memory. */
    if (PREFETCHED_NBYTES / WARP_LANES * lane_id() < job.in_nbytes)
        prefetch(job.in + PREFETCHED_NBYTES / WARP_LANES * lane_id());
    uint32_t reason = parse_front(in, job.in_nbytes, job.in_nbytes, job.stop, ret_at);
    if (reason == WHARF_REASON_NONE)
        reason = check_splits(in, job.stop);
    if (reason != WHARF_REASON_NONE)
        return reason;
    return indexes_are_good(in) ? WHARF_REASON_NONE : WHARF_REASON_RANS_HEADER;
}

} // namespace rans
} // namespace wharf

#endif
