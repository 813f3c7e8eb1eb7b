/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_quick.cuh: a fast decoder for the commonest kind of chunk: bytes of one distribution that
 * stands in the stream and has all slots, n up to 11, and four splits.
 *
 * Idea: before the first group a warp mostly waits, for memory, and for each field before it can
 * read the next.  So it loads the first FRONT_NBYTES of the stream to shared memory at once, reads
 * fields and model there, and lets the words arrive while it builds the tables.  Everything that
 * lives long is in registers; nothing is in local memory, and nothing is called.
 *
 * Any other chunk, a bad one included, is left: rans_decode decodes it from its beginning, in a
 * kernel that runs after this one.
 *
 * Invariant: a chunk that is not left is good.  All rules of rans_format.h are checked here, or
 * follow from what is checked.
 */
#ifndef WHARF_KERNELS_RANS_RANS_QUICK_CUH
#define WHARF_KERNELS_RANS_RANS_QUICK_CUH

#include "kernels/rans/rans_groups.cuh"
#include "kernels/rans/rans_halves.cuh"

namespace wharf
{
namespace rans
{

constexpr uint32_t QUICK_NSPLITS = 2 * N_SETS;
/* More than the size of any packed model of bytes. */
constexpr uint32_t MAX_QUICK_MODEL_NBYTES = 600;
constexpr uint32_t N_FRONT_QUADS = 96, FRONT_NBYTES = N_FRONT_QUADS * sizeof(u32x4);

/* The stream's front, and its table when that is read. */
union quick_tables {
    u32x4 front[N_FRONT_QUADS];
    uint32_t packed[1 << PACKED_NBITS];
};

} // namespace rans

/* 13 KiB. */
struct rans_quick_shared {
    rans::quick_tables tables;
    rans::half_buffers buffers;
};
constexpr unsigned RANS_QUICK_WARPS_PER_SM = 16, RANS_QUICK_WIDE_WARPS = 16;

namespace rans
{

/* ---- the front ------------------------------------------------------------------------------ */

/* One lane.  Quad 0 of an input, of which bytes in front of the input are 0.  Without a branch. */
WHARF_DEVICE u32x4 begin_quad(const input_source &in)
{
    uint32_t partial = in.begin / 4, whole = (in.begin + 3) / 4, head = 0, v[4];
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t at = 4 * partial + k;
        uint32_t byte = load_nc(in.aligned + (at < in.begin ? in.begin : at));
        head |= (at < in.begin ? 0 : byte) << 8 * k;
    }
    WHARF_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t word =
            load_nc(reinterpret_cast<const uint32_t *>(in.aligned) + (k < whole ? whole : k));
        v[k] = k >= whole ? word : k == partial ? head : 0;
    }
    return {v[0], v[1], v[2], v[3]};
}

/* collective.  To shared memory, of an input that is longer. */
WHARF_DEVICE void bring_front(const input_source &in, u32x4 *front)
{
    const u32x4 *quads = reinterpret_cast<const u32x4 *>(in.aligned);
    u32x4 v[N_FRONT_QUADS / WARP_LANES];
    WHARF_UNROLL
    for (unsigned k = 0; k < N_FRONT_QUADS / WARP_LANES; k++) {
        unsigned i = lane_id() + WARP_LANES * k;
        v[k] = load_nc(quads + (i > 0 ? i : 1));
    }
    u32x4 first = begin_quad(in);
    if (lane_id() == 0)
        v[0] = first;
    WHARF_UNROLL
    for (unsigned k = 0; k < N_FRONT_QUADS / WARP_LANES; k++)
        store(&front[lane_id() + WARP_LANES * k], v[k]);
    syncwarp();
}

/* Bits of the stream, from its front in shared memory.  Bits after the front are undefined. */
struct front_reader {
    shared_table words;
    uint32_t begin; /* bytes in front of the stream */

    /* One lane.  32 bits from bit `at` of the stream on. */
    WHARF_DEVICE_MEMBER uint32_t bits(uint32_t at) const
    {
        at += 8 * begin;
        uint32_t i = at / 32;
        i = i < FRONT_NBYTES / 4 - 2 ? i : FRONT_NBYTES / 4 - 2;
        return funnel_right(words.load_word(4 * i), words.load_word(4 * i + 4), at % 32);
    }

