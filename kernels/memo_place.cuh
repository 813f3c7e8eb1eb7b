/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo_place.cuh: the memory of chunks that are kept.
 *
 * Each owner has a part of the memory to itself (memo.h).  A part has
 *
 *     memo_control    which entries there are, and the lock
 *     index           2 n_entries words, in buckets of four: an entry's number + 1; 0: none
 *     entries         n_entries, as a ring
 *     log             inputs and outputs, as a ring, in the order of entries
 *
 * ENTRIES are numbered, and leave in the order in which they came.  An entry's state is one word of
 * 64 bits, which begins with its number: GONE, FILLING by one warp, or READY with the number of
 * warps that read it.  A warp that wants to read adds itself if the entry still has the number that
 * the index told.  An entry leaves only from READY with no reader.  If the oldest one cannot leave,
 * the new chunk is not kept: nobody waits for a copy.
 *
 * THE LOCK is held for a few loads and stores, while a place is taken; a warp that does not get it
 * soon keeps nothing.
 */
#ifndef WHARF_KERNELS_MEMO_PLACE_CUH
#define WHARF_KERNELS_MEMO_PLACE_CUH

#include "kernels/epoch_state.cuh"
#include "kernels/memo.h"
#include "kernels/memo_hash.cuh"

namespace wharf
{

struct alignas(128) memo_control {
    uint32_t lock;        /* 1: a warp has it, which alone changes the words below */
    uint32_t first, next; /* numbers: of the oldest entry, and of the one to come */
    uint32_t zero;
    uint64_t head;  /* where in the log the next one begins; free-running */
    uint64_t owner; /* whose these entries are; an earlier owner's count for nothing */
};

struct alignas(64) memo_entry {
    uint64_t state;
    uint64_t digest;
    uint64_t owner;
    uint64_t at;                     /* in the log: the input, then the output; free-running */
    uint32_t src_nbytes, dst_nbytes; /* the item's */
    uint32_t codec;                  /* and the parameter, above 16 bits */
    uint32_t shifts;                 /* of input and, above 16 bits, output from multiples of 128 */
    uint32_t in_nbytes, out_nbytes;  /* the verdict's, which is good */
};

/* In an entry's state, below its number.  READY has the number of readers in its low bits. */
constexpr uint64_t MEMO_GONE = 0;
constexpr uint64_t MEMO_FILLING = 1u << 31;
constexpr uint64_t MEMO_READY = 1u << 30;

constexpr uint32_t MEMO_BUCKET = 4;
/* The most entries that leave for a new one: under the lock, a microsecond for each. */
constexpr uint32_t MEMO_MOST_LEAVING = 16;
/* How often a warp tries to get the lock. */
constexpr unsigned MEMO_MOST_TRIES = 16;
/* A chunk may take this part of the log. */
constexpr uint64_t MEMO_MOST_OF_LOG = 4;

struct memo_part {
    memo_control *control;
    uint32_t *index;
    memo_entry *entries;
    uint8_t *log;
};

WHARF_CONSTEXPR size_t memo_table_nbytes(uint32_t n_entries)
{
    return sizeof(memo_control) + round_up(2 * n_entries * sizeof(uint32_t), 128) +
           n_entries * sizeof(memo_entry);
}

/* On the host: an area of nbytes, with n_parts of at least WHARF_MEMO_LEAST_NBYTES. */
inline memo_area memo_area_of(uint8_t *memory, uint64_t nbytes, uint32_t n_parts,
                              const uint32_t key[2])
{
    memo_area memo = {};
    memo.memory = memory;
    memo.n_parts = n_parts;
    memo.part_nbytes = nbytes / n_parts / 256 * 256;
    /* So that tables take less than a hundredth, and small chunks find enough entries. */
    memo.n_entries = 8;
    while (memo.n_entries < 1u << 24 && memo.n_entries * (uint64_t)16384 <= memo.part_nbytes)
        memo.n_entries *= 2;
    memo.log_nbytes = (memo.part_nbytes - memo_table_nbytes(memo.n_entries)) / 256 * 256;
    memo.key[0] = key[0];
    memo.key[1] = key[1];
    return memo;
}

WHARF_DEVICE memo_part memo_part_at(const memo_area &memo, uint32_t number)
{
    uint8_t *at = memo.memory + number * memo.part_nbytes;
    uint8_t *index = at + sizeof(memo_control);
    uint8_t *entries = index + round_up(2 * memo.n_entries * sizeof(uint32_t), 128);
    return {reinterpret_cast<memo_control *>(at), reinterpret_cast<uint32_t *>(index),
            reinterpret_cast<memo_entry *>(entries), at + memo.part_nbytes - memo.log_nbytes};
}

WHARF_DEVICE memo_entry *memo_entry_at(const memo_area &memo, const memo_part &part,
                                       uint32_t number)
{
    return &part.entries[number & (memo.n_entries - 1)];
}

WHARF_DEVICE uint64_t memo_state(uint32_t number, uint64_t kind)
{
    return (uint64_t)number << 32 | kind;
}

/* collective.  atomic_swap_if of one lane. */
template <typename T>
WHARF_DEVICE T swap_if(T *p, T old, T v)
{
    T seen = 0;
    if (lane_id() == 0)
        seen = atomic_swap_if(p, old, v);
    return from_lane<0>(seen);
}

/* collective.  A word, by one load for the warp. */
template <typename T>
WHARF_DEVICE T look_at(const T *p)
{
    T v = 0;
    if (lane_id() == 0)
        v = load_shared_by_device(p);
    return from_lane<0>(v);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* A search's result; if `entry` is not NULL, this warp reads it until memo_leave. */
struct memo_look {
    uint64_t digest;
    memo_entry *entry;
    const uint8_t *output;
    uint32_t in_nbytes, out_nbytes;
};

/* The words of a digest's bucket. */
WHARF_DEVICE uint32_t *memo_bucket(const memo_area &memo, const memo_part &part, uint64_t digest)
{
    return part.index + MEMO_BUCKET * ((uint32_t)digest & (2 * memo.n_entries / MEMO_BUCKET - 1));
}

/* A word of a bucket, in the lane of that number. */
struct memo_sight {
    uint32_t number; /* of the entry */
    bool is_there;   /* that entry is the one in its place */
    bool is_it;      /* and has the digest */
};

/* One lane of the first MEMO_BUCKET; in others nothing is there.  Without a branch, as all before a
 * vote. */
WHARF_DEVICE memo_sight memo_see(const memo_area &memo, const memo_part &part, uint64_t digest)
{
    uint32_t lane = lane_id();
    uint32_t word = load_shared_by_device(memo_bucket(memo, part, digest) + lane % MEMO_BUCKET);
    memo_sight sight = {word - 1, false, false};
    memo_entry *entry = memo_entry_at(memo, part, sight.number);
    uint64_t state = load_shared_by_device(&entry->state);
    uint64_t there = load_shared_by_device(&entry->digest);
    sight.is_there = (lane < MEMO_BUCKET) & (word != 0) &
                     ((uint32_t)(state >> 32) == sight.number) & ((uint32_t)state != MEMO_GONE);
    sight.is_it = sight.is_there & (there == digest);
    return sight;
}

/* collective.  Begins to read an entry; false if it is not ready, or not there any more. */
WHARF_DEVICE bool memo_enter(memo_entry *entry, uint32_t number)
{
    uint64_t state = look_at(&entry->state);
    while ((uint32_t)(state >> 32) == number && ((uint32_t)state & MEMO_READY)) {
        uint64_t seen = swap_if(&entry->state, state, state + 1);
        if (seen == state) {
            fence_device(); /* orders the state before what it says is there */
            return true;
        }
        state = seen;
    }
    return false;
}

/* collective.  Ends to read it. */
WHARF_DEVICE void memo_leave(memo_entry *entry)
{
    syncwarp(); /* every lane's loads */
    if (lane_id() == 0)
        fence_device(); /* orders them before the entry's next use */
    uint64_t state = look_at(&entry->state), seen;
    while ((seen = swap_if(&entry->state, state, state - 1)) != state)
        state = seen;
}

/* collective.  Whether an entry that this warp reads is what the item asks for. */
WHARF_DEVICE bool memo_is_for(const memo_part &part, const memo_entry *entry, uint64_t log_nbytes,
                              const memo_wish &wish, const uint8_t *input)
{
    bool differs = load(&entry->owner) != wish.owner || load(&entry->codec) != wish.codec ||
                   load(&entry->src_nbytes) != wish.src_nbytes ||
                   load(&entry->dst_nbytes) != wish.dst_nbytes;
    if (any_lane(differs))
        return false;
    const uint8_t *source = part.log + load(&entry->at) % log_nbytes;
    return memo_is_same(source + (load(&entry->shifts) & 0xffff), input, wish.src_nbytes);
}

/* collective.  Searches for a chunk whose input is at `input`, in this warp's or its block's
 * memory. Not inlined, so that its registers do not reduce those of decoders. */
WHARF_DEVICE_NOINLINE memo_look memo_find(memo_area memo, memo_wish wish, const uint8_t *input)
{
    memo = uniform_area(memo);
    wish = uniform_wish(wish);
    input = uniform_global(input);
    memo_part part = memo_part_at(memo, uniform(WHARF_MEMO_PART_OF(wish.owner)));
    memo_look look = {memo_digest(memo, wish, input), nullptr, nullptr, 0, 0};
    memo_sight sight = memo_see(memo, part, look.digest);
    uint32_t lanes = ballot(sight.is_it);
    if (lanes == 0)
        return look;
    uint32_t number = uniform(shfl(sight.number, first_lane(lanes)));
    memo_entry *entry = uniform_global(memo_entry_at(memo, part, number));
    if (!memo_enter(entry, number))
        return look;
    if (!memo_is_for(part, entry, memo.log_nbytes, wish, input)) {
        memo_leave(entry);
        return look;
    }
    look.entry = entry;
    look.output = part.log + load(&entry->at) % memo.log_nbytes + copy_nbytes(wish.src_nbytes) +
                  (load(&entry->shifts) >> 16);
    look.in_nbytes = load(&entry->in_nbytes);
    look.out_nbytes = load(&entry->out_nbytes);
    return look;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* A place for a chunk; if `entry` is not NULL, this warp fills it and calls memo_publish. */
struct memo_place {
    memo_entry *entry;
    uint8_t *input, *output;
    uint32_t number;
    uint32_t n_evicted;
};

/* What memo_control says, but for the lock. */
struct memo_counts {
    uint32_t first, next;
    uint64_t head, owner;
};

/* collective, with the lock.  By one load for the warp. */
WHARF_DEVICE memo_counts memo_count(const memo_part &part)
{
    const uint32_t *words = reinterpret_cast<const uint32_t *>(part.control);
    uint32_t word = load_shared_by_device(words + lane_id() % 8);
    return {from_lane<1>(word), from_lane<2>(word), pair_of(from_lane<4>(word), from_lane<5>(word)),
            pair_of(from_lane<6>(word), from_lane<7>(word))};
}

/* One lane. */
WHARF_DEVICE void memo_set_counts(const memo_part &part, const memo_counts &counts)
{
    store_shared_by_device(&part.control->first, counts.first);
    store_shared_by_device(&part.control->next, counts.next);
    store_shared_by_device(&part.control->head, counts.head);
    store_shared_by_device(&part.control->owner, counts.owner);
}

/* collective.  Has the oldest entries leave until the log is free up to `end`, and an entry.  False
 * if some cannot, or they are too many. */
WHARF_DEVICE bool memo_make_room(const memo_area &memo, const memo_part &part, uint64_t end,
                                 memo_counts &counts)
{
    for (uint32_t n = 0; n <= MEMO_MOST_LEAVING; n++) {
        memo_entry *oldest = memo_entry_at(memo, part, counts.first);
        if (counts.first == counts.next || (counts.next - counts.first < memo.n_entries &&
                                            end - look_at(&oldest->at) <= memo.log_nbytes))
            return true;
        uint64_t ready = memo_state(counts.first, MEMO_READY);
        if (n == MEMO_MOST_LEAVING ||
            swap_if(&oldest->state, ready, memo_state(counts.first, MEMO_GONE)) != ready)
            return false;
        counts.first++;
    }
    return false;
}

/* collective.  Whether the part's lock is this warp's now. */
WHARF_DEVICE bool memo_lock(const memo_part &part)
{
    for (unsigned n = 0; n < MEMO_MOST_TRIES; n++) {
        if (swap_if(&part.control->lock, 0u, 1u) == 0) {
            fence_device(); /* orders the lock before the words that it guards */
            return true;
        }
        sleep_ns(500);
    }
    return false;
}

/* collective. */
WHARF_DEVICE void memo_unlock(const memo_part &part)
{
    syncwarp();
    if (lane_id() == 0) {
        fence_device(); /* orders what was stored under it before the lock */
        store_shared_by_device(&part.control->lock, 0u);
    }
}

/* One lane.  Fills in an entry and names it in the index, in a word of the bucket that names none
 * that is there, or in some. */
WHARF_DEVICE void memo_write(memo_entry *entry, uint32_t *word, const memo_wish &wish,
                             uint64_t digest, uint64_t at, uint32_t shifts, const verdict &v,
                             uint32_t number)
{
    store_shared_by_device(&entry->state, memo_state(number, MEMO_FILLING));
    store_shared_by_device(&entry->digest, digest);
    store(&entry->owner, wish.owner);
    store_shared_by_device(&entry->at, at);
    store(&entry->codec, wish.codec);
    store(&entry->src_nbytes, wish.src_nbytes);
    store(&entry->dst_nbytes, wish.dst_nbytes);
    store(&entry->shifts, shifts);
    store(&entry->in_nbytes, v.in_nbytes);
    store(&entry->out_nbytes, v.out_nbytes);
    store_shared_by_device(word, number + 1);
}

/*
 * collective, with the lock.  A new owner begins with an empty part: no warp reads an entry of an
 * earlier one, who has gone, and no hash leads to it.
 */
WHARF_DEVICE memo_place memo_take(const memo_area &memo, const memo_part &part,
                                  const memo_wish &wish, uint64_t digest, uint32_t shifts,
                                  const verdict &v)
{
    memo_place place = {nullptr, nullptr, nullptr, 0, 0};
    uint64_t in_nbytes = copy_nbytes(wish.src_nbytes);
    uint64_t nbytes = in_nbytes + copy_nbytes(v.out_nbytes);
    memo_sight sight = memo_see(memo, part, digest);
    memo_counts counts = memo_count(part);
    if (counts.owner != wish.owner)
        counts.first = counts.next;
    counts.owner = wish.owner;
    /* Somebody else may have kept it meanwhile. */
    if (any_lane(sight.is_it))
        return place;
    uint32_t first = counts.first;
    uint64_t left = memo.log_nbytes - counts.head % memo.log_nbytes;
    uint64_t at = counts.head + (left < nbytes ? left : 0);
    bool has_room = memo_make_room(memo, part, at + nbytes, counts);
    place.n_evicted = counts.first - first;
    if (has_room) {
        place.number = counts.next;
        place.entry = memo_entry_at(memo, part, place.number);
        place.input = part.log + at % memo.log_nbytes + (shifts & 0xffff);
        place.output = part.log + at % memo.log_nbytes + in_nbytes + (shifts >> 16);
        counts.next++;
        counts.head = at + nbytes;
    }
    uint32_t unused = ballot(lane_id() < MEMO_BUCKET && !sight.is_there);
    uint32_t word = unused ? first_lane(unused) : (uint32_t)(digest >> 32) % MEMO_BUCKET;
    if (lane_id() == 0) {
        if (has_room)
            memo_write(place.entry, memo_bucket(memo, part, digest) + word, wish, digest, at,
                       shifts, v, place.number);
        memo_set_counts(part, counts);
    }
    return place;
}

/* collective.  Takes a place for a chunk that is not there.  Its copies get the alignments of
 * `input` and `output`.  Not inlined, as memo_find. */
WHARF_DEVICE_NOINLINE memo_place memo_reserve(memo_area memo, memo_wish wish, uint64_t digest,
                                              const uint8_t *input, const uint8_t *output,
                                              verdict v)
{
    memo = uniform_area(memo);
    wish = uniform_wish(wish);
    digest = from_lane<0>(digest);
    v.out_nbytes = uniform(v.out_nbytes);
    memo_part part = memo_part_at(memo, uniform(WHARF_MEMO_PART_OF(wish.owner)));
    uint64_t nbytes = copy_nbytes(wish.src_nbytes) + copy_nbytes(v.out_nbytes);
    uint32_t shifts = (uint32_t)(reinterpret_cast<uintptr_t>(input) & 127) |
                      (uint32_t)(reinterpret_cast<uintptr_t>(output) & 127) << 16;
    if (any_lane(nbytes > memo.log_nbytes / MEMO_MOST_OF_LOG) || !memo_lock(part))
        return {nullptr, nullptr, nullptr, 0, 0};
    memo_place place = memo_take(memo, part, wish, digest, shifts, v);
    memo_unlock(part);
    return place;
}

/* collective.  The place is filled. */
WHARF_DEVICE void memo_publish(const memo_place &place)
{
    syncwarp(); /* every lane's stores */
    if (lane_id() == 0) {
        fence_device(); /* orders them before the state that says so */
        store_shared_by_device(&place.entry->state, memo_state(place.number, MEMO_READY));
    }
}

} // namespace wharf

#endif
