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

test_daemon_decodes_by_its_processors() {
    seq 1 60000 > data
    "$WHARF" pack -c zstd -o data.whr data
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" unpack --socket s -o - data.whr | cmp - data
    "$WHARF" unpack --socket s --engine cpu -o - data.whr | cmp - data
    "$WHARF" unpack --socket s --engine reference -o - data.whr | cmp - data
}

test_forced_gpu_is_refused_with_a_reason() {
    seq 1 60000 > data
    "$WHARF" pack -c zstd -o data.whr data
    start_daemon '[gpu]' 'engine = simt'
    expect_status 4 "$WHARF" unpack --socket s --engine simt -o out data.whr 2> said
    grep -q 'the GPU has no decoder for this codec' said
    [ ! -e out ]
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

test_of_a_bad_file_nothing_is_written() {
    seq 1 60000 > data
    make_file data.zst
    cp data.zst bad.zst
    printf 'x' | dd of=bad.zst bs=1 seek=200000 conv=notrunc status=none
    head -c 300000 data.zst > cut.zst
    for file in bad cut; do
        expect_status 1 "$WHARF" unpack -o out "$file.zst" 2> message
        [ ! -e out ]
        expect_status 1 "$WHARF" cat --report "$file.zst" > out 2> report
        [ ! -s out ]
        rm out
        cp report "$file.report"
    done
    grep -q '"reason":"zstd_checksum"' bad.report
    grep -q '"reason":"input_truncated"' cut.report
}

run_tests