    /* One lane.  n bits (1 to 16) of the body that begins at byte `body_at`, as body_bits. */
    WHARF_DEVICE_MEMBER uint32_t body_bits(uint32_t body_at, uint32_t at, uint32_t n) const
    {
        uint32_t v = bits(8 * (body_at + 2 * (at / 16)));
        return (v << 16 | v >> 16) << at % 16 >> (32 - n);
    }
};

/* A stream's fields.  The same in all lanes. */
struct quick_stream {
    input_source source;
    front_reader front;
    uint32_t n_bits, alphabet, model_nbytes, body_at;
    uint32_t n_splits, n_symbols, n_groups;
    uint32_t cut_nbits, group_nbits; /* with their signs */
    uint32_t cuts_at, groups_at, starts_at;
    uint32_t split_states_at, words_at, n_words;

    WHARF_DEVICE_MEMBER uint32_t field(uint32_t at, uint32_t n) const
    {
        return uniform(front.body_bits(body_at, at, n));
    }
};

/* One lane.  A sign and n - 1 bits. */
WHARF_DEVICE int32_t signed_of(uint32_t v, uint32_t n)
{
    int32_t magnitude = (int32_t)(v & ((1u << (n - 1)) - 1));
    return v >> (n - 1) ? -magnitude : magnitude;
}

/* collective.  Reads the header and the body's fields, except where the splits' starts are. */
WHARF_DEVICE bool read_fields(quick_stream &in, const chunk_job &job)
{
    uint32_t first = uniform(in.front.bits(0)), second = uniform(in.front.bits(32));
    in.n_bits = first >> 8 & 0xff;
    in.alphabet = (second >> 16) + 1;
    in.model_nbytes = uniform(in.front.bits(64));
    in.body_at = WHARF_RANS_HEADER_NBYTES + in.model_nbytes;
    bool good = (first & 0xffff00ff) == (WHARF_RANS_VERSION | 1u << 16) &&
                in.n_bits >= WHARF_RANS_MIN_NBITS && in.n_bits <= PACKED_NBITS &&
                (second & 0xffff) == 0 && in.alphabet <= 256 && uniform(in.front.bits(96)) == 0 &&
                in.model_nbytes <= MAX_QUICK_MODEL_NBYTES && (job.in_nbytes - in.body_at) % 2 == 0;
    if (!good)
        return false;
    uint32_t at = 8 * WHARF_RANS_STATES_NBYTES, n = in.field(at, 4) + 1;
    in.n_splits = in.field(at + 4, n);
    at += 4 + n;
    n = in.field(at, 5) + 1;
    at += 5;
    uint32_t high = n > 16 ? in.field(at, n - 16) : 0;
    at += n > 16 ? n - 16 : 0;
    n = n > 16 ? 16 : n;
    in.n_symbols = high << 16 | in.field(at, n);
    at += n;
    if (in.n_splits != QUICK_NSPLITS || in.n_symbols > job.out_avail)
        return false;
    in.n_groups = ceil_div(in.n_symbols, WARP_LANES);
    in.cut_nbits = in.field(at, 5) + 2;
    in.cuts_at = at + 5;
    at = in.cuts_at + (in.n_splits - 1) * in.cut_nbits;
    in.group_nbits = in.field(at, 5) + 2;
    in.groups_at = at + 5;
    in.starts_at = in.groups_at + (in.n_splits - 1) * in.group_nbits;
    return in.cut_nbits <= 16 && in.group_nbits <= 16;
}

/* Where the starts of splits 1 to 3 are. */
struct quick_starts {
    uint32_t at[QUICK_NSPLITS];
};

/* collective.  Skips all starts.  False if what follows them is not in the front. */
WHARF_DEVICE bool read_starts(quick_stream &in, const chunk_job &job, quick_starts &starts)
{
    uint32_t at = in.starts_at;
    uint32_t end = 8 * (FRONT_NBYTES - in.source.begin - in.body_at);
    WHARF_UNROLL
    for (uint32_t s = 1; s < QUICK_NSPLITS; s++) {
        starts.at[s] = at;
        at += 4 + WARP_LANES * (in.field(at, 4) + 1);
    }
    uint32_t states_at = at / 16 + 1, n_states = (QUICK_NSPLITS - 1) * WARP_LANES;
    in.split_states_at = in.body_at + 2 * states_at;
    in.words_at = in.split_states_at + 2 * n_states;
    in.n_words = (job.in_nbytes - in.words_at) / 2;
    return at < end && in.source.begin + in.words_at <= FRONT_NBYTES;
}

