#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Several files at once, of all formats: pack, unpack, cat -o, test and list.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_files() {
    seq 1 300000 > data
    seq 5 70000 > rest
    gzip -k data
    "$WHARF" pack data rest
    python3 - << 'EOS'
import struct, zlib
data = open('data', 'rb').read()
with open('block.bgz', 'wb') as out:
    for at in list(range(0, len(data), 65280)) + [len(data)]:
        piece = data[at:at + 65280]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = packer.compress(piece) + packer.flush()
        out.write(bytes.fromhex('1f8b08040000000000ff060042430200') + struct.pack('<H', len(body) + 25) +
                  body + struct.pack('<II', zlib.crc32(piece), len(piece)))
EOS
    python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.compress(open("rest", "rb").read()))' > z.zz
}

test_pack_takes_many_and_goes_on_behind_a_bad_one() {
    seq 10 > a
    seq 20 > b
    expect_status 4 "$WHARF" pack a missing . b 2> message
    grep -q '^wharf: missing: cannot open' message
    grep -q '^wharf: .: cannot read: Is a directory' message
    "$WHARF" unpack -o - a.whr b.whr | cmp - <(seq 10; seq 20)
    "$WHARF" pack -c lz4 --report -f a b 2> report
    grep -q '"chunks":2,' report
    expect_text "$(($(stat -c %s a) + $(stat -c %s b)))" \
        "$(python3 -c 'import json; print(json.load(open("report"))["in_nbytes"])')"
}

test_ratio_is_that_of_packing() {
    seq 1 300000 > data
    printf 1 > small
    "$WHARF" pack -v data small 2> message
    grep -qE '^wharf: data -> .* \([2-9]\.[0-9]{2} : 1\), ' message
    grep -qE '^wharf: small -> .* \(0\.[0-9]{2} : 1\), ' message
    "$WHARF" unpack -f -v data.whr small.whr 2> message
    grep -qE '^wharf: data.whr -> .* \([2-9]\.[0-9]{2} : 1\), ' message
    grep -qE '^wharf: small.whr -> .* \(0\.[0-9]{2} : 1\), ' message
}

test_unpack_takes_every_format() {
    make_files
    cp data data.copy
    cp rest rest.copy
    rm data rest
    tar -czf t.tgz data.copy
    "$WHARF" unpack data.gz rest.whr block.bgz z.zz t.tgz
    cmp data data.copy
    cmp rest rest.copy
    cmp block data.copy
    cmp z rest.copy
    tar -tf t.tar | has_line data.copy
    # What is there already stays, and the others are done.
    rm z
    expect_status 4 "$WHARF" unpack data.gz z.zz 2> message
    grep -q '^wharf: data: exists already' message
    cmp z rest.copy
}

