/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces_simt_test: a rans stream in pieces by many warps has the outcome that one decoder
 * gives, however many pieces there are.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <vector>

#include "kernels/rans/rans_pieces.cuh"
extern "C" {
#include "encoders/rans/rans_stream.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

/* Of a block: as many chains a warp as the kernel has, but fewer warps. */
constexpr unsigned WARPS = 3, CHAINS = 2, N_BLOCKS = 2;

/* What the kernels do. */
template <rans::lookup KIND>
void decode_by_chains(const wharf_rans_stream_job &job, simt::lane_order order)
{
    using memory = rans::chains_memory<WARPS, CHAINS>;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        simt::run_block<memory>({order, i}, WARPS, [&](memory &s, unsigned warp) {
            rans::decode_by_chains<KIND>(s, warp, i, N_BLOCKS, job);
        });
}

void decode_by_warps(const wharf_rans_stream_job &job, simt::lane_order order)
{
    using memory = rans::warps_memory<WARPS>;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        simt::run_block<memory>({order, i}, WARPS, [&](memory &s, unsigned warp) {
            rans::decode_by_warps(s, warp, i, N_BLOCKS, job);
        });
}

void decode_pieces(const wharf_rans_stream_job &job, bool by_warps, simt::lane_order order)
{
    if (by_warps)
        decode_by_warps(job, order);
    else if (job.layout.n_bits > rans::PACKED_NBITS)
        decode_by_chains<rans::lookup::RANGED>(job, order);
    else
        decode_by_chains<rans::lookup::SPREAD>(job, order);
}

/* The outcome of a stream in at most max_pieces pieces, the output into `out`. */
wharf_outcome decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                     uint32_t max_pieces, bool by_warps, simt::lane_order order)
{
    std::vector<wharf_rans_piece> pieces(max_pieces);
    std::vector<wharf_rans_piece_outcome> outcomes(max_pieces);
    wharf_rans_stream_job job;
    wharf_outcome outcome = {};
    int rc = wharf_rans_stream_job_init(in, in_nbytes, out_avail, max_pieces, pieces.data(), &job,
                                        &outcome);
    if (rc == 0) {
        job.in = in;
        job.out = out;
        job.pieces = pieces.data();
        job.outcomes = outcomes.data();
        decode_pieces(job, by_warps, order);
        wharf_rans_stream_job_settle(&job, outcomes.data(), &outcome);
    } else if (rc == -ENOTSUP) {
        outcome.result = WHARF_UNSUPPORTED;
    }
    return outcome;
}

/* Whether the outcome is one decoder's; streams that cannot be decoded so (symbols of two bytes
 * by a flipped bit) do not count. */
void check(const uint8_t *in, size_t in_nbytes, size_t out_avail, uint32_t max_pieces,
           simt::lane_order order, const char *what)
{
    struct test_guard source = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    std::vector<uint8_t> want_out(out_avail + 1);
    wharf_outcome want;
    cr_assert(!test_rans_decode_all(source.data, in_nbytes, 0, want_out.data(), out_avail, &want));
    for (bool by_warps : {false, true}) {
        memset(out.data, 0, out_avail);
        wharf_outcome got =
            decode(source.data, in_nbytes, out.data, out_avail, max_pieces, by_warps, order);
        if (got.result == WHARF_UNSUPPORTED)
            continue;
        cr_assert(test_outcome_same(&got, &want), "%s: %s; not %s", what,
                  test_outcome_text(&got).text, test_outcome_text(&want).text);
        cr_assert(want.result != WHARF_OK ||
                  memcmp(out.data, want_out.data(), want.out_nbytes) == 0);
    }
    test_guard_free(&source);
    test_guard_free(&out);
}

} // namespace

Test(rans_pieces, every_number_of_pieces_gives_the_same)
{
    for (uint32_t n_bits = 8; n_bits <= 16; n_bits++) {
        struct test_rans_plan plan = {n_bits, 1, 1, 6000 + n_bits, 12, 200, n_bits};
        struct test_rans rans = test_rans_new(&plan);
        for (uint32_t pieces : {1, 2, 5, 12, 40})
            check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, pieces, ORDERS[pieces % 3],
                  "good");
        test_rans_free(&rans);
    }
}

Test(rans_pieces, damage_has_the_outcome_of_one_decoder)
{
    struct test_random random = {7};
    for (unsigned i = 0; i < 250; i++) {
        struct test_rans_plan plan = {8 + i % 9, 1, 1, 1500, 5, 1 + i % 200, i};
        struct test_rans rans = test_rans_new(&plan);
        uint64_t limit = i % 2 ? 8 * rans.stream_nbytes : 3 * rans.stream_nbytes;
        for (unsigned k = 0; k <= i % 3; k++) {
            uint64_t bit = test_random_below(&random, limit);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (uint32_t pieces : {1, 5})
            check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, pieces, ORDERS[i % 3],
                  "damaged");
        test_rans_free(&rans);
    }
}

/* Splits are where decoders that believe them would go astray. */
Test(rans_pieces, a_changed_split_has_the_outcome_of_one_decoder)
{
    for (uint32_t n_bits : {10, 13}) {
        struct test_rans_plan plan = {n_bits, 1, 1, 3000, 6, 100, n_bits};
        struct test_rans rans = test_rans_new(&plan);
        struct wharf_rans_stream parts;
        wharf_outcome outcome;
        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
        cr_assert_eq(parts.body.n_splits, 6);
        uint64_t first = 8 * parts.body_at + parts.body.cuts_at;
        uint64_t end = 8 * (uint64_t)(parts.body.words - rans.stream);
        for (uint64_t bit = first; bit < end; bit += 11) {
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, bit % 2 ? 6 : 3,
                  ORDERS[bit % 3], "split");
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        test_rans_free(&rans);
    }
}

/* Slots that are nobody's, streams that begin at any byte, and those too short for chains. */
Test(rans_pieces, any_model_and_length_gives_the_same)
{
    for (unsigned i = 0; i < 40; i++) {
        struct test_rans_plan plan = {8 + i % 9, 1, 1, 37 * i * i, 2 + i % 5, 2 + 6 * i, i};
        struct test_rans rans = test_rans_new(&plan);
        check(rans.stream, rans.stream_nbytes, rans.plain_nbytes, 1 + i % 7, ORDERS[i % 3], "any");
        test_rans_free(&rans);
    }
}