/* ---- splits --------------------------------------------------------------------------------- */

/* collective.  A half's split `number`, 1 to 3, whose starts stand at bit starts_at.  Its last
 * group is none if its first one would be before all. */
WHARF_DEVICE half_window read_window(const quick_stream &in, uint32_t number, uint32_t starts_at)
{
    half_window w;
    uint32_t before = number - 1;
    uint32_t cut = in.front.body_bits(in.body_at, in.cuts_at + before * in.cut_nbits, in.cut_nbits);
    uint32_t group =
        in.front.body_bits(in.body_at, in.groups_at + before * in.group_nbits, in.group_nbits);
    uint32_t n = in.front.body_bits(in.body_at, starts_at, 4) + 1;
    int32_t base =
        signed_of(group, in.group_nbits) + (int32_t)(number * ceil_div(in.n_groups, QUICK_NSPLITS));
    uint32_t state_at = in.split_states_at + before * WHARF_RANS_SPLIT_STATES_NBYTES +
                        2 * LANE_CODERS * lane_in_half();
    uint32_t states = in.front.bits(8 * state_at);
    w.first_word = signed_of(cut, in.cut_nbits) +
                   (int32_t)((QUICK_NSPLITS - number) * ceil_div(in.n_words, QUICK_NSPLITS));
    WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        uint32_t coder = LANE_CODERS * lane_in_half() + j;
        w.start[j] = (uint32_t)base + in.front.body_bits(in.body_at, starts_at + 4 + coder * n, n);
        w.state[j] = states >> 16 * j & 0xffff;
    }
    w.first_group = half_min(w.start[0] < w.start[1] ? w.start[0] : w.start[1]);
    w.last_group = half_max(w.start[0] > w.start[1] ? w.start[0] : w.start[1]);
    w.last_group = base < 0 ? NO_GROUP : w.last_group;
    return w;
}

/* collective.  What lanes of the other half have. */
WHARF_DEVICE uint32_t from_other_half(uint32_t v)
{
    return shfl(v, lane_id() ^ HALF_LANES);
}

WHARF_DEVICE half_window from_other_half(const half_window &w)
{
    half_window other;
    other.first_group = from_other_half(w.first_group);
    other.last_group = from_other_half(w.last_group);
    other.first_word = (int32_t)from_other_half((uint32_t)w.first_word);
    WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        other.start[j] = from_other_half(w.start[j]);
        other.state[j] = from_other_half(w.state[j]);
    }
    return other;
}

/* The windows of a lane's chains: the one that a chain begins with, which the first chain lacks,
 * and the one that it verifies, which the last chain lacks. */
struct quick_windows {
    half_window own[N_SETS], next[N_SETS];
    bool joins[N_SETS], verifies[N_SETS];
};

/* collective.  Whether the splits keep rule 4. */
WHARF_DEVICE bool read_windows(const quick_stream &in, const quick_starts &starts, quick_windows &w)
{
    bool is_high = half_of_lane() > 0, good = true;
    w.next[0] = read_window(in, is_high ? 2 : 1, is_high ? starts.at[2] : starts.at[1]);
    w.next[1] = read_window(in, 3, starts.at[3]);
    half_window a = from_other_half(w.next[0]), b = from_other_half(w.next[1]);
    w.own[0] = a;
    w.own[1] = is_high ? b : a;
    w.joins[0] = is_high;
    w.joins[1] = true;
    w.verifies[0] = true;
    w.verifies[1] = !is_high;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        const half_window &own = w.own[s], &next = w.next[s];
        uint32_t n_words = w.joins[s] ? (uint32_t)own.first_word : in.n_words;
        good &= !w.verifies[s] || ((uint32_t)next.first_word < n_words && next.first_word >= 0 &&
                                   next.last_group < in.n_groups &&
                                   (!w.joins[s] || next.first_group > own.last_group));
        if (!w.verifies[s])
            w.next[s].close(QUICK_NSPLITS);
    }
    return !any_lane(!good);
}

/* ---- the model ------------------------------------------------------------------------------ */

/* A lane's eight symbols' slots, from symbol 8 * lane_id() on. */
struct quick_model {
    uint32_t frequency[8];
    uint32_t first; /* slot of the first one */
};

