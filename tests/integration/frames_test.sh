#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Files of LZ4 frames, framed Snappy and Brotli by all that the command does with files.  What is in them is the
# matter of frame_vectors_test.py.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# Files a.lz4, a.sz, a.br of several blocks, of what is in `data`.
make_files() {
    seq 1 40000 > data
    PYTHONPATH="$TOP/tests/lib" PYTHONDONTWRITEBYTECODE=1 python3 - << 'EOS'
import frame_files as ff
data = open('data', 'rb').read()
parts = [data[i:i + 60000] for i in range(0, len(data), 60000)]
def write(name, packed):
    open(name, 'wb').write(packed)
def meta_block(i, part):
    # WBITS of 16 in the first one; ISLAST 0, 4 nibbles of the length less 1, and that it is stored
    return ((len(part) - 1) << 3 | 1 << 19 if i else (len(part) - 1) << 4 | 1 << 20).to_bytes(3, 'little') + part
write('a.lz4', ff.header(content=len(data)) + b''.join(
    ff.block(ff.sequence(part)) if i % 2 else ff.block(part, True) for i, part in enumerate(parts)) + ff.end(data))
write('checks.lz4', ff.header(block_checks=True, check=False) + b''.join(
    ff.block(ff.sequence(part), check=True) for part in parts) + ff.end())
write('a.sz', ff.IDENTIFIER + b''.join(ff.stored(part) for part in parts))
write('a.br', b''.join(meta_block(i, part) for i, part in enumerate(parts)) + b'\x03')
EOS
}

