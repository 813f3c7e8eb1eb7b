/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_groups.cuh: one decoder of a rans stream: groups of 32 symbols, one a lane.
 *
 * READ ME FIRST: directions.  Groups go upwards, words downwards: next_word is the number of the
 * word that is taken next, -1 when none is left.
 *
 * fast_groups decodes groups that are far from splits, from the end of the words and from the last
 * symbol.  If it refuses, its groups are decoded again by exact_group, which checks every rule of
 * rans_format.h and alone reports errors.
 */
#ifndef WHARF_KERNELS_RANS_RANS_GROUPS_CUH
#define WHARF_KERNELS_RANS_RANS_GROUPS_CUH

#include "kernels/rans/rans_model.cuh"

namespace wharf
{
namespace rans
{

/* One decoder.  `state` is this lane's; all else is the same in all lanes. */
struct walk {
    uint8_t *out;
    uint32_t state;
    int32_t next_word;
    uint32_t group; /* that comes next */
    split next;     /* whose window comes next, or is being passed */
};

/* One lane.  Stores symbol `number`, 1 or 2 bytes. */
WHARF_DEVICE void put_symbol(uint8_t *out, uint32_t symbol_nbytes, uint32_t number, uint32_t symbol)
{
    if (symbol_nbytes == 1) {
        store_byte(out + number, symbol);
    } else {
        store_byte(out + 2 * number, symbol);
        store_byte(out + 2 * number + 1, symbol >> 8);
    }
}

/* collective.  The bit of the stream at which errors of the next group are reported. */
WHARF_DEVICE uint32_t bit_of(const stream &in, int32_t next_word)
{
    return 8 * in.words_at + WHARF_RANS_WORD_NBITS * (uint32_t)(next_word + 1);
}

/* collective.  Sets the walk up before the first group. */
WHARF_DEVICE void begin_walk(const stream &in, uint8_t *out, walk &w)
{
    uint32_t at = in.body_at + 4 * lane_id();
    w.out = out;
    w.next_word = in.n_words - 1;
    w.group = 0;
    w.state = le16_at(in, at) << 16 | le16_at(in, at + 2);
    first_split(in, w.next);
}

/* What a decode looks up while it runs. */
struct watcher {
    step_counter steps;
    stop_word stop;
    uint32_t n_groups; /* since it last looked whether it is stopped */

    /* collective. */
    WHARF_DEVICE_MEMBER void init(uint32_t step_budget, const stop_word &to_look_at)
    {
        steps.left = uniform(step_budget);
        stop = to_look_at;
        n_groups = 0;
    }

    /* collective.  Before n more groups, each of which is a step and gives 32 bytes, but for the
     * last one: no reason, or the one to end.  They take as long as n_as_fast ones of
     * fast_groups. */
    WHARF_DEVICE_MEMBER uint32_t goes_on(uint32_t n, uint32_t n_as_fast)
    {
        if (!steps.take(n))
            return WHARF_REASON_STEP_BUDGET;
        n_groups += n_as_fast;
        if (n_groups < GROUPS_BETWEEN_LOOKS)
            return WHARF_REASON_NONE;
        n_groups = 0;
        return is_stopped(stop) ? STOPPED : (uint32_t)WHARF_REASON_NONE;
    }

