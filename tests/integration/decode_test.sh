#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf decode: one raw stream, in memory, all or nothing.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

# pack_with WBITS: zlib's stream of standard input; -15 raw, 15 zlib, 31 gzip.
pack_with() {
    python3 -c 'import sys, zlib
z = zlib.compressobj(9, zlib.DEFLATED, int(sys.argv[1]))
sys.stdout.buffer.write(z.compress(sys.stdin.buffer.read()) + z.flush())' "$1"
}

make_streams() {
    seq 1 200000 > data
    pack_with -15 < data > s.deflate
    pack_with 15 < data > s.zlib
    pack_with 31 < data > s.gzip
    cp data s.stored
}

test_every_codec_and_engine() {
    make_streams
    for codec in deflate zlib gzip stored; do
        for engine in auto cpu reference; do
            "$WHARF" decode -c "$codec" --engine "$engine" < "s.$codec" | cmp - data
            # shellcheck disable=SC2002 # it is to be a pipe
            cat "s.$codec" | "$WHARF" decode --codec "$codec" --embedded | cmp - data
        done
    done
}

test_nothing_comes_out_of_a_bad_stream() {
    make_streams
    for codec in deflate zlib gzip; do
        size=$(stat -c %s "s.$codec")
        for keep in 0 1 $((size / 2)) $((size - 1)); do
            for engine in cpu reference; do
                head -c "$keep" "s.$codec" > cut.raw
                expect_status 1 "$WHARF" decode -c "$codec" --engine "$engine" --report < cut.raw \
                    > out 2> "of_$engine"
                test ! -s out
                grep -q 'it is cut off' "of_$engine"
            done
            # Both engines say the same, but for their names and the time.
            sed -E 's/"engine.*//' of_cpu > a
            sed -E 's/"engine.*//' of_reference | cmp - a
        done
    done
}

test_report_is_json_with_the_documented_fields() {
    make_streams
    "$WHARF" decode -c zlib --report < s.zlib 2> report > /dev/null
    python3 - << 'EOS'
import json, os
text = open('report').read()
assert text.count('\n') == 1
report = json.loads(text)
assert list(report) == ['result', 'reason', 'bit_offset', 'in_nbytes', 'out_nbytes', 'engine', 'daemon',
                        'chunks', 'time_ns'], report
assert report['result'] == 'ok' and report['reason'] == 'none' and report['bit_offset'] == 0
assert report['in_nbytes'] == os.path.getsize('s.zlib')
assert report['out_nbytes'] == os.path.getsize('data')
assert report['engine'] == 'cpu' and report['chunks'] == 1 and report['time_ns'] > 0
EOS
    expect_status 1 "$WHARF" decode -c gzip --report < s.zlib 2> report
    tail -n 1 report | python3 -c 'import json, sys
report = json.load(sys.stdin)
assert (report["result"], report["reason"]) == ("bad_data", "gzip_magic"), report
assert report["input"] == "standard input", report'
}

test_output_over_the_limit_is_exit_4() {
    make_streams
    size=$(stat -c %s data)
    for codec in deflate zlib gzip; do
        "$WHARF" decode -c "$codec" --max-output "$size" < "s.$codec" | cmp - data
        expect_status 4 "$WHARF" decode -c "$codec" --max-output $((size - 1)) < "s.$codec" > out \
            2> message
        test ! -s out
        grep -q -- '--max-output SIZE allows more' message
    done
    expect_status 4 "$WHARF" decode -c gzip --max-output 0 < s.gzip > out 2> message
    : | pack_with 31 | "$WHARF" decode -c gzip --max-output 0 > out
    test ! -s out
}

test_endless_input_is_refused() {
    make_streams
    status=0
    { cat s.gzip; yes; } 2> /dev/null | "$WHARF" decode -c gzip --max-output 2M > out 2> message ||
        status=${PIPESTATUS[1]}
    expect_text 4 "$status"
    grep -q 'too much to decode in memory for an output of at most 2.0 MiB' message
    test ! -s out
}

test_bytes_behind_the_stream_are_left_alone_and_mentioned() {
    make_streams
    for codec in deflate zlib gzip; do
        { cat "s.$codec"; echo trailing; } | "$WHARF" decode -c "$codec" > out 2> message
        cmp out data
        grep -q "what follows byte $(stat -c %s "s.$codec") is not compressed data" message
    done
}

# An error is told by byte and bit: here the reserved block type in the second block's header.
test_error_is_told_by_bit() {
    # A stored block of one byte, then a header of type 3: byte 6, bit 0.
    printf '\000\001\000\376\377A\007' > bad
    expect_status 1 "$WHARF" decode -c deflate --report < bad 2> message
    grep -q '^wharf: standard input: bad data at byte 6 bit 0: reserved block type; it is damaged' message
    grep -q '"bit_offset":48,' message
}

# It said of what a newer version may have made that it is damaged.
test_what_is_newer_is_not_called_damaged() {
    echo data | "$WHARF" rans encode -o stream
    printf '\377' | dd of=stream bs=1 conv=notrunc status=none
    expect_status 4 "$WHARF" decode -c rans stream 2> message
    grep -q 'newer version of the rans format; a newer version of wharf may read it, unless' message
}

run_tests
