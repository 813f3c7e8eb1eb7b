/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_stop_simt_test: a rans stream with many splits is stopped soon while their fields are read.
 * Looks at the stop word are counted, and collectives between two of them.
 */
#include <criterion/criterion.h>

#include <algorithm>
#include <vector>

#include "kernels/warp.cuh"
namespace wharf
{
uint64_t load_counted(const uint64_t *at);
}
/* Where decoders look at the stop word: only lane 0 does. */
#define load_shared_by_device load_counted
#include "kernels/rans/rans_part.cuh"
#undef load_shared_by_device
extern "C" {
#include "encoders/rans/rans_stream.h"
#include "tests/lib/test_rans.h"
}

using namespace wharf;

/* Whether a decode is stopped: at its n-th look, 0: never. */
static uint64_t n_looks, stops_at;

uint64_t wharf::load_counted(const uint64_t *at)
{
    return ++n_looks == stops_at ? *at : 0;
}

namespace
{

/* Splits between two looks at most, and collectives that one takes at most. */
constexpr uint32_t MOST_SPLITS = 256, MOST_COLLECTIVES = 8;
const uint64_t STOP = 7;

struct fixture {
    struct test_rans rans;
    uint32_t n_splits;
    std::vector<uint8_t> out, scratch;
    chunk_job job;

    fixture()
    {
        static const struct test_rans_plan plan = {11, 1, 1, 1 << 19, 1500, 200, 1};
        struct wharf_rans_stream parts;
        wharf_outcome outcome;
        rans = test_rans_new(&plan);
        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &parts, &outcome));
        n_splits = parts.body.n_splits;
        /* Several looks.  A run for each of them takes time by the square of their number. */
        cr_assert_gt(n_splits, 5 * MOST_SPLITS);
        out.resize(rans.plain_nbytes);
        scratch.resize(RANS_SCRATCH_NBYTES + 256);
        uint32_t in_nbytes = (uint32_t)rans.stream_nbytes, out_avail = (uint32_t)rans.plain_nbytes;
        job = {rans.stream,
               in_nbytes,
               out.data(),
               out_avail,
               0,
               nullptr,
               scratch.data() + 256 - reinterpret_cast<uintptr_t>(scratch.data()) % 256,
               step_budget(in_nbytes, out_avail),
               {&STOP, STOP}};
    }
    ~fixture() { test_rans_free(&rans); }
};

/* What a routine makes of the stream once it is parsed, or parsing itself. */
using routine = uint32_t(const rans::stream &in, const chunk_job &job, uint32_t n_splits);

uint32_t only_parse(const rans::stream &, const chunk_job &, uint32_t)
{
    return WHARF_REASON_NONE;
}

uint32_t find_last(const rans::stream &in, const chunk_job &job, uint32_t n_splits)
{
    uint32_t at;
    return rans::find_starts(in, n_splits - 1, job.stop, at) ? (uint32_t)WHARF_REASON_NONE
                                                             : rans::STOPPED;
}

uint32_t take_all(const rans::stream &in, const chunk_job &job, uint32_t n_splits)
{
    rans::stretch of;
    return rans::take_splits(in, 0, n_splits, job.stop, of);
}

/* Returns the reason; and the collectives. */
uint32_t run(const fixture &f, routine *then, uint64_t stop, uint64_t &ret_n_collectives)
{
    uint32_t reason = 0;
    n_looks = 0;
    stops_at = stop;
    ret_n_collectives = simt::run_warp<rans_shared>({}, [&](rans_shared &) {
        rans::stream in;
        uint32_t at;
        uint32_t r = rans::parse(in, f.job, at);
        if (r == WHARF_REASON_NONE)
            r = then(in, f.job, f.n_splits);
        if (lane_id() == 0)
            reason = r;
    });
    return reason;
}

/* At each look it ends, there are looks enough, and none is far from the one before. */
void check(routine *then, unsigned n_passes)
{
    fixture f;
    uint64_t n_all, n_before = 0, n;
    cr_assert_eq(run(f, then, 0, n_all), WHARF_REASON_NONE);
    uint64_t n_needed = n_looks;
    cr_assert_geq(n_needed, (uint64_t)n_passes * ((f.n_splits - 1) / MOST_SPLITS - 1));
    for (uint64_t look = 1; look <= n_needed; look++) {
        cr_assert_eq(run(f, then, look, n), rans::STOPPED, "look %u", (unsigned)look);
        cr_assert_eq(n_looks, look, "it goes on");
        cr_assert_leq(n - n_before, MOST_SPLITS * MOST_COLLECTIVES, "look %u", (unsigned)look);
        n_before = n;
    }
    cr_assert_leq(n_all - n_before, MOST_SPLITS * MOST_COLLECTIVES, "the last look");
}

} // namespace

/* Where the starts of each are, and then rule 4. */
Test(rans_stop, is_soon_while_fields_are_read)
{
    check(only_parse, 2);
}

/* A part looks for its first split, and checks its own. */
Test(rans_stop, is_soon_while_a_part_looks_for_its_splits)
{
    check(find_last, 3);
    check(take_all, 3);
}

/* The verdict is that of any stopped decode. */
Test(rans_stop, ends_the_chunk_as_stopped)
{
    fixture f;
    uint64_t n;
    run(f, only_parse, 0, n);
    for (uint64_t look : {(uint64_t)1, n_looks / 2, n_looks}) {
        verdict v = {};
        n_looks = 0;
        stops_at = look;
        simt::run_warp<rans_shared>({simt::lane_order::descending, 1}, [&](rans_shared &s) {
            verdict own = rans_decode(s, f.job);
            if (lane_id() == 0)
                v = own;
        });
        verdict want = stopped();
        cr_assert_eq(v.result, want.result);
        cr_assert_eq(v.reason, want.reason);
        cr_assert_eq(n_looks, look);
    }
}

/* Behind a window the next split's fields are read.  Looks were as rare as where groups go fast:
 * one for a hundred splits. */
Test(rans_stop, is_soon_while_windows_are_passed)
{
    constexpr uint32_t MOST_WINDOWS = 32;
    fixture f;
    uint64_t n;
    run(f, only_parse, 0, n);
    uint64_t n_to_parse = n_looks;
    n_looks = stops_at = 0;
    simt::run_warp<rans_shared>({}, [&](rans_shared &s) { rans_decode(s, f.job); });
    cr_assert_geq(n_looks - n_to_parse, (uint64_t)f.n_splits / MOST_WINDOWS);
}
