/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_stream_test: writing a chunk's output, in all lane orders, into destinations that end at
 * a page which cannot be touched, at every alignment, against byte-by-byte definitions.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "kernels/output_stream.cuh"
extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};
constexpr uint32_t MOST = 3000;

struct nothing {
};

/*
 * A destination of `room` bytes behind `before` random ones that are already written, the whole
 * aligned as its size makes it (its end is the guard) or by `skew` from a page's start.
 */
struct destination {
    struct test_guard guard;
    uint8_t *out;
    uint32_t before, avail;
    uint8_t want[2 * MOST];

    destination(uint32_t before_nbytes, uint32_t room, int skew)
        : before(before_nbytes), avail(before_nbytes + room)
    {
        guard = skew < 0 ? test_guard_new(avail, TEST_GUARD_END)
                         : test_guard_new((size_t)skew + avail, TEST_GUARD_START);
        out = guard.data + (skew < 0 ? 0 : skew);
        struct test_random random = {before_nbytes + room};
        test_random_fill(&random, out, before);
        memcpy(want, out, before);
        memset(want + before, 0xa5, room); /* what test_guard_new fills with */
    }
    ~destination() { test_guard_free(&guard); }

    output_stream stream() const { return {out, avail, before}; }
    void check(const char *what) const
    {
        for (uint32_t i = 0; i < avail; i++)
            cr_assert(out[i] == want[i], "%s: byte %u of %u is %02x, expected %02x", what, i, avail,
                      out[i], want[i]);
    }
};

template <typename F>
void run(simt::lane_order order, const F &f)
{
    simt::run_warp<nothing>({order, 3}, [&](nothing &) { f(); });
}

void check_match(uint32_t before, uint32_t distance, uint32_t length, uint32_t room, int skew,
                 simt::lane_order order)
{
    destination d(before, room, skew);
    for (uint32_t i = 0; i < length; i++)
        d.want[before + i] = d.want[before + i - distance];
    run(order, [&] {
        output_stream s = d.stream();
        cr_assert(s.copy_match(distance, length));
        cr_assert(s.position == before + length);
    });
    d.check("copy_match");
}

template <typename T>
void check_run(uint32_t before, T first, T delta, uint32_t n, int skew, simt::lane_order order)
{
    destination d(before, n * (uint32_t)sizeof(T), skew);
    for (uint32_t i = 0; i < n; i++) {
        T v = (T)(first + (uint64_t)i * delta);
        memcpy(d.want + before + i * sizeof(T), &v, sizeof(T));
    }
    run(order, [&] {
        output_stream s = d.stream();
        cr_assert(s.write_run<T>(first, delta, n));
        cr_assert(s.position == before + n * sizeof(T));
    });
    d.check("write_run");
}

} // namespace

Test(output_stream, bytes_go_out_one_by_one_and_a_lane_each)
{
    for (simt::lane_order order : ORDERS) {
        destination d(5, 42, -1);
        d.want[5] = 'x';
        for (uint32_t i = 0; i < 32; i++)
            d.want[6 + i] = (uint8_t)i;
        for (uint32_t i = 0; i < 9; i++)
            d.want[38 + i] = (uint8_t)(100 + i);
        run(order, [&] {
            output_stream s = d.stream();
            cr_assert(s.write_byte('x'));
            cr_assert(s.write_bytes((uint8_t)lane_id(), 32));
            cr_assert(s.write_bytes((uint8_t)(100 + lane_id()), 9));
            cr_assert(s.write_bytes(0, 0));
            cr_assert(s.room() == 0);
            cr_assert(!s.write_byte('y'));
            cr_assert(!s.write_bytes(0, 1));
            cr_assert(s.position == 47);
        });
        d.check("bytes");
    }
}

Test(output_stream, runs_of_every_width_fill_every_alignment)
{
    for (simt::lane_order order : ORDERS)
        for (int skew = -1; skew < 16; skew++)
            for (uint32_t n : {0u, 1u, 7u, 40u, 333u}) {
                check_run<uint8_t>(3, 250, 7, n, skew, order);
                check_run<uint16_t>(2, 65500, 3, n, skew, order);
                check_run<uint32_t>(1, 5, 0, n, skew, order);
                check_run<uint64_t>(0, ~0ull, 1ull << 40, n, skew, order);
                check_run<uint64_t>(8, 1ull << 63, ~2ull, n, skew, order);
            }
}

