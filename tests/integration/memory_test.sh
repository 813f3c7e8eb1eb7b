#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Memory is bounded as wharf(1) says, whatever the size of the input: 256 MiB and 1 GiB of output.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

THREADS=4
SLOTS=$((2 * THREADS + 2))
# The program, its libraries and stacks; and less cannot be seen, since what a process was before
# it became wharf (a fork of Python) counts too.
BASE_KIB=16384

# expect_memory KIB COMMAND...: standard input and output are the command's.
expect_memory() {
    local limit=$(($1 + BASE_KIB))
    shift
    "$TOP/tests/lib/max_rss.py" rss "$@"
    echo "peak $(cat rss) KiB, limit $limit KiB: $*" >&2
    test "$(cat rss)" -le "$limit"
}

give() {
    "$TOP/tests/lib/make_gzip.py" "$@"
}

test_one_large_gzip_member() {
    expect_text $((1 << 30)) "$(give member 1024 | expect_memory 5120 "$WHARF" cat | wc -c)"
}

test_many_gzip_members() {
    expect_text $((1 << 28)) "$(give members 256 | expect_memory 5120 "$WHARF" cat | wc -c)"
}

test_large_zlib_stream() {
    expect_text $((1 << 28)) "$(give zlib 256 | expect_memory 5120 "$WHARF" cat | wc -c)"
}

test_large_bgzf() {
    expect_text $((1 << 28)) \
        "$(give bgzf 256 | expect_memory $((SLOTS * 1434)) "$WHARF" cat -T "$THREADS" | wc -c)"
}

test_pack_and_unpack() {
    head -c 256M /dev/zero |
        expect_memory $((SLOTS * 2048 + THREADS * 1024)) "$WHARF" pack -l 1 -T "$THREADS" > packed
    expect_text $((1 << 28)) \
        "$(expect_memory $((SLOTS * 2048)) "$WHARF" unpack -T "$THREADS" < packed | wc -c)"
}

# A reader that does not read holds up everything, and nothing piles up.
test_slow_reader() {
    give bgzf 256 | expect_memory $((SLOTS * 1434)) "$WHARF" cat -T "$THREADS" |
        { sleep 2; head -c 100000000; cat > /dev/null; } | wc -c > count
    expect_text 100000000 "$(cat count)"
}

# A header that announces chunks of 16 MiB costs nothing until there are any.
test_decode_takes_what_it_needs() {
    seq 1 100000 | gzip -c > small.gz
    expect_memory 4096 "$WHARF" decode -c gzip --max-output 64G < small.gz | wc -c > count
}

run_tests
