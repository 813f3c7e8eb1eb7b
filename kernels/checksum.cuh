/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum.cuh: CRC-32 and Adler-32 of a chunk's output, by the warp that writes it.
 *
 * Both take the output in rounds of 128 bytes, a 4-byte word by each lane, while it is still in
 * the cache: a decoder calls update() every some KiB and finish() at the end.  A decoder of a
 * format without checksum calls neither and pays nothing.  Use:
 *
 *     crc32_sum sum;
 *     sum.init(out);
 *     ... write; sum.update(n_written); write; sum.update(n_written); ...
 *     uint32_t crc = sum.finish(n_written);
 *
 * All members are collective, with the same arguments in all lanes.  update and finish begin with
 * a syncwarp(), so they see what any lane wrote before.  All lanes get the result.
 *
 * A round costs a warp, on sm_90, 19 instructions for CRC-32 (7 of them shuffles) and 5 for
 * Adler-32, the load included.
 */
#ifndef WHARF_KERNELS_CHECKSUM_CUH
#define WHARF_KERNELS_CHECKSUM_CUH

#include "kernels/warp.cuh"

namespace wharf
{

/* Bytes in a round. */
constexpr uint32_t ROUND_NBYTES = 128;

/*
 * Output as aligned words.  Offsets ("ends") count from the last multiple of 4 at or before the
 * output; the up to three bytes before it are taken for zeros, which change neither checksum.
 */
struct written_words {
    const uint8_t *aligned;
    uint32_t skew;

    WHARF_DEVICE_MEMBER void init(const uint8_t *out)
    {
        skew = (uint32_t)(reinterpret_cast<uintptr_t>(out) & 3);
        aligned = out - skew;
    }
    WHARF_DEVICE_MEMBER const uint32_t *at(uint32_t i) const
    {
        return reinterpret_cast<const uint32_t *>(aligned) + i;
    }
    WHARF_DEVICE_MEMBER uint32_t byte(uint32_t o) const { return o < skew ? 0 : aligned[o]; }

    /* Word i, of which the first may begin before the output. */
    WHARF_DEVICE_MEMBER uint32_t first_word(uint32_t i) const
    {
        if (i > 0)
            return load(at(i));
        return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    }
};

/* ---- CRC-32: reflected polynomial edb88320, as in gzip --------------------------------------- */

/* A register of the CRC after a zero bit more. */
WHARF_CONSTEXPR uint32_t crc32_shift(uint32_t s)
{
    return s >> 1 ^ (s & 1 ? 0xedb88320u : 0);
}

WHARF_CONSTEXPR uint32_t crc32_shift_by(uint32_t s, unsigned n_bits)
{
    for (unsigned i = 0; i < n_bits; i++)
        s = crc32_shift(s);
    return s;
}

struct crc32_tables {
    static constexpr unsigned N_GROUPS = 7; /* of 5 bits, the last of 2: a register */

    /* by_round[k][i]: i in the k-th group of bits, after a round (1024 bits) more. */
    uint32_t by_round[N_GROUPS][32];
    /* by_words[d]: x^(32 d) modulo the polynomial: multiplying by it is d words more. */
    uint32_t by_words[64];

    constexpr crc32_tables() : by_round(), by_words()
    {
        /* The shift is linear: the images of the 32 single bits give all others. */
        uint32_t bit_images[32] = {};
        for (unsigned bit = 0; bit < 32; bit++)
            bit_images[bit] = crc32_shift_by(1u << bit, 8 * ROUND_NBYTES);
        for (unsigned k = 0; k < N_GROUPS; k++)
            for (unsigned i = 0; i < 32; i++)
                for (unsigned b = 0; b < 5 && 5 * k + b < 32; b++)
                    by_round[k][i] ^= i >> b & 1 ? bit_images[5 * k + b] : 0;
        by_words[0] = 1u << 31; /* x^0 stands in the top bit */
        for (unsigned d = 1; d < 64; d++)
            by_words[d] = crc32_shift_by(by_words[d - 1], 32);
    }
};
WHARF_DEVICE_TABLE crc32_tables CRC32_TABLES = crc32_tables();

/* a * b modulo the polynomial. */
WHARF_DEVICE uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    WHARF_UNROLL_BY(4)
    for (unsigned i = 0; i < 32; i++) {
        product ^= a >> (31 - i) & 1 ? b : 0;
        b = crc32_shift(b);
    }
    return product;
}

