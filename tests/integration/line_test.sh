#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Codecs of lines on the command line.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# codecs_with PATTERN: those of lines whose source has it, by their folders.
codecs_with() {
    local path found=0
    for path in "$TOP"/encoders/*/*_codec.c; do
        if grep -q '^DEFINE_LINE_CODEC' "$path" && grep -q "$1" "$path"; then
            basename "$path" _codec.c
            found=1
        fi
    done
    test "$found" = 1
}

# Pointers, counters, words of a few kinds, noise; and bf16 of a normal distribution.
make_data() {
    python3 -c 'import random, struct
r = random.Random(1)
parts = []
for i in range(1500):
    base = r.getrandbits(48)
    parts.append(struct.pack("<16Q", *(base + r.randrange(100) if k % 3 else k for k in range(16))))
    parts.append(struct.pack("<32i", *(r.randrange(-100, 100) for _ in range(32))))
    words = [r.getrandbits(32) for _ in range(3)]
    parts.append(struct.pack("<32I", *(r.choice(words) for _ in range(32))))
    parts.append(r.randbytes(48))
open("data", "wb").write(b"".join(parts) + b"end")
weights = (struct.pack("<f", r.gauss(0, 0.02))[2:] for _ in range(200000))
open("weights", "wb").write(b"".join(weights))'
}

# percent FILE OF: the size of a file in percent of another, rounded up.
percent() {
    echo $((($(stat -c %s "$1") * 100 + $(stat -c %s "$2") - 1) / $(stat -c %s "$2")))
}

test_files_are_packed_by_lines() {
    make_data
    for codec in $(codecs_with 'ENCODER_ROWS("lines")'); do
        for encoder in lines lines-64 lines-32; do
            "$WHARF" pack -f -c "$codec" --encoder "$encoder" -o packed data
            for engine in cpu reference; do
                "$WHARF" unpack --engine "$engine" -o - packed | cmp - data
            done
            "$WHARF" unpack -r 30001:777 -o - packed | cmp - <(tail -c +30002 data | head -c 777)
            expect_text yes "$(test "$(percent packed data)" -lt 95 && echo yes)"
        done
        "$WHARF" list packed | has_line "$codec"
    done
    for encoder in bf16 bf16-64 f16 e4m3 e5m2 e5m2-32; do
        "$WHARF" pack -f -c palette --encoder "$encoder" -o packed weights
        "$WHARF" unpack -o - packed | cmp - weights
    done
    "$WHARF" pack -f -c palette -o packed weights
    expect_text yes "$(test "$(percent packed weights)" -le 76 && echo yes)"
    expect_status 2 "$WHARF" pack -c bdi --encoder lines-16 data 2> message
    grep -q 'lines-64' message
}

# By the daemon's processors and by the GPU's code.
test_daemons_unpack_lines() {
    make_data
    start_daemon '[gpu]' 'engine = simt'
    head -c 150000 data > some
    for codec in $(codecs_with .); do
        "$WHARF" pack -f -c "$codec" -b 20K -o packed some
        for engine in cpu simt; do
            "$WHARF" unpack --socket s --engine "$engine" -o - packed | cmp - some
        done
    done
}

# One answer for damaged streams, which `decode` takes without a container.
test_damage_is_named() {
    # bdi, lines of 128 bytes, one of the code 1: eight bytes, again and again.
    python3 -c 'import struct, sys
head = struct.pack("<8BQ", 1, 11, 7, 0, 0, 0, 0, 0, 128)
record = struct.pack("<I16s", 0, b"\x01") + bytes(12)
open("good", "wb").write(head + record + b"abcdefgh" + bytes(8))
bad = bytearray(head + record + b"abcdefgh" + bytes(8))
bad[20] = 9
open("bad", "wb").write(bad)'
    for engine in cpu reference; do
        "$WHARF" decode -c bdi --engine "$engine" good | cmp - <(printf 'abcdefgh%.0s' {1..16})
        expect_status 1 "$WHARF" decode -c bdi --engine "$engine" bad 2> message > out
        grep -q 'byte 20 bit 0: invalid code of a line in the index' message
    done
}

run_tests
