/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_stream.cuh: a chunk's output, written from front to back by the whole warp.
 *
 * Every lane holds the same stream: the destination, how much it holds, and the position.  All
 * members marked collective want the same arguments in all lanes unless they say otherwise, move
 * the position of all lanes alike and return the same in all lanes.
 *
 * PAST THE END nothing is written: a member that does not find room for all that it is asked to
 * write, or that is asked to copy from before the first byte, writes nothing, leaves the position
 * and returns false.  What that means is the decoder's business; it asks room() and position to
 * find out.
 *
 * SYNCHRONISATION.  Members that read the output (copy_match) begin with a syncwarp(), so they
 * see all that was written through the stream before.  None ends with one: who reads the output
 * in another way calls syncwarp() first.
 */
#ifndef WHARF_KERNELS_OUTPUT_STREAM_CUH
#define WHARF_KERNELS_OUTPUT_STREAM_CUH

#include "kernels/input_stream.cuh"

namespace wharf
{

/* 16 bytes of a run of values: those of elements i, i + 1 and so on, value(i) of type T. */
template <typename T, typename F>
WHARF_DEVICE u32x4 quad_of(uint32_t i, F value)
{
    uint32_t words[4] = {0, 0, 0, 0};
    WHARF_UNROLL
    for (unsigned k = 0; k < 16 / sizeof(T); k++) {
        uint64_t v = (uint64_t)value(i + k);
        words[k * sizeof(T) / 4] |= (uint32_t)v << 8 * (k * sizeof(T) % 4);
        if (sizeof(T) == 8)
            words[k * sizeof(T) / 4 + 1] = (uint32_t)(v >> 32);
    }
    return {words[0], words[1], words[2], words[3]};
}

/* The 16 bytes that begin `nbytes` (0 to 15) into the 32 bytes a, b. */
WHARF_DEVICE u32x4 funnel_quad(u32x4 a, u32x4 b, unsigned nbytes)
{
    uint32_t w[7] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z};
    uint32_t last = b.w;
    if (nbytes & 8) {
        w[0] = w[2], w[1] = w[3], w[2] = w[4], w[3] = w[5], w[4] = w[6], w[5] = last;
    }
    if (nbytes & 4) {
        w[0] = w[1], w[1] = w[2], w[2] = w[3], w[3] = w[4], w[4] = w[5];
    }
    unsigned n = 8 * (nbytes & 3);
    return {funnel_right(w[0], w[1], n), funnel_right(w[1], w[2], n), funnel_right(w[2], w[3], n),
            funnel_right(w[3], w[4], n)};
}

/* x mod d by a multiplication, for x * d < 2^32 and d > 1; the division is done once. */
struct fast_modulo {
    uint32_t divisor;
    uint32_t inverse; /* 2^32 / d, rounded up: too large by less than 1, which x * d < 2^32 keeps
                         from reaching the quotient's integer part */

    WHARF_DEVICE_MEMBER void init(uint32_t d)
    {
        divisor = d;
        inverse = 0xffffffffu / d + 1;
    }
    WHARF_DEVICE_MEMBER uint32_t of(uint32_t x) const { return x - mul_high(x, inverse) * divisor; }
};

struct output_stream {
    uint8_t *out;
    uint32_t avail;
    uint32_t position;

    WHARF_DEVICE_MEMBER void init(uint8_t *o, uint32_t out_avail)
    {
        out = o;
        avail = out_avail;
        position = 0;
    }

    WHARF_DEVICE_MEMBER uint32_t room() const { return avail - position; }

    /* collective.  One byte, stored by lane 0. */
    WHARF_DEVICE_MEMBER bool write_byte(uint8_t b)
    {
        if (room() < 1)
            return false;
        if (lane_id() == 0)
            store(out + position, b);
        position += 1;
        return true;
    }

    /* collective.  n bytes, 0 to 32, of which lane i holds number i. */
    WHARF_DEVICE_MEMBER bool write_bytes(uint8_t b, uint32_t n)
    {
        if (room() < n)
            return false;
        if (lane_id() < n)
            store(out + position + lane_id(), b);
        position += n;
        return true;
    }

    /*
     * collective.  The run first, first + delta, first + 2 * delta ..., n values of type T, an
     * unsigned integer of 1 to 8 bytes, little-endian, modulo its size.  n * sizeof(T) < 2^32.
     */
    template <typename T>
    WHARF_DEVICE_MEMBER bool write_run(T first, T delta, uint32_t n)
    {
        uint32_t nbytes = n * (uint32_t)sizeof(T);
        if (room() < nbytes)
            return false;
        auto value = [=](uint32_t i) {
            return sizeof(T) == 8 ? (T)(first + (uint64_t)i * delta)
                                  : (T)((uint32_t)first + i * (uint32_t)delta);
        };
        auto byte = [=](uint32_t o) {
            return (uint8_t)(value(o / (uint32_t)sizeof(T)) >> 8 * (o % sizeof(T)));
        };
        if (reinterpret_cast<uintptr_t>(out + position) % sizeof(T) == 0) {
            store_quads(nbytes, byte,
                        [=](uint32_t o) { return quad_of<T>(o / (uint32_t)sizeof(T), value); });
        } else {
            for (uint32_t o = lane_id(); o < nbytes; o += 32)
                store(out + position + o, byte(o));
        }
        position += nbytes;
        return true;
    }

