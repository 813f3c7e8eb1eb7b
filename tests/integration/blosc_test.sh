#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# blosc by the command: containers and single chunks, on every engine that has it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

test_encoders_pack_and_unpack() {
    seq 1 40000 > data
    for encoder in shuffle4 bitshuffle2 bytes; do
        "$WHARF" pack -f -c blosc --encoder "$encoder" -o packed.whr data
        "$WHARF" unpack --embedded -o - packed.whr | cmp - data
        "$WHARF" unpack --embedded --engine reference -o - packed.whr | cmp - data
    done
    expect_status 2 "$WHARF" pack -c blosc --encoder shuffle3 -o no.whr data 2> said
    expect_status 2 "$WHARF" pack -c blosc --type u8 -o no.whr data 2> said
    grep -q 'codec blosc has no --type' said
}

test_daemon_decodes_on_every_engine() {
    seq 1 40000 > data
    "$WHARF" pack -c blosc -o data.whr data
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" unpack --socket s -o - data.whr | cmp - data
    "$WHARF" decode -c blosc --socket s < "$TOP/tests/vectors/blosc/ok/special-nan-8" | sha256sum | cut -d ' ' -f 1 > sum
    grep -q "$(cat sum)" "$TOP/tests/vectors/blosc/ok/special-nan-8.expect"
    for engine in cpu simt reference; do
        "$WHARF" unpack --socket s --engine "$engine" -o - data.whr | cmp - data
    done
}

test_single_chunks() {
    vectors="$TOP/tests/vectors/blosc"
    for name in zstd-delta-shuffle-8 blosc1-zlib-2-4 large-3-bitshuffle; do
        "$WHARF" decode -c blosc --embedded < "$vectors/ok/$name" | sha256sum | cut -d ' ' -f 1 > sum
        grep -q "$(cat sum)" "$vectors/ok/$name.expect"
    done
    expect_status 1 "$WHARF" decode -c blosc --embedded --report < "$vectors/bad/streams-that-overlap" 2> report
    grep -q '"reason":"blosc_overlap"' report
}

run_tests