/* collective.  Reads the model.  False if it breaks rule 2, or leaves slots to no symbol. */
WHARF_DEVICE bool read_model(const quick_stream &in, quick_model &m)
{
    uint32_t n_blocks = ceil_div(in.alphabet, WHARF_RANS_BLOCK_NSYMBOLS), block = lane_id() / 4;
    uint32_t left = in.alphabet - block * WHARF_RANS_BLOCK_NSYMBOLS;
    uint32_t n_symbols = left < WHARF_RANS_BLOCK_NSYMBOLS ? left : WHARF_RANS_BLOCK_NSYMBOLS;
    uint32_t begin = 8 * WHARF_RANS_HEADER_NBYTES;
    uint32_t width =
        low_bits(in.front.bits(begin + block * WHARF_RANS_WIDTH_NBITS), WHARF_RANS_WIDTH_NBITS);
    width = block < n_blocks ? width : 0;
    uint32_t n = block < n_blocks ? width * n_symbols : 0, sum = 0;
    uint32_t behind = n_blocks * WHARF_RANS_WIDTH_NBITS + inclusive_add(lane_id() % 4 ? 0 : n);
    uint32_t at = begin + behind - n + 8 * (lane_id() % 4) * width;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        uint32_t f = low_bits(in.front.bits(at + i * width), width);
        m.frequency[i] = 8 * lane_id() + i < in.alphabet ? f : 0;
        sum += m.frequency[i];
    }
    uint32_t sum_behind = inclusive_add(sum);
    m.first = sum_behind - sum;
    uint32_t total = uniform(shfl(sum_behind, WARP_LANES - 1));
    uint32_t n_bits = uniform(shfl(behind, WARP_LANES - 1));
    return !any_lane(width > WHARF_RANS_MAX_WIDTH) && (n_bits + 7) / 8 == in.model_nbytes &&
           total == 1u << in.n_bits;
}

/*
 * What is put down in a range's first slot: the entry of slot 0, if that were in the range, rotated
 * so that the symbol comes first and later ranges have larger marks.  Never 0.  An entry is then
 * the mark rotated back, and the slot added to its place; the sum of a place below 0 and a slot in
 * the range carries into the frequency.
 */
WHARF_DEVICE uint32_t range_mark(uint32_t symbol, uint32_t first, uint32_t frequency)
{
    uint32_t place = (0u - first) & ((1u << PACKED_NBITS) - 1);
    return symbol << 24 | (frequency - (first > 0 ? 1 : 0)) << PACKED_NBITS | place;
}

static_assert(PACKED_PLACE_AT == 8 && PACKED_FREQUENCY_AT == PACKED_PLACE_AT + PACKED_NBITS);

WHARF_DEVICE uint32_t marked_entry(uint32_t mark, uint32_t slot)
{
    return multiply_add(slot, 1u << PACKED_PLACE_AT, funnel_left(mark, mark, 8));
}

/* collective.  The entries of 2^n_bits slots, which are 256 at least, of a model that read_model
 * found good.  A lane makes four at once. */
WHARF_DEVICE void fill_quads(uint32_t *packed, uint32_t n_bits, const quick_model &m)
{
    uint32_t n_rows = (1u << n_bits) / (4 * WARP_LANES), first = m.first, carry = 0;
    u32x4 *quads = reinterpret_cast<u32x4 *>(packed);
    for (uint32_t row = 0; row < n_rows; row++)
        store(&quads[WARP_LANES * row + lane_id()], u32x4{0, 0, 0, 0});
    syncwarp();
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        uint32_t f = m.frequency[i], mark = opaque(range_mark(8 * lane_id() + i, first, f));
        if (f > 0)
            store(&packed[first], mark);
        first += f;
    }
    syncwarp();
    WHARF_UNROLL_BY(2)
    for (uint32_t row = 0; row < n_rows; row++) {
        uint32_t slot = 4 * (WARP_LANES * row + lane_id());
        u32x4 v = load(&quads[slot / 4]);
        v.y = v.y > v.x ? v.y : v.x;
        v.z = v.z > v.y ? v.z : v.y;
        v.w = v.w > v.z ? v.w : v.z;
        uint32_t owners = ballot(v.w != 0), before = owners & lanemask_lt();
        uint32_t mark = shfl(v.w, 31 - clz(before | 1)), last = shfl(v.w, 31 - clz(owners | 1));
        mark = before ? mark : carry;
        carry = owners ? last : carry;
        v.x = v.x > mark ? v.x : mark;
        v.y = v.y > mark ? v.y : mark;
        v.z = v.z > mark ? v.z : mark;
        v.w = v.w > mark ? v.w : mark;
        store(&quads[slot / 4], u32x4{marked_entry(v.x, slot), marked_entry(v.y, slot + 1),
                                      marked_entry(v.z, slot + 2), marked_entry(v.w, slot + 3)});
    }
    syncwarp();
}

