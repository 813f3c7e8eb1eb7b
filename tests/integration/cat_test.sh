#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf cat on the compressed files that there are in the world.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_gzip="$TOP/tests/lib/make_gzip.py"

# 4 MiB of output in files m.gz, ms.gz, b.gz and z.zlib, and the output itself.
make_files() { made_once files; }

files() {
    "$make_gzip" member 4 > m.gz
    "$make_gzip" members 4 > ms.gz
    "$make_gzip" bgzf 4 > b.gz
    "$make_gzip" zlib 4 > z.zlib
    gzip -dc m.gz > data
    "$WHARF" pack -o c.whr data
}

json_field() {
    tail -n 1 "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

test_every_kind_by_name_and_from_a_pipe() {
    make_files
    for file in m.gz ms.gz b.gz z.zlib c.whr; do
        for engine in cpu reference; do
            "$WHARF" cat --engine "$engine" "$file" | cmp - data
            # shellcheck disable=SC2002 # it is to be a pipe
            cat "$file" | "$WHARF" cat --engine "$engine" | cmp - data
        done
        "$WHARF" cat -T 1 "$file" | cmp - data
        "$WHARF" cat < "$file" 2> message | cmp - data
        test ! -s message
    done
}

# The same bytes, messages and status as by one thread: of a good stream, one with something behind
# it, one that is cut off and one that is damaged; of a file and of a pipe.
test_one_stream_by_several_threads() {
    "$make_gzip" member 8 > good.gz
    { cat good.gz; echo and more; } > more.gz
    head -c "$(($(stat -c %s good.gz) * 2 / 3))" good.gz > cut.gz
    cp good.gz bad.gz
    printf 'damage' | dd of=bad.gz bs=1 seek="$(($(stat -c %s good.gz) / 2))" conv=notrunc status=none
    for kind in good more cut bad; do
        status=0
        "$WHARF" cat -T 1 "$kind.gz" > one 2> one.message || status=$?
        for n in 4 7; do
            expect_status "$status" "$WHARF" cat -T "$n" "$kind.gz" > many 2> message
            cmp one many
            cmp one.message message
            # What ends at damage leaves a closed pipe to who writes.
            { cat "$kind.gz" || true; } | expect_status "$status" "$WHARF" cat -T "$n" > many 2> /dev/null
            cmp one many
            expect_status "$status" "$WHARF" test -q -T "$n" "$kind.gz" 2> /dev/null
        done
    done
    "$WHARF" unpack -T 5 -o out good.gz
    gzip -dc good.gz | cmp - out
}

test_bytes_that_come_one_by_one() {
    seq 1 300 > data
    gzip -c data > m.gz
    bgzip -c data > b.gz
    "$WHARF" pack -o c.whr data
    for file in m.gz b.gz c.whr; do
        python3 -uc 'import os, sys
for byte in open(sys.argv[1], "rb").read():
    os.write(1, bytes([byte]))' "$file" | "$WHARF" cat | cmp - data
    done
}

test_files_one_after_another() {
    make_files
    cat data data data > three
    "$WHARF" cat m.gz b.gz c.whr | cmp - three
    "$WHARF" cat m.gz - c.whr < b.gz | cmp - three
}

test_bad_file_does_not_keep_back_the_others() {
    make_files
    cat data data > two
    echo nonsense > bad.gz
    expect_status 1 "$WHARF" cat m.gz bad.gz b.gz > out 2> message
    cmp out two
    grep -q '^wharf: bad.gz: is not gzip, BGZF, zlib, zstd, LZ4 frames, framed Snappy or a wharf container' message
    expect_status 4 "$WHARF" cat m.gz missing.gz b.gz > out 2> message
    cmp out two
    grep -q '^wharf: missing.gz: cannot open: No such file or directory' message
    # The first failure decides.
    expect_status 4 "$WHARF" cat missing.gz bad.gz 2> message
    expect_status 1 "$WHARF" cat bad.gz missing.gz 2> message
}

test_bgzf_then_gzip_then_bgzf() {
    make_files
    cat b.gz m.gz b.gz > mixed.gz
    cat data data data > three
    "$WHARF" cat mixed.gz | cmp - three
    # shellcheck disable=SC2002 # it is to be a pipe
    cat mixed.gz | "$WHARF" cat | cmp - three
}

# The size field in a BGZF header is a hint; gzip does not look at it, and its word counts.
test_bgzf_with_wrong_sizes_is_read_as_gzip() {
    make_files
    python3 - << 'EOS'
data = bytearray(open('b.gz', 'rb').read())
at = 0
for number in range(30):
    size = data[at + 16] | data[at + 17] << 8
    if number == 20:
        data[at + 16] ^= 1
    at += size + 1
open('b.gz', 'wb').write(data)
EOS
    gzip -dc b.gz | cmp - data
    "$WHARF" cat b.gz | cmp - data
    # shellcheck disable=SC2002 # it is to be a pipe
    cat b.gz | "$WHARF" cat | cmp - data
}

test_missing_bgzf_marker_is_mentioned() {
    make_files
    head -c -28 b.gz > cut.gz
    "$WHARF" cat cut.gz 2> message | cmp - data
    grep -q 'cut.gz: has no end-of-file block' message
    "$WHARF" cat -q cut.gz 2> message | cmp - data
    test ! -s message
}

# A damaged beginning of a block was taken for bytes behind the end: the rest was lost, with status 0.
test_damaged_beginning_of_a_block_is_bad_data() {
    make_files
    at=$(python3 -c '
import struct
data, at = open("b.gz", "rb").read(), 0
for _ in range(3):
    at += struct.unpack_from("<H", data, at + 16)[0] + 1
print(at)')
    printf '\0' | dd of=b.gz bs=1 seek="$at" conv=notrunc status=none
    for command in 'cat b.gz' 'cat' 'test b.gz' 'unpack -o out b.gz'; do
        # shellcheck disable=SC2086 # they are words
        expect_status 1 "$WHARF" $command < b.gz > part 2> message
        grep -qE "^wharf: (b.gz|standard input): bad data at byte $at bit 0: not in gzip format" message
    done
    test ! -e out
    head -c "$at" b.gz > cut.gz
    expect_status 1 "$WHARF" cat < <(cat cut.gz; echo trailing) > part 2> message
    expect_status 1 "$WHARF" cat --salvage < <(cat cut.gz; echo trailing) > saved 2> message
    cmp part saved
    "$WHARF" cat < <(cat cut.gz; head -c 100000 /dev/zero) 2> message | cmp - part
    grep -q 'has no end-of-file block' message
}

test_bytes_behind_the_end_are_left_alone_and_mentioned() {
    make_files
    for file in m.gz b.gz z.zlib; do
        { cat "$file"; echo trailing; } > longer
        size=$(stat -c %s "$file")
        "$WHARF" cat longer 2> message | cmp - data
        expect_text "wharf: longer: what follows byte $size is not compressed data, ignored" \
            "$(cat message)"
        # shellcheck disable=SC2002 # it is to be a pipe
        cat longer | "$WHARF" cat 2> message | cmp - data
        grep -q "what follows byte $size" message
        "$WHARF" cat --report longer 2> message > /dev/null
        expect_text "$size" "$(json_field in_nbytes message)"
        # Tapes and disks are filled up with zeros: gzip says nothing of them.
        { cat "$file"; head -c 100000 /dev/zero; } > longer
        "$WHARF" cat longer 2> message | cmp - data
        test ! -s message
    done
}

# From its first byte on, a member that is not all there is bad data, for each reader of files: those
# of gzip and BGZF, by one decoder and by jobs.
test_cut_second_member_is_refused_at_every_byte() {
    printf first > data
    printf second | gzip -n > second.gz
    gzip -nc data > m.gz
    bgzip -c data > b.gz
    for first in m.gz b.gz; do
        at=$((8 * $(stat -c %s "$first")))
        for n in $(seq 1 $(($(stat -c %s second.gz) - 1))); do
            { cat "$first"; head -c "$n" second.gz; } > cut.gz
            expect_status 1 "$WHARF" cat --report cut.gz > out 2> message
            cmp out data
            grep -q '^{"result":"bad_data","reason":"input_truncated",' message
            # Up to there it is the header that is cut off, behind it the data or the trailer.
            if [ "$n" -lt 10 ]; then
                grep -q "\"bit_offset\":$at," message
            fi
            # shellcheck disable=SC2002 # it is to be a pipe
            cat cut.gz | expect_status 1 "$WHARF" cat --report > out 2> piped
            cmp out data
            expect_text "$(grep -o '"bit_offset":[0-9]*' message)" \
                "$(grep -o '"bit_offset":[0-9]*' piped)"
        done
    done
}

test_lone_first_magic_byte_is_refused_by_every_engine() {
    seq 1 100 > data
    { gzip -nc data; printf '\037'; } > m.gz
    { bgzip -c data; printf '\037'; } > b.gz
    for file in m.gz b.gz; do
        at=$((8 * ($(stat -c %s "$file") - 1)))
        for engine in cpu reference; do
            expect_status 1 "$WHARF" cat --engine "$engine" --report "$file" > out 2> message
            grep -q "\"reason\":\"input_truncated\",\"bit_offset\":$at," message
            expect_status 1 "$WHARF" decode -c gzip --engine "$engine" --report < "$file" \
                > out 2> message
            grep -q "\"reason\":\"input_truncated\",\"bit_offset\":$at," message
            test ! -s out
        done
    done
}

# Where gzip(1) says "unexpected end of file".
test_any_other_lone_byte_is_left_alone_and_mentioned() {
    seq 1 100 > data
    for first in "gzip -nc" "bgzip -c"; do
        for byte in 001 036 040 170 213 377; do
            { $first data; printf '%b' "\\0$byte"; } > longer
            "$WHARF" cat longer 2> message | cmp - data
            grep -q 'is not compressed data, ignored' message
            "$WHARF" decode -c gzip < longer 2> message | cmp - data
            grep -q 'is not compressed data, ignored' message
        done
    done
}

test_empty_input_is_exit_1() {
    : > empty.gz
    expect_status 1 "$WHARF" cat empty.gz 2> message
    grep -q 'empty.gz: is empty' message
    expect_status 1 "$WHARF" cat < /dev/null 2> message
    grep -q 'standard input: is empty' message
}

test_reader_that_goes_away_ends_it_quietly() {
    make_files
    for file in m.gz b.gz c.whr; do
        set +e
        "$WHARF" cat "$file" 2> message | head -c 1000 > out
        status=${PIPESTATUS[0]}
        set -e
        expect_text 141 "$status"
        test ! -s message
        cmp -n 1000 out data
    done
}

# A producer that goes on for ever must not keep us when nobody reads.
test_reader_that_goes_away_ends_it_though_the_input_waits() {
    make_files
    for file in m.gz b.gz c.whr; do
        mkfifo "fifo-$file"
        exec 5<> "fifo-$file"
        cat "$file" >&5 &
        set +e
        timeout 600 "$WHARF" cat < "fifo-$file" 2> message | head -c 1000 > out
        status=${PIPESTATUS[0]}
        set -e
        expect_text 141 "$status"
        kill %% 2> /dev/null || true
        wait
        exec 5>&-
    done
}

# ---- damage --------------------------------------------------------------------------------

# damage FILE OFFSET
damage() {
    printf '\377\377\377\377' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

test_damaged_bgzf_gives_only_verified_blocks() {
    make_files
    damage b.gz 600000
    expect_status 1 "$WHARF" cat --report b.gz > part 2> message
    nbytes=$(stat -c %s part)
    test "$nbytes" -gt 0
    cmp -n "$nbytes" part data
    grep -q 'all verified' message
    expect_text "$nbytes" "$(json_field out_nbytes message)"
    grep -qE '^wharf: b.gz: bad [a-z]+ at byte (59|6[0-9])[0-9]{4} bit [0-7]: ' message
}

# Split or not, from a file or a pipe, with any number of threads: one verdict.
test_damage_is_told_the_same_everywhere() {
    make_files
    damage b.gz 600000
    for threads in 1 2 5; do
        expect_status 1 "$WHARF" cat -T "$threads" b.gz > "out$threads" 2> "message$threads"
        expect_status 1 "$WHARF" cat -T "$threads" < <(cat b.gz) > out 2> message
        cmp message1 "message$threads"
        cmp out1 "out$threads"
        cmp out1 out
        sed 's/standard input/b.gz/' message | cmp - message1
    done
}

test_short_member_with_a_wrong_checksum_gives_nothing() {
    seq 1 50000 | gzip -c > s.gz
    damage s.gz $(($(stat -c %s s.gz) - 8))
    expect_status 1 "$WHARF" cat s.gz > out 2> message
    test ! -s out
    grep -q 'CRC-32 of the output is wrong' message
    grep -q 'standard output: nothing was written' message
}

# It was printed twice, since reading by offset does not move the descriptor.  The second time it has
# nothing to add, as with cat(1); what is empty from the start is an error.
test_standard_input_is_read_once() {
    seq 1 50000 > data
    gzip -c data > s.gz
    "$WHARF" cat - - < s.gz | cmp - data
    "$WHARF" cat - s.gz - < <(cat s.gz) | cmp - <(cat data data)
    "$WHARF" unpack - - < s.gz | cmp - data
    expect_text 2 "$("$WHARF" list - - < s.gz | wc -l)"
    expect_status 1 "$WHARF" cat - - < /dev/null > out 2> message
    expect_text 'wharf: standard input: is empty: not even the beginning of a compressed file' \
        "$(cat message)"
    { "$WHARF" cat; cat; } < s.gz | cmp - data
}

test_members_before_a_bad_one_come_out() {
    seq 1 50000 > data
    gzip -c data > s.gz
    cp s.gz bad.gz
    damage bad.gz $(($(stat -c %s bad.gz) - 8))
    cat s.gz bad.gz > two.gz
    expect_status 1 "$WHARF" cat two.gz > out 2> message
    cmp out data
}

test_long_member_with_a_wrong_checksum_says_what_is_in_doubt() {
    make_files
    damage m.gz $(($(stat -c %s m.gz) - 8))
    expect_status 1 "$WHARF" cat m.gz > out 2> message
    test -s out
    grep -qE "has $(stat -c %s out) bytes, of which the last $(stat -c %s out) could not be verified" message
}

test_cut_off_files_are_exit_1() {
    make_files
    for file in m.gz ms.gz b.gz z.zlib c.whr; do
        for keep in 1 2 5 11 17 30 100000 $(($(stat -c %s "$file") - 1)); do
            head -c "$keep" "$file" > cut.gz
            expect_status 1 "$WHARF" cat cut.gz > out 2> message
            test -s message
            cmp -n "$(stat -c %s out)" out data
        done
    done
}

test_raw_deflate_is_not_taken_for_something_else() {
    seq 1000 | python3 -c 'import sys, zlib
z = zlib.compressobj(9, zlib.DEFLATED, -15)
sys.stdout.buffer.write(z.compress(sys.stdin.buffer.read()) + z.flush())' > raw
    expect_status 1 "$WHARF" cat raw 2> message
    grep -q 'wharf decode' message
}

run_tests
