/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_buckets_simt_test: on the device a slot of one distribution of bytes with n from 12 on is
 * found in few steps, whatever the model.  A symbol without slots once cost a step of its own, 254
 * of them for each slot of a model that somebody made for that.
 */
#include <criterion/criterion.h>

#include <numeric>
#include <vector>

#include "kernels/rans/rans_model.cuh"
extern "C" {
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_model.h"
#include "tests/lib/test_random.h"
}

using namespace wharf;

namespace
{

constexpr uint32_t N_SYMBOLS = 256;
/* By halving among so many. */
constexpr uint32_t MOST_HALVED = 8;
/* Looked up side by side, as chains do. */
constexpr unsigned N = 4;

using frequencies = std::vector<uint32_t>;

/* The model's own form without its header, as tables are made of. */
struct packed_model {
    std::vector<uint8_t> bytes;
    rans::stream in;
};

packed_model pack(const frequencies &f, uint32_t n_bits)
{
    struct wharf_rans_shape shape = {(uint8_t)n_bits, 1, N_SYMBOLS, 1};
    packed_model p = {};
    size_t nbytes = wharf_rans_model_write(&shape, f.data(), nullptr, 0);
    p.bytes.resize(nbytes);
    wharf_rans_model_write(&shape, f.data(), p.bytes.data(), nbytes);
    p.in.source.init(p.bytes.data(), (uint32_t)nbytes);
    p.in.n_bits = n_bits;
    p.in.symbol_nbytes = 1;
    p.in.n_distributions = 1;
    p.in.alphabet = N_SYMBOLS;
    p.in.model_nbytes = (uint32_t)nbytes - WHARF_RANS_HEADER_NBYTES;
    return p;
}

/* Looks up all slots; returns how often it halved at most. */
uint32_t find_all(const packed_model &p, std::vector<rans::found> &found)
{
    using tables = rans::model_tables<rans::PACKED_NBITS>;
    uint32_t stride = (uint32_t)found.size() / N, most = 0;
    bool good = true;
    simt::run_warp<tables>({simt::lane_order::random, stride}, [&](tables &t) {
        rans::model m;
        good &= rans::make_model(p.in, t, nullptr, m) && m.kind == rans::lookup::BUCKET;
        for (uint32_t slot = lane_id(); slot < stride; slot += WARP_LANES) {
            uint32_t slots[N];
            rans::found f[N];
            for (unsigned k = 0; k < N; k++)
                slots[k] = slot + k * stride;
            most = std::max(most, rans::find_in_buckets<N>(m, slots, f));
            for (unsigned k = 0; k < N; k++)
                found[slots[k]] = f[k];
        }
    });
    cr_assert(good);
    return most;
}

/* Every slot has its symbol and its place there, or is nobody's; how often it was halved. */
uint32_t check(const frequencies &f, uint32_t n_bits, const char *what)
{
    std::vector<rans::found> found(1u << n_bits);
    uint32_t most = find_all(pack(f, n_bits), found), slot = 0;
    for (uint32_t symbol = 0; symbol < N_SYMBOLS; symbol++)
        for (uint32_t place = 0; place < f[symbol]; place++, slot++) {
            const rans::found &at = found[slot];
            cr_assert(at.nobodys >> 31 == 0 && at.symbol == symbol && at.place == place &&
                          at.frequency == f[symbol],
                      "%s, n = %u: slot %u is %u's", what, n_bits, slot, at.symbol);
        }
    for (; slot < found.size(); slot++)
        cr_assert(found[slot].nobodys >> 31, "%s, n = %u: slot %u is somebody's", what, n_bits,
                  slot);
    return most;
}

} // namespace

/* Two symbols far apart, whose ranges meet within a bucket. */
Test(rans_buckets, symbols_without_slots_are_passed_by_halving)
{
    for (uint32_t n_bits = 12; n_bits <= 16; n_bits++) {
        frequencies f(N_SYMBOLS);
        f[0] = (1u << (n_bits - 1)) + 1;
        f[N_SYMBOLS - 1] = (1u << n_bits) - f[0];
        cr_assert_eq(check(f, n_bits, "far apart"), MOST_HALVED);
    }
}

/* As many symbols in a bucket as it has slots, at both ends; and slots that are nobody's. */
Test(rans_buckets, crowded_buckets_are_halved)
{
    for (uint32_t n_bits = 12; n_bits <= 16; n_bits++)
        for (uint32_t n_free : {0, 1, 700}) {
            frequencies f(N_SYMBOLS, 1);
            f[0] = (1u << n_bits) - n_free - (N_SYMBOLS - 1);
            cr_assert_leq(check(f, n_bits, "crowded at the end"), n_bits - rans::BUCKET_NBITS);
            std::swap(f[0], f[N_SYMBOLS - 1]);
            cr_assert_leq(check(f, n_bits, "crowded at the beginning"),
                          n_bits - rans::BUCKET_NBITS);
        }
}

Test(rans_buckets, one_symbol_may_have_all_slots)
{
    for (uint32_t symbol : {0u, 77u, N_SYMBOLS - 1})
        for (uint32_t n : {1u, 31u, 4095u, 65536u}) {
            frequencies f(N_SYMBOLS);
            f[symbol] = n;
            cr_assert_eq(check(f, 16, "alone"), 0);
        }
}

/* Symbols with and without slots, few or many each. */
Test(rans_buckets, any_model_is_looked_up)
{
    struct test_random random = {3};
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t n_bits = 12 + i % 5, left = 1u << n_bits;
        frequencies f(N_SYMBOLS);
        for (uint32_t symbol = 0; symbol < N_SYMBOLS; symbol++) {
            uint64_t most = test_random_below(&random, 3) ? 4 : (4u << n_bits) / N_SYMBOLS;
            uint32_t n = (uint32_t)test_random_below(&random, most);
            f[symbol] = test_random_below(&random, 1 + i % 7) == 0 && n < left ? n : 0;
            left -= f[symbol];
        }
        f[test_random_below(&random, N_SYMBOLS)] += i % 2 ? left : left > 0;
        cr_assert_leq(check(f, n_bits, "any"), MOST_HALVED);
    }
}
