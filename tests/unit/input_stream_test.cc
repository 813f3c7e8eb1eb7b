/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_stream_test: reading a chunk's bits, by each of the streams, in all lane orders, from
 * inputs that end at a page which cannot be read and begin at every alignment.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "kernels/input_stream.cuh"
extern "C" {
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
}

using namespace wharf;

namespace
{

constexpr simt::lane_order ORDERS[] = {simt::lane_order::ascending, simt::lane_order::descending,
                                       simt::lane_order::random};

/* n bits (at most 64) from bit `at` on, zero past the end: the definition. */
uint64_t plain_bits(const uint8_t *in, uint32_t in_nbytes, uint64_t at, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t bit = at + i;
        if (bit < 8ull * in_nbytes)
            v |= (uint64_t)(in[bit / 8] >> bit % 8 & 1) << i;
    }
    return v;
}

/* Calls f(in, in_nbytes) for inputs of many sizes between guards, at 17 alignments each. */
template <typename F>
void with_inputs(const F &f)
{
    static const uint32_t sizes[] = {0, 1, 3, 4, 15, 16, 17, 127, 128, 129, 511, 512, 600, 1500};
    struct test_random random = {11};
    for (uint32_t nbytes : sizes) {
        uint8_t bytes[1500];
        test_random_fill(&random, bytes, nbytes);
        /* Ends at a guard page: its start takes the alignment that its size gives. */
        struct test_guard end = test_guard_copy(bytes, nbytes, TEST_GUARD_END);
        f(end.data, nbytes);
        test_guard_free(&end);
        for (uint32_t skew = 0; skew < 16; skew++) {
            /* Neighbours are all ones, so that a bit from outside shows. */
            struct test_guard start = test_guard_new(skew + nbytes + 40, TEST_GUARD_START);
            memset(start.data, 0xff, start.nbytes);
            memcpy(start.data + skew, bytes, nbytes);
            f(start.data + skew, nbytes);
            test_guard_free(&start);
        }
    }
}

template <typename Shared, typename F>
void run_in_all_orders(const F &f)
{
    for (simt::lane_order order : ORDERS)
        simt::run_warp<Shared>({order, 5}, f);
}

/* The widths of the fields that a stream is read in. */
unsigned width_of(uint32_t i)
{
    return (i * 7 + i / 5) % 33;
}

template <typename Stream>
void check_fields(Stream &stream, const uint8_t *in, uint32_t in_nbytes)
{
    uint32_t at = 0;
    for (uint32_t i = 0; at < 8 * in_nbytes + 200; i++) {
        unsigned n = width_of(i);
        uint32_t left = at < 8 * in_nbytes ? 8 * in_nbytes - at : 0;
        cr_assert(stream.bit_position() == at);
        cr_assert(stream.bits_left() == left);
        stream.ensure(n);
        cr_assert(stream.peek_bits(n) == plain_bits(in, in_nbytes, at, n), "peek of %u at %u", n,
                  at);
        cr_assert(stream.fetch_bits(n) == plain_bits(in, in_nbytes, at, n), "fetch of %u at %u", n,
                  at);
        at += n;
    }
}

struct nothing {
};

} // namespace

Test(input_source, words_outside_the_input_are_zero)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<nothing>([=](nothing &) {
            input_source source;
            source.init(in, in_nbytes);
            uint32_t begin = (uint32_t)(reinterpret_cast<uintptr_t>(in) & 15);
            for (uint32_t i = lane_id(); i < in_nbytes / 4 + 40; i += 32) {
                /* The word's bits before the input, as plain_bits counts them, are not there. */
                uint64_t want = 4 * i + 4 <= begin ? 0
                                : 4 * i < begin
                                    ? plain_bits(in, in_nbytes, 0, 8 * (4 * i + 4 - begin))
                                          << 8 * (begin - 4 * i)
                                    : plain_bits(in, in_nbytes, 8ull * (4 * i - begin), 32);
                cr_assert(source.load_word(i) == want, "word %u", i);
                u32x4 quad = source.load_quad(i / 4);
                uint32_t of_quad[4] = {quad.x, quad.y, quad.z, quad.w};
                cr_assert(of_quad[i % 4] == want, "word %u of its quad", i);
            }
        });
    });
}

