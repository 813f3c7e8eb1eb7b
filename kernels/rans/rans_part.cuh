/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_part.cuh: decodes a part of a rans stream (part.cuh) with one warp, which itself fetches
 * what it needs of the stream.
 *
 * Split 0 of M is the stream's beginning.  Of n parts, part i begins with split i * M / n.  Like
 * the pieces of rans_pieces.cuh, a part decodes the window of its first split without delivering
 * it, and continues to the end of the window of the split that the next part begins with, which it
 * verifies.  It checks rule 4 for its own splits and the two beside them.
 *
 * The warp fetches the stream up to the end of the fields, the states of the part's splits, and a
 * window of words: those that its splits claim it takes, and some more, because the claim may be
 * wrong.  If the window does not suffice the part is refused.  The chunk's outcome then has to come
 * from a decoder that has all of the stream.
 */
#ifndef WHARF_KERNELS_RANS_RANS_PART_CUH
#define WHARF_KERNELS_RANS_RANS_PART_CUH

#include "kernels/part.cuh"
#include "kernels/rans/rans_decode.cuh"
#include "kernels/rans/rans_pieces.cuh"

namespace wharf
{
namespace rans
{

/* How much of a stream is fetched first, and by which factor more each time after. */
constexpr uint32_t FIRST_FETCH_NBYTES = 4096;
constexpr uint32_t FETCH_FACTOR = 4;

/* Words are fetched ahead of those that are taken, up to three times 128, so the input has to reach
 * this far below a window. */
constexpr uint32_t WORDS_MARGIN_NBYTES = 3 * RING_BATCH_NWORDS * WHARF_RANS_WORD_NBYTES;

/* What of a split is the same in all lanes. */
struct edge {
    uint32_t number, starts_at; /* of its own starts */
    uint32_t first_group, last_group;
    int32_t first_word;
};

/* A part of a stream, the same in all lanes. */
struct stretch {
    edge first, last;               /* where it begins, unless that is the stream's beginning; and
                                       where the next one does, if it is not the last */
    uint32_t begin_group, n_groups; /* that it delivers */
    int32_t least_word;             /* the window's words are this one and those above */
    uint32_t moved_nbytes;          /* by which the words are elsewhere than in the stream */
    bool is_last;
};

/* collective.  The part of the stream that was fetched, as a stream's beginning. */
WHARF_DEVICE void see_input(stream &in, const part_input &input)
{
    in.source.init(input.to + input.begin, input.used - input.begin);
}

/* collective.  Parses the stream, and fetches as much of it as that needs. */
WHARF_DEVICE uint32_t fetch_front(stream &in, part_job &part, uint32_t &ret_at)
{
    uint32_t in_nbytes = part.chunk.in_nbytes;
    uint32_t n = 0;
    for (uint32_t wanted = FIRST_FETCH_NBYTES;; wanted *= FETCH_FACTOR) {
        uint32_t at, end = wanted < in_nbytes ? wanted : in_nbytes;
        if (!part.input.fetch(n, end - n, at))
            return REFUSED;
        n = end;
        see_input(in, part.input);
        uint32_t reason = parse_front(in, in_nbytes, n, part.chunk.stop, ret_at);
        if (reason != NOT_AT_HAND)
            return reason;
    }
}

/* collective.  Where split `number`, from 1 on, has its starts; false if the decode is stopped. */
WHARF_DEVICE bool find_starts(const stream &in, uint32_t number, const stop_word &stop,
                              uint32_t &ret_at)
{
    uint32_t at = in.starts_at;
    for (uint32_t first = 1; first < number; first += SPLITS_BETWEEN_LOOKS) {
        uint32_t left = number - first;
        uint32_t n = left < SPLITS_BETWEEN_LOOKS ? left : SPLITS_BETWEEN_LOOKS;
        if (first > 1 && is_stopped(stop))
            return false;
        for (; n > 0; n--)
            at += 4 + WARP_LANES * (short_body_bits(in, at, 4) + 1);
    }
    ret_at = at;
    return true;
}

/* The split that part i of n begins with; n_splits for i = n. */
WHARF_DEVICE uint32_t part_split(const stream &in, uint32_t i, uint32_t n)
{
    return (uint32_t)((uint64_t)i * in.n_splits / n);
}

/* collective.  Fetches the states of splits `first` to `last`, which are at least 1. */
WHARF_DEVICE bool fetch_states(stream &in, part_job &part, uint32_t first, uint32_t last)
{
    uint32_t from = in.split_states_at + (first - 1) * WHARF_RANS_SPLIT_STATES_NBYTES;
    uint32_t at;
    if (!part.input.fetch(from, (last - first + 1) * WHARF_RANS_SPLIT_STATES_NBYTES, at))
        return false;
    see_input(in, part.input);
    in.split_states_at += at - from;
    return true;
}

/* collective.  Rule 4 for splits first to end - 1, behind the one before them, and for split `end`
 * if there is one, or STOPPED; the first one and that one are noted. */
WHARF_DEVICE uint32_t take_splits(const stream &in, uint32_t first, uint32_t end,
                                  const stop_word &stop, stretch &ret)
{
    int64_t word_before = in.n_words, group_before = -1;
    split s;
    s.number = first > 0 ? first - 1 : 0;
    s.starts_at = in.starts_at;
    if (first > 0 && !find_starts(in, first, stop, s.starts_at))
        return STOPPED;
    for (;;) {
        uint32_t at = s.starts_at;
        next_split(in, s);
        if (s.number > end || s.number >= in.n_splits)
            return WHARF_REASON_NONE;
        if (is_stopped_at(stop, s.number))
            return STOPPED;
        if (s.first_word < 0 || s.first_word >= word_before)
            return WHARF_REASON_RANS_SPLIT;
        if ((int64_t)s.first_group <= group_before || s.last_group >= in.n_groups)
            return WHARF_REASON_RANS_SPLIT;
        word_before = s.first_word;
        group_before = s.last_group;
        edge here = {s.number, at, s.first_group, s.last_group, (int32_t)s.first_word};
        if (s.number == first)
            ret.first = here;
        if (s.number == end)
            ret.last = here;
    }
}

/* How many words to fetch below those that a part should take: as many as the window that it
 * verifies may hold, and an eighth more in case the splits are wrong. */
WHARF_DEVICE int64_t spare_words(const edge &last, int64_t n_words)
{
    return (int64_t)WARP_LANES * (last.last_group - last.first_group + 1) + n_words / 8 + 1024;
}

/* collective.  Fetches the window of words. */
WHARF_DEVICE bool fetch_words(stream &in, part_job &part, stretch &of)
{
    int64_t end = part.number == 0 ? in.n_words : of.first.first_word + 1;
    int64_t least = 0;
    uint32_t at;
    if (!of.is_last) {
        least = of.last.first_word + 1;
        least -= spare_words(of.last, end - least);
        least = least < 0 ? 0 : least;
    }
    uint32_t from = in.words_at + 2 * (uint32_t)least;
    part.input.keep_apart(WORDS_MARGIN_NBYTES);
    if (!part.input.fetch(from, 2 * (uint32_t)(end - least), at))
        return false;
    see_input(in, part.input);
    of.least_word = (int32_t)least;
    of.moved_nbytes = at - from;
    in.words_at += of.moved_nbytes;
    return true;
}

/* collective.  Whether a walk that takes n words more finds them in the window, or that there are
 * none. */
WHARF_DEVICE bool has_words(const stretch &of, const walk &w, uint32_t n)
{
    return of.least_word == 0 || w.next_word + 1 - of.least_word >= (int32_t)n;
}

/* collective.  Goes through the window of the part's first split, to the states after it. */
template <lookup KIND>
WHARF_DEVICE uint32_t join(const stream &in, const model &m, const stretch &of, watcher &watch,
                           walk &w)
{
    w.next.number = of.first.number - 1;
    w.next.starts_at = of.first.starts_at;
    next_split(in, w.next);
    w.next_word = (int32_t)w.next.first_word;
    w.group = w.next.first_group;
    w.state = WHARF_RANS_LOW;
    for (uint32_t end = w.next.last_group; w.group <= end;) {
        uint32_t reason = watch.goes_on(1, EXACT_AS_FAST);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (!has_words(of, w, WARP_LANES))
            return REFUSED;
        if (!join_group<KIND>(in, m, w))
            return WHARF_REASON_RANS_SPLIT;
    }
    next_split(in, w.next);
    return WHARF_REASON_NONE;
}

/* collective.  Delivers the part's groups, each time as many as the window certainly suffices for.
 */
template <lookup KIND>
WHARF_DEVICE uint32_t walk_stretch(const stream &in, const model &m, word_ring &ring,
                                   const stretch &of, watcher &watch, walk &w, uint32_t &ret_bit)
{
    uint32_t end = of.begin_group + of.n_groups;
    uint32_t reason = WHARF_REASON_NONE;
    while (w.group < end && reason == WHARF_REASON_NONE) {
        uint32_t n = end - w.group;
        if (!has_words(of, w, WARP_LANES))
            return REFUSED;
        if (of.least_word > 0 && n > (uint32_t)(w.next_word + 1 - of.least_word) / WARP_LANES)
            n = (uint32_t)(w.next_word + 1 - of.least_word) / WARP_LANES;
        reason = walk_groups<KIND>(in, m, ring, watch, w, w.group + n, ret_bit);
    }
    return reason;
}

/* collective.  Decodes the part.  Not inlined: there is one for each kind of tables. */
template <lookup KIND, typename Shared>
WHARF_DEVICE_NOINLINE uint32_t walk_part(const stream &in, const model &given,
                                         shared_ref<Shared> memory, part_job &part,
                                         const stretch &of, uint32_t &ret_bit)
{
    Shared &s = memory.get();
    model m = with_tables(given, s.tables);
    watcher watch;
    walk w = {};
    uint32_t reason = WHARF_REASON_NONE;
    uint32_t begin = WARP_LANES * of.begin_group * in.symbol_nbytes;
    watch.init(part.chunk.step_budget, part.chunk.stop);
    ret_bit = 8 * (in.body_at + of.moved_nbytes);
    /* Symbols are stored by their number in the stream. */
    uint8_t *out =
        reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(part.place(begin)) - begin);
    if (part.number == 0) {
        begin_walk(in, out, w);
        if (any_lane(w.state < WHARF_RANS_LOW))
            return WHARF_REASON_RANS_STATE;
    } else {
        reason = join<KIND>(in, m, of, watch, w);
        w.out = out;
    }
    if (reason == WHARF_REASON_NONE)
        reason = walk_stretch<KIND>(in, m, s.ring, of, watch, w, ret_bit);
    if (reason == WHARF_REASON_NONE && of.is_last)
        reason = end_walk(in, w, ret_bit);
    return reason;
}

template <typename Shared>
WHARF_DEVICE uint32_t walk_part_by_kind(const stream &in, const model &m, shared_ref<Shared> memory,
                                        part_job &part, const stretch &of, uint32_t &ret_bit)
{
    switch (m.kind) {
    case lookup::PACKED:
        return walk_part<lookup::PACKED>(in, m, memory, part, of, ret_bit);
    case lookup::BUCKET:
        return walk_part<lookup::BUCKET>(in, m, memory, part, of, ret_bit);
    case lookup::REGISTERED:
        return walk_part<lookup::REGISTERED>(in, m, memory, part, of, ret_bit);
    default:
        return walk_part<lookup::GENERAL>(in, m, memory, part, of, ret_bit);
    }
}

/* What part number `part.number` of at most n is: its splits, its groups. */
struct part_range {
    uint32_t first, end; /* splits; n_splits: the stream's end */
    bool is_last, is_empty;
};

WHARF_DEVICE part_range range_of(const stream &in, const part_job &part)
{
    uint32_t n = part.n_parts < in.n_splits ? part.n_parts : in.n_splits;
    if (part.number >= n)
        return {in.n_splits, in.n_splits, false, true};
    return {part_split(in, part.number, n), part_split(in, part.number + 1, n),
            part.number + 1 == n, false};
}

/* collective.  Checks the stream up to rule 4.  Returns a reason, REFUSED or STOPPED. */
WHARF_DEVICE uint32_t fetch_splits(stream &in, part_job &part, const part_range &range, stretch &of)
{
    uint32_t first = range.first > 0 ? range.first : 1;
    /* With the one behind the part's last window: who passes that looks at the next. */
    uint32_t last = range.end + 1 < in.n_splits ? range.end + 1 : in.n_splits - 1;
    if (in.n_splits > 1 && !range.is_empty && !fetch_states(in, part, first, last))
        return REFUSED;
    uint32_t reason = WHARF_REASON_NONE;
    if (!range.is_empty)
        reason = take_splits(in, range.first, range.end, part.chunk.stop, of);
    if (reason == WHARF_REASON_RANS_SPLIT)
        part.flaw = WHARF_PART_FLAW_OF_SPLITS;
    if (reason != WHARF_REASON_NONE)
        return reason;
    return indexes_are_good(in) ? WHARF_REASON_NONE : WHARF_REASON_RANS_HEADER;
}

/* collective.  The bytes that a part delivers.  False if they are too many. */
WHARF_DEVICE bool measure(const stream &in, const part_job &part, const part_range &range,
                          stretch &of, uint32_t &ret_begin, uint32_t &ret_nbytes)
{
    of.is_last = range.is_last;
    of.begin_group = range.is_empty ? in.n_groups : range.first > 0 ? of.first.last_group + 1 : 0;
    uint32_t end = range.is_empty || range.is_last ? in.n_groups : of.last.last_group + 1;
    of.n_groups = end - of.begin_group;
    uint64_t first = (uint64_t)WARP_LANES * of.begin_group;
    uint64_t behind = (uint64_t)WARP_LANES * end;
    first = first < in.n_symbols ? first : in.n_symbols;
    behind = behind < in.n_symbols ? behind : in.n_symbols;
    ret_begin = (uint32_t)first * in.symbol_nbytes;
    ret_nbytes = (uint32_t)(behind - first) * in.symbol_nbytes;
    return ret_nbytes <= part.room;
}

/* collective.  The verdict for a reason of a walk. */
WHARF_DEVICE verdict verdict_of(uint32_t reason, uint32_t bit)
{
    if (reason == REFUSED)
        return part_refused();
    if (reason == STOPPED)
        return stopped();
    return bad(reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL : WHARF_BAD_DATA, reason, bit);
}

/* collective.  In the order of rans_decode; not inlined: it is for few chunks. */
template <typename Shared>
WHARF_DEVICE_NOINLINE verdict decode_part(shared_ref<Shared> memory, part_job &part)
{
    stream in;
    model m;
    stretch of = {};
    const chunk_job &job = part.chunk;
    uint32_t at, begin, nbytes, bit;
    uint32_t reason = fetch_front(in, part, at);
    if (reason == WHARF_REASON_RANS_VERSION)
        return bad(WHARF_UNSUPPORTED, reason, 0);
    if (reason != WHARF_REASON_NONE)
        return verdict_of(reason, 8 * at);
    part_range range = range_of(in, part);
    reason = fetch_splits(in, part, range, of);
    if (reason != WHARF_REASON_NONE)
        return verdict_of(reason, 8 * at);
    if (job.model ? !image_fits(in, job.model) : in.symbol_nbytes != unit_nbytes(job.parameter))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_HEADER, 0);
    if (!prepare_model(in, memory, job, m))
        return bad(WHARF_BAD_DATA, WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES);
    if (in.n_symbols > job.out_avail / in.symbol_nbytes)
        return bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * in.body_at);
    if (!measure(in, part, range, of, begin, nbytes))
        return part_refused();
    part.built = part.place(begin);
    verdict v = good(job.in_nbytes, nbytes);
    v.bit_offset = begin;
    if (range.is_empty)
        return v;
    if (!fetch_words(in, part, of))
        return part_refused();
    reason = walk_part_by_kind(in, m, memory, part, of, bit);
    if (reason != WHARF_REASON_NONE)
        return verdict_of(reason, bit - 8 * of.moved_nbytes);
    return v;
}

} // namespace rans

/* collective. */
template <typename Shared>
WHARF_DEVICE verdict rans_decode_part(Shared &s, part_job &part)
{
    shared_ref<Shared> memory;
    memory.init(s);
    return rans::decode_part(memory, part);
}

} // namespace wharf

#endif
