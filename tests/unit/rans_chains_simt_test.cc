/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_chains_simt_test: a chunk of rans by several decoders of one warp has the outcome that one
 * decoder gives, and what is good they do themselves.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <vector>

#include "kernels/rans/rans_decode.cuh"
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

/* As far as chains go alone: none is looked for of a stream that no chains are for. */
template <rans::lookup KIND>
bool chains_refuse(const rans::stream &in, const rans::model &m, rans_shared &s,
                   const chunk_job &job)
{
    rans::watcher watch;
    rans::walk w;
    if (!rans::has_chains<KIND>(in, m, job.out))
        return false;
    watch.init(job.step_budget, job.stop);
    return rans::walk_by_chains<KIND>(in, m, s, job, watch, w) != WHARF_REASON_NONE;
}

/* Of a stream that is good.  Not inlined things of the decoder are called in its order. */
bool refused(rans_shared &s, const chunk_job &job)
{
    rans::stream in;
    rans::model m;
    uint32_t at;
    shared_ref<rans_shared> memory;
    memory.init(s);
    if (rans::parse(in, job, at) != WHARF_REASON_NONE || !rans::prepare_model(in, memory, job, m))
        return true;
    switch (m.kind) {
    case rans::lookup::PACKED:
        return chains_refuse<rans::lookup::PACKED>(in, m, s, job);
    case rans::lookup::BUCKET:
        return chains_refuse<rans::lookup::BUCKET>(in, m, s, job);
    case rans::lookup::REGISTERED:
        return chains_refuse<rans::lookup::REGISTERED>(in, m, s, job);
    default:
        return false;
    }
}

/* Whether the outcome is one decoder's, with the image of a registered model or none. */
void check(const struct test_rans &rans, bool is_whole, simt::lane_order order, const char *what)
{
    const uint8_t *image = static_cast<const uint8_t *>(rans.image);
    size_t in_nbytes = rans.stream_nbytes, out_avail = rans.plain_nbytes;
    struct test_guard source = test_guard_copy(rans.stream, in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    std::vector<uint8_t> want_out(out_avail + 1), scratch(RANS_SCRATCH_NBYTES + 256);
    uint32_t parameter = rans.shape.symbol_nbytes - 1u;
    wharf_outcome want;
    cr_assert_null(test_rans_decode_either(source.data, in_nbytes, parameter, image,
                                           want_out.data(), out_avail, &want));
    chunk_job job = {source.data,
                     (uint32_t)in_nbytes,
                     out.data,
                     (uint32_t)out_avail,
                     parameter,
                     image,
                     scratch.data() + 256 - reinterpret_cast<uintptr_t>(scratch.data()) % 256,
                     step_budget((uint32_t)in_nbytes, (uint32_t)out_avail),
                     {}};
    wharf_outcome got = {};
    simt::run_warp<rans_shared>({order, 1}, [&](rans_shared &s) {
        verdict v = rans_decode(s, job);
        if (lane_id() == 0)
            got = {v.result, v.reason, v.bit_offset, v.in_nbytes, v.out_nbytes};
    });
    cr_assert(test_outcome_same(&got, &want), "%s: %s; not %s", what, test_outcome_text(&got).text,
              test_outcome_text(&want).text);
    cr_assert(want.result != WHARF_OK || memcmp(out.data, want_out.data(), want.out_nbytes) == 0,
              "%s", what);
    if (want.result == WHARF_OK && is_whole)
        simt::run_warp<rans_shared>({order, 2}, [&](rans_shared &s) {
            bool is_refused = refused(s, job);
            cr_assert(!is_refused, "%s: chains refuse what is good", what);
        });
    test_guard_free(&source);
    test_guard_free(&out);
}

/* Bytes of few and of many slots, symbols of two bytes, several distributions: with registered
 * models where chains are for no others. */
const struct test_rans_plan plans[] = {
    {11, 1, 1, 9600, 4, 200, 1}, {11, 1, 1, 9601, 9, 3, 2},   {8, 1, 1, 9632, 5, 60, 3},
    {14, 1, 1, 9700, 4, 250, 4}, {12, 2, 1, 9600, 4, 900, 5}, {12, 2, 16, 9633, 6, 300, 6},
};

struct test_rans new_stream(const struct test_rans_plan &plan)
{
    bool is_of_bytes = plan.symbol_nbytes == 1 && plan.n_distributions == 1;
    return is_of_bytes ? test_rans_new(&plan) : test_rans_new_registered(&plan);
}

} // namespace

Test(rans_chains, good_streams_are_not_refused)
{
    for (unsigned i = 0; i < 60; i++) {
        struct test_rans_plan plan = plans[i % 6];
        plan.n_symbols += 7 * i;
        plan.max_splits = 4 + i % 11;
        plan.seed = i;
        struct test_rans rans = new_stream(plan);
        check(rans, true, ORDERS[i % 3], "good");
        test_rans_free(&rans);
    }
}

/* Those that are at their ends long before the others, wherever that is. */
Test(rans_chains, chains_of_any_length_end_together)
{
    for (uint32_t first : {1, 3, 7, 9})
        for (const test_rans_plan &of : plans) {
            struct test_rans_plan plan = of;
            plan.max_splits = 14;
            struct test_rans rans = new_stream(plan);
            test_rans_drop_splits(&rans, first, 4);
            check(rans, true, ORDERS[first % 3], "dropped");
            test_rans_free(&rans);
        }
}

/* Splits are where decoders that believe them would go astray. */
Test(rans_chains, a_changed_split_has_the_outcome_of_one_decoder)
{
    for (const test_rans_plan &plan : plans) {
        struct test_rans rans = new_stream(plan);
        struct wharf_rans_stream parts;
        wharf_outcome outcome;
        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
        uint64_t first = 8 * parts.body_at + parts.body.cuts_at;
        uint64_t end = 8 * (uint64_t)(parts.body.words - rans.stream);
        for (uint64_t bit = first; bit < end; bit += 13) {
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check(rans, false, ORDERS[bit % 3], "split");
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        test_rans_free(&rans);
    }
}

Test(rans_chains, damage_has_the_outcome_of_one_decoder)
{
    struct test_random random = {11};
    for (unsigned i = 0; i < 200; i++) {
        struct test_rans_plan plan = plans[i % 6];
        plan.n_symbols = 2000 + i;
        plan.seed = i;
        struct test_rans rans = new_stream(plan);
        for (unsigned k = 0; k <= i % 3; k++) {
            uint64_t bit = test_random_below(&random, 8 * rans.stream_nbytes);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        check(rans, false, ORDERS[i % 3], "damaged");
        test_rans_free(&rans);
    }
}
