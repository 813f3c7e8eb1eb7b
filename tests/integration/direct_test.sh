#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf unpack --range --direct: lines of chunks without the others, and how little of a file they take.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

make_data() { made_once data_files; }

# Words of a few kinds; bf16 of a normal distribution; and what the first becomes in chunks of 4 MiB.
data_files() {
    python3 -c 'import random, struct
r = random.Random(1)
piece = b"".join(struct.pack("<8Q", *(r.getrandbits(48) + r.randrange(100) for _ in range(8))) +
                 struct.pack("<16i", *(r.randrange(-100, 100) for _ in range(16))) for _ in range(4000))
open("data", "wb").write(b"".join(bytes([i]) * 7 + piece for i in range(18)) + b"end")
open("weights", "wb").write(b"".join(struct.pack("<f", r.gauss(0, 0.02))[2:] for _ in range(60000)))'
    "$WHARF" pack -b 4M -c best -o packed data
    "$WHARF" pack -b 64K -c palette -o weights.whr weights
}

# part FILE OFFSET LENGTH: what the range should be.
part() {
    tail -c +$(($2 + 1)) "$1" | feed head -c "$3"
}

# nbytes_read COMMAND...: what it reads, programs' own code apart.
nbytes_read() {
    strace -f -qq -e trace=read,pread64 -o trace "$@" > out 2> message
    awk '/pread64\(/ { n += $NF } /read\(/ && !/pread64/ && /= [0-9]+$/ { m += $NF } END { print n + 0 }' trace
}

test_ranges_are_those_of_whole_chunks() {
    make_data
    size=$(stat -c %s data)
    for range in 0:1 0:128 1:300 4194303:2 4194304:4096 5000000:100000 4000000:5000000 $((size - 5)):5 "$size:0" 8388608:; do
        "$WHARF" unpack -q -r "$range" --direct packed > out
        "$WHARF" unpack -q -r "$range" packed | cmp - out
        "$WHARF" cat -q -r "$range" --direct --engine reference packed | cmp - out
    done
    "$WHARF" unpack -q -r 4000000:5000000 --direct packed | cmp - <(part data 4000000 5000000)
    "$WHARF" cat -q -r 65500:50000 --direct weights.whr | cmp - <(part weights 65500 50000)
    # All of it is no range, and pipes are read as ever.
    "$WHARF" cat --direct packed 2> message | cmp - data
    test ! -s message
    "$WHARF" cat -r 100:5 --direct < <(cat packed) 2> message | cmp - <(part data 100 5)
    test ! -s message
    # Other codecs have no lines.
    "$WHARF" pack -b 64K -c lz4 -o other data
    "$WHARF" cat -r 70000:5 --direct other 2> message | cmp - <(part data 70000 5)
    test ! -s message
}

test_what_is_not_verified_is_said() {
    make_data
    "$WHARF" cat -r 5000000:10 --direct --report packed > out 2> message
    grep -q 'packed: by --direct: chunks that are partly in the range are not verified' message
    expect_text False "$(field verified message)"
    # A chunk that is all there is verified.
    "$WHARF" cat -r 4194304:4194304 --direct --report packed > out 2> message
    expect_status 1 grep -q 'not verified' message
    cmp out <(part data 4194304 4194304)
}

test_only_lines_are_read() {
    make_data
    command -v strace > /dev/null || skip 'there is no strace'
    whole=$(nbytes_read "$WHARF" cat -q -r 5000000:200 packed)
    direct=$(nbytes_read "$WHARF" cat -q -r 5000000:200 --direct packed)
    cmp out <(part data 5000000 200)
    # Windows around headers and index are of 64 KiB; the chunk has more than 2 MiB.
    test "$whole" -gt 2000000
    test "$direct" -lt 400000
}

# Damage elsewhere in the chunk is not looked at; in the index and the lines it is told, at its place.
test_damage() {
    make_data
    cp packed bad
    printf 'damage' | dd of=bad bs=1 seek=1500000 conv=notrunc status=none
    expect_status 1 "$WHARF" cat -r 100:10 bad > out 2> message
    "$WHARF" cat -q -r 100:10 --direct bad | cmp - <(part data 100 10)
    # The first payload: its header, and the first record's codes behind 16 bytes and the offset.
    python3 - << 'EOS'
data = bytearray(open('packed', 'rb').read())
at = data.find(bytes([1, 14, 7, 0, 0, 0, 0, 0]))
assert at > 0
good = bytes(data)
def write(name, offset, value):
    bad = bytearray(good)
    bad[at + offset] = value
    open(name, 'wb').write(bad)
write('header', 2, 9)
write('code', 20, 250)
# Of the second group the offset: far outside.
write('offset', 16 + 36 + 3, 255)
open('place', 'w').write(str(at))
EOS
    for engine in cpu reference; do
        expect_status 1 "$WHARF" cat -r 0:10 --direct --engine "$engine" header > out 2> message
        grep -q "byte $(($(cat place) + 2)) bit 0" message
        expect_status 1 "$WHARF" cat -r 0:10 --direct --engine "$engine" code > out 2> message
        grep -q "byte $(($(cat place) + 20)) bit 0: invalid code of a line" message
        expect_status 1 "$WHARF" cat -r 5000:10 --direct --engine "$engine" offset > out 2> message
        grep -q "byte $(($(cat place) + 52)) bit 0" message
        test ! -s out
        "$WHARF" cat -q -r 100:10 --direct --engine "$engine" offset | cmp - <(part data 100 10)
    done
}

test_beside_a_daemon() {
    make_data
    start_daemon ""
    "$WHARF" cat -q -r 4000000:5000000 --direct --socket s packed | cmp - <(part data 4000000 5000000)
    "$WHARF" unpack -q -r 65500:50000 --direct --socket s weights.whr | cmp - <(part weights 65500 50000)
}

run_tests
