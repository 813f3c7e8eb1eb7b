/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of single lines by device code (kernels/line/wharf_line.cuh): arrays in slots of one kind
 * of data become arrays of another, line by line and by parts of lines, and then decode to that.
 */
#include <criterion/criterion.h>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_random.h"
}
#include "kernels/line/wharf_line.cuh"

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

/* Stores by one warp: these lines, of this array without compression, in parts or whole. */
struct request {
    const line_slots *slots;
    std::vector<uint64_t> lines;
    const uint8_t *raw; /* with room for the last line */
    uint32_t which;     /* ~0: all bytes; otherwise rotated by a lane's number */
    unsigned order;
    std::vector<uint8_t> ok;
};

template <uint32_t CODEC>
struct memory {
    line_table<CODEC> table;
    line_space space;
};

/* Lanes that have no line store none. */
template <uint32_t CODEC, uint32_t TYPE>
void store_by(request &q)
{
    const line_array &array = q.slots->array;
    size_t n_lanes = array.shape.line_nbytes() / 16;
    q.ok.assign(q.lines.size(), 2);
    simt::run_warp<memory<CODEC>>({ORDERS[q.order % 3], q.order}, [&](memory<CODEC> &m) {
        fill_line_table<CODEC>(m.table, array);
        for (size_t base = 0; base < q.lines.size(); base += WARP_LANES / n_lanes) {
            size_t i = base + lane_id() / n_lanes, place = lane_id() % n_lanes;
            uint64_t line = i < q.lines.size() ? q.lines[i] : LINE_NONE;
            uint32_t which = q.which << place | q.which >> (32 - place) % 32;
            u32x4 quad = {1, 2, 3, 4};
            if (line < array.n_lines)
                memcpy(&quad, q.raw + (line << array.shape.shift) + 16 * place, 16);
            bool ok = q.which == ~0u ? store_line<CODEC, TYPE>(m.space, *q.slots, line, quad)
                                     : update_line<CODEC, TYPE>(m.table, m.space, *q.slots, line,
                                                                quad, which & 0xffff);
            if (i >= q.lines.size())
                cr_assert(ok);
            else if (place == 0)
                q.ok[i] = ok;
        }
    });
}

void store_lines(request &q)
{
    switch (q.slots->array.codec) {
    case WHARF_CODEC_BDI:
        return store_by<WHARF_CODEC_BDI, 0>(q);
    case WHARF_CODEC_FPC:
        return store_by<WHARF_CODEC_FPC, 0>(q);
    case WHARF_CODEC_CPACK:
        return store_by<WHARF_CODEC_CPACK, 0>(q);
    case WHARF_CODEC_BEST:
        return store_by<WHARF_CODEC_BEST, 0>(q);
    default:
        break;
    }
    switch (q.slots->array.shape.type) {
    case WHARF_LINE_BF16:
        return store_by<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(q);
    case WHARF_LINE_F16:
        return store_by<WHARF_CODEC_PALETTE, WHARF_LINE_F16>(q);
    case WHARF_LINE_E4M3:
        return store_by<WHARF_CODEC_PALETTE, WHARF_LINE_E4M3>(q);
    default:
        return store_by<WHARF_CODEC_PALETTE, WHARF_LINE_E5M2>(q);
    }
}

/* A stream in slots between untouchable pages. */
struct opened {
    struct test_guard guard;
    line_slots slots;
    uint64_t error = UINT64_MAX;

    opened(const struct wharf_line_choice &choice, const uint8_t *raw, size_t n)
    {
        size_t nbytes;
        uint8_t *stream = test_lines_encode(&choice, raw, n, &nbytes);
        guard = test_guard_new(nbytes, TEST_GUARD_END);
        memcpy(guard.data, stream, nbytes);
        free(stream);
        cr_assert_eq(open_line_slots(&slots, guard.data, guard.data, nbytes, &error), 0);
    }
    ~opened() { test_guard_free(&guard); }

    std::vector<uint64_t> shuffled_lines(uint64_t seed) const
    {
        struct test_random random = {seed + 1};
        std::vector<uint64_t> lines(slots.array.n_lines);
        for (size_t i = 0; i < lines.size(); i++) {
            size_t j = test_random_below(&random, i + 1);
            lines[i] = lines[j];
            lines[j] = i;
        }
        return lines;
    }

    void expect_decodes_to(const uint8_t *want, size_t n)
    {
        std::vector<uint8_t> got(n + 1);
        struct wharf_outcome outcome;
        wharf_line_decode_reference(slots.array.codec, guard.data, guard.nbytes, got.data(), n,
                                    NULL, &outcome);
        cr_assert_eq(outcome.result, WHARF_OK, "codec %u: reason %u at bit %zu", slots.array.codec,
                     outcome.reason, (size_t)outcome.bit_offset);
        cr_assert_eq(memcmp(got.data(), want, n), 0);
    }

    /* Of data in the same shape. */
    void expect_codes_of(const struct wharf_line_choice &choice, const uint8_t *raw, size_t n)
    {
        size_t nbytes;
        uint8_t *stream = test_lines_encode(&choice, raw, n, &nbytes);
        cr_assert_eq(memcmp(guard.data, stream, slots.array.heads_at), 0);
        free(stream);
    }
};

struct wharf_line_choice slots_choice(unsigned c)
{
    struct wharf_line_choice choice = test_lines_choice(c);
    choice.layout = WHARF_LINE_SLOTS;
    return choice;
}

} // namespace