  private:
    static constexpr uint32_t GROUPS_BETWEEN_LOOKS = 1024;
};

/* As how many fast groups an exact one counts for the checks whether to stop.  It waits for memory
 * a few times, and also for a split if a window ends after it: eight microseconds in all if that is
 * the host's memory.  So a decode with a split every few groups checks every 64 of them. */
constexpr uint32_t EXACT_AS_FAST = 16;

/* ---- exactly ------------------------------------------------------------------------------- */

/*
 * collective.  Whether the lanes that take a word in this group of a window do as the split says.
 * A lane that starts now must have the split's state.  A lane that starts later must take no word
 * once the split's first word was taken.  In the window's first group, the first lane that starts
 * must take that word.
 */
WHARF_DEVICE bool agrees_with_split(const walk &w, uint32_t takers)
{
    uint32_t now = ballot(w.next.start == w.group);
    uint32_t later = ballot(w.next.start > w.group);
    uint32_t before_cut = 0;
    bool good = w.next.start != w.group || w.state == w.next.state;
    if (w.group == w.next.first_group) {
        before_cut = (now & (0u - now)) - 1;
        if (w.next_word - (int32_t)popc(takers & before_cut) != w.next.first_word)
            return false;
    }
    return !any_lane(!good) && (now & ~takers) == 0 && (takers & later & ~before_cut) == 0;
}

/* collective.  Decodes the next group by rule 7.  After a failure the walk is over. */
template <lookup KIND>
WHARF_DEVICE uint32_t exact_group(const stream &in, const model &m, walk &w)
{
    uint32_t number = WARP_LANES * w.group + lane_id();
    bool is_there = number < in.n_symbols;
    uint32_t slot = w.state & ((1u << m.n_bits) - 1);
    found f = {0, 1, 0, 0, 0};
    if (is_there)
        f = find<KIND>(m, in, number, slot);
    if (any_lane(f.nobodys >> 31))
        return WHARF_REASON_RANS_SYMBOL;
    if (is_there) {
        put_symbol(w.out, m.symbol_nbytes, number, f.symbol);
        w.state = state_behind(m, f, w.state);
    }
    bool takes = is_there && w.state < WHARF_RANS_LOW;
    uint32_t takers = ballot(takes);
    if (w.group >= w.next.first_group && !agrees_with_split(w, takers))
        return WHARF_REASON_RANS_SPLIT;
    if ((int32_t)popc(takers) > w.next_word + 1)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (takes)
        w.state = w.state << 16 |
                  le16_at(in, in.words_at + 2 * (uint32_t)(w.next_word -
                                                           (int32_t)popc(takers & lanemask_lt())));
    w.next_word -= (int32_t)popc(takers);
    if (w.group >= w.next.first_group && w.group == w.next.last_group)
        next_split(in, w.next);
    w.group++;
    return WHARF_REASON_NONE;
}

/* ---- fast ---------------------------------------------------------------------------------- */

/* Groups between two looks at the words. */
constexpr uint32_t RING_BATCH_NGROUPS = 4;
/* The most words that a batch takes, and the words that are fetched at once. */
constexpr uint32_t RING_BATCH_NWORDS = RING_BATCH_NGROUPS * WARP_LANES;
constexpr uint32_t RING_NWORDS = 2 * RING_BATCH_NWORDS;

/* Words by their number modulo RING_NWORDS, twice, so that those of a batch are contiguous. */
struct word_ring {
    alignas(8) uint16_t words[2 * RING_NWORDS];
};

/*
 * The words on their way to the lanes.  Those from `first` on are in the ring, as long as they are
 * needed; the 128 before them are being loaded to `pending`.
 */
struct word_stream {
    word_ring *ring;
    int32_t first;       /* a multiple of RING_BATCH_NWORDS */
    uint32_t pending[2]; /* this lane's four words */

