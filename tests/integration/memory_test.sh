#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Memory is bounded as wharf(1) says, whatever the size of the input: 256 MiB and 1 GiB of output.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

THREADS=4
SLOTS=$((2 * THREADS + 2))
# Of one stream by several threads.
STREAM_KIB=$((5120 + 13 * 1024 * (THREADS + 3)))
# The program, its libraries and stacks.
BASE_KIB=8192

# expect_memory KIB COMMAND...: standard input and output are the command's.
expect_memory() {
    local limit=$(($1 + BASE_KIB)) peak
    shift
    command time -f %M -o rss "$@"
    peak=$(tail -n 1 rss)
    echo "peak $peak KiB, limit $limit KiB: $*" >&2
    test "$peak" -le "$limit"
}

give() {
    "$TOP/tests/lib/make_gzip.py" "$@"
}

# Each pipe ends in a file: of one inside "$(...)" nobody would see the status.
test_one_large_gzip_member() {
    give member 1024 | expect_memory 5120 "$WHARF" cat -T 1 | wc -c > count
    expect_text $((1 << 30)) "$(cat count)"
}

test_many_gzip_members() {
    give members 256 | expect_memory "$STREAM_KIB" "$WHARF" cat -T "$THREADS" | wc -c > count
    expect_text $((1 << 28)) "$(cat count)"
}

test_large_zlib_stream() {
    give zlib 256 | expect_memory "$STREAM_KIB" "$WHARF" cat -T "$THREADS" | wc -c > count
    expect_text $((1 << 28)) "$(cat count)"
}

test_large_bgzf() {
    give bgzf 256 | expect_memory $((SLOTS * 1434)) "$WHARF" cat -T "$THREADS" | wc -c > count
    expect_text $((1 << 28)) "$(cat count)"
}

test_pack_and_unpack() {
    head -c 256M /dev/zero |
        expect_memory $((SLOTS * 2048 + THREADS * 1024)) "$WHARF" pack -l 1 -T "$THREADS" > packed
    expect_memory $((SLOTS * 2048)) "$WHARF" unpack -T "$THREADS" < packed | wc -c > count
    expect_text $((1 << 28)) "$(cat count)"
}

test_pack_for_others() {
    for format in gzip bgzf; do
        head -c 128M /dev/zero |
            expect_memory $((SLOTS * 2112 + THREADS * 1024)) "$WHARF" pack --format "$format" -l 1 -T "$THREADS" |
            gzip -dc | wc -c > count
        expect_text $((1 << 27)) "$(cat count)"
    done
}

# What is kept of a pipe to search in does not grow.
test_salvage_from_a_pipe() {
    { give members 48; head -c 3000000 /dev/urandom; give members 48; } |
        expect_memory 8192 sh -c '"$@" 2> message || test $? = 1' sh "$WHARF" cat --salvage | wc -c > count
    expect_text $((96 << 20)) "$(cat count)"
    grep -q 'bad in 1 place; ' message
}

# A reader that does not read holds up everything, and nothing piles up.
test_slow_reader() {
    give bgzf 256 | expect_memory $((SLOTS * 1434)) "$WHARF" cat -T "$THREADS" |
        { sleep 2; head -c 100000000; cat > /dev/null; } | wc -c > count
    expect_text 100000000 "$(cat count)"
}

# The most that decode may give costs nothing: what it gives does.
test_decode_takes_what_it_needs() {
    seq 1 100000 | tee plain | gzip -c > small.gz
    expect_memory 4096 "$WHARF" decode -c gzip --max-output 64G < small.gz > out
    cmp out plain
}

run_tests
