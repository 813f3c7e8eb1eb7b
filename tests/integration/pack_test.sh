#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf pack and wharf unpack, as somebody uses them who has files and pipes.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

# Text and bytes that do not compress, in the file `data`: 6 MB, so that every slot is used more
# than once.
make_data() {
    seq 1 600000 > data
    head -c 2000000 /dev/urandom >> data
}

# json_field NAME FILE: one field of the report that is the last line of FILE.
json_field() {
    tail -n 1 "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

test_every_codec_and_encoder_gives_back_the_bytes() {
    make_data
    for settings in 'deflate libdeflate 12' 'deflate zlib 1' 'zlib libdeflate 1' 'zlib zlib 9' \
        'gzip libdeflate 6' 'gzip zlib 0'; do
        read -r codec encoder level <<< "$settings"
        "$WHARF" pack -c "$codec" --encoder "$encoder" -l "$level" -f -o packed data
        "$WHARF" unpack -f -o unpacked packed
        cmp data unpacked
        "$WHARF" unpack --engine reference -f -o unpacked packed
        cmp data unpacked
    done
    "$WHARF" pack -c stored -f -o packed data
    "$WHARF" unpack packed -o - | cmp - data
}

test_names_are_made_from_the_inputs() {
    seq 1 1000 > data
    "$WHARF" pack data
    mv data original
    "$WHARF" unpack data.whr
    cmp data original
    test -e data.whr
}

test_pipes_all_the_way() {
    make_data
    # shellcheck disable=SC2094 # all three only read it
    "$WHARF" pack < data | "$WHARF" unpack | cmp - data
    # shellcheck disable=SC2002 # it is to be a pipe
    cat data | "$WHARF" pack - -o - | "$WHARF" unpack -o - - | cmp - data
    # shellcheck disable=SC2002
    cat data | "$WHARF" pack -o packed
    "$WHARF" cat packed | cmp - data
}

# The same bytes whatever the number of threads; a pipe differs only in that its size is unknown.
test_threads_do_not_change_the_container() {
    make_data
    "$WHARF" pack -T 1 -o one data
    "$WHARF" pack -T 7 -o seven data
    cmp one seven
    for threads in 1 2 16; do
        "$WHARF" unpack -T "$threads" -o - one | cmp - data
    done
}

test_chunks_of_every_size() {
    head -c 100000 /dev/urandom > data
    for chunk in 1K 4096 64KiB 1M 16M; do
        "$WHARF" pack -b "$chunk" -f -o packed data
        "$WHARF" unpack -f -o unpacked packed
        cmp data unpacked
    done
    head -c 500 data > few
    "$WHARF" pack -b 1 -f -o packed few
    "$WHARF" unpack -o - packed | cmp - few
}

test_empty_file() {
    : > data
    "$WHARF" pack data
    test -s data.whr
    "$WHARF" unpack -f data.whr
    test -e data && test ! -s data
    "$WHARF" pack < /dev/null | "$WHARF" cat > nothing
    test ! -s nothing
}

test_joined_containers_unpack_to_joined_output() {
    seq 1 1000 > a
    seq 1 70000 > b
    "$WHARF" pack a
    "$WHARF" pack -c zlib b
    cat a.whr b.whr > both.whr
    cat a b > expected
    "$WHARF" unpack both.whr
    cmp both expected
    "$WHARF" unpack --range 3800:200 both.whr | cmp - <(head -c 4000 expected | tail -c 200)
}

test_existing_output_stays_without_force() {
    seq 1 1000 > data
    echo precious > data.whr
    expect_status 4 "$WHARF" pack data 2> message
    grep -q 'data.whr: exists already; -f replaces it' message
    expect_text precious "$(cat data.whr)"
    "$WHARF" pack -f data
    echo precious > data
    expect_status 4 "$WHARF" unpack data.whr 2> message
    expect_text precious "$(cat data)"
    "$WHARF" unpack -f data.whr
    expect_text "$(seq 1 1000)" "$(cat data)"
}

test_report_counts() {
    make_data
    "$WHARF" pack --report data 2> report
    expect_text ok "$(json_field result report)"
    expect_text "$(stat -c %s data)" "$(json_field in_nbytes report)"
    expect_text "$(stat -c %s data.whr)" "$(json_field out_nbytes report)"
    expect_text "$((($(stat -c %s data) + 131071) / 131072))" "$(json_field chunks report)"
    "$WHARF" unpack --report -o - data.whr 2> report > out
    expect_text "$(stat -c %s data)" "$(json_field out_nbytes report)"
    expect_text cpu "$(json_field engine report)"
    test "$(json_field time_ns report)" -gt 0
}

test_suffix_decides_names() {
    seq 10 > data
    "$WHARF" pack data
    expect_status 2 "$WHARF" pack data.whr 2> message
    grep -q 'has the suffix .whr already' message
    expect_status 2 "$WHARF" unpack data 2> message
    grep -q 'does not end in .whr, .gz, .bgz, .bgzf, .tgz, .taz, .zz, .zst, .tzst, .lz4, .sz or .br; -o NAME' message
    mkdir folder
    cp data.whr folder/.whr
    expect_status 2 "$WHARF" unpack folder/.whr 2> message
}

# ---- damage --------------------------------------------------------------------------------

# flip FILE OFFSET: changes one byte.
flip() {
    python3 - "$1" "$2" << 'EOS'
import sys
with open(sys.argv[1], 'r+b') as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 0x10]))
EOS
}