Test(input_stream, fields_of_all_widths_come_out_in_order)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_ring<256>>([=](input_ring<256> &ring) {
            input_stream<256> stream;
            stream.init(ring, in, in_nbytes);
            check_fields(stream, in, in_nbytes);
        });
    });
}

Test(input_stream, lanes_peek_ahead_as_far_as_ensured)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_ring<1024>>([=](input_ring<1024> &ring) {
            using stream_type = input_stream<1024>;
            constexpr uint32_t MOST = stream_type::MAX_ENSURE_NBITS;
            stream_type stream;
            stream.init(ring, in, in_nbytes);
            for (uint32_t at = 0; at < 8 * in_nbytes; at += 3001, stream.skip(3001)) {
                stream.ensure(MOST);
                for (uint32_t ahead = lane_id() * 7; ahead + 32 <= MOST; ahead += 32 * 7)
                    cr_assert(stream.peek_32(ahead) == plain_bits(in, in_nbytes, at + ahead, 32));
            }
        });
    });
}

Test(input_stream, seek_goes_forward_and_back)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_ring<256>>([=](input_ring<256> &ring) {
            input_stream<256> stream;
            stream.init(ring, in, in_nbytes);
            for (uint32_t to : {0u, 8 * in_nbytes, 4 * in_nbytes + 3, 8 * in_nbytes + 5000, 31u}) {
                stream.seek(to);
                cr_assert(stream.bit_position() == to);
                cr_assert(stream.fetch_bits(32) == plain_bits(in, in_nbytes, to, 32));
                cr_assert(stream.fetch_bits(32) == plain_bits(in, in_nbytes, to + 32, 32));
            }
        });
    });
}

/* Once further than the ring holds, so that refills pass over words that nobody reads. */
Test(input_stream, skip_goes_further_than_the_ring)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_ring<256>>([=](input_ring<256> &ring) {
            input_stream<256> stream;
            stream.init(ring, in, in_nbytes);
            uint32_t at = 0;
            for (uint32_t step : {7u, 3000u, 32u, 20011u, 1u}) {
                stream.ensure(32);
                stream.skip(step);
                at += step;
                cr_assert(stream.fetch_bits(29) == plain_bits(in, in_nbytes, at, 29));
                at += 29;
            }
        });
    });
}

Test(input_registers, peeks_ahead_as_far_as_promised)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_registers::shared>([=](input_registers::shared &none) {
            input_registers stream;
            stream.init(none, in, in_nbytes);
            constexpr uint32_t MOST = input_registers::MAX_ENSURE_NBITS;
            for (uint32_t at = 0; at < 8 * in_nbytes; at += 991, stream.skip(991))
                for (uint32_t ahead : {0u, 1u, 31u, 500u, MOST - 33, MOST - 32})
                    cr_assert(stream.peek_32(ahead) == plain_bits(in, in_nbytes, at + ahead, 32));
        });
    });
}

Test(input_registers, fields_of_all_widths_come_out_in_order)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_registers::shared>([=](input_registers::shared &none) {
            input_registers stream;
            stream.init(none, in, in_nbytes);
            check_fields(stream, in, in_nbytes);
        });
    });
}

Test(input_registers, skip_and_seek_move_by_more_than_a_word)
{
    with_inputs([](const uint8_t *in, uint32_t in_nbytes) {
        run_in_all_orders<input_registers::shared>([=](input_registers::shared &none) {
            input_registers stream;
            stream.init(none, in, in_nbytes);
            uint32_t at = 0;
            for (uint32_t step : {5u, 1024u, 1000u, 31u, 32u, 1024u}) {
                stream.skip(step);
                at += step;
                cr_assert(stream.peek_bits(32) == plain_bits(in, in_nbytes, at, 32));
            }
            stream.seek(2 * in_nbytes + 1);
            cr_assert(stream.fetch_bits(17) == plain_bits(in, in_nbytes, 2 * in_nbytes + 1, 17));
        });
    });
}
