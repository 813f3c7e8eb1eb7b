/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_write.cuh: turns sequences into output, up to 32 at a time, by the method of lz_write.cuh.
 *
 * Huffman-coded literals are decoded into the output itself, at the end of the room that the block
 * has, as on the CPU.
 *
 * Invariant: output that is written stays behind the literals that are still to be read.  Therefore
 * bytes are made in their order, and all loads of a span precede its stores, with a syncwarp()
 * between.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_WRITE_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_WRITE_CUH

#include "kernels/lz_cycle.cuh"
#include "kernels/zstd/zstd_state.cuh"

namespace wharf
{
namespace zstd
{

/* The most output of a batch: less than 2^15. */
constexpr uint32_t MAX_BATCH_NBYTES = (1 << 15) - 1;
/* Matches that are copied one by one: so long, or so long and overlapping themselves. */
constexpr uint32_t LONG_MATCH = 96, LONG_OVERLAP = 24;
/* Of room there may be 2^17, but where there are literals. */
constexpr uint32_t ROOM_NBITS = 17;

/* One lane's sequence of a batch; of a lane without one both lengths are 0. */
struct sequence {
    uint32_t begin; /* its first byte, counted from the batch's first */
    uint32_t n_literals;
    uint32_t length;   /* with the match */
    uint32_t distance; /* of the match */
    uint32_t room;     /* a literal stands so far behind where it goes, in `literals` */
};

/* What is the same in all lanes. */
struct batch {
    uint8_t *out;            /* the chunk's */
    const uint8_t *literals; /* out, or of literals in the input a place that is none */
    uint32_t base;           /* where in the output the batch begins */
};

/* collective.  One round of a span, as lz::make_round; `packed` is where the match begins, and the
 * room. */
WHARF_DEVICE void make_round(lz::span_bytes &span, unsigned r, const batch &b, uint32_t packed,
                             uint32_t distance, uint32_t begin, uint32_t last, uint32_t begins,
                             uint32_t &first)
{
    uint32_t upto = lanemask_lt() | 1u << lane_id();
    uint32_t whose = first + popc(begins & upto) - 1;
    packed = shfl(packed, whose);
    distance = shfl(distance, whose);
    first += popc(begins);
    uint32_t in_span = 32 * r + lane_id();
    uint32_t at = begin + in_span;
    at = at < last ? at : last;
    bool is_literal = at < packed >> ROOM_NBITS;
    bool near = !is_literal & (in_span >= distance);
    const uint8_t *from = is_literal ? b.literals : b.out;
    uint32_t room = packed & ((1u << ROOM_NBITS) - 1);
    uint32_t offset = b.base + at + (is_literal ? room : 0 - distance);
    /* Lanes that need no byte load the first one, which costs less than leaving them out. */
    uint32_t byte = load_part(from + (near ? 0 : offset), 0, !near);
    if (near)
        span.waiting |= 1u << r;
    span.byte[r] = near ? distance : byte;
}

/* collective.  As lz::write_span, but that literals may stand in the output. */
WHARF_DEVICE void write_span(const batch &b, const sequence &s, uint32_t packed, uint32_t begin,
                             uint32_t n, uint32_t &first)
{
    lz::span_bytes span = {};
    uint32_t ahead = s.begin - begin;
    uint32_t round = s.length && ahead < n ? ahead >> 5 : lz::ROUNDS;
    uint32_t bit = 1u << (ahead & 31);
    uint32_t last = begin + n - 1;
    auto make = [&](unsigned r) {
        make_round(span, r, b, packed, s.distance, begin, last, reduce_or(round == r ? bit : 0),
                   first);
    };
    /* No branch between two rounds: where branches meet, all loads are waited for. */
    if (n <= 32) {
        make(0);
    } else if (n <= 96) {
        WHARF_UNROLL
        for (unsigned r = 0; r < 3; r++)
            make(r);
    } else {
        WHARF_UNROLL
        for (unsigned r = 0; r < lz::ROUNDS; r++)
            make(r);
    }
    uint32_t waiting = reduce_or(span.waiting);
    if (waiting) {
        WHARF_UNROLL
        for (unsigned r = 0; r < lz::ROUNDS; r++)
            if (waiting & 1u << r)
                lz::settle_round(span, r);
    }
    syncwarp(); /* literals that this span takes the place of have been loaded */
    uint8_t *to = b.out + (b.base + begin + lane_id());
    WHARF_UNROLL
    for (unsigned r = 0; r < lz::ROUNDS; r++)
        if (32 * r + lane_id() < n)
            store(to + 32 * r, (uint8_t)span.byte[r]);
}

/* collective.  Whether lz::write_cycle() is for the batch, in which these are `alone`. */
WHARF_DEVICE bool is_cycle(const batch &b, const sequence &s, uint32_t alone)
{
    bool fits = (s.length == 0) | ((s.distance == 8) & (s.n_literals <= lz::MOST_CYCLE_LITERALS));
    bool all_fit = !any_lane(!fits);
    return all_fit && popc(alone) >= lz::MIN_CYCLE_MATCHES && b.base >= MIN_CYCLE_POSITION;
}

/*
 * collective.  Writes a batch of `total` bytes, up to MAX_BATCH_NBYTES, which fit, and whose
 * matches reach back no farther than to the first byte of output.  All output before the batch must
 * be visible to the warp.  Synchronises at its end.
 */
WHARF_DEVICE void write_batch(const batch &b, const sequence &s, uint32_t total)
{
    uint32_t match_begin = s.begin + s.n_literals;
    uint32_t match_length = s.length - s.n_literals;
    bool overlaps = (s.distance < match_length) & (match_length >= LONG_OVERLAP);
    uint32_t alone = ballot((overlaps | (match_length >= LONG_MATCH)) &
                            (b.base + match_begin >= MIN_COPY_POSITION));
    if (is_cycle(b, s, alone)) {
        /* Of literals in the input that place is none, and the sum is one. */
        uint32_t literals = b.base + s.begin + s.room;
        lz::write_cycle({b.out, b.literals, b.base},
                        {s.begin, s.n_literals, s.length, literals, s.distance}, total);
        return;
    }
    uint32_t packed = match_begin << ROOM_NBITS | (s.room & ((1u << ROOM_NBITS) - 1));
    uint32_t first = 0, begin = 0;
    for (;;) {
        unsigned lane = alone ? first_lane(alone) : 32;
        uint32_t end = alone ? uniform(shfl(match_begin, lane)) : total;
        for (; begin < end; begin += 32 * lz::ROUNDS) {
            uint32_t n = end - begin < 32 * lz::ROUNDS ? end - begin : 32 * lz::ROUNDS;
            write_span(b, s, packed, begin, n, first);
            syncwarp();
        }
        if (!alone)
            break;
        uint32_t length = uniform(shfl(match_length, lane));
        lz::copy_long(b.out, b.base + end, uniform(shfl(s.distance, lane)), length);
        syncwarp();
        alone &= alone - 1;
        first = lane + 1;
        begin = end + length;
        if (begin == total)
            break;
    }
}

/* collective.  Moves n bytes of output from out[from] to out[to], which is not behind it.  What is
 * there must be there; synchronises at its end. */
WHARF_DEVICE void move_down(uint8_t *out, uint32_t to, uint32_t from, uint32_t n)
{
    if (to == from)
        return;
    uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(out + to)) & 7;
    head = head < n ? head : n;
    uint8_t byte = lane_id() < head ? load(out + from + lane_id()) : 0;
    syncwarp();
    if (lane_id() < head)
        store(out + to + lane_id(), byte);
    syncwarp();
    uint32_t done = head;
    /* Eight bytes are loaded by aligned words, which end up to 7 bytes behind them. */
    while (n - done >= 15) {
        uint32_t n_words = (n - done - 7) / 8 < WARP_LANES ? (n - done - 7) / 8 : WARP_LANES;
        uint64_t word = 0;
        if (lane_id() < n_words)
            word = load_8(out + from + done + 8 * lane_id(), out);
        syncwarp();
        if (lane_id() < n_words)
            store(reinterpret_cast<uint64_t *>(out + to + done) + lane_id(), word);
        syncwarp();
        done += 8 * n_words;
    }
    byte = lane_id() < n - done ? load(out + from + done + lane_id()) : 0;
    syncwarp();
    if (lane_id() < n - done)
        store(out + to + done + lane_id(), byte);
    syncwarp();
}

} // namespace zstd
} // namespace wharf

#endif