# flip FILE OFFSET: another byte there.
flip() {
    printf '\xa5' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

test_names_lose_their_suffix() {
    make_files
    cp a.lz4 b.lz4
    "$WHARF" unpack --embedded a.sz
    cmp a data
    rm a
    "$WHARF" unpack --embedded b.lz4 a.br
    cmp a data
    cmp b data
    expect_status 2 "$WHARF" unpack --embedded data 2> message
    grep -q '.lz4, .sz or .br' message
}

test_pipes_and_filters() {
    make_files
    for file in a.lz4 a.sz; do
        "$WHARF" -d < "$file" | cmp - data
    done
    "$WHARF" -d --codec brotli < a.br | cmp - data
    "$WHARF" --codec=brotli -d < a.br | cmp - data
    "$WHARF" cat --codec brotli - < a.br | cmp - data
    expect_status 1 "$WHARF" cat < a.br > out 2> message
    grep -q -- '--codec brotli' message
    expect_status 2 "$WHARF" cat --codec gzip a.br 2> message
    grep -q "'gzip' is not brotli" message
}

test_tar_reads_them() {
    mkdir folder
    seq 1 1000 > folder/file
    tar -cf data folder
    PYTHONPATH="$TOP/tests/lib" PYTHONDONTWRITEBYTECODE=1 python3 -c '
import frame_files as ff
data = open("data", "rb").read()
open("x.tar.lz4", "wb").write(ff.header() + ff.block(data, True) + ff.end(data))'
    mkdir out
    tar -I "$WHARF" -xf x.tar.lz4 -C out
    cmp folder/file out/folder/file
}

test_ranges() {
    make_files
    for file in a.lz4 checks.lz4 a.sz a.br; do
        "$WHARF" unpack --embedded --range 100000:5000 -o - "$file" > part
        cmp -n 5000 -i 100000:0 data part
        [ "$(stat -c %s part)" -eq 5000 ]
        expect_status 2 "$WHARF" unpack --embedded --range 10000000:1 -o - "$file" 2> message
    done
}

test_list_prints_what_it_read() {
    make_files
    nbytes=$(stat -c %s data)
    "$WHARF" list --embedded --json a.lz4 checks.lz4 a.sz a.br > listed
    grep -q "\"a.lz4\",\"format\":\"lz4\",\"codecs\":\[\"lz4\"\],\"chunks\":4,.*\"out_nbytes\":$nbytes,\"check\":\"xxh32\"" listed
    grep -q '"checks.lz4",.*"chunks":4,.*"out_nbytes":null,"check":"xxh32"' listed
    grep -q "\"a.sz\",\"format\":\"snappy\",\"codecs\":\[\"snappy\"\],\"chunks\":4,.*\"out_nbytes\":$nbytes,\"check\":\"crc32c\"" listed
    grep -q '"a.br","format":"brotli","codecs":\[\],"chunks":null,.*"out_nbytes":null,"check":"none"' listed
    "$WHARF" list --embedded --exact --json checks.lz4 a.br > listed
    [ "$(grep -c "\"out_nbytes\":$nbytes" listed)" -eq 2 ]
    # Cut off, nothing is certain.
    head -c 100000 a.lz4 > cut.lz4
    "$WHARF" list --embedded --json cut.lz4 > listed
    grep -q '"chunks":null,.*"out_nbytes":null' listed
    # "none" was said of checks that stand in a header that is not there.
    "$WHARF" pack --format zstd -o a.zst data
    for format in lz4 zst; do
        head -c 4 "a.$format" > start
        "$WHARF" list --embedded --json start > listed
        grep -q '"check":null}' listed
        "$WHARF" list --embedded start | tail -n 1 | has_line ' [?]  *start$'
    done
    { cat a.sz || true; } | "$WHARF" list --embedded --json > listed
    grep -q '"chunks":null,.*"out_nbytes":null,"check":"crc32c"' listed
}

test_gpus_are_refused_with_a_reason() {
    make_files
    start_daemon '[gpu]' 'engine = simt'
    for file in a.lz4 a.sz a.br; do
        expect_status 2 "$WHARF" unpack --socket s --engine simt -o out "$file" 2> said
        grep -q 'is decoded on the CPU alone, in this process: --engine simt cannot' said
        [ ! -e out ]
        "$WHARF" cat --socket s "$file" | cmp - data
        "$WHARF" cat --socket s --engine cpu "$file" | cmp - data
    done
    expect_status 2 "$WHARF" cat --embedded --engine reference a.br 2> said
    grep -q 'take --engine cpu$' said
}

test_of_a_bad_file_nothing_is_unpacked() {
    make_files
    for file in a.lz4 a.sz; do
        cp "$file" "bad-$file"
        flip "bad-$file" 150000
        expect_status 1 "$WHARF" unpack --embedded -o out "bad-$file" 2> message
        grep -q 'not written' message
        [ ! -e out ]
    done
    # What has checksums of its own is written, and no more.
    cp checks.lz4 bad.lz4
    flip bad.lz4 150000
    expect_status 1 "$WHARF" cat --embedded bad.lz4 > out 2> message
    grep -q 'XXH32 of the block is wrong' message
    cmp -n 120000 out data
    [ "$(stat -c %s out)" -eq 120000 ]
    grep -q 'all verified' message
}

test_salvage_writes_all_blocks_that_decode() {
    make_files
    for file in checks.lz4 a.sz; do
        cp "$file" bad
        flip bad 100000
        expect_status 1 "$WHARF" unpack --embedded --salvage --report -o out bad 2> message
        { head -c 60000 data; tail -c +120001 data; } | cmp - out
        grep -q '"bad_places":1,"doubtful_nbytes":0' message
        rm out
    done
    # Behind a block without a checksum of its own all is in doubt.
    cp a.lz4 bad
    flip bad 20
    expect_status 1 "$WHARF" unpack --embedded --salvage --report -o out bad 2> message
    [ "$(stat -c %s out)" -eq "$(stat -c %s data)" ]
    grep -q "\"bad_places\":1,\"doubtful_nbytes\":$(stat -c %s data)" message
    rm out
    head -c 100000 a.br > cut.br
    expect_status 1 "$WHARF" unpack --embedded --salvage -o out cut.br 2> message
    cmp -n "$(stat -c %s out)" out data
    [ "$(stat -c %s out)" -gt 60000 ]
}

run_tests