/* collective.  Makes n_copies of each entry of the table that fill_quads made, side by side.  It
 * goes from the end, because copies overwrite the entries after them. */
WHARF_DEVICE void spread_entries(uint32_t *packed, uint32_t n_bits)
{
    uint32_t copies = n_copies(n_bits);
    for (uint32_t row = (1u << n_bits) / WARP_LANES; row > 0 && copies > 1; row--) {
        uint32_t slot = WARP_LANES * (row - 1) + lane_id();
        uint32_t v = load(&packed[slot]);
        uint64_t *to = reinterpret_cast<uint64_t *>(packed + slot * copies);
        syncwarp();
        for (uint32_t i = 0; i < copies / 2; i++)
            store(&to[i], (uint64_t)v << 32 | v);
        syncwarp();
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

/* What a lane's chains go to, and where they stood there. */
struct quick_ends {
    uint32_t group[N_SETS];
    uint32_t state[N_SETS][LANE_CODERS];
    int32_t next_word[N_SETS];
};

/* collective.  Sets all chains up before their first groups, except for the windows that they begin
 * with.  False if a final state is invalid, if chains do not lie within whole groups, or if words
 * are too near the stream's beginning. */
WHARF_DEVICE bool begin_halves(const quick_stream &in, const half_setting &setting,
                               half_buffers &buffers, const quick_windows &w, half_chains &c,
                               quick_ends &ends)
{
    bool good = true;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        WHARF_UNROLL
        for (unsigned j = 0; j < LANE_CODERS; j++) {
            uint32_t coder = LANE_CODERS * lane_in_half() + j;
            uint32_t v = in.front.bits(8 * (in.body_at + 4 * coder));
            c.state[s][j] = w.joins[s] ? (uint32_t)WHARF_RANS_LOW : v << 16 | v >> 16;
            good &= c.state[s][j] >= WHARF_RANS_LOW;
        }
        c.group[s] = w.joins[s] ? w.own[s].last_group + 1 : 0;
        ends.group[s] = w.verifies[s] ? w.next[s].last_group + 1 : setting.n_whole;
        c.stores[s] = true;
        good &= c.group[s] <= ends.group[s] && ends.group[s] <= setting.n_whole;
        good &= c.words[s].init(in.source, setting.words, buffers.rings[s][half_of_lane()],
                                w.joins[s] ? w.own[s].first_word : (int32_t)in.n_words - 1);
    }
    return !any_lane(!good);
}

/* One lane.  Notes the positions of chains that have reached their ends.  Returns whether they are
 * right. */
WHARF_DEVICE bool end_halves(const half_setting &setting, half_chains &c, quick_windows &w,
                             quick_ends &ends)
{
    bool good = true;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        bool ends_now = c.stores[s] && c.group[s] >= ends.group[s];
        int32_t next_word = c.words[s].next_word(setting.words);
        ends.next_word[s] = ends_now ? next_word : ends.next_word[s];
        WHARF_UNROLL
        for (unsigned j = 0; j < LANE_CODERS; j++)
            ends.state[s][j] = ends_now ? c.state[s][j] : ends.state[s][j];
        good &= !ends_now || next_word >= -1;
        c.stores[s] = c.stores[s] && !ends_now;
        if (!c.stores[s])
            w.next[s].close(QUICK_NSPLITS);
    }
    return good;
}

/* Steps between two checks whether to stop. */
constexpr uint32_t MAX_NSTEPS = 64;

/* collective.  What chains that are not at their ends do next: free steps, or if none are possible,
 * groups with checks of windows. */
struct quick_plan {
    uint32_t n_steps, n_groups;

