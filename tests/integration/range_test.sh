#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf unpack --range: parts of a container, and what happens at their edges.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

SIZE=3000000
CHUNK=65536

make_container() { made_once container; }

container() {
    head -c "$SIZE" <(seq 1 500000) > data
    "$WHARF" pack -b "$CHUNK" -o packed data
}

# part OFFSET LENGTH: what the range should be.
part() {
    head -c "$2" <(tail -c +$(($1 + 1)) data)
}

test_ranges_around_chunks_edges() {
    make_container
    for offset in 0 1 $((CHUNK - 1)) "$CHUNK" $((CHUNK + 1)) $((20 * CHUNK - 5)) $((SIZE - 1)) "$SIZE"; do
        for length in 0 1 "$CHUNK" $((CHUNK + 1)) 500000; do
            test $((offset + length)) -le "$SIZE" || continue
            "$WHARF" unpack --range "$offset:$length" packed > out
            part "$offset" "$length" | cmp - out
        done
    done
}

test_ranges_from_a_pipe() {
    make_container
    for range in 0:10 65530:20 1000000:1000000 2999999:1 3000000:0; do
        "$WHARF" unpack --range "$range" < <(cat packed) > out
        part "${range%:*}" "${range#*:}" | cmp - out
    done
}

# The sum went round or met the mark of "to the end", and what there was came with exit 0.
test_ranges_that_no_number_holds_are_refused() {
    make_container
    for range in 5:9223372036854775807 9223372036854775807:9223372036854775807 \
        5:18446744073709551610 5:18446744073709551615 18446744073709551615:1; do
        expect_status 2 "$WHARF" unpack --range "$range" packed > out 2> message
        test ! -s out
    done
}

# nbytes_read PID: what that shell and the programs that it ran have read so far.
nbytes_read() {
    sed -n 's/^rchar: //p' "/proc/$1/io"
}

# Each end frame cost two reads of 64 KiB, hours for the members that fit into a GiB.
test_small_members_cost_no_more_than_some_times_their_bytes() {
    make_container
    : | "$WHARF" pack -o empty
    { cat packed; for _ in $(seq 3000); do cat empty; done; } > members
    shell=$BASHPID
    before=$(nbytes_read "$shell")
    "$WHARF" unpack --range 100:1000 members > out
    after=$(nbytes_read "$shell")
    part 100 1000 | cmp - out
    test $((after - before)) -lt $((20 * $(stat -c %s members)))
}

test_range_without_length_goes_to_the_end() {
    make_container
    "$WHARF" unpack -r 2900000: packed | cmp - <(part 2900000 100000)
    "$WHARF" unpack -r 0: packed | cmp - data
    "$WHARF" unpack -r 3000000: packed > out
    test ! -s out
}

test_range_with_units_into_a_file() {
    make_container
    "$WHARF" unpack -r 1M:64KiB -o out packed
    part 1048576 65536 | cmp - out
}

# Only the chunks of the range are read: damage elsewhere is not its business.
test_range_reads_only_its_chunks() {
    make_container
    printf 'damage' | dd of=packed bs=1 seek=200000 conv=notrunc status=none
    expect_status 1 "$WHARF" unpack -o - packed > out 2> message
    "$WHARF" unpack -r 2000000:1000 packed | cmp - <(part 2000000 1000)
    "$WHARF" unpack -r 0:1000 packed | cmp - <(part 0 1000)
}

test_range_outside_is_exit_2_and_says_the_size() {
    make_container
    for range in 3000001:0 3000001: 0:3000001 2999999:2 99999999999999:1 0:16777216T; do
        expect_status 2 "$WHARF" unpack -r "$range" -o out packed 2> message
        grep -q 'the range is not within it: it unpacks to 3000000 bytes' message || [ "$range" = 0:16777216T ]
        test ! -e out
    done
    for range in 3000001: 2999999:2; do
        expect_status 2 "$WHARF" unpack -r "$range" < <(cat packed) 2> message > out
        grep -q 'it unpacks to 3000000 bytes' message
    done
}

test_nonsense_for_a_range_is_exit_2() {
    make_container
    for range in '' : 5 :5 -1:5 1:-5 1:2:3 1:x 1x:2 18446744073709551616:1 1:18446744073709551616T; do
        expect_status 2 "$WHARF" unpack -r "$range" packed 2> message > out
        grep -q 'is not OFFSET:LENGTH or OFFSET:' message
    done
}

# A lost tail takes the index away, not the chunks.
test_cut_off_container_still_gives_ranges() {
    make_container
    head -c $(($(stat -c %s packed) / 2)) packed > cut.whr
    "$WHARF" unpack -r 500000:1000 cut.whr > out 2> message
    part 500000 1000 | cmp - out
    grep -q "looking at every chunk's header" message
    "$WHARF" unpack -q -r 500000:1000 cut.whr 2> message | cmp - <(part 500000 1000)
    test ! -s message
    expect_status 1 "$WHARF" unpack -r 2900000:1000 cut.whr > out 2> message
    test ! -s out
}

run_tests
