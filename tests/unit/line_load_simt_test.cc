/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads of single lines by device code (kernels/line/wharf_line.cuh): every line of all kinds of
 * data in any order; damaged streams that end at a guard page, beside the reference decoder.
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

struct loaded {
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> ok;
    uint64_t error;
};

/* A row of lines, by as many warps as they need. */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE>
void load_by(line_array array, const std::vector<uint64_t> &lines, bool is_trusted, unsigned order,
             loaded &got)
{
    size_t line_nbytes = array.shape.line_nbytes(), n_lanes = line_nbytes / 16;
    array.error = &got.error;
    simt::run_warp<line_table<CODEC>>({ORDERS[order % 3], order}, [&](line_table<CODEC> &table) {
        fill_line_table<CODEC>(table, array);
        for (size_t base = 0; base < lines.size(); base += WARP_LANES / n_lanes) {
            size_t i = base + lane_id() / n_lanes;
            uint64_t line = i < lines.size() ? lines[i] : lines[0];
            bool ok;
            u32x4 quad = is_trusted ? load_trusted_line<CODEC, TYPE>(table, array, line, &ok)
                                    : load_line<CODEC, TYPE>(table, array, line, &ok);
            if (i >= lines.size())
                continue;
            memcpy(&got.bytes[i * line_nbytes + 16 * (lane_id() % n_lanes)], &quad, 16);
            if (lane_id() % n_lanes == 0)
                got.ok[i] = ok;
        }
    });
}

loaded load_lines(const line_array &array, const std::vector<uint64_t> &lines, bool is_trusted,
                  unsigned order)
{
    loaded got = {std::vector<uint8_t>(lines.size() * array.shape.line_nbytes(), 0xee),
                  std::vector<uint8_t>(lines.size(), 2), UINT64_MAX};
    switch (array.codec) {
    case WHARF_CODEC_BDI:
        load_by<WHARF_CODEC_BDI>(array, lines, is_trusted, order, got);
        break;
    case WHARF_CODEC_FPC:
        load_by<WHARF_CODEC_FPC>(array, lines, is_trusted, order, got);
        break;
    case WHARF_CODEC_CPACK:
        load_by<WHARF_CODEC_CPACK>(array, lines, is_trusted, order, got);
        break;
    case WHARF_CODEC_BEST:
        load_by<WHARF_CODEC_BEST>(array, lines, is_trusted, order, got);
        break;
    default:
        if (array.shape.type == WHARF_LINE_BF16 && order % 2)
            load_by<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(array, lines, is_trusted, order, got);
        else
            load_by<WHARF_CODEC_PALETTE>(array, lines, is_trusted, order, got);
    }
    return got;
}

std::vector<uint64_t> all_lines(const line_array &array, uint64_t seed)
{
    struct test_random random = {seed + 1};
    std::vector<uint64_t> lines(array.n_lines);
    for (size_t i = 0; i < lines.size(); i++) {
        size_t j = test_random_below(&random, i + 1);
        lines[i] = lines[j];
        lines[j] = i;
    }
    return lines;
}

/* Bad lines are zeros, and the lowest is in the error word. */
void expect_told(const std::vector<uint64_t> &lines, const loaded &got, size_t line_nbytes)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < lines.size(); i++) {
        if (got.ok[i])
            continue;
        lowest = lines[i] < lowest ? lines[i] : lowest;
        for (size_t k = 0; k < line_nbytes; k++)
            cr_assert_eq(got.bytes[i * line_nbytes + k], 0);
    }
    cr_assert_eq(got.error, lowest);
}

/*
 * All lines of a stream that may be damaged, beside the reference: if that takes the stream, all
 * lines are good and its bytes.  If it refuses a line, that line is bad.
 */
void expect_as_reference(uint32_t codec, const uint8_t *stream, size_t nbytes, size_t raw_nbytes,
                         uint64_t seed)
{
    struct test_guard in = test_guard_copy(stream, nbytes, TEST_GUARD_END);
    line_array array;
    int r = open_line_array(&array, in.data, in.data, nbytes, nullptr);
    struct wharf_outcome outcome;
    std::vector<uint8_t> want(raw_nbytes + 1);
    wharf_line_decode_reference(codec, stream, nbytes, want.data(), raw_nbytes, NULL, &outcome);
    if (r == 0 && array.codec == codec && array.n_lines > 0 && array.raw_nbytes <= 2 * raw_nbytes) {
        std::vector<uint64_t> lines = all_lines(array, seed);
        size_t line_nbytes = array.shape.line_nbytes();
        loaded got = load_lines(array, lines, false, (unsigned)seed);
        expect_told(lines, got, line_nbytes);
        if (outcome.result == WHARF_OK) {
            cr_assert_eq(got.error, UINT64_MAX);
            for (size_t i = 0; i < lines.size(); i++)
                for (size_t k = 0, at = lines[i] * line_nbytes;
                     k < line_nbytes && at + k < array.raw_nbytes; k++)
                    cr_assert_eq(got.bytes[i * line_nbytes + k], want[at + k]);
        }
        if (outcome.reason == WHARF_REASON_LINE_CONTENT)
            cr_assert_neq(got.error, UINT64_MAX);
    } else {
        cr_assert(r != 0 || outcome.result != WHARF_OK || array.raw_nbytes == 0);
    }
    test_guard_free(&in);
}

} // namespace

