#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# zstd by the command: containers and single streams, on every engine that has it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

test_levels_pack_and_unpack() {
    seq 1 60000 > data
    "$WHARF" pack -c zstd -o l3.whr data
    "$WHARF" pack -c zstd -l 19 -o l19.whr data
    [ "$(stat -c %s l19.whr)" -lt "$(stat -c %s l3.whr)" ]
    for file in l3.whr l19.whr; do
        "$WHARF" unpack --embedded -o - "$file" | cmp - data
        "$WHARF" unpack --embedded --engine reference -o - "$file" | cmp - data
        "$WHARF" test --embedded "$file"
    done
    "$WHARF" list --json l3.whr > listed
    grep -q '"zstd"' listed
    "$WHARF" unpack --embedded --range 100000:1000 -o - l3.whr > part
    cmp -n 1000 -i 100000:0 data part
    expect_status 2 "$WHARF" pack -c zstd -l 23 -o no.whr data 2> said
}

test_every_engine_of_the_daemon_decodes() {
    seq 1 60000 > data
    "$WHARF" pack -c zstd -o data.whr data
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" unpack --socket s -o - data.whr | cmp - data
    for engine in cpu reference simt; do
        "$WHARF" unpack --socket s --engine "$engine" -o - data.whr | cmp - data
    done
}

test_single_streams() {
    vectors="$TOP/tests/vectors/zstd"
    for name in two-frames tables-again checksum-over-blocks; do
        "$WHARF" decode -c zstd --embedded < "$vectors/ok/$name" | sha256sum | cut -d ' ' -f 1 > sum
        grep -q "$(cat sum)" "$vectors/ok/$name.expect"
    done
    expect_status 1 "$WHARF" decode -c zstd --embedded --report < "$vectors/bad/checksum" 2> report
    grep -q '"reason":"zstd_checksum"' report
}

# make_file NAME: two frames with a skippable one between, of the numbers in `data`.
make_file() {
    PYTHONPATH="$TOP/tests/lib" PYTHONDONTWRITEBYTECODE=1 python3 - "$1" << 'EOS'
import sys
import zstd_frame as z
data = open('data', 'rb').read()
half = len(data) // 2
def frame(part):
    blocks = [part[i:i + z.BLOCK_MAX] for i in range(0, len(part), z.BLOCK_MAX)]
    return z.frame_header(len(part), 4, 0x38, checksum=True) + b''.join(
        z.block(z.RAW, block, i == len(blocks) - 1) for i, block in enumerate(blocks)) + z.checksum(part)
open(sys.argv[1], 'wb').write(frame(data[:half]) + z.skippable(b'what is this') + frame(data[half:]))
EOS
}

# A frame that a pipe gave has no size: then there is none of the file either, whatever others say.
test_list_adds_no_sizes_that_are_not_told() {
    seq 1 1000 > data
    zstd -q data -o sized.zst
    zstd -q < <(cat data) > streamed.zst
    cat sized.zst streamed.zst > both.zst
    "$WHARF" list --json sized.zst streamed.zst both.zst > listed
    nbytes=$(stat -c %s data)
    grep '"sized.zst"' listed | has_line "\"chunks\":1,\"chunk_nbytes\":$nbytes,.*\"out_nbytes\":$nbytes,"
    grep '"streamed.zst"' listed | has_line '"chunks":1,"chunk_nbytes":null,.*"out_nbytes":null,'
    grep '"both.zst"' listed | has_line '"chunks":2,"chunk_nbytes":null,.*"out_nbytes":null,'
    "$WHARF" list both.zst | tail -n 1 | has_line -E '^zstd +zstd +2 +[?] .* [?] +[?] xxh64 '
    "$WHARF" list --exact --json both.zst | has_line "\"out_nbytes\":$((2 * nbytes)),"
}

