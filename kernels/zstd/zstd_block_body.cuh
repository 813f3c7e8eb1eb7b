/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_block_body.cuh: decodes a compressed block: reads its headers, and has its literals, tables
 * and sequences decoded.
 *
 * All lanes read the headers alike.  Checks run in the order of encoders/zstd/zstd_format.h.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_BLOCK_BODY_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_BLOCK_BODY_CUH

#include "kernels/zstd/zstd_sequences.cuh"
#include "kernels/zstd/zstd_streams.cuh"

namespace wharf
{
namespace zstd
{

/* How much output a block may still have, and what it is if there is more. */
struct room {
    uint32_t nbytes;
    uint32_t reason;
};

WHARF_DEVICE room room_of_block(const state &st)
{
    room r = {st.block_max, WHARF_REASON_ZSTD_BLOCK_SIZE};
    uint32_t content = st.content_nbytes - (st.n_out - st.frame_out);
    if (content < r.nbytes)
        r = {content, WHARF_REASON_ZSTD_CONTENT_SIZE};
    if (st.out_avail - st.n_out < r.nbytes)
        r = {st.out_avail - st.n_out, WHARF_REASON_OUTPUT_FULL};
    return r;
}

/* For want of room: a content size is wrong at the frame's first byte. */
WHARF_DEVICE failure fail_room(const state &st, uint32_t reason, uint32_t at)
{
    return {reason, reason == WHARF_REASON_ZSTD_CONTENT_SIZE ? st.frame_at : at};
}

/* ---- literals -------------------------------------------------------------------------------- */

enum : uint32_t { LITERALS_RAW = 0, LITERALS_RLE = 1, LITERALS_TREE = 2, LITERALS_REPEAT = 3 };

/* The header of a literals section. */
struct literals {
    bool is_good;
    bool has_four_streams;
    uint32_t type;
    uint32_t header_nbytes;
    uint32_t n;
    uint32_t nbytes; /* behind the header */
};

/* collective. */
WHARF_DEVICE literals read_literals(const input_source &source, uint32_t at, uint32_t left)
{
    literals l = {};
    uint32_t low = load_bytes(source, at), high = load_bytes(source, at + 4);
    uint32_t form = low >> 2 & 3;
    l.type = low & 3;
    if (l.type < LITERALS_TREE) {
        l.header_nbytes = form == 1 ? 2 : form == 3 ? 3 : 1;
        l.n = form == 1 ? low >> 4 & 0xfff : form == 3 ? low >> 4 & 0xfffff : low >> 3 & 31;
        l.nbytes = l.type == LITERALS_RLE ? 1 : l.n;
        l.is_good = left >= l.header_nbytes && l.nbytes <= left - l.header_nbytes;
        return l;
    }
    uint32_t nbits = form < 2 ? 10 : form == 2 ? 14 : 18, mask = (1u << nbits) - 1;
    l.has_four_streams = form != 0;
    l.header_nbytes = form < 2 ? 3 : form == 2 ? 4 : 5;
    uint64_t sizes = ((uint64_t)high << 32 | low) >> 4;
    l.n = (uint32_t)sizes & mask;
    l.nbytes = (uint32_t)(sizes >> nbits) & mask;
    l.is_good = left >= WHARF_ZSTD_MIN_TREE_SECTION && l.nbytes <= left - l.header_nbytes &&
                (!l.has_four_streams || l.n >= WHARF_ZSTD_MIN_LITERALS_OF_FOUR);
    return l;
}

/* Where the streams of a section end, and how many literals all but the last have.  The same in all
 * lanes. */
struct jump_table {
    bool is_good;
    uint32_t at; /* where the first one begins */
    uint32_t ends[4];
    uint32_t n_each;
};

/* collective.  Of four streams the jump table at byte `at`; one stream has none. */
WHARF_DEVICE jump_table read_jump_table(const input_source &source, const literals &l, uint32_t at,
                                        uint32_t end)
{
    if (!l.has_four_streams)
        return {true, at, {end, end, end, end}, l.n};
    uint32_t low = load_bytes(source, at), high = load_bytes(source, at + 4);
    uint32_t begin = at + WHARF_ZSTD_JUMP_TABLE_NBYTES;
    uint32_t first = begin + (low & 0xffff), second = first + (low >> 16);
    uint32_t third = second + (high & 0xffff);
    return {begin <= end && third <= end, begin, {first, second, third, end}, (l.n + 3) / 4};
}

/* One lane.  Stream number `which`. */
WHARF_DEVICE stream stream_of(const input_source &source, const jump_table &t, uint32_t which,
                              uint32_t out_at, uint32_t n)
{
    uint32_t from = which == 0 ? t.at : which == 1 ? t.ends[0] : which == 2 ? t.ends[1] : t.ends[2];
    uint32_t to = which == 0   ? t.ends[0]
                  : which == 1 ? t.ends[1]
                  : which == 2 ? t.ends[2]
                               : t.ends[3];
    return find_stream(source, from, to, out_at + t.n_each * which,
                       which < 3 ? t.n_each : n - 3 * t.n_each);
}

/* collective.  The streams of literals at byte `at`, to `end`; the reason is NONE if they are
 * good. */
WHARF_DEVICE failure put_literals_coded(state &st, const literals &l, uint32_t log, uint32_t at,
                                        uint32_t end, uint32_t out_at)
{
    jump_table t = read_jump_table(st.source, l, at, end);
    if (!t.is_good)
        return {WHARF_REASON_ZSTD_STREAMS, at};
    uint32_t n_lanes = l.has_four_streams ? 8 : 32;
    stream mine = stream_of(st.source, t, lane_id() / n_lanes, out_at, l.n);
    if (log <= QUICK_TREE_LOG && put_streams(st, mine, n_lanes, log, st.steps))
        return {WHARF_REASON_NONE, 0};
    for (unsigned lane = 0; lane < WARP_LANES; lane += n_lanes) {
        stream one = {uniform(shfl(mine.begin, lane)), uniform(shfl(mine.top, lane)),
                      uniform(shfl(mine.out_at, lane)), uniform(shfl(mine.n_literals, lane)),
                      uniform(shfl((uint32_t)mine.is_there, lane)) != 0};
        uint32_t reason = put_carefully(st, one, log, st.steps);
        if (reason != WHARF_REASON_NONE)
            return {reason, one.begin / 8};
    }
    return {WHARF_REASON_NONE, 0};
}

/* collective.  The tree, unless it is there, and the streams. */
WHARF_DEVICE failure take_tree_literals(state &st, const literals &l, uint32_t section_at,
                                        uint32_t out_at)
{
    uint32_t at = section_at + l.header_nbytes, end = at + l.nbytes;
    tree_result tree;
    if (l.type == LITERALS_TREE)
        tree = read_tree(st, at, end);
    else
        tree = restore_tree(st);
    if (tree.log == 0 || (l.type == LITERALS_TREE && tree.nbytes == l.nbytes))
        return {WHARF_REASON_ZSTD_TREE, at};
    tree = {uniform(tree.nbytes), uniform(tree.n), uniform(tree.log)};
    make_tree(st.s(), tree.n, tree.log);
    return put_literals_coded(st, l, tree.log, at + tree.nbytes, end, out_at);
}

/* What literals by a tree need of a state, and what came of them. */
struct literals_task {
    shared_ref<shared> ref;
    input_source source;
    uint8_t *out;
    kept *keep;
    literals section;
    uint32_t at, out_at, steps_left;
};
struct literals_result {
    failure f;
    uint32_t steps_left;
};

/* collective.  take_tree_literals, kept apart from the code that takes sequences. */
WHARF_DEVICE literals_result take_tree_apart(literals_task t)
{
    state st = {};
    st.ref = t.ref;
    st.source = {uniform_global(t.source.aligned), uniform(t.source.begin), uniform(t.source.end)};
    st.out = uniform_global(t.out);
    st.keep = uniform_global(t.keep);
    st.steps.left = uniform(t.steps_left);
    literals l = t.section;
    l.type = uniform(l.type);
    l.has_four_streams = uniform((uint32_t)l.has_four_streams) != 0;
    l.header_nbytes = uniform(l.header_nbytes);
    l.n = uniform(l.n);
    l.nbytes = uniform(l.nbytes);
    failure f = take_tree_literals(st, l, uniform(t.at), uniform(t.out_at));
    return {f, st.steps.left};
}

/* collective.  The literals section at st.at, which goes on behind it, in a block to byte `end`. */
WHARF_DEVICE failure take_literals(state &st, sequences &q, uint32_t end)
{
    room r = room_of_block(st);
    literals l = read_literals(st.source, st.at, end - st.at);
    if (!l.is_good)
        return {WHARF_REASON_ZSTD_LITERALS, st.at};
    if (l.type == LITERALS_REPEAT && uniform(load(&st.keep->tree_log)) == 0)
        return {WHARF_REASON_ZSTD_TREE, st.at};
    if (l.n > r.nbytes)
        return fail_room(st, r.reason, st.at);
    q.room = r.nbytes - l.n;
    q.room_reason = r.reason;
    q.literals = st.out;
    uint32_t out_at = st.n_out + q.room;
    q.end = out_at + l.n;
    uint32_t payload = st.at + l.header_nbytes;
    if (l.type == LITERALS_RAW) {
        q.in_input = 1;
        q.in_at = payload - out_at;
        q.literals = st.source.aligned + payload - out_at;
    } else if (l.type == LITERALS_RLE) {
        output_stream out = {st.out, st.out_avail, out_at};
        out.write_run<uint8_t>((uint8_t)load_bytes(st.source, payload), 0, l.n);
        syncwarp(); /* lanes meet, for the compiler too */
    } else {
        literals_result result =
            take_tree_apart({st.ref, st.source, st.out, st.keep, l, st.at, out_at, st.steps.left});
        st.steps.left = uniform(result.steps_left);
        if (uniform(result.f.reason) != WHARF_REASON_NONE)
            return {uniform(result.f.reason), uniform(result.f.at)};
    }
    st.at = uniform(payload + l.nbytes);
    return {WHARF_REASON_NONE, 0};
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum : uint32_t { MODE_USUAL = 0, MODE_ONE = 1, MODE_DESCRIBED = 2, MODE_REPEAT = 3 };

/* collective.  s.counts from what was kept, or the other way. */
WHARF_DEVICE void keep_counts(const state &st, unsigned k, uint32_t n_symbols, uint32_t log)
{
    for (unsigned i = lane_id(); i < 64; i += WARP_LANES)
        store(&st.keep->counts[k][i], load(&st.s().counts[i]));
    if (lane_id() == 0) {
        store(&st.keep->n_symbols[k], n_symbols);
        store(&st.keep->log[k], log);
    }
    syncwarp();
}
template <typename T>
WHARF_DEVICE void restore_counts(shared &s, const T *counts)
{
    syncwarp();
    for (unsigned i = lane_id(); i < N_COUNTS; i += WARP_LANES)
        store(&s.counts[i], (int16_t)(i < 64 ? load(counts + i) : 0));
    syncwarp();
}

/* collective.  A table of one symbol. */
WHARF_DEVICE void put_one_symbol(shared &s, uint32_t symbol)
{
    clear_counts(s);
    if (lane_id() == 0)
        store(&s.counts[symbol], (int16_t)1);
    syncwarp();
}

/* What of a block's tables is read so far.  The same in all lanes. */
struct table_place {
    bool is_good;
    uint32_t at;    /* behind the description */
    uint32_t n_log; /* of the table */
};

/* collective.  The table of kind k in this mode, whose description begins at byte `at` and ends
 * before `end`; byte 16 * quad is the window's first. */
WHARF_DEVICE table_place take_table(state &st, unsigned k, uint32_t mode, uint32_t at, uint32_t end,
                                    uint32_t quad)
{
    shared &s = st.s();
    description d = {usual_log_of(k), n_usual_of(k), 0};
    table_place bad = {false, at, 0};
    if (mode == MODE_USUAL) {
        restore_counts(s, USUAL_COUNTS[k]);
    } else if (mode == MODE_REPEAT) {
        if (!st.has_tables)
            return bad;
        d.n_symbols = uniform(load(&st.keep->n_symbols[k]));
        d.log = uniform(load(&st.keep->log[k]));
        restore_counts(s, st.keep->counts[k]);
    } else if (mode == MODE_ONE) {
        uint32_t symbol = uniform(window_bits(s.window, 8 * (at - 16 * quad)) & 0xff);
        if (at >= end || symbol >= n_symbols_of(k))
            return bad;
        put_one_symbol(s, symbol);
        d = {0, symbol + 1, 1};
    } else {
        d = read_counts(st.ref, 8 * (at - 16 * quad), 8 * (end - 16 * quad), n_symbols_of(k) - 1,
                        max_log_of(k));
        d = {uniform(d.log), uniform(d.n_symbols), uniform(d.nbytes)};
        if (d.nbytes == 0)
            return bad;
    }
    keep_counts(st, k, d.n_symbols, d.log);
    uint32_t *cells = &s.cells[k * CELLS_STRIDE];
    if (d.log == 0) {
        if (lane_id() == 0)
            store(cells, make_cell(s, k, d.n_symbols - 1, 0, 1));
        syncwarp();
    } else {
        make_cells(st.ref, k * CELLS_STRIDE, k, d.n_symbols, d.log);
    }
    return {true, at + d.nbytes, d.log};
}

/* The order of tables and of first states. */
WHARF_DEVICE unsigned kind_of_turn(unsigned turn)
{
    return turn == 0 ? LITERAL_LENGTHS : turn == 1 ? OFFSETS : MATCH_LENGTHS;
}

/* collective.  The tables, whose modes are at byte `at`; then their bits, to `end`. */
WHARF_DEVICE failure begin_sequences(state &st, sequences &q, uint32_t at, uint32_t end)
{
    uint32_t modes = load_bytes(st.source, at) & 0xff;
    uint32_t logs[3];
    if (at >= end || modes & 3)
        return {WHARF_REASON_ZSTD_SEQUENCES_HEADER, st.at};
    at++;
    uint32_t quad = at >> 4;
    load_window(st.source, st.s().window, quad);
    WHARF_NO_UNROLL
    for (unsigned turn = 0; turn < 3; turn++) {
        unsigned k = kind_of_turn(turn);
        table_place place = take_table(st, k, modes >> (6 - 2 * turn) & 3, at, end, quad);
        if (!place.is_good)
            return {WHARF_REASON_ZSTD_TABLE, at};
        at = uniform(place.at);
        logs[turn] = place.n_log;
    }
    st.has_tables = 1;
    stream bits = find_stream(st.source, at, end, 0, 0);
    uint32_t n_first = logs[0] + logs[1] + logs[2];
    if (!bits.is_there || bits.top - bits.begin < n_first)
        return {WHARF_REASON_ZSTD_SEQUENCES, at};
    q.begin_bit = uniform(bits.begin);
    q.at = uniform(bits.top);
    uint32_t base = 128 * window_quad<WINDOW_NWORDS>(q.at);
    const bit_window &window = st.s().window;
    load_window(st.source, st.s().window, base >> 7);
    WHARF_UNROLL
    for (unsigned turn = 0; turn < 3; turn++) {
        q.index[kind_of_turn(turn)] = uniform(window_bits_below(window, q.at - base, logs[turn]));
        q.at -= logs[turn];
    }
    return {WHARF_REASON_NONE, at};
}

/* collective.  The sequences section at st.at, to byte `end`. */
template <typename Notes>
WHARF_DEVICE failure take_sequences_section(state &st, sequences &q, uint32_t end, Notes &notes)
{
    uint32_t head = load_bytes(st.source, st.at), left = end - st.at;
    uint32_t first = head & 0xff;
    uint32_t nbytes = first < 128 ? 1 : first < 255 ? 2 : 3;
    q.n = first < 128   ? first
          : first < 255 ? (first - 128) << 8 | (head >> 8 & 0xff)
                        : (head >> 8 & 0xffff) + 0x7f00;
    if (nbytes > left || (q.n == 0 && nbytes != left))
        return {WHARF_REASON_ZSTD_SEQUENCES_HEADER, st.at};
    if (q.n == 0)
        return {WHARF_REASON_NONE, 0};
    failure f = begin_sequences(st, q, st.at + nbytes, end);
    if (f.reason != WHARF_REASON_NONE)
        return f;
    uint32_t reason = take_sequences(st, q, notes);
    return fail_room(st, reason, f.at);
}

/* collective.  A compressed block at st.at, to byte `end`. */
template <typename Notes>
WHARF_DEVICE failure take_block(state &st, uint32_t end, Notes &notes)
{
    sequences q = {};
    failure f = take_literals(st, q, end);
    if (f.reason != WHARF_REASON_NONE)
        return f;
    syncwarp(); /* the literals are there, and their tree is not wanted any more */
    f = take_sequences_section(st, q, end, notes);
    if (f.reason != WHARF_REASON_NONE)
        return f;
    put_literals(st, q, q.end - (st.n_out + q.room));
    st.at = end;
    return f;
}

} // namespace zstd
} // namespace wharf

#endif