test_damaged_chunk_is_exit_1_and_leaves_no_file() {
    make_data
    "$WHARF" pack data
    mv data original
    flip data.whr 1000000
    expect_status 1 "$WHARF" unpack data.whr 2> message
    grep -qE '^wharf: data.whr: (bad data|bad checksum|output) .*in chunk [0-9]+ at byte [0-9]+ bit [0-7]: ' \
        message
    grep -q '^wharf: data: not written$' message
    expect_text 'data.whr message original' "$(echo *)"
}

# What was verified before the damage is on standard output, and nothing else.
test_chunks_before_the_damage_come_out() {
    make_data
    "$WHARF" pack data
    flip data.whr 1000000
    expect_status 1 "$WHARF" unpack --report -o - data.whr > part 2> message
    nbytes=$(json_field out_nbytes message)
    expect_text "$nbytes" "$(stat -c %s part)"
    test "$nbytes" -gt 0
    expect_text 0 "$((nbytes % 131072))"
    cmp -n "$nbytes" part data
    test "$(json_field bit_offset message)" -gt 0
    expect_text data.whr "$(json_field input message)"
}

test_same_damage_gives_the_same_message_whatever_the_threads() {
    make_data
    "$WHARF" pack data
    flip data.whr 700000
    flip data.whr 900000
    for threads in 1 2 8; do
        expect_status 1 "$WHARF" unpack -T "$threads" -o - data.whr 2> "message$threads" > /dev/null
        expect_status 1 "$WHARF" unpack -T "$threads" < <(cat data.whr) 2> message > /dev/null
        cmp message1 "message$threads"
        sed 's/standard input/data.whr/' message | cmp - message1
    done
}

test_cut_off_container_is_exit_1() {
    make_data
    "$WHARF" pack data
    size=$(stat -c %s data.whr)
    for keep in 10 40 100 1000000 $((size - 1)); do
        head -c "$keep" data.whr > cut.whr
        expect_status 1 "$WHARF" unpack cut.whr 2> message
        grep -q 'the file is cut off; get the rest of it' message
        test ! -e cut
    done
}

test_what_is_no_container_is_exit_1() {
    seq 1000 > text.whr
    expect_status 1 "$WHARF" unpack text.whr 2> message
    grep -q '^wharf: text.whr: is not gzip, BGZF, zlib, .* or a wharf container; .* --salvage ' message
    cp text.whr junk.gz
    expect_status 1 "$WHARF" unpack junk.gz 2> message
    expect_status 1 "$WHARF" cat junk.gz 2> message2
    cmp message message2
    : > text.whr
    expect_status 1 "$WHARF" unpack text.whr 2> message
    test ! -e text
}

run_tests