Test(output_stream, matches_of_every_kind_copy_as_byte_by_byte)
{
    static const uint32_t distances[] = {1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 64, 100, 257, 700};
    static const uint32_t lengths[] = {0, 1, 3, 31, 32, 33, 34, 63, 130, 258, 901};
    uint32_t i = 0;
    for (uint32_t distance : distances)
        for (uint32_t length : lengths)
            for (int skew = -1; skew < 4; skew++, i++) {
                /* From the first byte on, and from further back; with room behind and without. */
                check_match(distance, distance, length, length, skew, ORDERS[i % 3]);
                check_match(distance + 9, distance, length, length + i % 9, skew,
                            ORDERS[(i + 1) % 3]);
            }
}

/* An offset times a distance must not overflow fast_modulo: long repeats go in pieces. */
Test(output_stream, long_repeats_stay_periodic)
{
    for (uint32_t distance : {2u, 3u, 1000u, 65535u, 65536u, 70000u}) {
        uint32_t avail = distance + 300000;
        struct test_guard guard = test_guard_new(avail, TEST_GUARD_END);
        struct test_random random = {distance};
        test_random_fill(&random, guard.data, distance);
        run(simt::lane_order::random, [&] {
            output_stream s = {guard.data, avail, distance};
            cr_assert(s.copy_match(distance, 300000));
        });
        for (uint32_t i = distance; i < avail; i++)
            cr_assert(guard.data[i] == guard.data[i - distance], "distance %u, byte %u", distance,
                      i);
        test_guard_free(&guard);
    }
}

/* Each lane's bytes are other lanes' sources right afterwards. */
Test(output_stream, writes_one_behind_the_other_see_each_other)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        destination d(0, MOST, (int)seed % 5 - 1);
        uint32_t n = 0;
        run(ORDERS[seed % 3], [&] {
            output_stream s = d.stream();
            struct test_random random = {seed}; /* the same choices in all lanes */
            while (s.room() > 300) {
                uint32_t before = s.position;
                uint32_t length = 1 + (uint32_t)test_random_below(&random, 60);
                uint32_t distance = 1 + (uint32_t)test_random_below(&random, 40);
                bool match = before >= distance && test_random_below(&random, 3);
                if (match)
                    cr_assert(s.copy_match(distance, length));
                else
                    cr_assert(s.write_bytes((uint8_t)(before + lane_id()), length % 33));
                if (lane_id() == 0)
                    for (; n < s.position; n++)
                        d.want[n] = match ? d.want[n - distance] : (uint8_t)n;
            }
        });
        d.check("sequence");
    }
}

Test(output_stream, match_that_does_not_fit_or_reaches_too_far_writes_nothing)
{
    destination d(100, 50, -1);
    run(simt::lane_order::random, [&] {
        output_stream s = d.stream();
        cr_assert(!s.copy_match(10, 51));
        cr_assert(!s.copy_match(101, 5));
        cr_assert(!s.copy_match(0, 5));
        cr_assert(!s.copy_match(~0u, 5));
        cr_assert(!s.copy_match(10, ~0u));
        cr_assert(!s.write_run<uint16_t>(1, 1, 26));
        cr_assert(s.position == 100);
    });
    d.check("refused");
}

Test(output_stream, input_is_copied_from_every_alignment_to_every_alignment)
{
    uint8_t bytes[700];
    struct test_random random = {9};
    test_random_fill(&random, bytes, sizeof(bytes));
    for (uint32_t n : {0u, 1u, 15u, 40u, 700u}) {
        struct test_guard in = test_guard_copy(bytes, n, TEST_GUARD_END);
        for (int skew = 0; skew < 16; skew++) {
            uint32_t at = n < 16 ? 0 : (uint32_t)skew;
            destination d(7, n - at + 1, skew * 7 % 16);
            memcpy(d.want + 7, bytes + at, n - at);
            run(ORDERS[skew % 3], [&] {
                input_source source;
                source.init(in.data, n);
                output_stream s = d.stream();
                cr_assert(s.copy_input(source, at, n - at));
                cr_assert(s.room() == 1);
                cr_assert(!s.copy_input(source, 0, n < 2 ? 2 : n));
            });
            d.check("copy_input");
        }
        test_guard_free(&in);
    }
}

Test(output_stream, fast_modulo_is_modulo)
{
    for (uint32_t d : {2u, 3u, 7u, 64u, 255u, 4097u, 65535u}) {
        fast_modulo m;
        m.init(d);
        for (uint32_t x = 0; x < 65536; x++)
            cr_assert(m.of(x) == x % d, "%u mod %u", x, d);
    }
}
