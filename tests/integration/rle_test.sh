#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The run lengths of ORC on the command line: types, counts, containers.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# values TYPE: the numbers of standard input as little-endian values of a type.
values() {
    python3 -c 'import sys
nbytes, is_signed = int(sys.argv[1][1:]) // 8, sys.argv[1][0] == "i"
for line in sys.stdin:
    sys.stdout.buffer.write(int(line).to_bytes(nbytes, "little", signed=is_signed))' "$1"
}

# repeat N NUMBER: the number on N lines.
repeat() {
    for ((i = 0; i < $1; i++)); do echo "$2"; done
}

# bytes HEX: the bytes.
bytes() {
    python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "$1"
}

test_types_say_how_a_stream_is_read() {
    # A run of 0x61 + 3 sevens, and five literals: in zigzag form -4, 1, -2, 2, -4 and -6.
    for type in u8 u16 u32 u64; do
        { repeat 100 7; printf '%s\n' 2 3 4 7 11; } | values "$type" > wanted
        bytes 610007fb020304070b | "$WHARF" decode -c rle1 --type "$type" --count 105 | cmp - wanted
    done
    for type in i8 i16 i32 i64; do
        { repeat 100 -4; printf '%s\n' 1 -2 2 -4 -6; } | values "$type" > wanted
        bytes 610007fb020304070b | "$WHARF" decode -c rle1 --type "$type" | cmp - wanted
    done
    printf '%s\n' 23713 43806 57005 48879 | values u16 > wanted
    bytes 5e035ca1ab1edeadbeef | "$WHARF" decode -c rle2 --type u16 --count 4 | cmp - wanted
    bytes 5e035ca1ab1edeadbeef > stream
    expect_status 1 "$WHARF" decode -c rle2 --type u8 < stream 2> message > out
    grep -q 'byte 0 bit 0: a value that its type cannot hold; unless --type is wrong' message
    test ! -s out
}

test_counts_say_how_many_values_there_are() {
    bytes 0007 > stream
    expect_status 0 "$WHARF" decode -c byterle --count 3 < stream > out
    bytes 070707 | cmp - out
    expect_status 1 "$WHARF" decode -c byterle --count 4 < stream > out 2> message
    grep -q 'output shorter than promised.*unless --count is wrong' message
    expect_status 1 "$WHARF" decode -c byterle --count 2 < stream > out 2> message
    grep -q 'bad data .*more output than there is room for; unless --count is wrong' message
    bytes ff80 > stream
    for count in 1 5 8; do
        "$WHARF" decode -c boolrle --count "$count" < stream > out
        bytes 0100000000000000 | head -c "$count" | cmp - out
    done
    expect_status 1 "$WHARF" decode -c boolrle --count 9 < stream > out 2> message
    "$WHARF" decode -c boolrle < stream > out
    expect_text 8 "$(stat -c %s out)"
    "$WHARF" decode -c rle1 --type i64 --count 0 < /dev/null > out
}

test_containers_of_values() {
    seq 0 7 100000 | values i64 > data
    for codec in rle1 rle2; do
        for type in i8 i16 i32 i64 u8 u16 u32 u64; do
            "$WHARF" pack -f -c "$codec" --type "$type" -b 8K -o packed data
            for engine in cpu reference; do
                "$WHARF" unpack --engine "$engine" -o - packed | cmp - data
            done
            "$WHARF" unpack -r 30001:777 -o - packed | cmp - <(tail -c +30002 data | head -c 777)
        done
        expect_text yes "$(test "$(stat -c %s packed)" -lt 5000 && echo yes)"
    done
    "$WHARF" pack -f -c byterle -o packed data
    "$WHARF" unpack -o - packed | cmp - data
}

# What is no whole number of values, or no truth value, is stored.
test_containers_take_any_bytes() {
    { seq 1 1000 | values i32; printf abc; } > data
    "$WHARF" pack -c rle2 --type i32 -b 1K -o packed data
    "$WHARF" unpack -o - packed | cmp - data
    { repeat 9000 1 | values u8; printf x; } > data
    "$WHARF" pack -f -c boolrle -b 1K -o packed data
    "$WHARF" unpack -o - packed | cmp - data
    expect_text yes "$(test "$(stat -c %s packed)" -lt 3000 && echo yes)"
}

# raw: the streams of a container on standard input, joined; as runs need no other, they are one.
raw() {
    python3 -c 'import struct, sys
packed, at = sys.stdin.buffer.read(), 32
while struct.unpack_from("<I", packed, at)[0] == 0x4b484357:
    nbytes = struct.unpack_from("<I", packed, at + 8)[0]
    sys.stdout.buffer.write(packed[at + 64:at + 64 + nbytes])
    at += 64 + (nbytes + 15) // 16 * 16'
}

# 4 MiB of values and 3 MB of streams, which are decoded in pieces, in this process and by a daemon.
test_long_streams() {
    # Runs of all kinds: noise of several widths, repeats and steps.
    python3 -c 'import random, sys
r, values = random.Random(1), []
while len(values) < 1 << 20:
    bits = r.choice([3, 9, 17, 30])
    values += [r.getrandbits(bits) for _ in range(r.randrange(1, 3000))]
    values += [r.getrandbits(20)] * r.randrange(1, 300)
    start, step = r.getrandbits(20), r.randrange(-9, 10)
    values += [start + step * i for i in range(r.randrange(1, 200))]
for v in values[:1 << 20]:
    sys.stdout.buffer.write(v.to_bytes(4, "little", signed=True))' > data
    start_daemon ''
    for codec in rle1 rle2 byterle; do
        kind='--type i32'
        count=$((1 << 20))
        [ "$codec" != byterle ] || { kind='' && count=$((4 << 20)); }
        # shellcheck disable=SC2086 # words
        {
            "$WHARF" pack -c "$codec" $kind -b 1M -o - data | raw > stream
            for where in --embedded '--embedded -T 1' '--embedded --engine reference' '--socket s'; do
                "$WHARF" decode $where -c "$codec" $kind --count "$count" < stream | cmp - data
                expect_status 1 "$WHARF" decode $where -c "$codec" $kind --report \
                    --count $((count + 1)) < stream 2> short > out
                grep -q 'output shorter than promised' short
                expect_status 1 "$WHARF" decode $where -c "$codec" $kind --report \
                    --count $((count - 1)) < stream 2> full > out
                grep -q 'more output than there is room for' full
                head -c -1 stream > shorter
                expect_status 1 "$WHARF" decode $where -c "$codec" $kind --report < shorter 2> end > out
                grep -q 'it is cut off' end
                test ! -s out
                # Where it fails is the same for all.
                for of in short full end; do
                    grep -oE '"(result|reason|bit_offset)":[^,]*' $of > place
                    [ "$where" != --embedded ] || cp place "$of.first"
                    cmp "$of.first" place
                done
            done
        }
    done
}

test_types_that_make_no_sense_are_refused() {
    expect_status 2 "$WHARF" pack -c rle1 -o packed /dev/null 2> message
    grep -q 'codec rle1 needs --type: one of u8, ' message
    expect_status 2 "$WHARF" decode -c zlib --type u8 < /dev/null 2> message
    grep -q 'codec zlib has no --type' message
    expect_status 2 "$WHARF" decode -c rle2 --type f64 < /dev/null 2> message
    expect_status 2 "$WHARF" decode -c rle2 --type u8 --count -1 < /dev/null 2> message
    expect_status 2 "$WHARF" pack -c rle2 --type i64 -b 1001 -o packed /dev/null 2> message
    grep -q 'has to be a multiple of 8' message
}

run_tests