test_files_are_read_by_their_first_bytes() {
    seq 1 60000 > data
    make_file data.zst
    cp data.zst data.tzst
    "$WHARF" cat data.zst | cmp - data
    # shellcheck disable=SC2002 # it is to be a pipe
    cat data.zst | "$WHARF" cat | cmp - data
    "$WHARF" cat --engine reference data.zst | cmp - data
    "$WHARF" unpack -o out data.zst
    cmp out data
    mkdir folder
    cp data.zst data.tzst folder
    "$WHARF" unpack folder/data.zst folder/data.tzst
    cmp folder/data data
    cmp folder/data.tar data
    "$WHARF" test data.zst
    "$WHARF" unpack --range 100000:1000 -o - data.zst > part
    cmp -n 1000 -i 100000:0 data part
    "$WHARF" list data.zst > listed
    grep -qE '^zstd +zstd .* xxh64 +data.zst$' listed
    "$WHARF" list --exact --json data.zst > listed
    grep -q "\"out_nbytes\":$(stat -c %s data)" listed
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" cat --socket s data.zst | cmp - data
}

test_of_a_bad_file_only_good_frames_are_written() {
    seq 1 60000 > data
    make_file data.zst
    size=$(($(stat -c %s data) / 2))
    cp data.zst bad.zst
    printf 'x' | dd of=bad.zst bs=1 seek=200000 conv=notrunc status=none
    head -c 300000 data.zst > cut.zst
    for file in bad cut; do
        expect_status 1 "$WHARF" unpack -o out "$file.zst" 2> message
        [ ! -e out ]
        expect_status 1 "$WHARF" cat --report "$file.zst" > out 2> report
        cmp out <(head -c "$size" data)
        grep -q "has $size bytes from before, all verified" report
        expect_status 1 "$WHARF" cat --report < <(cat "$file.zst") > out 2> piped
        cmp out <(head -c "$size" data)
        [ "$(grep -o '"reason.*"in_nbytes' piped)" = "$(grep -o '"reason.*"in_nbytes' report)" ]
        expect_status 1 "$WHARF" cat --report --engine reference "$file.zst" 2> whole | cmp - /dev/null
        [ "$(grep -o '"reason.*"in_nbytes' whole)" = "$(grep -o '"reason.*"in_nbytes' report)" ]
        rm out
        cp report "$file.report"
    done
    grep -q '"reason":"zstd_checksum"' bad.report
    grep -q '"reason":"input_truncated"' cut.report
}

# Frames that slots hold and frames that they do not, with and without sizes, from files and pipes.
test_frames_of_all_lengths() {
    seq 1 300000 > small
    { seq 1 2600000; head -c 1000000 /dev/urandom; } > large
    zstd -q -c small > small.zst
    zstd -q -c --no-content-size < large > large.zst
    zstd -q -c --ultra -20 --long=27 small > window.zst
    cat small.zst small.zst large.zst small.zst window.zst > all.zst
    cat small small large small small > all
    for threads in 1 4; do
        "$WHARF" cat -T "$threads" all.zst | cmp - all
        "$WHARF" cat -T "$threads" < <(cat all.zst) | cmp - all
    done
    "$WHARF" unpack --range 3000000:20000000 -o - all.zst | cmp -n 20000000 -i 0:3000000 - all
}

test_long_files_take_bounded_memory() {
    head -c 300000000 /dev/zero | zstd -q -c > long.zst
    nbytes=$(command time -f %M -o peak "$WHARF" cat long.zst | wc -c)
    [ "$nbytes" = 300000000 ]
    [ "$(cat peak)" -lt 100000 ]
}

# shellcheck disable=SC2094 # nothing writes what it reads
test_zstd_reads_what_is_packed() {
    { seq 1 200000; head -c 1500000 /dev/urandom; } > data
    for nbytes in 0 1 1048575 1048576 1048577 2700000; do
        head -c "$nbytes" data > part
        "$WHARF" pack -f --format zstd part
        zstd -q -t part.zst
        zstd -q -dc part.zst | cmp - part
        "$WHARF" cat part.zst | cmp - part
    done
    "$WHARF" pack --format zstd -T 1 -b 100K -o one.zst data
    "$WHARF" pack --format zstd -T 5 -b 100K -o five.zst < <(cat data)
    cmp one.zst five.zst
    zstd -q -dc one.zst | cmp - data
    "$WHARF" list --json one.zst > listed
    grep -q "\"chunks\":$((($(stat -c %s data) + 102399) / 102400)),\"chunk_nbytes\":102400" listed
    grep -q "\"out_nbytes\":$(stat -c %s data),\"check\":\"xxh64\"" listed
    "$WHARF" pack -l 19 -o l19.zst part
    "$WHARF" pack -l 1 -o l1.tzst part
    [ "$(stat -c %s l19.zst)" -lt "$(stat -c %s l1.tzst)" ]
    while IFS='|' read -r words message; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" pack $words > out 2> said
        grep -qF -- "$message" said
    done << 'EOS'
--format zstd -l 23 data|zstd (levels 1 to 22, default 3)
--format zstd -b 1000 data|a frame of zstd has 1024 bytes or more
--format zstd -c lz4 data|--codec is a container's
--format zstd part.zst|has the suffix .zst already
EOS
}

