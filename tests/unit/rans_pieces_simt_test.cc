/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces_simt_test: a rans stream in pieces by many warps has the outcome that one decoder
 * gives, however many pieces there are.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <vector>

#include "kernels/rans/rans_strands.cuh"
extern "C" {
#include "encoders/rans/rans_bits.h"
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

/* Of a block: as many strands a warp as the kernels have, but fewer warps. */
constexpr unsigned WARPS = 3, N_BLOCKS = 2;

/* More than a stream of this file has splits: windows do not overlap. */
constexpr uint32_t MAX_PLACES = 2048;

/* What the kernels do. */
template <rans::lookup KIND, typename Tables, unsigned STRANDS>
void decode_strands(const wharf_rans_stream_job &job, simt::lane_order order, unsigned n_decoders)
{
    using memory = rans::strands_memory<Tables, WARPS, STRANDS>;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        simt::run_block<memory>({order, i}, WARPS, [&](memory &s, unsigned warp) {
            rans::decode_strands<KIND>(s, warp, n_decoders, i, N_BLOCKS, job);
        });
}

void verify_pieces(const wharf_rans_stream_job &job, simt::lane_order order)
{
    using memory = rans::verify_memory<WARPS>;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        simt::run_block<memory>({order, i}, WARPS, [&](memory &s, unsigned warp) {
            rans::verify_pieces(s, warp, i, N_BLOCKS, job);
        });
}

/* The kernel for many pieces, the one for half as many, the one for few, and the one for what they
 * refuse. */
enum class way { many, half, few, verify };
constexpr way WAYS[] = {way::many, way::half, way::few, way::verify};

/* Of models whose tables are in an image. */
void decode_by_image(const wharf_rans_stream_job &job, simt::lane_order order, unsigned n_decoders)
{
    decode_strands<rans::lookup::REGISTERED, rans::image_tables<WARPS, 1>, 1>(job, order,
                                                                              n_decoders);
}

void decode_pieces(const wharf_rans_stream_job &job, way how, simt::lane_order order)
{
    bool is_long = job.layout.n_bits > rans::PACKED_NBITS;
    bool is_of_bytes = job.layout.symbol_nbytes == 1 && job.layout.n_distributions == 1;
    if (how == way::verify)
        for (uint32_t i = 0; i < job.n_pieces; i++)
            job.outcomes[i] = {WHARF_RANS_REFUSED, 0};
    else if (!is_of_bytes)
        decode_by_image(job, order, how == way::few ? WARPS - 1 : WARPS);
    else if (how == way::many && is_long)
        decode_strands<rans::lookup::RANGED, rans::many_tables, 2>(job, order, WARPS);
    else if (how == way::many)
        decode_strands<rans::lookup::SPREAD, rans::many_tables, 2>(job, order, WARPS);
    else if (how == way::half && is_long)
        decode_strands<rans::lookup::RANGED, rans::many_tables, 1>(job, order, WARPS);
    else if (how == way::half)
        decode_strands<rans::lookup::SPREAD, rans::many_tables, 1>(job, order, WARPS);
    else if (is_long)
        decode_strands<rans::lookup::BUCKET, rans::few_tables, 1>(job, order, WARPS - 1);
    else
        decode_strands<rans::lookup::PACKED, rans::few_tables, 1>(job, order, WARPS - 1);
}

/* Strands refuse what is good only where a window ends with a group that is not whole, and symbols
 * of two bytes at an odd address. */
bool may_refuse(const wharf_rans_stream_job &job, const std::vector<wharf_rans_place> &places)
{
    uint32_t n = job.layout.n_splits;
    bool is_odd = reinterpret_cast<uintptr_t>(job.out) % job.layout.symbol_nbytes != 0;
    return is_odd || (n > 1 && places[n - 1].last_group >= job.layout.n_symbols / WARP_LANES);
}

/* The outcome of a stream in at most max_pieces pieces, the output into `out`. */
wharf_outcome decode(const wharf_rans_stream_request &request, uint8_t *out, uint32_t max_pieces,
                     way how, simt::lane_order order)
{
    std::vector<wharf_rans_place> places(MAX_PLACES);
    std::vector<wharf_rans_piece_outcome> outcomes(max_pieces);
    wharf_rans_stream_job job;
    wharf_outcome outcome = {};
    int rc =
        wharf_rans_stream_job_init(&request, max_pieces, places.data(), MAX_PLACES, &job, &outcome);
    cr_assert(rc == 0 || rc == -EILSEQ);
    if (rc < 0)
        return outcome;
    job.in = request.h_in;
    job.model = static_cast<const uint8_t *>(request.h_model);
    job.out = out;
    job.places = places.data();
    job.outcomes = outcomes.data();
    decode_pieces(job, how, order);
    if (!wharf_rans_stream_job_settle(&job, outcomes.data(), &outcome)) {
        verify_pieces(job, order);
        cr_assert(wharf_rans_stream_job_settle(&job, outcomes.data(), &outcome));
        cr_assert(outcome.result != WHARF_OK || how == way::verify || may_refuse(job, places));
    }
    return outcome;
}

/* Whether the outcome is one decoder's, with the image of a registered model or NULL. */
void check(const struct test_rans &rans, const void *image, uint32_t max_pieces,
           simt::lane_order order, const char *what)
{
    size_t in_nbytes = rans.stream_nbytes, out_avail = rans.plain_nbytes;
    struct test_guard source = test_guard_copy(rans.stream, in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    std::vector<uint8_t> want_out(out_avail + 1);
    uint32_t parameter = rans.shape.symbol_nbytes - 1u;
    wharf_outcome want;
    cr_assert_null(test_rans_decode_either(source.data, in_nbytes, parameter, image,
                                           want_out.data(), out_avail, &want));
    for (way how : WAYS) {
        memset(out.data, 0, out_avail);
        wharf_outcome got = decode({source.data, in_nbytes, parameter, image, out_avail}, out.data,
                                   max_pieces, how, order);
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
            check(rans, nullptr, pieces, ORDERS[pieces % 3], "good");
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
            check(rans, nullptr, pieces, ORDERS[i % 3], "damaged");
        test_rans_free(&rans);
    }
}

/* Splits are where decoders that believe them would go astray. */
Test(rans_pieces, a_changed_split_has_the_outcome_of_one_decoder)
{
    const test_rans_plan plans[] = {
        {10, 1, 1, 3000, 6, 100, 10}, {13, 1, 1, 3000, 6, 100, 13}, {12, 2, 16, 2000, 4, 300, 1}};
    for (const test_rans_plan &plan : plans) {
        struct test_rans rans =
            plan.n_distributions > 1 ? test_rans_new_registered(&plan) : test_rans_new(&plan);
        struct wharf_rans_stream parts;
        wharf_outcome outcome;
        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
        cr_assert_eq(parts.body.n_splits, plan.max_splits);
        uint64_t first = 8 * parts.body_at + parts.body.cuts_at;
        uint64_t end = 8 * (uint64_t)(parts.body.words - rans.stream);
        for (uint64_t bit = first; bit < end; bit += 11) {
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check(rans, rans.image, bit % 2 ? 6 : 3, ORDERS[bit % 3], "split");
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        test_rans_free(&rans);
    }
}

/* A stream without its lowest words, such that its last split's first word is number first_word. */
std::vector<uint8_t> cut_words(const struct test_rans &rans, uint32_t first_word)
{
    constexpr uint32_t LEN = 20, START_LEN = 16;
    struct wharf_rans_stream parts;
    wharf_outcome outcome;
    cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
    const wharf_rans_body &body = parts.body;
    wharf_rans_cursor cursor = wharf_rans_first_split(&body);
    std::vector<wharf_rans_split> splits(body.n_splits);
    for (uint32_t i = 1; i < body.n_splits; i++)
        wharf_rans_next_split(&body, &cursor, &splits[i]);

    uint64_t n_cut = (uint64_t)splits.back().first_word - first_word;
    int64_t words_each = (int64_t)((body.n_words - n_cut + body.n_splits - 1) / body.n_splits);
    int64_t groups_each = (body.n_groups + body.n_splits - 1) / body.n_splits;
    std::vector<uint8_t> stream(parts.body_at + WHARF_RANS_STATES_NBYTES + 16 +
                                body.n_splits * (8 + 2 * WHARF_RANS_N_LANES));
    std::copy_n(rans.stream, parts.body_at + WHARF_RANS_STATES_NBYTES, stream.begin());
    wharf_rans_bit_writer writer = {stream.data() + parts.body_at, 8 * WHARF_RANS_STATES_NBYTES};
    wharf_rans_put_bits(&writer, 15, 4);
    wharf_rans_put_bits(&writer, body.n_splits, 16);
    wharf_rans_put_bits(&writer, 31, 5);
    wharf_rans_put_bits(&writer, (uint32_t)body.n_symbols, 32);
    wharf_rans_put_bits(&writer, LEN - 1, 5);
    for (uint32_t i = 1; i < body.n_splits; i++)
        wharf_rans_put_signed(
            &writer,
            splits[i].first_word - (int64_t)n_cut - (int64_t)(body.n_splits - i) * words_each, LEN);
    wharf_rans_put_bits(&writer, LEN - 1, 5);
    for (uint32_t i = 1; i < body.n_splits; i++)
        wharf_rans_put_signed(&writer, (int64_t)splits[i].first_group - (int64_t)i * groups_each,
                              LEN);
    for (uint32_t i = 1; i < body.n_splits; i++) {
        wharf_rans_put_bits(&writer, START_LEN - 1, 4);
        for (uint32_t start : splits[i].start)
            wharf_rans_put_bits(&writer, start - splits[i].first_group, START_LEN);
    }
    stream.resize(parts.body_at + 2 * (writer.at / 16 + 1));
    stream.insert(stream.end(), body.split_states, body.words);
    stream.insert(stream.end(), body.words + 2 * n_cut, body.words + 2 * body.n_words);
    return stream;
}

/* Words can end in the window with which the next piece begins, which no later one shows to who
 * decodes this piece.  The last strand of a warp of two was not asked. */
Test(rans_pieces, words_may_end_in_the_window_at_a_pieces_end)
{
    for (uint32_t n_bits : {10, 13})
        for (uint32_t n_splits : {2, 3, 5})
            for (uint32_t first_word : {0, 9, 30, 31, 100}) {
                struct test_rans_plan plan = {n_bits, 1, 1, 3000, n_splits, 100, first_word};
                struct test_rans rans = test_rans_new(&plan);
                std::vector<uint8_t> cut = cut_words(rans, first_word);
                struct test_rans shorter = rans;
                shorter.stream = cut.data();
                shorter.stream_nbytes = cut.size();
                for (uint32_t pieces = 1; pieces <= n_splits; pieces++)
                    check(shorter, nullptr, pieces, ORDERS[pieces % 3], "cut off");
                test_rans_free(&rans);
            }
}

/* Slots that are nobody's, streams that begin at any byte, and those too short for chains. */
Test(rans_pieces, any_model_and_length_gives_the_same)
{
    for (unsigned i = 0; i < 40; i++) {
        struct test_rans_plan plan = {8 + i % 9, 1, 1, 37 * i * i, 2 + i % 5, 2 + 6 * i, i};
        struct test_rans rans = test_rans_new(&plan);
        check(rans, nullptr, 1 + i % 7, ORDERS[i % 3], "any");
        test_rans_free(&rans);
    }
}

/* ---- registered models ---------------------------------------------------------------------- */

/* By slot, in windows, with indexes and without; of bytes of one distribution as well. */
static const struct test_rans_plan registered_plans[] = {
    {12, 2, 1, 7003, 8, 900, 1},  {16, 2, 1, 7010, 8, 30000, 2}, {12, 2, 16, 7020, 9, 300, 3},
    {14, 2, 64, 7031, 8, 500, 4}, {16, 1, 64, 7001, 8, 256, 5},  {8, 1, 256, 6999, 8, 200, 6},
    {11, 1, 1, 7000, 8, 200, 7},  {16, 1, 1, 7000, 8, 200, 8},   {9, 1, 5, 1000, 4, 4, 9},
};

Test(rans_pieces, registered_models_give_the_same)
{
    for (const test_rans_plan &plan : registered_plans)
        for (uint32_t pieces : {1, 3, 9}) {
            uint32_t n_free = pieces == 3 ? 7 : 0;
            struct test_rans rans = test_rans_new_with_free_slots(&plan, n_free);
            check(rans, rans.image, pieces, ORDERS[pieces % 3], "registered");
            test_rans_free(&rans);
        }
}

Test(rans_pieces, damage_has_the_outcome_of_one_decoder_with_registered_models)
{
    struct test_random random = {8};
    for (unsigned i = 0; i < 72; i++) {
        const test_rans_plan &plan = registered_plans[i % 9];
        struct test_rans rans = test_rans_new_with_free_slots(&plan, i % 2 ? 9 : 0);
        uint64_t limit = i % 4 < 2 ? 8 * rans.stream_nbytes : 2 * rans.stream_nbytes;
        uint64_t bit = test_random_below(&random, limit);
        rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        check(rans, rans.image, 1 + i % 8, ORDERS[i % 3], "damaged");
        test_rans_free(&rans);
    }
}

Test(rans_pieces, symbols_of_two_bytes_may_lie_at_any)
{
    struct test_rans rans = test_rans_new_registered(&registered_plans[0]);
    std::vector<uint8_t> out(rans.plain_nbytes + 2);
    uint8_t *odd = out.data() + 1 + (uintptr_t)out.data() % 2;
    for (way how : WAYS) {
        wharf_outcome got =
            decode({rans.stream, rans.stream_nbytes, 1, rans.image, rans.plain_nbytes}, odd, 8, how,
                   ORDERS[2]);
        cr_assert_eq(got.result, WHARF_OK);
        cr_assert_eq(memcmp(odd, rans.plain, rans.plain_nbytes), 0);
    }
    test_rans_free(&rans);
}

/* The model of another stream, or one too many, or symbols of another size; and models that a block
 * cannot make. */
Test(rans_pieces, models_that_do_not_fit_have_one_outcome)
{
    struct test_rans rans = test_rans_new_registered(&registered_plans[0]);
    struct test_rans other = test_rans_new_registered(&registered_plans[2]);
    struct test_rans brings = test_rans_new(&registered_plans[0]);
    const wharf_rans_stream_request request = {brings.stream, brings.stream_nbytes, 1, nullptr,
                                               brings.plain_nbytes};
    wharf_rans_place place;
    wharf_rans_stream_job job;
    wharf_outcome outcome;
    check(rans, other.image, 1, ORDERS[0], "another's");
    check(brings, other.image, 1, ORDERS[0], "one too many");
    cr_assert_eq(wharf_rans_stream_job_init(&request, 1, &place, 1, &job, &outcome), -ENOTSUP);
    brings.shape.symbol_nbytes = 1;
    check(brings, nullptr, 1, ORDERS[0], "another size");
    test_rans_free(&rans);
    test_rans_free(&other);
    test_rans_free(&brings);
}

Test(rans_pieces, too_few_places_are_said)
{
    struct test_rans_plan plan = {11, 1, 1, 6000, 12, 200, 1};
    struct test_rans rans = test_rans_new(&plan);
    std::vector<wharf_rans_place> places(12);
    wharf_rans_stream_job job;
    wharf_outcome outcome;
    const wharf_rans_stream_request request = {rans.stream, rans.stream_nbytes, 0, nullptr,
                                               rans.plain_nbytes};
    cr_assert_eq(wharf_rans_stream_job_init(&request, 4, places.data(), 11, &job, &outcome),
                 -ENOBUFS);
    cr_assert_eq(job.layout.n_splits, 12);
    cr_assert_eq(wharf_rans_stream_job_init(&request, 4, places.data(), 12, &job, &outcome), 0);
    cr_assert_eq(job.n_pieces, 4);
    test_rans_free(&rans);
}