    WHARF_DEVICE_MEMBER void make(const half_chains &c, const quick_windows &w,
                                  const quick_ends &ends)
    {
        uint32_t free = NO_GROUP, until = NO_GROUP;
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++) {
            uint32_t near =
                w.next[s].first_group < ends.group[s] ? w.next[s].first_group : ends.group[s];
            uint32_t n = near > c.group[s] ? near - c.group[s] : 0;
            free = c.stores[s] && n < free ? n : free;
            n = ends.group[s] - c.group[s];
            until = c.stores[s] && n < until ? n : until;
        }
        n_steps = reduce_min(free) / STEP_NGROUPS;
        n_steps = n_steps < MAX_NSTEPS ? n_steps : MAX_NSTEPS;
        until = reduce_min(until);
        n_groups = until < MAX_NSTEPS * STEP_NGROUPS ? until : MAX_NSTEPS * STEP_NGROUPS;
        n_groups = n_steps > 0 ? n_steps * STEP_NGROUPS : n_groups;
    }
};

/* collective.  With n as a constant, which takes fewer instructions.  (A reduction, so that the
 * compiler does not make the loop around this once for each n.) */
template <bool EVEN>
WHARF_DEVICE void go_freely_by_nbits(const half_setting &setting, half_chains &c, uint32_t n_steps)
{
    switch (uniform(setting.n_bits)) {
    case PACKED_NBITS:
        return go_freely<PACKED_NBITS, true, EVEN>(setting, c, n_steps);
    case PACKED_NBITS - 1:
        return go_freely<PACKED_NBITS - 1, true, EVEN>(setting, c, n_steps);
    case PACKED_NBITS - 2:
        return go_freely<PACKED_NBITS - 2, true, EVEN>(setting, c, n_steps);
    default:
        return go_freely<WHARF_RANS_MIN_NBITS, true, EVEN>(setting, c, n_steps);
    }
}
static_assert(PACKED_NBITS - 3 == WHARF_RANS_MIN_NBITS);

/* collective.  The same by where output and words lie. */
WHARF_DEVICE void go_freely_by_place(const half_setting &setting, half_chains &c, uint32_t n_steps)
{
    if (any_lane(reinterpret_cast<uintptr_t>(setting.out) % 8 != 0))
        go_freely<0, false, false>(setting, c, n_steps);
    else if (any_lane(setting.shift.n_bits != 0))
        go_freely_by_nbits<false>(setting, c, n_steps);
    else
        go_freely_by_nbits<true>(setting, c, n_steps);
}

/* collective.  Takes all chains to their ends.  Returns whether all was good, and no step exceeded
 * the budget. */
WHARF_DEVICE bool run_halves(const half_setting &setting, half_chains &c, quick_windows &w,
                             quick_ends &ends, watcher &watch)
{
    for (;;) {
        bool good = end_halves(setting, c, w, ends);
        if (any_lane(!good))
            return false;
        if (!any_lane(c.stores[0] || c.stores[1]))
            return true;
        quick_plan plan;
        plan.make(c, w, ends);
        uint32_t n = 2 * N_SETS * plan.n_groups;
        if (watch.goes_on(n, plan.n_steps > 0 ? n : 4 * n) != WHARF_REASON_NONE)
            return false;
        if (plan.n_steps == 0)
            good = uniform(setting.n_bits) == PACKED_NBITS
                       ? look_at_windows<PACKED_NBITS>(setting, c, w.next, plan.n_groups)
                       : look_at_windows<0>(setting, c, w.next, plan.n_groups);
        else
            go_freely_by_place(setting, c, plan.n_steps);
        if (any_lane(!good))
            return false;
    }
}

/* collective.  The last chain decodes the symbols after the last whole group.  Then rule 8. */
WHARF_DEVICE bool end_quickly(const quick_stream &in, const half_setting &setting,
                              const quick_ends &ends)
{
    constexpr unsigned S = N_SETS - 1;
    bool is_last = half_of_lane() == 1, good = true, takes[LANE_CODERS];
    uint32_t state[LANE_CODERS];
    int32_t next_word = (int32_t)uniform(shfl((uint32_t)ends.next_word[S], WARP_LANES - 1));
    uint32_t number = WARP_LANES * setting.n_whole + LANE_CODERS * lane_in_half();
    WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        uint32_t before = ends.state[S][j];
        bool exists = is_last && number + j < in.n_symbols;
        uint32_t upper = setting.upper_of<0>(before);
        uint32_t entry = setting.slots.load_word(setting.place_of(before, upper));
        found f = found_packed(entry);
        state[j] = exists ? f.frequency * upper + f.place : before;
        takes[j] = exists && state[j] < WHARF_RANS_LOW;
        if (exists)
            store_byte(setting.out + number + j, entry);
    }
    uint32_t low = ballot(takes[0]), high = ballot(takes[1]);
    uint32_t takers = byte_perm(low, high, 0x7632);
    if ((int32_t)popc(takers) != next_word + 1)
        return false;
    uint32_t before = popc(takers & setting.before) - (takes[0] ? 1 : 0);
    WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        uint32_t at = in.source.begin + in.words_at + 2 * ((uint32_t)next_word - before);
        uint32_t word = 0;
        if (takes[j])
            word = load_nc(in.source.aligned + at) | load_nc(in.source.aligned + at + 1) << 8;
        state[j] = takes[j] ? state[j] << 16 | word : state[j];
        before += takes[j] ? 1 : 0;
        good &= !is_last || state[j] == WHARF_RANS_LOW;
    }
    return !any_lane(!good);
}