struct crc32_sum {
    written_words words;
    uint32_t n_rounds; /* taken so far */
    /*
     * This lane's part: the words i with i mod 32 = lane, each moved on by the rounds after it.
     * The register starts as ones, which is to say that the first four bytes are complemented.
     */
    uint32_t part;

    WHARF_DEVICE_MEMBER void init(const uint8_t *out)
    {
        words.init(out);
        n_rounds = 0;
        part = 0;
    }

    /* The first n_written bytes of the output are there: takes those in whole rounds. */
    WHARF_DEVICE_MEMBER void update(uint32_t n_written)
    {
        uint32_t n_whole = (words.skew + n_written) / ROUND_NBYTES;
        syncwarp();
        if (n_rounds == 0 && n_whole > 0) {
            part = words.first_word(lane_id()) ^ start_mask(lane_id());
            n_rounds = 1;
        }
        if (n_rounds >= n_whole)
            return;
        uint32_t table[crc32_tables::N_GROUPS];
        load_tables(table);
        const uint32_t *w = words.at(32 * n_rounds + lane_id());
        WHARF_UNROLL_BY(4)
        for (uint32_t n = n_whole - n_rounds; n > 0; n--, w += 32)
            part = next_round(part, table) ^ load(w);
        n_rounds = n_whole;
    }

    /* The CRC-32 of the output's n_written bytes. */
    WHARF_DEVICE_MEMBER uint32_t finish(uint32_t n_written)
    {
        update(n_written);
        uint32_t crc = 0;
        uint32_t end = words.skew + n_written;
        uint32_t o = n_rounds * ROUND_NBYTES;
        if (n_written < 4) { /* too short to complement four bytes */
            crc = 0xffffffffu;
            for (o = words.skew; o < end; o++)
                crc = crc32_shift_by(crc ^ words.byte(o), 8);
            return ~crc;
        }
        /* Up to 31 words more, by the first lanes. */
        uint32_t lane = lane_id();
        uint32_t n_more = (end - o) / 4;
        uint32_t table[crc32_tables::N_GROUPS];
        load_tables(table);
        uint32_t moved = next_round(part, table);
        uint32_t i = o / 4 + lane;
        if (lane < n_more)
            part = moved ^ words.first_word(i) ^ start_mask(i);
        /* How many words the last one of this lane has behind it. */
        uint32_t behind = n_more - 1 - lane + (lane < n_more ? 0 : 32);
        part = crc32_multiply(load(&CRC32_TABLES.by_words[behind + 1]), part);
        crc = reduce_xor(part);
        for (o += 4 * n_more; o < end; o++)
            crc =
                crc32_shift_by(crc ^ words.byte(o) ^ (start_mask(o / 4) >> 8 * (o & 3) & 0xff), 8);
        return ~crc;
    }

  private:
    /* The bits of word i that belong to the output's first four bytes. */
    WHARF_DEVICE_MEMBER uint32_t start_mask(uint32_t i) const
    {
        uint32_t first = 0xffffffffu << 8 * words.skew;
        return i == 0 ? first : i == 1 ? ~first : 0;
    }

    /* Lane i holds entry i of each group's table. */
    WHARF_DEVICE_MEMBER void load_tables(uint32_t *table) const
    {
        WHARF_UNROLL
        for (unsigned k = 0; k < crc32_tables::N_GROUPS; k++)
            table[k] = load(&CRC32_TABLES.by_round[k][lane_id()]);
    }