    /* One lane.  This lane's words of the 128 before `first`; zero for those that are not there. */
    WHARF_DEVICE_MEMBER void fetch(const stream &in)
    {
        int32_t word = first - (int32_t)RING_BATCH_NWORDS + 4 * (int32_t)lane_id();
        uint32_t at = in.source.begin + in.words_at + 2 * (uint32_t)word;
        uint32_t a = 0, b = 0, c = 0;
        /* Words below number 0 are other fields; far below, they would lie before the stream. */
        if (word > -4) {
            a = in.source.load_word(at / 4);
            b = in.source.load_word(at / 4 + 1);
            c = at % 4 ? in.source.load_word(at / 4 + 2) : 0;
        }
        pending[0] = funnel_right(a, b, 8 * (at % 4));
        pending[1] = funnel_right(b, c, 8 * (at % 4));
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void init(const stream &in, word_ring &s, int32_t next_word)
    {
        ring = &s;
        first = (next_word + (int32_t)RING_BATCH_NWORDS) & -(int32_t)RING_BATCH_NWORDS;
        fetch(in);
    }

    /* collective.  Makes sure that a batch's words are in the ring: two turns at the beginning,
     * one at most afterwards. */
    WHARF_DEVICE_MEMBER void ensure(const stream &in, int32_t next_word)
    {
        while (next_word + 1 - first < (int32_t)RING_BATCH_NWORDS) {
            uint64_t v = (uint64_t)pending[1] << 32 | pending[0];
            first -= RING_BATCH_NWORDS;
            uint32_t at = ((uint32_t)first & (RING_NWORDS - 1)) + 4 * lane_id();
            syncwarp(); /* no lane still reads what is overwritten */
            store(reinterpret_cast<uint64_t *>(&ring->words[at]), v);
            store(reinterpret_cast<uint64_t *>(&ring->words[at + RING_NWORDS]), v);
            syncwarp();
            fetch(in);
        }
    }
};

/* collective.  Lane i's four bytes of four groups become four neighbours' bytes of one group: lane
 * 4k + j gets group j's bytes 4k to 4k + 3. */
WHARF_DEVICE uint32_t transpose_bytes(uint32_t v)
{
    unsigned lane = lane_id();
    uint32_t other = shfl(v, lane ^ 1);
    v = lane & 1 ? byte_perm(other, v, 0x7351) : byte_perm(v, other, 0x6240);
    other = shfl(v, lane ^ 2);
    return lane & 2 ? byte_perm(other, v, 0x7632) : byte_perm(v, other, 0x5410);
}

/* collective.  Stores a batch's symbols, of which each lane passes its own: four bytes a lane where
 * the output is aligned. */
template <lookup KIND>
WHARF_DEVICE void put_batch(const model &m, const walk &w,
                            const uint32_t symbols[RING_BATCH_NGROUPS], bool is_aligned)
{
    if (!has_symbol_size<KIND>() && is_aligned) {
        uint32_t v = byte_perm(byte_perm(symbols[0], symbols[1], 0x0040),
                               byte_perm(symbols[2], symbols[3], 0x0040), 0x5410);
        uint32_t at = WARP_LANES * (w.group + (lane_id() & 3)) + (lane_id() & ~3u);
        store(reinterpret_cast<uint32_t *>(w.out + at), transpose_bytes(v));
        return;
    }
    WHARF_UNROLL
    for (uint32_t k = 0; k < RING_BATCH_NGROUPS; k++) {
        uint32_t number = WARP_LANES * (w.group + k) + lane_id();
        if (has_symbol_size<KIND>() && m.symbol_nbytes == 2 && is_aligned)
            store(reinterpret_cast<uint16_t *>(w.out) + number, (uint16_t)symbols[k]);
        else
            put_symbol(w.out, has_symbol_size<KIND>() ? m.symbol_nbytes : 1, number, symbols[k]);
    }
}

/* One lane.  The distributions of this lane's symbols of a batch. */
template <lookup KIND>
WHARF_DEVICE void load_indexes(const stream &in, const model &m, uint32_t group,
                               uint32_t distributions[RING_BATCH_NGROUPS])
{
    WHARF_UNROLL
    for (uint32_t k = 0; k < RING_BATCH_NGROUPS; k++)
        distributions[k] = has_symbol_size<KIND>()
                               ? distribution_of(m, in, WARP_LANES * (group + k) + lane_id())
                               : 0;
}

/*
 * collective.  Decodes n_groups groups, a multiple of RING_BATCH_NGROUPS.  They must be whole, lie
 * before the next window, and have all their words.  False if a slot belongs to no symbol: then the
 * walk's position is undefined, and the caller starts again from where it was before.
 */
template <lookup KIND>
WHARF_DEVICE bool fast_groups(const stream &in, const model &m, word_ring &ring, walk &w,
                              uint32_t n_groups)
{
    uint32_t slots = (1u << m.n_bits) - 1;
    uint32_t state = w.state;
    int32_t next_word = w.next_word;
    bool is_aligned = reinterpret_cast<uintptr_t>(w.out) % 4 == 0;
    uint32_t nobodys = 0;
    word_stream words;
    uint32_t ahead[RING_BATCH_NGROUPS];
    words.init(in, ring, next_word);
    load_indexes<KIND>(in, m, w.group, ahead);
    for (uint32_t end = w.group + n_groups; w.group < end; w.group += RING_BATCH_NGROUPS) {
        uint32_t symbols[RING_BATCH_NGROUPS], distributions[RING_BATCH_NGROUPS];
        WHARF_UNROLL
        for (uint32_t k = 0; k < RING_BATCH_NGROUPS; k++)
            distributions[k] = ahead[k];
        /* A batch ahead, as long as there is one. */
        load_indexes<KIND>(
            in, m, w.group + (end - w.group > RING_BATCH_NGROUPS ? RING_BATCH_NGROUPS : 0), ahead);
        words.ensure(in, next_word);
        uint32_t place = ((uint32_t)next_word & (RING_NWORDS - 1)) + RING_NWORDS;
        uint32_t before = place;
        WHARF_UNROLL
        for (uint32_t k = 0; k < RING_BATCH_NGROUPS; k++) {
            found f = find_in<KIND>(m, distributions[k], state & slots);
            nobodys |= f.nobodys;
            symbols[k] = f.symbol;
            state = state_behind(m, f, state);
            bool takes = state < WHARF_RANS_LOW;
            uint32_t takers = ballot(takes);
            uint32_t word = load(&ring.words[place - popc(takers & lanemask_lt())]);
            state = takes ? state << 16 | word : state;
            place -= popc(takers);
        }
        next_word -= (int32_t)(before - place);
        put_batch<KIND>(m, w, symbols, is_aligned);
    }
    syncwarp(); /* the ring may be filled anew */
    w.state = state;
    w.next_word = next_word;
    return !any_lane(nobodys >> 31);
}

/* Groups between two checks whether to stop. */
constexpr uint32_t MAX_FAST_NGROUPS = 1024;

/* How many groups fast_groups may decode next. */
WHARF_DEVICE uint32_t count_fast(const stream &in, const walk &w, uint32_t end_group)
{
    uint32_t n_whole = in.n_symbols / WARP_LANES;
    uint32_t end = w.next.first_group < end_group ? w.next.first_group : end_group;
    end = n_whole < end ? n_whole : end;
    uint32_t n = end > w.group ? end - w.group : 0;
    uint32_t by_words = (uint32_t)(w.next_word + 1) / WARP_LANES;
    n = n < by_words ? n : by_words;
    n = n < MAX_FAST_NGROUPS ? n : MAX_FAST_NGROUPS;
    return n - n % RING_BATCH_NGROUPS;
}

/*
 * collective.  Decodes from the walk's position to end_group.  Returns a reason, and in ret_bit the
 * place of the error.  Groups that fast_groups refuses are decoded again by exact_group.
 */
template <lookup KIND>
WHARF_DEVICE uint32_t walk_groups(const stream &in, const model &m, word_ring &ring, watcher &watch,
                                  walk &w, uint32_t end_group, uint32_t &ret_bit)
{
    bool refused = false;
    while (w.group < end_group) {
        uint32_t n = refused ? 0 : count_fast(in, w, end_group);
        ret_bit = bit_of(in, w.next_word);
        uint32_t reason = watch.goes_on(n > 0 ? n : 1, n > 0 ? n : EXACT_AS_FAST);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (n > 0) {
            walk before = w;
            refused = !fast_groups<KIND>(in, m, ring, w, n);
            if (refused)
                w = before;
            continue;
        }
        reason = exact_group<KIND>(in, m, w);
        if (reason != WHARF_REASON_NONE)
            return reason;
    }
    return WHARF_REASON_NONE;
}

/* collective.  After the last group: rule 8. */
WHARF_DEVICE uint32_t end_walk(const stream &in, const walk &w, uint32_t &ret_bit)
{
    ret_bit = bit_of(in, w.next_word);
    if (w.next_word >= 0)
        return WHARF_REASON_RANS_WORDS_LEFT;
    return any_lane(w.state != WHARF_RANS_LOW) ? WHARF_REASON_RANS_STATE : WHARF_REASON_NONE;
}

} // namespace rans
} // namespace wharf

#endif