/* What decode_quickly returns of a chunk that it leaves. */
constexpr uint32_t LEFT = 0xffffffffu;

/* collective.  Decodes the chunk if it is of the common kind and good.  Returns the bytes of
 * output, or LEFT.  Not inlined: the compiler would compile the loop over chunks again for
 * everything in which lanes differ. */
WHARF_DEVICE_NOINLINE uint32_t decode_quickly(shared_ref<rans_quick_shared> memory, chunk_job job)
{
    quick_tables &tables = memory.get().tables;
    half_buffers &buffers = memory.get().buffers;
    quick_stream in;
    quick_starts starts;
    quick_windows w;
    quick_model m;
    if (any_lane(job.in_nbytes < FRONT_NBYTES + 2 * sizeof(u32x4) || job.model != nullptr ||
                 job.parameter != 0 || reinterpret_cast<uintptr_t>(job.out) % LANE_CODERS != 0))
        return LEFT;
    job.in_nbytes = uniform(job.in_nbytes);
    job.out_avail = uniform(job.out_avail);
    job.in = uniform_global(job.in);
    job.out = uniform_global(job.out);
    in.source.init(job.in, job.in_nbytes);
    bring_front(in.source, tables.front);
    in.front.words.init(tables.front);
    in.front.begin = in.source.begin;
    if (!read_fields(in, job) || !read_starts(in, job, starts) || !read_windows(in, starts, w))
        return LEFT;
    word_source words;
    uint32_t words_at = in.source.begin + in.words_at;
    words.aligned = in.source.aligned;
    words.is_odd = words_at % 2 != 0;
    words.skew = (int32_t)(words_at / 2);
    words.lowest = (int32_t)((in.source.begin + sizeof(u32x4) - 1) & -sizeof(u32x4));
    half_setting setting;
    half_chains c;
    quick_ends ends = {};
    setting.shift.init(words_at);
    setting.init(words, tables.packed, in.n_bits, job.out, in.n_symbols / WARP_LANES);
    if (!begin_halves(in, setting, buffers, w, c, ends) || !read_model(in, m))
        return LEFT;
    syncwarp(); /* every lane's loads of the front, before the stores of the table */
    fill_quads(tables.packed, in.n_bits, m);
    spread_entries(tables.packed, in.n_bits);
    uint32_t n = 0;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        uint32_t more = w.joins[s] ? w.own[s].last_group - w.own[s].first_group + 1 : 0;
        n = more > n ? more : n;
    }
    n = reduce_max(n);
    bool leads = !w.joins[0] && n <= ends.group[0] && n <= w.next[0].first_group;
    if (uniform(in.n_bits) == PACKED_NBITS)
        join_windows<PACKED_NBITS>(setting, c, w.own, w.joins, leads, n);
    else
        join_windows<0>(setting, c, w.own, w.joins, leads, n);
    watcher watch;
    watch.init(job.step_budget, job.stop);
    bool good = run_halves(setting, c, w, ends, watch) && end_quickly(in, setting, ends);
    syncwarp(); /* the memory may be used otherwise */
    return good ? in.n_symbols : LEFT;
}

} // namespace rans

/* collective.  False if the chunk is left: then there is no verdict, and its output is undefined.
 */
WHARF_DEVICE bool rans_quick_decode(rans_quick_shared &s, const chunk_job &job,
                                    verdict &ret_verdict)
{
    shared_ref<rans_quick_shared> memory;
    memory.init(s);
    uint32_t nbytes = uniform(rans::decode_quickly(memory, job));
    ret_verdict = good(job.in_nbytes, nbytes);
    return nbytes != rans::LEFT;
}

} // namespace wharf

#endif
