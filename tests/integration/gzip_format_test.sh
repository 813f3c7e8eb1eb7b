#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf pack --format gzip and bgzf: what others read, and what they say of it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

# Sizes around a slot of 1 MiB, a block of 65280 bytes and the 32 KiB before a part.
SIZES=(0 1 65279 65280 65281 1044480 1048575 1048576 1048577 2100000)

make_data() {
    { seq 1 200000; head -c 300000 /dev/urandom; head -c 600000 /dev/zero; seq 1 200000; } > data
}

# shellcheck disable=SC2094 # nothing writes what it reads
test_gzip_reads_every_size_and_level() {
    make_data
    for format in gzip bgzf; do
        for nbytes in "${SIZES[@]}"; do
            head -c "$nbytes" data > part
            "$WHARF" pack -f --format "$format" part
            gzip -t part.gz
            gzip -dc part.gz | cmp - part
            "$WHARF" test part.gz
        done
        for level in 0 1 6 9; do
            "$WHARF" pack --format "$format" --encoder zlib -l "$level" < data | gzip -dc | cmp - data
        done
    done
    "$WHARF" pack --format bgzf -l 12 < data | gzip -dc | cmp - data
    head -c 1100000 /dev/urandom > noise
    for words in gzip bgzf 'bgzf --encoder zlib -l 0' 'bgzf -b 1K'; do
        # shellcheck disable=SC2086 # words
        "$WHARF" pack --format $words -o - noise > packed
        gzip -dc packed | cmp - noise
        test "$(stat -c %s packed)" -lt $((1100000 + 40 * 1100))
    done
}

# Readers that stop behind the first member lose nothing.
test_gzip_is_one_member_whoever_packs() {
    make_data
    "$WHARF" pack --format gzip -T 1 -o one.gz data
    "$WHARF" pack --format gzip -T 5 -o five.gz < <(cat data)
    cmp one.gz five.gz
    python3 - << 'EOS'
import zlib
reader = zlib.decompressobj(31)
output = reader.decompress(open('one.gz', 'rb').read())
assert reader.eof and not reader.unused_data
assert output == open('data', 'rb').read()
EOS
    gzip -6 -c data > theirs.gz
    test "$(stat -c %s one.gz)" -lt $(($(stat -c %s theirs.gz) * 102 / 100))
    test "$("$WHARF" pack --format gzip -9 < data | wc -c)" -lt "$("$WHARF" pack --format gzip -1 < data | wc -c)"
}

test_bgzip_reads_blocks_at_random() {
    make_data
    "$WHARF" pack --format bgzf data
    bgzip -t data.gz
    bgzip -r data.gz
    bgzip -b 1500000 -s 100000 data.gz | cmp - <(tail -c +1500001 data | head -c 100000)
    "$WHARF" list data.gz | tail -n 1 | has_line "^bgzf .* $(($(stat -c %s data) / 65280 + 2)) "
    "$WHARF" pack --format bgzf -T 3 < data | cmp - data.gz
    "$WHARF" cat data.gz 2> message | cmp - data
    test ! -s message # the marker is there
    "$WHARF" pack --format bgzf -b 1K -o small.bgz data
    bgzip -t small.bgz
    bgzip -dc small.bgz | cmp - data
}

test_tabix_finds_lines() {
    for chromosome in 1 2 3; do
        seq 1 20000 | awk -v c="$chromosome" '{ print c "\t" $1 * 10 "\t" $1 * 10 + 5 "\tname" $1 }'
    done > genes.bed
    "$WHARF" pack --format bgzf genes.bed
    tabix -p bed genes.bed.gz
    tabix genes.bed.gz 2:150000-150030 | cmp - <(printf '2\t%s\t%s\tname%s\n' \
        150000 150005 15000 150010 150015 15001 150020 150025 15002)
}

test_names_say_the_format() {
    seq 1000 > data
    "$WHARF" pack --format gzip data
    expect_text gzip "$("$WHARF" list --json data.gz | grep -o '"format":"[a-z]*"' | cut -d'"' -f4)"
    rm data
    "$WHARF" unpack data.gz
    cmp data <(seq 1000)
    while read -r name format; do
        "$WHARF" pack -o "$name" data
        "$WHARF" list --json "$name" | has_line "\"format\":\"$format\""
    done << 'EOS'
a.gz gzip
a.tgz gzip
a.taz gzip
a.bgz bgzf
a.bgzf bgzf
a.whr wharf
a wharf
EOS
    "$WHARF" pack --format wharf -f -o a.gz data
    "$WHARF" list --json a.gz | has_line '"format":"wharf"'
    "$WHARF" pack --format bgzf -f -o a.gz data
    "$WHARF" list --json a.gz | has_line '"format":"bgzf"'
    for name in data.gz a.tgz a.taz a.bgz a.bgzf; do
        expect_status 2 "$WHARF" pack --format bgzf -f "$name" 2> message
        grep -q "^wharf: .*$name: has the suffix .* already; -o NAME packs it again" message
    done
    expect_status 4 "$WHARF" pack --format gzip data 2> message
    grep -q '^wharf: data.gz: exists already' message
    mkdir folder
    cp data folder
    tar -I "$WHARF --format gzip -9" -cf folder.tar.gz folder
    tar -tzf folder.tar.gz | has_line folder/data
    tar -I "$WHARF --format gzip -9" -tf folder.tar.gz | has_line folder/data
}

test_what_formats_do_not_have_is_exit_2() {
    seq 10 > data
    while IFS='|' read -r words message; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" pack $words data > out 2> said
        grep -qF -- "$message" said
        test ! -s out
        test ! -e data.gz
    done << 'EOS'
--format zip|is not wharf, gzip, bgzf or zstd
--format gzip -c gzip|--codec is a container's, and this is format gzip; --format wharf makes a container
-c gzip -o data.gz|--codec is a container's
--format bgzf --type u8|--type is a container's
--format gzip -b 64K|format gzip has no chunks: --format bgzf has
--format bgzf -b 1000|a block of BGZF has 1024 to 65280 bytes
--format bgzf -b 64K|a block of BGZF has 1024 to 65280 bytes
--format gzip --encoder libdeflate|format gzip is made by encoder zlib alone, levels 0 to 9
--format gzip -l 10|format gzip is made by encoder zlib alone, levels 0 to 9
--format bgzf -l 13|libdeflate (levels 1 to 12, default 6), zlib (levels 0 to 9, default 6)
EOS
}

test_failures_leave_nothing() {
    seq 100000 > data
    expect_status 4 "$WHARF" pack --format gzip -o /dev/full data 2> message
    grep -q '^wharf: /dev/full: cannot write' message
    expect_status 4 "$WHARF" pack --format bgzf . data 2> message
    grep -q '^wharf: .: cannot read: Is a directory' message
    "$WHARF" test data.gz
    "$WHARF" pack --format bgzf -f --report data 2> report
    python3 - << 'EOS'
import json, os
report = json.load(open('report'))
assert report['in_nbytes'] == os.path.getsize('data'), report
assert report['out_nbytes'] == os.path.getsize('data.gz'), report
assert report['chunks'] == -(-os.path.getsize('data') // 65280), report
EOS
}

run_tests
