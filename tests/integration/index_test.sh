#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf index, and ranges of gzip files by indexes: wharf's own, GZIDX and bgzip's .gzi.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_gzip="$TOP/tests/lib/make_gzip.py"
SIZE=4194304

# make_files FILE...: 4 MiB of output in the files, of m.gz, ms.gz, b.gz and z.zz, and in `data`.
make_files() {
    local file
    local -A kinds=([m.gz]=member [ms.gz]=members [b.gz]=bgzf [z.zz]=zlib)

    for file in "$@"; do
        "$make_gzip" "${kinds[$file]}" 4 > "$file"
    done
    "$WHARF" cat "$1" > data
}

# expect_range FILE OFFSET LENGTH [OPTION...]: the bytes, and no remark.
expect_range() {
    local file=$1 offset=$2 length=$3
    shift 3
    "$WHARF" cat -r "$offset:$length" "$@" "$file" > out 2> message
    cmp out <(tail -c "+$((offset + 1))" data | head -c "$length")
    test ! -s message
}

# n_points FILE: how many an index of wharf's own has.
n_points() {
    od -An -tu4 -j 44 -N 4 "$1" | tr -d ' '
}

test_ranges_of_every_kind_by_its_index() {
    make_files m.gz ms.gz b.gz z.zz
    for file in m.gz ms.gz b.gz z.zz; do
        for threads in 1 4; do
            "$WHARF" index -f -T "$threads" --spacing 200K "$file"
            test "$(n_points "$file.whi")" -ge 4
            for at in 0 65535 $((SIZE - 70000)); do
                expect_range "$file" "$at" 70000 -T "$threads"
            done
            expect_range "$file" 0 "$SIZE" -T "$threads"
            expect_range "$file" "$SIZE" 0
            expect_range "$file" 12345 0
            "$WHARF" unpack -r 4000000: -o - "$file" | cmp - <(tail -c +4000001 data)
        done
    done
}

# With a hole in place of what is far from the range the file as a whole is bad, and the range good.
test_only_what_is_near_the_range_is_read() {
    make_files m.gz
    "$WHARF" index --spacing 200K m.gz
    touch -r m.gz stamp
    dd if=/dev/zero of=m.gz bs=1K seek=200 count=200 conv=notrunc status=none
    touch -r stamp m.gz
    expect_status 1 "$WHARF" test m.gz 2> message
    expect_range m.gz 1000 2000
    expect_range m.gz $((SIZE - 5000)) 5000
}

test_a_range_beyond_the_end_is_refused() {
    make_files m.gz
    "$WHARF" index m.gz
    expect_status 2 "$WHARF" cat -r "$((SIZE - 5)):6" m.gz > out 2> message
    grep -q "unpacks to $SIZE bytes" message
    expect_status 2 "$WHARF" cat -r "$((SIZE + 1)):" m.gz > out 2> message
    test ! -s out
}

# An index that was found is passed over when it is not the file's; one that was named has to fit.
test_an_index_of_another_file_is_not_used() {
    make_files m.gz
    "$WHARF" index m.gz
    touch -d '2001-01-01' m.gz
    "$WHARF" cat -r 100000:1000 m.gz 2> message | cmp - <(tail -c +100001 data | head -c 1000)
    grep -q 'm.gz.whi: is the index of another file' message
    expect_status 4 "$WHARF" cat --index m.gz.whi -r 0:5 m.gz 2> message > out
    test ! -s out
    cp --preserve=timestamps m.gz other.gz
    "$WHARF" index -f m.gz
    cp m.gz.whi other.gz.whi
    expect_range other.gz 100000 1000
    printf x | dd of=other.gz bs=1 seek=9 conv=notrunc status=none
    touch -r m.gz other.gz
    expect_status 4 "$WHARF" cat --index other.gz.whi -r 0:5 other.gz > out 2> message
}

# The checksum of the index itself does not know, those of spans do: the file's own verdict counts.
test_a_span_that_is_not_as_the_index_says_is_decoded_from_the_beginning() {
    make_files m.gz
    "$WHARF" index --spacing 200K m.gz
    python3 - << 'END'
import struct
bytes = bytearray(open('m.gz.whi', 'rb').read())
bytes[72 + 2 * 32 + 24] ^= 1  # the third point's checksum
crc = 0xffffffff
for byte in bytes[:-4]:
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
bytes[-4:] = struct.pack('<I', crc ^ 0xffffffff)
open('m.gz.whi', 'wb').write(bytes)
END
    "$WHARF" cat -r 1000:2000000 m.gz 2> message | cmp - <(tail -c +1001 data | head -c 2000000)
    grep -q 'does not decode as its index says' message
    printf x | dd of=m.gz.whi bs=1 seek=200 conv=notrunc status=none
    "$WHARF" cat -r 1000:10 m.gz 2> message | cmp - <(tail -c +1001 data | head -c 10)
    grep -q 'm.gz.whi: the index is damaged' message
}

test_a_bad_file_gets_no_index() {
    make_files m.gz
    head -c 100000 m.gz > cut.gz
    expect_status 1 "$WHARF" index cut.gz 2> message
    grep -q 'cut.gz: .*cut off' message
    test ! -e cut.gz.whi
    "$WHARF" pack -o c.whr data
    expect_status 2 "$WHARF" index < /dev/null 2> message
    grep -q 'standard input cannot have an index: name a FILE' message
    expect_status 4 "$WHARF" index c.whr 2> message
    expect_status 4 "$WHARF" index -o x - < <(cat m.gz) 2> message
    test ! -e x
}

# Ranges by an index without checksums are right, and said not to be verified.
test_indexes_of_other_programs() {
    make_files ms.gz b.gz m.gz z.zz
    "$WHARF" index --format gzidx --spacing 200K ms.gz
    "$WHARF" index --format gzi b.gz
    for pair in ms.gz:gzidx b.gz:gzi; do
        file=${pair%:*}
        for at in 0 65535 1000000 $((SIZE - 70000)); do
            "$WHARF" cat --report --index "$file.${pair#*:}" -r "$at:70000" "$file" > out 2> message
            cmp out <(tail -c "+$((at + 1))" data | head -c 70000)
            grep -q 'not verified' message
            grep -q '"verified":false' message
        done
    done
    expect_status 4 "$WHARF" index --format gzi m.gz 2> message
    expect_status 4 "$WHARF" index --format gzidx z.zz 2> message
    expect_status 4 "$WHARF" cat --index data -r 0:5 m.gz > out 2> message
}

test_bgzip_makes_the_same_gzi() {
    command -v bgzip > where || exit "$SKIP_STATUS"
    make_files m.gz
    bgzip -c data > d.gz
    bgzip -r -I theirs d.gz
    "$WHARF" index --format gzi -o ours d.gz
    cmp theirs ours
}

run_tests
