/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoders of lines on the device: the bytes that the CPU's encoder gives, of all kinds of data, in
 * all shapes, from any alignment, in all orders of the lanes.
 */
#include <criterion/criterion.h>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
}
#include "kernels/line/line_encode.cuh"

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

template <uint32_t CODEC, uint32_t TYPE = WHARF_LINE_BF16>
uint32_t encode(const line_encode_job &job, unsigned order)
{
    using shared = line_encode_shared<CODEC, TYPE>;
    uint32_t nbytes = 0;
    simt::run_warp<shared>({ORDERS[order % 3], order}, [&](shared &s) {
        uint32_t n = line_encode<CODEC, TYPE>(s, job);
        if (lane_id() == 7)
            nbytes = n;
    });
    return nbytes;
}

uint32_t encode_palette(uint32_t type, const line_encode_job &job, unsigned order)
{
    switch (type) {
    case WHARF_LINE_BF16:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(job, order);
    case WHARF_LINE_F16:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_F16>(job, order);
    case WHARF_LINE_E4M3:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_E4M3>(job, order);
    default:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_E5M2>(job, order);
    }
}

uint32_t encode_as(const struct wharf_line_choice *choice, const line_encode_job &job,
                   unsigned order)
{
    switch (choice->codec) {
    case WHARF_CODEC_BDI:
        return encode<WHARF_CODEC_BDI>(job, order);
    case WHARF_CODEC_FPC:
        return encode<WHARF_CODEC_FPC>(job, order);
    case WHARF_CODEC_CPACK:
        return encode<WHARF_CODEC_CPACK>(job, order);
    case WHARF_CODEC_BEST:
        return encode<WHARF_CODEC_BEST>(job, order);
    default:
        return encode_palette(choice->type, job, order);
    }
}

/* Into exactly what it takes, and into a byte less. */
void expect_same(const struct wharf_line_choice *choice, const uint8_t *raw, size_t n,
                 unsigned order)
{
    size_t nbytes;
    uint8_t *want = test_lines_encode(choice, raw, n, &nbytes);
    struct test_guard in = test_guard_copy(raw, n, TEST_GUARD_END);
    struct test_guard out = test_guard_new((nbytes + 15) / 16 * 16, TEST_GUARD_END);
    line_encode_job job = {in.data,
                           (uint32_t)n,
                           out.data,
                           (uint32_t)nbytes,
                           choice->line_nbytes == 128  ? 7u
                           : choice->line_nbytes == 64 ? 6u
                                                       : 5u,
                           choice->layout};

    cr_assert_eq(encode_as(choice, job, order), nbytes, "codec %u, lines of %u: size",
                 choice->codec, choice->line_nbytes);
    for (size_t i = 0; i < nbytes; i++)
        cr_assert_eq(out.data[i], want[i], "codec %u, lines of %u: byte %zu is %x, not %x",
                     choice->codec, choice->line_nbytes, i, out.data[i], want[i]);
    job.out_avail--;
    cr_assert_eq(encode_as(choice, job, order), 0);
    test_guard_free(&out);
    test_guard_free(&in);
    free(want);
}

} // namespace

Test(line_encode_simt, bytes_are_those_of_the_processor)
{
    static const size_t sizes[] = {9001, 0, 1, 33, 128, 4095, 4096, 5000};
    static uint8_t raw[9001];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = kind == TEST_LINES_MIXED ? sizeof(raw) : sizes[(c + kind) % 8];
            test_lines_fill((enum test_lines_kind)kind, c, raw, n);
            expect_same(&choice, raw, n, c + kind);
        }
    }
}
