#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The filters for HDF5: called one by one, and by h5dump as it is.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
unset WHARF_SOCKET HDF5_PLUGIN_PATH

vectors=$TOP/tests/vectors
frame="$TOP/tests/lib/blosc2_frame.py"

need_filters() {
    test -d "$BUILD/hdf5" || skip "HDF5's headers are not installed"
}

# filter NAME WHAT ARGUMENT...
filter() {
    "$BUILD/tests/filter_calls" "$BUILD/hdf5/libwharf-h5-$1.so" "${@:2}"
}

# gives VECTOR NAME VALUE...: the chunk `chunk` has the output of that vector.
gives() {
    expect_text "$(sed -n 's/^sha256 //p' "$1.expect")" "$(filter "$2" decode chunk "${@:3}" | sha256sum | cut -d ' ' -f 1)"
}

# Big-endian.
number() {
    python3 -c 'import sys; sys.stdout.buffer.write(int(sys.argv[1]).to_bytes(int(sys.argv[2]), "big"))' "$@"
}

out_nbytes() {
    sed -n 's/^out_nbytes //p' "$1.expect"
}

test_each_filter_decodes_and_has_its_registered_number() {
    need_filters
    while read -r id name; do
        expect_text "$id $name (wharf), version 1, encoder 0, decoder 1" "$(filter "$name" about)"
    done << EOS
32001 blosc
32004 lz4
32008 bitshuffle
32015 zstd
32026 blosc2
EOS
}

# One in sixteen: unit tests decode them all.
test_vectors_decode() {
    need_filters
    n=0 number=0
    for vector in "$vectors"/zstd/ok/* "$vectors"/blosc/ok/*; do
        case $vector in *.expect) continue ;; esac
        number=$((number + 1))
        [ $((number % 16)) = 0 ] || continue
        # Nothing is no chunk; several frames are none of HDF5's.
        case $(out_nbytes "$vector") in '' | 0) continue ;; esac
        case $vector in *two-frames* | *skippable* | *frames*) continue ;; esac
        cp "$vector" chunk
        case $vector in
            */zstd/*) gives "$vector" zstd ;;
            */bitshuffle-lz4-*) gives "$vector" bitshuffle 0 4 "$(parameter "$vector" 256)" 0 2 ;;
            */bitshuffle-zstd-*) gives "$vector" bitshuffle 0 4 "$(parameter "$vector" 512)" 0 3 ;;
            */bitshuffle-l* | */bitshuffle-[0-9]*) continue ;;
            *)
                if grep -q '^parameter' "$vector.expect"; then continue; fi
                gives "$vector" blosc
                "$frame" "$vector" > chunk
                gives "$vector" blosc2
                ;;
        esac
        n=$((n + 1))
    done
    test "$n" -gt 10
}

# parameter VECTOR BASE: an element's size.
parameter() {
    echo $(($(sed -n 's/^parameter //p' "$1.expect") - $2))
}

test_frames_of_lz4() {
    need_filters
    vector=$vectors/lz4/ok/distance-10
    nbytes=$(out_nbytes "$vector")
    { number "$nbytes" 8 && number "$nbytes" 4 && number "$(stat -c %s "$vector")" 4 && cat "$vector"; } > chunk
    gives "$vector" lz4
    # Blocks, of which the second is as it is, and the third shorter.
    seq 1 4000 | head -c 10000 > data
    head -c 4096 data > one
    { number 10000 8 && number 4096 4 && number 4096 4 && cat one && number 4096 4 &&
        head -c 8192 data | tail -c 4096 && number 1808 4 && tail -c 1808 data; } > chunk
    filter lz4 decode chunk | cmp - data
    # What does not fit into the chunk, or makes none.
    head -c 5000 chunk > bad
    expect_status 1 filter lz4 decode bad 2> said
    grep -q 'a block of 4096 bytes at byte 4116 reaches beyond a chunk of 5000 bytes' said
    head -c 4112 chunk > bad
    expect_status 1 filter lz4 decode bad 2> said
    grep -q 'a block is missing at byte 4112' said
    { number 100000000 8 && number 4096 4; } > bad
    expect_status 1 filter lz4 decode bad 2> said
    grep -q 'a chunk of 12 bytes cannot hold the 100000000' said
    { number 100 8 && number 0 4 && number 0 4; } > bad
    expect_status 1 filter lz4 decode bad 2> said
    grep -q 'blocks of no bytes' said
}