    /* collective.  v of each lane, a round further on: seven look-ups in the lanes' tables. */
    WHARF_DEVICE_MEMBER uint32_t next_round(uint32_t v, const uint32_t *table) const
    {
        uint32_t r = 0;
        WHARF_UNROLL
        for (unsigned k = 0; k < crc32_tables::N_GROUPS; k++)
            r ^= shfl(table[k], v >> 5 * k); /* shfl looks at the low five bits */
        return r;
    }
};

/* ---- Adler-32 ------------------------------------------------------------------------------- */

constexpr uint32_t ADLER32_MODULUS = 65521;

struct adler32_sum {
    /*
     * A lane's sums stay below 2^32 for this many rounds: with s the sum of 4 bytes, at most 1020,
     * sums_of_sums grows by at most 65520 + 1020 * i in round i, by 6.0e8 in 1024 rounds.
     */
    static constexpr uint32_t ROUNDS_BETWEEN_MODULO = 1024;

    written_words words;
    uint32_t n_rounds;
    uint32_t sum;         /* of this lane's bytes */
    uint32_t sum_of_sums; /* of the sum before each round: each byte, times the rounds after its */
    uint32_t weighted;    /* of its bytes times 4, 3, 2, 1 by their place in the word */

    WHARF_DEVICE_MEMBER void init(const uint8_t *out)
    {
        words.init(out);
        n_rounds = sum = sum_of_sums = weighted = 0;
    }

    WHARF_DEVICE_MEMBER void update(uint32_t n_written)
    {
        uint32_t n_whole = (words.skew + n_written) / ROUND_NBYTES;
        syncwarp();
        if (n_rounds == 0 && n_whole > 0) {
            take(words.first_word(lane_id()));
            n_rounds = 1;
        }
        while (n_rounds < n_whole) {
            uint32_t n = n_whole - n_rounds;
            n = n < ROUNDS_BETWEEN_MODULO ? n : ROUNDS_BETWEEN_MODULO;
            const uint32_t *w = words.at(32 * n_rounds + lane_id());
            n_rounds += n;
            WHARF_UNROLL_BY(4)
            for (; n > 0; n--, w += 32)
                take(load(w));
            sum %= ADLER32_MODULUS;
            sum_of_sums %= ADLER32_MODULUS;
            weighted %= ADLER32_MODULUS;
        }
    }

    /* The Adler-32 of the output's n_written bytes. */
    WHARF_DEVICE_MEMBER uint32_t finish(uint32_t n_written)
    {
        update(n_written);
        uint32_t lane = lane_id();
        uint32_t o = n_rounds * ROUND_NBYTES;
        uint32_t rest = words.skew + n_written - o;
        /*
         * The second half is the sum of each byte times the number of bytes from it to the end: in
         * the rounds that are done 128 for each round after its own, 4 for each lane after, what
         * its place in the word gives, and the rest.
         */
        uint32_t low = sum % ADLER32_MODULUS;
        uint32_t high = ROUND_NBYTES * (sum_of_sums % ADLER32_MODULUS) +
                        weighted % ADLER32_MODULUS + (4 * (31 - lane) + rest) * low;
        for (uint32_t k = 4 * lane; k < 4 * lane + 4 && k < rest; k++) {
            uint32_t b = words.byte(o + k);
            low += b;
            high += b * (rest - k);
        }
        low = reduce_add(low);
        high = reduce_add(high % ADLER32_MODULUS);
        /* The first half starts as 1, which the second half counts once for each byte. */
        return (high + n_written) % ADLER32_MODULUS << 16 | (low + 1) % ADLER32_MODULUS;
    }

  private:
    WHARF_DEVICE_MEMBER void take(uint32_t w)
    {
        sum_of_sums += sum;
        sum = dot4(w, 0x01010101, sum);
        weighted = dot4(w, 0x01020304, weighted);
    }
};

} // namespace wharf

#endif
