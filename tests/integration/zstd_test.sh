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

run_tests