    /*
     * collective.  The length bytes that stand `distance` bytes back, where those that are not
     * there yet are the ones that this call writes (distance < length repeats the last distance
     * bytes).  False also for a distance of 0 or beyond the first byte.
     */
    WHARF_DEVICE_MEMBER bool copy_match(uint32_t distance, uint32_t length)
    {
        if (distance - 1 >= position || room() < length)
            return false;
        syncwarp();
        if (length <= 32)
            copy_short(distance, length);
        else if (distance >= length)
            copy_apart(distance, length);
        else
            repeat(distance, length);
        return true;
    }

    /* collective.  n bytes of the input from byte `at` on, which must lie inside it. */
    WHARF_DEVICE_MEMBER bool copy_input(const input_source &source, uint32_t at, uint32_t n)
    {
        if (room() < n)
            return false;
        uint32_t from = source.begin + at;
        store_quads(
            n, [=](uint32_t o) { return load_nc(source.aligned + from + o); },
            [=](uint32_t o) {
                uint32_t i = from + o;
                u32x4 a = source.load_quad(i >> 4);
                return i & 15 ? funnel_quad(a, source.load_quad((i >> 4) + 1), i & 15) : a;
            });
        position += n;
        return true;
    }

  private:
    /*
     * Stores n bytes at the position: quad(o) gives the 16 bytes from offset o on for offsets at
     * which the destination is aligned, byte(o) one byte for the up to 15 before and after.
     */
    template <typename B, typename Q>
    WHARF_DEVICE_MEMBER void store_quads(uint32_t n, B byte, Q quad)
    {
        uint8_t *to = out + position;
        uint32_t lane = lane_id();
        uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 15;
        head = head < n ? head : n;
        uint32_t n_quads = (n - head) / 16;
        uint32_t tail = head + 16 * n_quads;
        /* Lanes 0 to 15 store the head, 16 to 31 the tail, in one go. */
        uint32_t o = lane < 16 ? lane : tail + lane - 16;
        if (o < (lane < 16 ? head : n))
            store(to + o, byte(o));
        WHARF_UNROLL_BY(4)
        for (uint32_t j = lane; j < n_quads; j += 32)
            store(reinterpret_cast<u32x4 *>(to + head) + j, quad(head + 16 * j));
    }

    /* The same with words: for copies of some dozen to some hundred bytes. */
    template <typename B, typename W>
    WHARF_DEVICE_MEMBER void store_words(uint32_t n, B byte, W word)
    {
        uint8_t *to = out + position;
        uint32_t lane = lane_id();
        uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 3;
        head = head < n ? head : n;
        uint32_t n_words = (n - head) / 4;
        uint32_t tail = head + 4 * n_words;
        uint32_t o = lane < 4 ? lane : tail + lane - 4;
        if (o < (lane < 4 ? head : n))
            store(to + o, byte(o));
        for (uint32_t j = lane; j < n_words; j += 32)
            store(reinterpret_cast<uint32_t *>(to + head) + j, word(head + 4 * j));
    }

    /* One byte a lane. */
    WHARF_DEVICE_MEMBER void copy_short(uint32_t distance, uint32_t length)
    {
        uint32_t o = lane_id();
        if (o < length)
            store(out + position + o,
                  load(out + position - distance + (distance < length ? o % distance : o)));
        position += length;
    }

    /* Source and destination do not overlap. */
    WHARF_DEVICE_MEMBER void copy_apart(uint32_t distance, uint32_t length)
    {
        const uint8_t *from = out + position - distance;
        auto byte = [=](uint32_t o) { return load(from + o); };
        /* Pairs of aligned words reach up to 3 bytes before the source and 4 behind it: inside the
         * destination but for matches near its two ends. */
        if (position - distance >= 3 && position - distance + length + 4 <= avail) {
            store_words(length, byte, [=](uint32_t o) {
                uintptr_t p = reinterpret_cast<uintptr_t>(from + o);
                const uint32_t *w = reinterpret_cast<const uint32_t *>(p & ~(uintptr_t)3);
                unsigned skew = p & 3;
                return funnel_right(load_part(w, skew, 4 - skew), load_part(w + 1, 0, skew),
                                    8 * skew);
            });
        } else {
            store_words(length, byte, [=](uint32_t o) {
                return byte(o) | (uint32_t)byte(o + 1) << 8 | (uint32_t)byte(o + 2) << 16 |
                       (uint32_t)byte(o + 3) << 24;
            });
        }
        position += length;
    }

    /* distance < length: the last `distance` bytes over and over. */
    WHARF_DEVICE_MEMBER void repeat(uint32_t distance, uint32_t length)
    {
        if (distance == 1) {
            write_run<uint8_t>(load(out + position - 1), 0, length);
            return;
        }
        /* Pieces short enough for fast_modulo: an offset times a distance that is less than it
         * stays below 2^32.  What follows a whole number of pieces repeats the same bytes. */
        constexpr uint32_t PIECE = 1 << 16;
        const uint8_t *from = out + position - distance;
        if (distance >= PIECE) {
            for (; length > distance; length -= distance) {
                copy_apart(distance, distance);
                syncwarp();
            }
            copy_apart(distance, length);
            return;
        }
        fast_modulo modulo;
        modulo.init(distance);
        uint32_t done = 0;
        while (done < length) {
            uint32_t n = length - done < PIECE ? length - done : PIECE / distance * distance;
            auto byte = [=](uint32_t o) { return load(from + modulo.of(o)); };
            store_words(n, byte, [=](uint32_t o) {
                return byte(o) | (uint32_t)byte(o + 1) << 8 | (uint32_t)byte(o + 2) << 16 |
                       (uint32_t)byte(o + 3) << 24;
            });
            position += n;
            done += n;
        }
    }
};

} // namespace wharf

#endif
