/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo_test: the hash, the comparison and the places of kept chunks, each by warps on the SIMT
 * layer.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "kernels/memo_place.cuh"

using namespace wharf;

namespace
{

constexpr uint32_t NBYTES = 700, OUT_NBYTES = 900;
constexpr uint32_t KEY[2] = {1, 2};
constexpr memo_wish WISH = {WHARF_MEMO_OWNER(0, 1), WHARF_CODEC_GZIP, NBYTES, OUT_NBYTES};

struct nothing {
    uint32_t unused;
};

template <typename F>
void run_warp(unsigned seed, const F &f)
{
    simt::run_warp<nothing>({simt::lane_order::random, seed}, [&](nothing &) { f(); });
}

struct area {
    uint8_t *memory;
    memo_area memo;

    area()
    {
        memory = static_cast<uint8_t *>(aligned_alloc(256, WHARF_MEMO_LEAST_NBYTES));
        memset(memory, 0, WHARF_MEMO_LEAST_NBYTES);
        memo = memo_area_of(memory, WHARF_MEMO_LEAST_NBYTES, 1, KEY);
    }
    ~area() { free(memory); }
};

/* A chunk's copy, `shift` bytes into a buffer that is aligned to 256. */
struct copy {
    alignas(256) uint8_t buffer[1024];
    uint32_t shift;

    copy(unsigned seed, uint32_t at = 0) : shift(at)
    {
        memset(buffer, 0xaa, sizeof(buffer));
        for (uint32_t i = 0; i < NBYTES; i++)
            data()[i] = (uint8_t)(i * seed + i / 7);
    }
    uint8_t *data() { return buffer + shift; }
};

uint64_t digest_of(const memo_area &memo, const memo_wish &wish, copy &input)
{
    uint64_t digest = 0;
    run_warp((unsigned)input.shift, [&] {
        uint64_t mine = memo_digest(memo, wish, input.data());
        if (lane_id() == 0)
            digest = mine;
    });
    return digest;
}

memo_look find(const memo_area &memo, copy &input)
{
    memo_look look = {};
    run_warp(1, [&] {
        memo_look mine = memo_find(memo, WISH, input.data());
        if (lane_id() == 0)
            look = mine;
    });
    return look;
}

/* Takes a place for an input; filled if `is_filled`. */
memo_place keep(const memo_area &memo, copy &input, uint64_t digest, bool is_filled)
{
    memo_place place = {};
    run_warp(1, [&] {
        memo_place mine =
            memo_reserve(memo, WISH, digest, input.data(), input.data(), good(NBYTES, OUT_NBYTES));
        if (mine.entry && is_filled) {
            for (uint32_t i = lane_id(); i < NBYTES; i += WARP_LANES)
                mine.input[i] = input.data()[i];
            memo_publish(mine);
        }
        if (lane_id() == 0)
            place = mine;
    });
    return place;
}

} // namespace

/* Each byte counts, the owner, codec and sizes, and the key; the alignment does not. */
Test(memo, digests_are_of_bytes_and_wishes)
{
    area a;
    std::vector<uint64_t> all;
    copy input(1);
    uint64_t digest = digest_of(a.memo, WISH, input);

    for (uint32_t shift = 1; shift < 40; shift += 3) {
        copy other(1, shift);
        cr_expect_eq(digest_of(a.memo, WISH, other), digest, "%u", shift);
    }
    all.push_back(digest);
    for (uint32_t i = 0; i < NBYTES; i++) {
        input.data()[i] ^= 1 << i % 8;
        all.push_back(digest_of(a.memo, WISH, input));
        input.data()[i] ^= 1 << i % 8;
    }
    for (unsigned i = 0; i < 5; i++) {
        memo_wish wish = WISH;
        memo_area memo = a.memo;
        wish.owner += i == 0 ? 256 : 0;
        wish.codec += i == 1;
        wish.src_nbytes -= i == 2;
        wish.dst_nbytes += i == 3;
        memo.key[1] += i == 4;
        all.push_back(digest_of(memo, wish, input));
    }
    std::sort(all.begin(), all.end());
    cr_expect(std::adjacent_find(all.begin(), all.end()) == all.end());
}

/* What has the same hash is not the same, at whatever byte it differs. */
Test(memo, every_byte_is_compared)
{
    area a;
    copy input(1);
    uint64_t digest = digest_of(a.memo, WISH, input);

    memo_entry *entry = keep(a.memo, input, digest, true).entry;
    cr_assert_not_null(entry);
    for (uint32_t i = 0; i < NBYTES; i += i % 2 ? 1 : 30) {
        memo_look look = find(a.memo, input);
        cr_assert_eq(look.entry, entry);
        run_warp(2, [&] { memo_leave(entry); });
        uint8_t *kept = a.memory + WHARF_MEMO_LEAST_NBYTES - a.memo.log_nbytes;
        kept[i] ^= 0x80;
        cr_expect_null(find(a.memo, input).entry, "byte %u", i);
        cr_expect_eq(entry->state, memo_state(0, MEMO_READY));
        kept[i] ^= 0x80;
    }
}

/* While a warp fills or reads the oldest, nothing takes its place; then something does. */
Test(memo, what_is_read_or_filled_does_not_leave)
{
    for (unsigned reads = 0; reads < 2; reads++) {
        area a;
        copy first(1);
        uint64_t digest = digest_of(a.memo, WISH, first);
        memo_place place = keep(a.memo, first, digest, reads);
        cr_assert_not_null(place.entry);
        if (reads)
            cr_assert_eq(find(a.memo, first).entry, place.entry);
        else
            cr_assert_null(find(a.memo, first).entry);
        unsigned n_kept = 0;
        for (unsigned seed = 2; seed < 60; seed++) {
            copy input(seed);
            memo_place other = keep(a.memo, input, digest_of(a.memo, WISH, input), true);
            n_kept += other.entry != nullptr;
            cr_expect_eq(other.n_evicted, 0);
        }
        cr_expect_eq(n_kept, a.memo.n_entries - 1);
        if (reads)
            run_warp(3, [&] { memo_leave(place.entry); });
        else
            run_warp(3, [&] { memo_publish(place); });
        copy input(60);
        memo_place last = keep(a.memo, input, digest_of(a.memo, WISH, input), true);
        cr_expect_not_null(last.entry);
        cr_expect_eq(last.n_evicted, 1);
        cr_expect_null(find(a.memo, first).entry);
    }
}

/* The same chunk has one place, and one that would take most of the memory has none. */
Test(memo, places_are_for_new_and_small_chunks)
{
    area a;
    copy input(1);
    uint64_t digest = digest_of(a.memo, WISH, input);
    memo_wish wish = WISH;
    memo_place place = {};

    cr_expect_not_null(keep(a.memo, input, digest, false).entry);
    cr_expect_null(keep(a.memo, input, digest, false).entry);
    run_warp(1, [&] {
        memo_place mine =
            memo_reserve(a.memo, wish, digest + 1, input.data(), input.data(), good(NBYTES, 20000));
        if (lane_id() == 0)
            place = mine;
    });
    cr_expect_null(place.entry);
}