Test(line_store_simt, arrays_become_others_line_by_line)
{
    static uint8_t old_raw[9001], raw[9001 + 128];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = slots_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = kind == TEST_LINES_MIXED ? sizeof(old_raw) : 300 + 700 * ((c + kind) % 3);
            test_lines_fill((enum test_lines_kind)((kind + c) % TEST_LINES_N_KINDS), c, old_raw, n);
            memset(raw, 0, sizeof(raw));
            test_lines_fill((enum test_lines_kind)kind, c + 1000, raw, n);
            opened o(choice, old_raw, n);
            request q = {&o.slots, o.shuffled_lines(c), raw, ~0u, c + kind, {}};
            store_lines(q);
            for (uint8_t ok : q.ok)
                cr_assert_eq(ok, 1);
            o.expect_decodes_to(raw, n);
            if (choice.codec != WHARF_CODEC_PALETTE)
                o.expect_codes_of(choice, raw, n);
            cr_assert_eq(o.error, UINT64_MAX);
        }
    }
}

Test(line_store_simt, parts_of_lines_change_and_the_rest_stays)
{
    static uint8_t old_raw[5000], raw[5000 + 128], want[5000];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = slots_choice(c);
        size_t n = c % 2 ? sizeof(old_raw) : 777;
        test_lines_fill(TEST_LINES_MIXED, c, old_raw, n);
        memset(raw, 0, sizeof(raw));
        test_lines_fill(TEST_LINES_MIXED, c + 1000, raw, n);
        opened o(choice, old_raw, n);
        uint32_t which = 0x80c1f00fu * (c + 1);
        request q = {&o.slots, o.shuffled_lines(c), raw, which == ~0u ? 1 : which, c, {}};
        store_lines(q);
        for (size_t at = 0; at < n; at++) {
            unsigned place = (unsigned)(at % choice.line_nbytes / 16);
            uint32_t own = q.which << place | q.which >> (32 - place) % 32;
            want[at] = own >> at % 16 & 1 ? raw[at] : old_raw[at];
        }
        o.expect_decodes_to(want, n);
    }
}

Test(line_store_simt, lines_that_are_not_there_or_have_no_palette)
{
    static uint8_t raw[9001 + 128];
    struct wharf_line_choice choice = {WHARF_CODEC_PALETTE, 128, WHARF_LINE_SLOTS, WHARF_LINE_BF16};

    test_lines_fill(TEST_LINES_WEIGHTS, 3, raw, 9001);
    opened o(choice, raw, 9001);
    request q = {&o.slots, {o.slots.array.n_lines, 1ull << 40, 33, 0}, raw, ~0u, 2, {}};
    o.guard.data[o.slots.array.heads_at + WHARF_LINE_PALETTE_AT_WIDTH] = 5; /* of lines 0 to 31 */
    std::vector<uint8_t> before(o.guard.data, o.guard.data + o.guard.nbytes);
    store_lines(q);
    cr_assert_eq(q.ok[0], 0);
    cr_assert_eq(q.ok[1], 0);
    cr_assert_eq(q.ok[2], 1);
    cr_assert_eq(q.ok[3], 0);
    cr_assert_eq(o.error, 0);
    cr_assert_eq(memcmp(before.data(), o.guard.data, o.guard.nbytes), 0);
}

/* The line is not written back, so that it stays known as bad. */
Test(line_store_simt, bad_lines_are_not_updated)
{
    static uint8_t raw[4096 + 128];
    struct wharf_line_choice choice = {WHARF_CODEC_FPC, 128, WHARF_LINE_SLOTS, 0};

    test_lines_fill(TEST_LINES_WORDS, 3, raw, 4096);
    opened o(choice, raw, 4096);
    o.guard.data[WHARF_LINE_HEADER_NBYTES + 5] = 200; /* no code */
    request q = {&o.slots, {5, 6}, raw, 0x55555555u, 0, {}};
    store_lines(q);
    cr_assert_eq(q.ok[0], 0);
    cr_assert_eq(q.ok[1], 1);
    cr_assert_eq(o.error, 5);
    cr_assert_eq(o.guard.data[WHARF_LINE_HEADER_NBYTES + 5], 200);
}

Test(line_store_simt, streams_that_are_packed_or_cut_off_are_refused)
{
    static uint8_t raw[4096];
    struct wharf_line_choice choice = {WHARF_CODEC_BDI, 64, WHARF_LINE_PACKED, 0};
    line_slots slots;
    size_t nbytes;

    test_lines_fill(TEST_LINES_BASES, 3, raw, sizeof(raw));
    for (unsigned layout : {WHARF_LINE_PACKED, WHARF_LINE_SLOTS}) {
        choice.layout = layout;
        uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &nbytes);
        struct test_guard in = test_guard_copy(stream, nbytes, TEST_GUARD_END);
        if (layout == WHARF_LINE_PACKED) {
            cr_assert_eq(open_line_slots(&slots, in.data, in.data, nbytes, nullptr), -EINVAL);
        } else {
            cr_assert_eq(open_line_slots(nullptr, in.data, in.data, nbytes, nullptr), -EINVAL);
            cr_assert_eq(open_line_slots(&slots, in.data, in.data, nbytes - 16, nullptr), -EBADMSG);
            cr_assert_eq(open_line_slots(&slots, in.data, in.data, nbytes, nullptr), 0);
        }
        test_guard_free(&in);
        free(stream);
    }
}
