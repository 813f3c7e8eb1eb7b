/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_sums.cuh: checksums of a member of which several warps have a piece each.
 *
 * Each piece's checksum is moved on by the bytes behind the piece, up to where the member ends.
 * What is moved on adds up in any order, so warps add theirs by atomics.  A piece of no bytes adds
 * nothing.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_SUMS_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_SUMS_CUH

#include "kernels/checksum.cuh"
#include "kernels/deflate/deflate_state.cuh"

namespace wharf
{
namespace inflate
{

/* x^(8 * 2^k) modulo the CRC's polynomial: multiplying by it is 2^k bytes more. */
struct crc32_powers {
    uint32_t of[40];

    static constexpr uint32_t multiply(uint32_t a, uint32_t b)
    {
        uint32_t product = 0;
        for (unsigned i = 0; i < 32; i++) {
            product ^= a >> (31 - i) & 1 ? b : 0;
            b = crc32_shift(b);
        }
        return product;
    }
    constexpr crc32_powers() : of()
    {
        of[0] = 1u << 23;
        for (unsigned k = 1; k < 40; k++)
            of[k] = multiply(of[k - 1], of[k - 1]);
    }
};
WHARF_DEVICE_TABLE crc32_powers CRC32_POWERS = crc32_powers();

/* The CRC-32 of bytes with nbytes zeros behind them, but for what the complements give. */
WHARF_DEVICE_NOINLINE uint32_t crc32_move(uint32_t crc, uint64_t nbytes)
{
    for (unsigned k = 0; nbytes && k < 40; k++, nbytes >>= 1)
        if (nbytes & 1)
            crc = crc32_multiply(load(&CRC32_POWERS.of[k]), crc);
    return crc;
}

/* What differs between the checksums.  `value` is always as in a trailer. */
template <typename Sum>
struct sum_rules;

template <>
struct sum_rules<crc32_sum> {
    static constexpr uint32_t OF_NOTHING = 0;

    static WHARF_DEVICE_MEMBER uint32_t join(uint32_t first, uint32_t second, uint64_t nbytes)
    {
        return crc32_move(first, nbytes) ^ second;
    }
    /* One lane.  Adds a piece of nbytes, with n_behind of the member behind it. */
    static WHARF_DEVICE_MEMBER void add(uint32_t *sums, uint32_t value, uint64_t, uint64_t n_behind)
    {
        atomic_xor(sums, crc32_move(value, n_behind));
    }
    static WHARF_DEVICE_MEMBER uint32_t value_of(const uint32_t *sums, uint64_t)
    {
        return load(sums);
    }
};

/* RFC 1950: each byte counts in the second sum once for itself and once for each byte behind it. */
template <>
struct sum_rules<adler32_sum> {
    static constexpr uint32_t OF_NOTHING = 1;

    static WHARF_DEVICE_MEMBER uint32_t join(uint32_t first, uint32_t second, uint64_t nbytes)
    {
        const uint64_t modulus = ADLER32_MODULUS;
        uint64_t low = (first & 0xffff) + (second & 0xffff) + modulus - 1;
        uint64_t high = (first >> 16) + (second >> 16) +
                        nbytes % modulus * ((first & 0xffff) + modulus - 1) % modulus;
        return (uint32_t)(high % modulus << 16 | low % modulus);
    }
    static WHARF_DEVICE_MEMBER void add(uint32_t *sums, uint32_t value, uint64_t nbytes,
                                        uint64_t n_behind)
    {
        const uint64_t modulus = ADLER32_MODULUS;
        uint64_t low = ((value & 0xffff) + modulus - 1) % modulus;
        uint64_t high = (value >> 16) + modulus - nbytes % modulus + low * (n_behind % modulus);
        /* Links are less than 2^16, so what they add fits. */
        atomic_add(sums, (uint32_t)low);
        atomic_add(sums + 1, (uint32_t)(high % modulus));
    }
    static WHARF_DEVICE_MEMBER uint32_t value_of(const uint32_t *sums, uint64_t nbytes)
    {
        const uint64_t modulus = ADLER32_MODULUS;
        uint64_t low = load(sums) + (uint64_t)1, high = load(sums + 1) + nbytes % modulus;
        return (uint32_t)(high % modulus << 16 | low % modulus);
    }
};

template <>
struct sum_rules<flate::no_sum> {
    static constexpr uint32_t OF_NOTHING = 0;

    static WHARF_DEVICE_MEMBER uint32_t join(uint32_t, uint32_t, uint64_t) { return 0; }
    static WHARF_DEVICE_MEMBER void add(uint32_t *, uint32_t, uint64_t, uint64_t) {}
    static WHARF_DEVICE_MEMBER uint32_t value_of(const uint32_t *, uint64_t) { return 0; }
};

/* The sum of a piece, which begins at a position of the output other than 0. */
template <typename Sum>
struct piece_sum {
    Sum sum;
    uint32_t begin;

    WHARF_DEVICE_MEMBER void init(const output_stream &out)
    {
        begin = out.position;
        sum.init(out.out + begin);
    }
    WHARF_DEVICE_MEMBER void update(uint32_t position) { sum.update(position - begin); }
    WHARF_DEVICE_MEMBER uint32_t finish(uint32_t position) { return sum.finish(position - begin); }
};

template <>
struct piece_sum<flate::no_sum> {
    uint32_t begin;

    WHARF_DEVICE_MEMBER void init(const output_stream &out) { begin = out.position; }
    WHARF_DEVICE_MEMBER void update(uint32_t) {}
    WHARF_DEVICE_MEMBER uint32_t finish(uint32_t) { return 0; }
};

} // namespace inflate
} // namespace wharf

#endif
