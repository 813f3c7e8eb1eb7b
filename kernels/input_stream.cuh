/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_stream.cuh: a chunk's input as a stream of bits, least significant bit of each byte
 * first, and as words in any order.
 *
 *   input_source    the bounds: loads aligned words and never a byte outside the input
 *   input_stream    read from front to back by the whole warp, through a ring in shared memory
 *   input_registers the same through two registers of each lane, without shared memory
 *
 * POSITIONS are in bits from the input's first bit.  PAST THE END all bits are zero; bits_left()
 * says how many are really there, and a decoder asks it before it believes what it read.
 */
#ifndef WHARF_KERNELS_INPUT_STREAM_CUH
#define WHARF_KERNELS_INPUT_STREAM_CUH

#include "kernels/decoder.cuh"

namespace wharf
{

/* The low n bits of v; n from 0 to 32. */
WHARF_DEVICE uint32_t low_bits(uint32_t v, unsigned n)
{
    return n >= 32 ? v : v & ((1u << n) - 1);
}

/*
 * The input cut into words as they lie in memory: word 0 begins at the last multiple of 16 bytes
 * at or before the input.  Word numbers and "skewed" positions count from there; a stream adds
 * skew_nbits() once when it starts.
 */
struct input_source {
    const uint8_t *aligned;
    uint32_t begin; /* the input's bytes are begin to end - 1, counted from aligned */
    uint32_t end;

    /* One lane. */
    WHARF_DEVICE_MEMBER void init(const uint8_t *in, uint32_t in_nbytes)
    {
        begin = (uint32_t)(reinterpret_cast<uintptr_t>(in) & 15);
        aligned = in - begin;
        end = begin + in_nbytes;
    }

    WHARF_DEVICE_MEMBER uint32_t skew_nbits() const { return 8 * begin; }

    /* One lane.  Word number i, any number; its bytes outside the input are zero. */
    WHARF_DEVICE_MEMBER uint32_t load_word(uint32_t i) const
    {
        uint32_t first = 4 * i;
        uint32_t v = 0;
        if (first >= begin && first + 4 <= end)
            v = load_nc(reinterpret_cast<const uint32_t *>(aligned + first));
        else
            for (unsigned k = 0; k < 4; k++)
                if (first + k >= begin && first + k < end)
                    v |= (uint32_t)load_nc(aligned + first + k) << 8 * k;
        return opaque(v); /* where lanes that parted meet, for the compiler too: rule 9 */
    }

    /* One lane.  Words 4i to 4i + 3. */
    WHARF_DEVICE_MEMBER u32x4 load_quad(uint32_t i) const
    {
        uint32_t first = 16 * i;
        if (first >= begin && first + 16 <= end)
            return load_nc(reinterpret_cast<const u32x4 *>(aligned + first));
        return edge_quad(*this, i);
    }

  private:
    /* A quad that is not all input.  Not inlined: rare and long. */
    static WHARF_DEVICE_MEMBER_NOINLINE u32x4 edge_quad(input_source s, uint32_t i)
    {
        return {s.load_word(4 * i), s.load_word(4 * i + 1), s.load_word(4 * i + 2),
                s.load_word(4 * i + 3)};
    }
};

/* Shared memory of an input_stream. */
template <unsigned RING_NBYTES>
struct input_ring {
    uint32_t words[RING_NBYTES / 4];
};

/*
 * The stream of a decoder in which all lanes do the same: every lane holds the same position and
 * gets the same bits.  The ring is refilled 128 bytes at a time, a word by each lane, and the
 * words of the next refill are on their way meanwhile.
 *
 * Members marked collective synchronise the warp (syncwarp) when they refill, not otherwise.
 * RING_NBYTES is a power of two, at least 256.
 */
template <unsigned RING_NBYTES>
struct input_stream {
    static_assert(RING_NBYTES >= 256 && (RING_NBYTES & (RING_NBYTES - 1)) == 0);
    using shared = input_ring<RING_NBYTES>;
    static constexpr uint32_t RING_NWORDS = RING_NBYTES / 4;
    /* What ensure() can promise: all but the 128 bytes that a refill may overwrite, and but the
     * word that the position stands in. */
    static constexpr uint32_t MAX_ENSURE_NBITS = 8 * (RING_NBYTES - 128) - 31;

    input_source source;
    uint32_t *ring;
    uint32_t position; /* skewed */
    uint32_t n_filled; /* words that are or have been in the ring; a multiple of 32 */
    uint32_t pending;  /* this lane's word of the next refill */

    /* collective.  `s` is the stream's alone until its last use. */
    WHARF_DEVICE_MEMBER void init(shared &s, const uint8_t *in, uint32_t in_nbytes)
    {
        source.init(in, in_nbytes);
        ring = s.words;
        seek(0);
    }

    /* collective.  Goes on at a position, which may lie past the end, but by less than 2^30. */
    WHARF_DEVICE_MEMBER void seek(uint32_t to)
    {
        position = to + source.skew_nbits();
        n_filled = position >> 5 & ~31u;
        pending = source.load_word(n_filled + lane_id());
    }