# Planes of bits, by a second description of them.
test_bitshuffle_without_compression() {
    need_filters
    for values in '4 64' '3 0' '1 16' '16 8' '63 0'; do
        read -r element block <<< "$values"
        python3 - "$element" "$block" << 'EOS'
import random
import sys

element, block = int(sys.argv[1]), int(sys.argv[2])
random.seed(element)
data = random.randbytes(element * 403)
block = block or max(128, 8192 // element // 8 * 8)
out, at, n = b'', 0, len(data) // element
while n >= 8:
    now = block if n >= block else n // 8 * 8
    part = data[at:at + now * element]
    for plane in range(8 * element):
        bits = [part[i * element + plane // 8] >> plane % 8 & 1 for i in range(now)]
        out += bytes(sum(bits[i + j] << j for j in range(8)) for i in range(0, now, 8))
    at, n = at + now * element, n - now
with open('data', 'wb') as file:
    file.write(data)
with open('chunk', 'wb') as file:
    file.write(out + data[at:])
EOS
        filter bitshuffle decode chunk 0 4 "$element" "$block" 0 | cmp - data
        filter bitshuffle decode chunk 0 4 "$element" "$block" | cmp - data
    done
    expect_status 1 filter bitshuffle decode chunk 0 4 11 0 0 > out 2> said
    grep -q 'bitshuffle of 25389 bytes by blocks of 744 elements of 11 bytes' said
    expect_status 1 filter bitshuffle decode chunk 0 4 256 0 0 2> said
    grep -q 'elements of 256 bytes: 1 to 255 are possible' said
    expect_status 1 filter bitshuffle decode chunk 2> said
    expect_status 1 filter bitshuffle decode chunk 0 4 4 0 1 2> said
    grep -q 'compression 1: 0, 2 and 3 are known' said
}

# Arrays of one to four dimensions whose last blocks are filled up.
test_blocks_of_blosc2_are_put_in_order() {
    need_filters
    for shape in '10 4 2' '5,7 2,4 1' '6,8 2,4 4' '5,6,7 3,2,5 2' '3,4,5,6 2,3,2,4 1'; do
        read -r whole block element <<< "$shape"
        python3 - "$whole" "$block" "$element" << 'EOS'
import itertools
import struct
import sys

shape, block = ([int(n) for n in word.split(',')] for word in sys.argv[1:3])
element = int(sys.argv[3])
counts = [-(-n // b) for n, b in zip(shape, block)]
total = 1
for n in shape:
    total *= n
data = b''.join(((i * 7919) % 251).to_bytes(1, 'little') * element for i in range(total))
out = b''
for at in itertools.product(*map(range, counts)):
    for inside in itertools.product(*map(range, block)):
        place = [a * b + i for a, b, i in zip(at, block, inside)]
        index = 0
        for p, n in zip(place, shape):
            index = index * n + p
        is_there = all(p < n for p, n in zip(place, shape))
        out += data[index * element:(index + 1) * element] if is_there else b'\xee' * element
with open('data', 'wb') as file:
    file.write(data)
with open('inner', 'wb') as file:
    # A copy, as Blosc 1 has it.
    file.write(bytes([2, 1, 2, element]) + struct.pack('<iii', len(out), len(out), len(out) + 16) + out)
EOS
        "$frame" inner "$whole" "$block" "$element" > chunk
        filter blosc2 decode chunk | cmp - data
    done
    # Shapes that are not those of the chunk.
    "$frame" inner 3,4,5,7 2,3,2,4 1 > chunk
    filter blosc2 decode chunk > out
    "$frame" inner 3,4,5,9 2,3,2,4 1 > chunk
    expect_status 1 filter blosc2 decode chunk 2> said
    grep -q 'a bad metalayer b2nd in a frame of Blosc 2' said
    "$frame" fill:5000 > chunk
    filter blosc2 decode chunk | cmp - <(head -c 5000 /dev/zero)
}

test_bad_chunks_give_the_reason_and_its_place() {
    need_filters
    vector=$vectors/blosc/bad/streams-that-overlap
    expect_status 1 filter blosc decode "$vector" 2> said
    at=$(sed -n 's/^bit_offset //p' "$vector.expect")
    expect_text "Blosc streams overlap at bit $at of a chunk of $(stat -c %s "$vector") bytes" "$(cat said)"
    # Its place is counted from the chunk's first byte.
    "$frame" "$vector" > chunk
    expect_status 1 filter blosc2 decode chunk 2> said
    grep -q " at bit $((at + 97 * 8)) of a chunk of" said
    seq 1000 | zstd -q > chunk
    head -c 700 chunk > bad
    expect_status 1 filter zstd decode bad 2> said
    grep -q 'at bit [0-9]* of a chunk of 700 bytes$' said
    # One that says it holds what it cannot.
    { printf '\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x0f' && tail -c +10 chunk; } > bad
    expect_status 1 filter zstd decode bad 2> said
    grep -q 'cannot hold the' said
    for name in blosc lz4 bitshuffle zstd blosc2; do
        : > bad
        expect_status 1 filter "$name" decode bad 0 4 4 0 2 2> said
        printf 'x' > bad
        expect_status 1 filter "$name" decode bad 0 4 4 0 2 2> said
        test -s said
    done
}

# Streams without their size, which some writers make.
test_zstd_frames_need_not_tell_their_size() {
    need_filters
    seq 1 50000 > data
    zstd -q < data > chunk
    filter zstd decode chunk | cmp - data
    zstd -q -l chunk > out 2>&1 || true
    zstd -q --no-content-size -c data > chunk
    filter zstd decode chunk | cmp - data
}

test_damaged_chunks_are_no_danger() {
    need_filters
    seq 1 3000 > data
    zstd -q < data > zstd.chunk
    filter zstd damage 700 zstd.chunk | has_line ' bad$'
    filter blosc damage 700 "$vectors/blosc/ok/blosc1-zlib-2-4" | has_line ' bad$'
    "$frame" "$vectors/blosc/ok/zstd-delta-shuffle-8" > chunk
    filter blosc2 damage 700 chunk | has_line ' bad$'
    size=$(out_nbytes "$vectors/blosc/ok/blosc1-zlib-2-4")
    "$frame" "$vectors/blosc/ok/blosc1-zlib-2-4" "$((size / 4)),2" 3,2 2 > chunk
    filter blosc2 damage 700 chunk | has_line ' bad$'
    filter bitshuffle damage 700 "$vectors/blosc/ok/bitshuffle-lz4-4-205-0" 0 4 4 0 2 | has_line ' bad$'
    filter bitshuffle damage 1000 data 0 4 4 0 0 > out
    { number 10000 8 && number 4096 4 && number 4096 4 && seq 5000 | head -c 12000; } > chunk
    filter lz4 damage 700 chunk | has_line ' bad$'
}

test_writing_is_refused_with_what_to_do() {
    need_filters
    seq 100 > data
    expect_status 1 filter zstd encode data 2> said
    grep -q "wharf's filter zstd (wharf) decodes only: put another plugin for it first into HDF5_PLUGIN_PATH" said
}

connections() {
    "$WHARF" stats --socket s --prometheus > scraped
    "$TOP/tests/lib/prometheus.py" value scraped wharf_connections_total
}

# From 1 MiB of output on the daemon is asked, as libwharf sees fit; one that hangs or dies loses no chunk.
test_large_chunks_look_for_the_daemon() {
    need_filters
    start_daemon ''
    export WHARF_SOCKET=$PWD/s
    seq 1 400000 > data
    zstd -q < data > large
    seq 1 400 | zstd -q > small
    before=$(connections)
    filter zstd decode small | cmp - <(seq 1 400)
    # The statistics' own.
    expect_text "$((before + 1))" "$(connections)"
    filter zstd decode large | cmp - data
    expect_text "$((before + 3))" "$(connections)"
    kill -STOP "$daemon"
    filter zstd decode large | cmp - data
    kill_daemon
    filter zstd decode large | cmp - data
}

# ---- HDF5 itself ---------------------------------------------------------------------------

need_h5dump() {
    need_filters
    command -v h5dump > found || skip 'h5dump is not installed'
    # A sanitizer's library has to come first in a process.
    case $BUILD in *asan | *tsan) skip "a sanitizer cannot be in h5dump" ;; esac
}

# add NAME FILTER NBYTES CHUNK VALUE...: without the filters, which would refuse to.
add() {
    env -u HDF5_PLUGIN_PATH "$BUILD/tests/hdf5_write" a.h5 "$@"
}

test_h5dump_finds_the_filters() {
    need_h5dump
    export HDF5_PLUGIN_PATH=$BUILD/hdf5
    seq 1 3000 > data
    zstd -q < data > chunk
    add zstd 32015 "$(stat -c %s data)" chunk 3
    h5dump -b -o out -d zstd a.h5 > text
    cmp out data
    expect_status 1 "$BUILD/tests/hdf5_write" a.h5 refused 32015 100 chunk 3 2> said
    grep -q 'Filter present but encoding is disabled' said
    { number 10000 8 && number 10000 4 && number 10000 4 && head -c 10000 data; } > chunk
    add lz4 32004 10000 chunk 0
    h5dump -b -o out -d lz4 a.h5 > text
    cmp out <(head -c 10000 data)
    for name in blosc1-zlib-2-4 bitshuffle-lz4-4-205-0; do
        vector=$vectors/blosc/ok/$name
        case $name in
            blosc1*) add "$name" 32001 "$(out_nbytes "$vector")" "$vector" 2 2 4 0 5 1 3 ;;
            *) add "$name" 32008 "$(out_nbytes "$vector")" "$vector" 0 4 4 0 2 ;;
        esac
        h5dump -b -o out -d "$name" a.h5 > text
        expect_text "$(sed -n 's/^sha256 //p' "$vector.expect")" "$(sha256sum < out | cut -d ' ' -f 1)"
    done
    "$frame" "$vectors/blosc/ok/blosc1-zlib-2-4" > chunk
    add blosc2 32026 "$(out_nbytes "$vectors/blosc/ok/blosc1-zlib-2-4")" chunk 1 0 4
    h5dump -b -o out -d blosc2 a.h5 > text
    expect_text "$(sed -n 's/^sha256 //p' "$vectors/blosc/ok/blosc1-zlib-2-4.expect")" "$(sha256sum < out | cut -d ' ' -f 1)"
}

test_h5dump_shows_the_reason_on_its_error_stack() {
    need_h5dump
    export HDF5_PLUGIN_PATH=$BUILD/hdf5
    vector=$vectors/blosc/bad/streams-that-overlap
    add bad 32001 4000 "$vector" 2 2 4 4000 5 1 3
    expect_status 1 h5dump --enable-error-stack -d bad a.h5 > out 2> said
    filter blosc decode "$vector" 2> reason || true
    grep -qF "$(cat reason)" said
    grep -q 'major: Data filters' said
    grep -q 'minor: Filter operation failed' said
}

run_tests