test_bad_file_of_many_leaves_nothing_of_its_own() {
    make_files
    python3 - << 'EOS'
data = bytearray(open('data.gz', 'rb').read())
data[len(data) // 2] ^= 0x40
open('bad.gz', 'wb').write(data)
EOS
    expect_status 1 "$WHARF" unpack -f bad.gz z.zz 2> message
    grep -q '^wharf: bad.gz: bad' message
    grep -q '^wharf: bad: not written' message
    test ! -e bad
    cmp z rest
    expect_status 1 "$WHARF" cat -o joined data.gz bad.gz 2> message
    test ! -e joined
}

test_outputs_that_would_be_one_are_refused() {
    make_files
    rm data
    expect_status 2 "$WHARF" unpack data.gz data.whr 2> message
    grep -q '^wharf: data.gz and data.whr would both become data' message
    test ! -e data
    # However they are called.
    ln -s . here
    expect_status 2 "$WHARF" unpack -f data.gz ./data.whr 2> message
    grep -q 'data.gz and ./data.whr would both become\|./data.whr and data.gz would' message
    expect_status 2 "$WHARF" unpack -f "$PWD/data.gz" here/data.whr 2> message
    test ! -e data
    expect_status 2 "$WHARF" unpack -o one data.gz z.zz 2> message
    grep -q 'output names one file, and there are 2 inputs' message
    test ! -e one
}

# The second input was lost.
test_no_output_replaces_another_input() {
    seq 10 > data
    "$WHARF" pack data
    cp data.whr copy
    seq 20 | gzip > data.whr.gz
    for other in data.whr ./data.whr; do
        expect_status 2 "$WHARF" unpack -f data.whr.gz "$other" 2> message
        grep -q 'data.whr.gz would become data.whr, which is an input too' message
        cmp data.whr copy
    done
    ln data.whr hard.whr
    ln -s data.whr link.whr
    for other in hard link; do
        expect_status 2 "$WHARF" unpack -f data.whr.gz "$other".whr 2> message
        cmp data.whr copy
        test ! -e "$other"
    done
    expect_status 2 "$WHARF" unpack -f ./data.whr data.whr.gz 2> message
    grep -q 'data.whr.gz would become data.whr, which is an input too' message
    cmp data.whr copy
    # What is packed already keeps nobody from packing the rest again.
    expect_status 2 "$WHARF" pack -f data data.whr 2> message
    grep -q 'data.whr: has the suffix .whr already' message
    "$WHARF" unpack -c data.whr | cmp - data
}

test_cat_writes_one_file_of_all() {
    make_files
    "$WHARF" cat -o joined data.gz rest.whr z.zz
    cat data rest rest | cmp - joined
    expect_status 4 "$WHARF" cat -o joined data.gz 2> message
    grep -q '^wharf: joined: exists already' message
    "$WHARF" cat -f -o joined data.gz
    cmp joined data
    "$WHARF" unpack -c data.gz z.zz | cmp - <(cat data rest)
}

test_decode_takes_a_file() {
    seq 1000 > data
    gzip -k data
    "$WHARF" decode -c gzip data.gz | cmp - data
    "$WHARF" decode -c gzip -o other data.gz
    cmp other data
}

test_test_says_nothing_of_good_files() {
    make_files
    "$WHARF" test data.gz data.whr block.bgz z.zz > out 2> message
    test ! -s out
    test ! -s message
    "$WHARF" test < data.gz
    "$WHARF" test -v z.zz 2> message
    grep -q '^wharf: z.zz: good, ' message
    head -c 1000 data.gz > cut.gz
    expect_status 1 "$WHARF" test cut.gz z.zz 2> message
    expect_text 1 "$(wc -l < message)"
    grep -q '^wharf: cut.gz: bad data at byte [0-9]* bit [0-7]: .* cut off' message
}

test_ranges_of_what_has_no_index() {
    make_files
    for file in data.gz block.bgz data.whr; do
        for range in 0:1 0:0 65279:3 1000000:300000 1988890:5 1988895:0; do
            "$WHARF" unpack --range "$range" "$file" > part
            cmp part <(tail -c "+$((${range%:*} + 1))" data | head -c "${range#*:}")
        done
        "$WHARF" unpack --range 1900000: "$file" | cmp - <(tail -c +1900001 data)
        "$WHARF" unpack --range 1988895: "$file" | cmp - /dev/null
        "$WHARF" unpack --range 5:7 < "$file" | cmp - <(tail -c +6 data | head -c 7)
        for range in 1988896: 1988895:1 0:1988896; do
            expect_status 2 "$WHARF" unpack --range "$range" "$file" > part 2> message
            grep -q 'the range is not within it: it unpacks to 1988895 bytes' message
        done
    done
}

test_list_prints_what_headers_tell() {
    make_files
    "$WHARF" list --json data.whr data.gz block.bgz z.zz > table.json
    python3 - << 'EOS'
import json, os
whr, gz, bgz, zz = json.load(open('table.json'))
size = os.path.getsize('data')
assert whr['format'] == 'wharf' and whr['codecs'] == ['deflate'], whr
assert whr['out_nbytes'] == size and whr['chunk_nbytes'] == 131072, whr
assert whr['chunks'] == -(-size // 131072), whr
assert whr['in_nbytes'] == os.path.getsize('data.whr'), whr
assert gz['format'] == 'gzip' and gz['out_nbytes'] is None and gz['chunks'] is None, gz
assert bgz['format'] == 'bgzf' and bgz['out_nbytes'] is None and bgz['chunks'] > 10, bgz
assert zz['format'] == 'zlib' and zz['check'] == 'adler32', zz
EOS
    "$WHARF" list data.gz > table
    tail -n 1 table | has_line -E '^gzip +gzip +[?] +[?] +[0-9.]+ KiB +[?] +[?] crc32 +data.gz$'
    "$WHARF" list --exact --json data.gz block.bgz < /dev/null > table.json
    python3 -c 'import json, os
for row in json.load(open("table.json")):
    assert row["out_nbytes"] == os.path.getsize("data"), row'
    # A trailer's size is a claim.
    python3 - << 'EOS'
data = bytearray(open('data.gz', 'rb').read())
data[-4:] = b'\0\0\0\0'
open('liar.gz', 'wb').write(data)
EOS
    "$WHARF" list liar.gz | tail -n 1 | has_line -E ' [?] +[?] crc32 +liar.gz$'
    expect_status 1 "$WHARF" list --exact liar.gz data.gz > table 2> message
    grep -q 'data.gz$' table
    "$WHARF" list < data.whr | has_line 'standard input'
    "$WHARF" list --exact < <(cat data.whr) | has_line '^wharf '
}

# Each block cost a read of 64 KiB.
test_list_reads_blocks_once_however_small() {
    python3 - << 'EOS'
import struct, zlib
with open('small.bgz', 'wb') as out:
    for i in range(20000):
        piece = b'%d\n' % i
        body = b'\1' + struct.pack('<HH', len(piece), 65535 - len(piece)) + piece
        out.write(bytes.fromhex('1f8b08040000000000ff060042430200') + struct.pack('<H', len(body) + 25) +
                  body + struct.pack('<II', zlib.crc32(piece), len(piece)))
EOS
    shell=$BASHPID
    before=$(sed -n 's/^rchar: //p' "/proc/$shell/io")
    "$WHARF" list --json small.bgz > table.json
    after=$(sed -n 's/^rchar: //p' "/proc/$shell/io")
    grep -q '"chunks":20000,' table.json
    test $((after - before)) -lt $((2 * $(stat -c %s small.bgz) + 2000000))
    "$WHARF" cat -q small.bgz | cmp - <(seq 0 19999)
}

test_other_formats_are_named() {
    while IFS='|' read -r bytes name program; do
        # shellcheck disable=SC2059 # the bytes are a format
        printf "$bytes" > file
        for command in cat test list; do
            expect_status 1 "$WHARF" "$command" file 2> message
            grep -qF "file: is $name, which wharf does not read: $program does" message
        done
        # Without -o it spoke of the suffix alone.
        for out in '' '-o out'; do
            # shellcheck disable=SC2086 # words
            expect_status 1 "$WHARF" unpack $out file 2> message
            grep -qF "file: is $name, which wharf does not read: $program does" message
        done
        test ! -e out
    done << 'EOS'
PK\x03\x04rest|a zip archive|`unzip -p`
BZh9rest|bzip2 data|`bzip2 -dc`
\xfd7zXZ\x00|xz data|`xz -dc`
7z\xbc\xaf\x27\x1crest|a 7-Zip archive|`7z x -so`
EOS
    : > empty.whr
    expect_status 1 "$WHARF" unpack empty.whr 2> message
    grep -q '^wharf: empty.whr: is empty' message
}

# A name without a suffix was told before all others, and gave the exit status.
test_inputs_without_a_suffix_have_their_turn() {
    gzip -c < /dev/null > good.gz
    echo nothing > bad.gz
    mkfifo pipe
    expect_status 1 "$WHARF" unpack bad.gz missing pipe good.gz 2> message
    sed -n 's/^wharf: \([a-z.]*\): \(is not gzip\|cannot open\|does not end in\).*/\1 \2/p' message > lines
    expect_text 'bad.gz is not gzip
missing cannot open
pipe does not end in' "$(cat lines)"
    test -e good
    expect_status 4 "$WHARF" unpack missing bad.gz 2> message
    expect_status 2 "$WHARF" unpack pipe bad.gz 2> message
}

run_tests