    WHARF_DEVICE_MEMBER uint32_t bit_position() const { return position - source.skew_nbits(); }

    /* Bits between the position and the end; 0 also when the position is past the end. */
    WHARF_DEVICE_MEMBER uint32_t bits_left() const
    {
        return position < 8 * source.end ? 8 * source.end - position : 0;
    }

    /* collective.  Until the position has moved on, peek_bits and skip may use the next n_bits
     * bits, up to MAX_ENSURE_NBITS. */
    WHARF_DEVICE_MEMBER void ensure(uint32_t n_bits)
    {
        while ((int32_t)(32 * n_filled - position) < (int32_t)n_bits)
            refill();
    }

    /* One lane.  The next n bits, 0 to 32, the first in bit 0, which ensure() has promised. */
    WHARF_DEVICE_MEMBER uint32_t peek_bits(unsigned n) const { return low_bits(peek_32(0), n); }

    /* One lane.  32 bits that begin `ahead` bits behind the position, of which those are right that
     * ensure() has promised; the others are of no use. */
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t ahead) const
    {
        uint32_t p = position + ahead;
        uint32_t i = p >> 5;
        return funnel_right(load(&ring[i & (RING_NWORDS - 1)]),
                            load(&ring[(i + 1) & (RING_NWORDS - 1)]), p);
    }

    /* Moves the position, all lanes by the same, at most to 2^30 - 1 past the end.  The next
     * ensure() refills once for each 128 bytes on the way: long ways are for seek. */
    WHARF_DEVICE_MEMBER void skip(uint32_t n_bits) { position += n_bits; }

    /* collective.  ensure, peek_bits and skip in one. */
    WHARF_DEVICE_MEMBER uint32_t fetch_bits(unsigned n)
    {
        ensure(n);
        uint32_t v = peek_bits(n);
        skip(n);
        return v;
    }

  private:
    WHARF_DEVICE_MEMBER void refill()
    {
        syncwarp(); /* every lane's reads of the words that go, before the writes here */
        store(&ring[(n_filled + lane_id()) & (RING_NWORDS - 1)], pending);
        n_filled += 32;
        pending = source.load_word(n_filled + lane_id());
        syncwarp(); /* the writes, before any lane's reads */
    }
};

/*
 * The same stream without shared memory: lane i holds words i and 32 + i of a run of 64, and the
 * one whose word is wanted sends it to all.  So peeking is collective here, two shuffles.
 */
struct input_registers {
    struct shared {
    };
    /* The word that the position stands in is one of the first 32. */
    static constexpr uint32_t MAX_ENSURE_NBITS = 32 * 33 - 31;

    input_source source;
    uint32_t position; /* skewed */
    uint32_t first;    /* number of the word that lane 0 holds in `front`; a multiple of 32 */
    uint32_t front, back;

    /* collective. */
    WHARF_DEVICE_MEMBER void init(shared &, const uint8_t *in, uint32_t in_nbytes)
    {
        source.init(in, in_nbytes);
        seek(0);
    }

    /* collective.  Goes on at a position, which may lie past the end, but by less than 2^30. */
    WHARF_DEVICE_MEMBER void seek(uint32_t to)
    {
        position = to + source.skew_nbits();
        first = position >> 5 & ~31u;
        front = source.load_word(first + lane_id());
        back = source.load_word(first + 32 + lane_id());
    }

    WHARF_DEVICE_MEMBER uint32_t bit_position() const { return position - source.skew_nbits(); }

    WHARF_DEVICE_MEMBER uint32_t bits_left() const
    {
        return position < 8 * source.end ? 8 * source.end - position : 0;
    }

    /* For the same use as input_stream's: nothing to do, MAX_ENSURE_NBITS are always there. */
    WHARF_DEVICE_MEMBER void ensure(uint32_t) {}

    /* collective.  The next n bits, 0 to 32. */
    WHARF_DEVICE_MEMBER uint32_t peek_bits(unsigned n) const { return low_bits(peek_32(0), n); }

    /* collective.  32 bits that begin `ahead` bits behind the position, as input_stream's; ahead is
     * the same in all lanes. */
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t ahead) const
    {
        uint32_t p = position + ahead;
        uint32_t i = (p >> 5) - first;
        uint32_t lo = shfl(i < 32 ? front : back, i);
        uint32_t hi = shfl(i < 31 ? front : back, i + 1);
        return funnel_right(lo, hi, p);
    }

    /* Moves the position, all lanes by the same, at most 1024 bits; longer ways are for seek. */
    WHARF_DEVICE_MEMBER void skip(uint32_t n_bits)
    {
        position += n_bits;
        if ((position >> 5) - first >= 32) {
            first += 32;
            front = back;
            back = source.load_word(first + 32 + lane_id());
        }
    }

    /* collective. */
    WHARF_DEVICE_MEMBER uint32_t fetch_bits(unsigned n)
    {
        uint32_t v = peek_bits(n);
        skip(n);
        return v;
    }
};

} // namespace wharf

#endif