Test(line_load_simt, every_line_of_all_kinds_of_data_by_checked_and_trusted_loads)
{
    static uint8_t raw[9001];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = kind == TEST_LINES_MIXED ? sizeof(raw) : 300 + 700 * ((c + kind) % 3), size;
            test_lines_fill((enum test_lines_kind)kind, c, raw, n);
            uint8_t *stream = test_lines_encode(&choice, raw, n, &size);
            expect_as_reference(choice.codec, stream, size, n, c + kind);

            size_t room = size + LINE_TRUSTED_SLACK_NBYTES;
            struct test_guard in = test_guard_new(room, TEST_GUARD_END);
            memcpy(in.data, stream, size);
            line_array array;
            cr_assert_eq(open_line_array(&array, stream, in.data, size, nullptr), 0);
            cr_assert_eq(array.raw_nbytes, n);
            std::vector<uint64_t> lines = all_lines(array, c);
            loaded got = load_lines(array, lines, true, c + kind);
            for (size_t i = 0; i < lines.size(); i++) {
                size_t at = lines[i] * choice.line_nbytes, left = n - at;
                cr_assert(got.ok[i]);
                cr_assert_eq(memcmp(&got.bytes[i * choice.line_nbytes], raw + at,
                                    left < choice.line_nbytes ? left : choice.line_nbytes),
                             0);
            }
            test_guard_free(&in);
            free(stream);
        }
    }
}

Test(line_load_simt, every_bit_flipped)
{
    static const unsigned choices[] = {0, 7, 14, 20, 25, 34, 45};
    uint8_t raw[300];

    for (unsigned c : choices) {
        struct wharf_line_choice choice = test_lines_choice(c);
        size_t size;
        test_lines_fill(TEST_LINES_MIXED, c, raw, sizeof(raw));
        uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &size);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_as_reference(choice.codec, stream, size, sizeof(raw), bit);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(stream);
    }
}

/* Index, heads and lines of any bytes, and streams that are cut off. */
Test(line_load_simt, forged_and_truncated_streams_are_read_inside_only)
{
    static uint8_t raw[9001];
    struct test_random random = {7};

    for (unsigned i = 0; i < 4 * TEST_LINES_N_CHOICES; i++) {
        struct wharf_line_choice choice = test_lines_choice(i % TEST_LINES_N_CHOICES);
        size_t size, n = i % 2 ? sizeof(raw) : 777;
        test_lines_fill(TEST_LINES_MIXED, i, raw, n);
        uint8_t *stream = test_lines_encode(&choice, raw, n, &size);
        size_t from =
            i % 4 < 2 ? (size_t)WHARF_LINE_HEADER_NBYTES : test_random_below(&random, size);
        for (size_t k = from < 16 ? 16 : from; k < size; k++)
            stream[k] = (uint8_t)test_random_next(&random);
        size_t cut = size - 16 * test_random_below(&random, size / 16);
        expect_as_reference(choice.codec, stream, i % 3 ? size : cut, n, i);
        free(stream);
    }
}

Test(line_load_simt, lines_that_are_not_there)
{
    uint8_t raw[300];
    struct wharf_line_choice choice = {WHARF_CODEC_BDI, 128, WHARF_LINE_PACKED, 0};
    size_t size;
    test_lines_fill(TEST_LINES_BASES, 1, raw, sizeof(raw));
    for (size_t n : {(size_t)0, sizeof(raw)}) {
        uint8_t *stream = test_lines_encode(&choice, raw, n, &size);
        struct test_guard in = test_guard_copy(stream, size, TEST_GUARD_END);
        line_array array;
        cr_assert_eq(open_line_array(&array, in.data, in.data, size, nullptr), 0);
        std::vector<uint64_t> lines = {UINT64_MAX - 1, array.n_lines, 1ull << 40, 32};
        loaded got = load_lines(array, lines, false, 2);
        for (uint8_t ok : got.ok)
            cr_assert_eq(ok, 0);
        expect_told(lines, got, 128);
        test_guard_free(&in);
        free(stream);
    }
}

Test(line_load_simt, streams_that_are_none_are_refused)
{
    alignas(16) uint8_t stream[64] = {1, WHARF_CODEC_BDI, 7, 0, 0, 0, 0, 0, 0, 1};
    line_array array;

    cr_assert_eq(open_line_array(nullptr, stream, stream, 64, nullptr), -EINVAL);
    cr_assert_eq(open_line_array(&array, nullptr, stream, 64, nullptr), -EINVAL);
    cr_assert_eq(open_line_array(&array, stream, stream + 8, 56, nullptr), -EINVAL);
    cr_assert_eq(open_line_array(&array, stream, stream, 15, nullptr), -EBADMSG);
    cr_assert_eq(open_line_array(&array, stream, stream, 32, nullptr), -EBADMSG);
    cr_assert_eq(open_line_array(&array, stream, stream, 48, nullptr), 0);
    for (unsigned at = 1; at < 16; at++) {
        uint8_t kept = stream[at];
        stream[at] = 0xff;
        if (at < 8 || at > 8)
            cr_assert_eq(open_line_array(&array, stream, stream, 64, nullptr), -EBADMSG, "%u", at);
        stream[at] = kept;
    }
    stream[0] = 2;
    cr_assert_eq(open_line_array(&array, stream, stream, 64, nullptr), -EPROTONOSUPPORT);
}