part() { # OFFSET LENGTH of `data`
    dd if=data iflag=skip_bytes,count_bytes,fullblock skip="$1" count="${2:-9999999}" bs=64K status=none
}

# Of a file with a seek table only the frames of the range are read.
test_range_by_the_seek_table() {
    seq 1 400000 > data
    "$WHARF" pack --format zstd -b 64K data
    for range in 1:5 65535:2 65536:65536 1000000:1000000 2600000: 2688894:1 2688895:0; do
        "$WHARF" unpack -r "$range" -o - data.zst | cmp - <(part "${range%:*}" "${range#*:}")
    done
    expect_status 2 "$WHARF" unpack -r 2688895:1 data.zst 2> message
    grep -q 'it unpacks to 2688895 bytes' message
    cp data.zst bad.zst
    printf 'xxxx' | dd of=bad.zst bs=1 seek=3000 conv=notrunc status=none
    expect_status 1 "$WHARF" unpack -r 10:5 bad.zst 2> message
    "$WHARF" unpack -r 1000000:1000 bad.zst | cmp - <(part 1000000 1000)
}

# Up to the first bad place, also what no checksum stands for.
test_salvage_writes_what_decodes() {
    seq 1 60000 > data
    make_file data.zst
    printf 'x' | dd of=data.zst bs=1 seek=200000 conv=notrunc status=none
    expect_status 1 "$WHARF" cat --salvage --report data.zst > out 2> report
    [ "$(cmp -l out data | wc -l)" = 1 ]
    grep -q '"reason":"zstd_checksum"' report
    grep -q 'are in doubt' report
    "$WHARF" pack --format zstd -f data
    "$WHARF" cat --salvage data.zst | cmp - data
}

# What a table says is held against the frames; one that does not fill the file is none.
test_seek_tables_that_lie() {
    seq 1 400000 > data
    "$WHARF" pack --format zstd -b 64K data
    cat > lie.py << 'EOS'
import struct, sys
data = bytearray(open('data.zst', 'rb').read())
n, = struct.unpack_from('<I', data, len(data) - 9)
first = len(data) - 9 - 8 * n
def add(entry, field, delta):
    at = first + 8 * entry + 4 * field
    struct.pack_into('<I', data, at, (struct.unpack_from('<I', data, at)[0] + delta) & 0xffffffff)
for change in sys.argv[2:]:
    add(*map(int, change.split(',')))
open(sys.argv[1], 'wb').write(data)
EOS
    # Two outputs of which one is too short; frames that begin elsewhere, and that end elsewhere.
    for lie in '1400000 20,1,-1 21,1,1' '1400000 20,0,-1 21,0,1' '1320000 20,0,-1 21,0,1'; do
        # shellcheck disable=SC2086 # words
        python3 lie.py lie.zst ${lie#* }
        expect_status 1 "$WHARF" unpack --report -r "${lie%% *}:200000" -o out lie.zst 2> report
        grep -q '"reason":"zstd_seek_table"' report
        [ ! -e out ]
        "$WHARF" cat lie.zst | cmp - data
        "$WHARF" unpack -r 0:1000 lie.zst | cmp - <(part 0 1000)
    done
    python3 lie.py none.zst 3,0,1
    "$WHARF" unpack -r 1000000:1000 none.zst | cmp - <(part 1000000 1000)
}

run_tests
