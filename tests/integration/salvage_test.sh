#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# --salvage: what can be had of damaged files, from files and from pipes, and what is said of it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_data() {
    seq 1 200000 > data
}

flip() { # FILE OFFSET
    python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 0x55]))' "$1" "$2"
}

part() { # FILE OFFSET LENGTH
    dd if="$1" iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" bs=64K status=none
}

# salvage FILE: into `out`, the same from a pipe, with its messages in `message`.
salvage() {
    expect_status 1 "$WHARF" cat --salvage - < <(cat "$1") > piped 2> message
    expect_status 1 "$WHARF" cat --salvage "$1" > out 2> message
    cmp out piped
}

test_good_files_come_out_as_without_it() {
    make_data
    gzip -k data
    cat data.gz data.gz > two.gz
    "$WHARF" pack data
    "$WHARF" pack --format bgzf -o data.bgz data
    for file in data.gz data.whr data.bgz; do
        "$WHARF" cat --salvage "$file" 2> message | cmp - data
        "$WHARF" cat --salvage < <(cat "$file") 2>> message | cmp - data
        test ! -s message
        "$WHARF" unpack --salvage -f -o out "$file"
        cmp out data
    done
    "$WHARF" cat --salvage two.gz data.whr | cmp - <(cat data data data)
    { cat data.gz; head -c 1000 /dev/zero; } > padded.gz
    "$WHARF" cat --salvage padded.gz 2> message | cmp - data
    test ! -s message
    { cat data.gz; echo note; } > more.gz
    "$WHARF" cat --salvage more.gz 2> message | cmp - data
    grep -q 'is not compressed data, ignored' message
}

# Nothing came out of what is cut off within 1 MiB, and of a bad checksum the tail was kept back.
test_gzip_gives_all_that_gzip_gives() {
    make_data
    gzip -k data
    head -c 300000 data.gz > cut.gz
    expect_status 1 "$WHARF" cat cut.gz > out 2> message
    test ! -s out
    salvage cut.gz
    cmp out <(gzip -dc cut.gz 2> /dev/null || true)
    cmp out <(head -c "$(stat -c %s out)" data)
    test "$(stat -c %s out)" -gt 800000
    grep -q "^wharf: cut.gz: bad data at byte 29999[0-9] bit [0-7]: .*; $(stat -c %s out) bytes from byte 0 of the output on are in doubt" message
    cp data.gz crc.gz
    flip crc.gz $(($(stat -c %s crc.gz) - 8))
    salvage crc.gz
    cmp out data
    python3 -c 'import zlib; open("z.zz", "wb").write(zlib.compress(open("data", "rb").read())[:-2])'
    salvage z.zz
    cmp out data
}

test_gzip_goes_on_with_the_next_member() {
    for i in 1 2 3 4; do
        seq "${i}00000" "${i}20000" > "$i"
        gzip -nk "$i"
    done
    flip 2.gz 20000
    cat 1.gz 2.gz 3.gz 4.gz > all.gz
    salvage all.gz
    # What of the second one decodes stands between.
    { cat 1; part out "$(stat -c %s 1)" $(($(stat -c %s out) - $(cat 1 3 4 | wc -c))); cat 3 4; } > expected
    cmp expected out
    grep -q "^wharf: all.gz: bad in 1 place; the output has $(stat -c %s out) bytes of it: [0-9]* in doubt, 0 zeros" message
    # Its first bytes: without --salvage that ends the file, with exit status 0.
    gzip -nk -f 2
    cat 1.gz 2.gz 3.gz > all.gz
    flip all.gz "$(stat -c %s 1.gz)"
    "$WHARF" cat -q all.gz | cmp - 1
    salvage all.gz
    cat 1 3 | cmp - out
    grep -q "^wharf: all.gz: bad data at byte $(stat -c %s 1.gz) bit 0: not in gzip format" message
    # The file's own first bytes.
    flip all.gz 0
    salvage all.gz
    cmp out 3
}

# offsets of a BGZF file's blocks.
blocks() {
    python3 -c 'import struct, sys
data, at = open(sys.argv[1], "rb").read(), 0
while at < len(data):
    print(at)
    at += struct.unpack_from("<H", data, at + 16)[0] + 1' "$1"
}

test_bgzf_loses_only_bad_blocks() {
    make_data
    "$WHARF" pack --format bgzf -b 16K -o b.gz data
    mapfile -t at < <(blocks b.gz)
    cp b.gz bad.gz
    flip bad.gz $((at[11] - 8)) # the 10th one's checksum
    salvage bad.gz
    cmp out data
    grep -q '; 16384 bytes from byte 163840 of the output on are in doubt' message
    flip bad.gz $((at[12] - 8)) # and the next one's: all of both decodes
    salvage bad.gz
    cmp out data
    grep -q '^wharf: bad.gz: bad in 2 places; .*: 32768 in doubt, 0 zeros' message
    cp b.gz bad.gz
    flip bad.gz $((at[11] - 8))
    flip bad.gz $((at[21])) # and the 21st one's header
    flip bad.gz $((at[30] + 40))
    salvage bad.gz
    cmp <(head -c $((21 * 16384)) out) <(head -c $((21 * 16384)) data)
    cmp <(tail -c 500000 out) <(tail -c 500000 data)
    grep -q '^wharf: bad.gz: bad in 3 places; ' message
    # A hole, of which block sizes know nothing.
    { head -c $((at[5] + 100)) b.gz; tail -c +$((at[8] - 50)) b.gz; } > hole.gz
    salvage hole.gz
    cmp <(head -c $((5 * 16384)) out) <(head -c $((5 * 16384)) data)
    cmp <(tail -c $(($(stat -c %s data) - 8 * 16384)) out) <(tail -c +$((8 * 16384 + 1)) data)
}

test_container_keeps_all_good_chunks_in_their_places() {
    make_data
    for codec in deflate gzip zlib lz4 rans stored; do
        "$WHARF" pack -c "$codec" -b 16K -f -o "$codec.whr" data
        flip "$codec.whr" $(($(stat -c %s "$codec.whr") / 2))
        salvage "$codec.whr"
        test "$(stat -c %s out)" = "$(stat -c %s data)"
        # One chunk of 16 KiB at most differs.
        cmp -l out data > differ || true
        awk 'NR == 1 { first = $1 } END { exit !(NR && int((first - 1) / 16384) == int(($1 - 1) / 16384)) }' differ
        grep -q "^wharf: $codec.whr: bad .* in chunk [0-9]* at byte" message
        "$WHARF" unpack --salvage --range 1000:5000 "$codec.whr" 2> message > part || test $? = 1
        cmp part <(part data 1000 5000)
    done
    # What only the checksum denies is written whole.
    expect_text 1 "$(cmp -l out data | wc -l || true)"
}

# at NUMBER: where the header of a chunk stands in data.whr.
at() {
    python3 -c 'import re, sys
data = open("data.whr", "rb").read()
print([m.start() for m in re.finditer(b"WCHK", data)][int(sys.argv[1])])' "$1"
}

test_container_goes_on_behind_bad_headers() {
    make_data
    "$WHARF" pack -b 16K data
    cp data.whr bad.whr
    flip bad.whr $(($(at 7) + 9))
    flip bad.whr $(($(at 20) + 9))
    flip bad.whr $(($(at 21) + 9))
    salvage bad.whr
    { head -c $((7 * 16384)) data; head -c 16384 /dev/zero; part data $((8 * 16384)) $((12 * 16384))
        head -c 32768 /dev/zero; tail -c +$((22 * 16384 + 1)) data; } > expected
    cmp expected out
    grep -q '; 16384 bytes from byte 114688 on are zeros for what is lost' message
    grep -q '^wharf: bad.whr: bad in 2 places; .*: 0 in doubt, 49152 zeros for what is lost' message
    "$WHARF" cat --salvage --report bad.whr data.whr 2> report > out || test $? = 1
    tail -n 1 report | has_line '"bad_places":2,"doubtful_nbytes":0,"zeros_nbytes":49152,"input":"bad.whr"}'
    "$WHARF" cat --report data.whr 2> report | cmp - data
    expect_status 1 grep bad_places report
    # The same where the bytes are gone.
    { head -c "$(at 7)" data.whr; tail -c +$(($(at 9) + 1)) data.whr; } > hole.whr
    salvage hole.whr
    cmp <(tail -c +$((7 * 16384 + 1)) out) <(tail -c +$((9 * 16384 + 1)) data)
    # Without its beginning or its end.
    flip data.whr 0
    salvage data.whr
    cmp out data
    flip data.whr 0
    head -c $(($(at 30) + 1000)) data.whr > cut.whr
    salvage cut.whr
    test "$(stat -c %s out)" -gt $((30 * 16384))
    cmp out <(head -c "$(stat -c %s out)" data)
    # Several members, of which one has no header.
    "$WHARF" pack -b 16K -o rest.whr <(seq 5 70000)
    { cat data.whr; cat rest.whr; cat data.whr; } > three.whr
    flip three.whr $(($(stat -c %s data.whr) + 9))
    salvage three.whr
    cat data <(seq 5 70000) data | cmp - out
}

# A container within a container has headers too.
test_nested_container_is_not_taken_for_its_outer() {
    head -c 200000 /dev/urandom > noise
    "$WHARF" pack -b 4K -o inner.whr noise
    { head -c 100000 /dev/urandom; cat inner.whr; head -c 100000 /dev/urandom; } > data
    "$WHARF" pack -b 64K data
    flip data.whr $(($(python3 -c 'import re
data = open("data.whr", "rb").read()
# The outer chunks have 64 KiB.
print([m.start() for m in re.finditer(b"WCHK", data) if data[m.start() + 12:m.start() + 16] == b"\0\0\1\0"][2])') + 9))
    salvage data.whr
    { head -c 131072 data; head -c 65536 /dev/zero; tail -c +196609 data; } | cmp - out
}

test_output_files_stay_and_the_exit_status_tells() {
    make_data
    gzip -k data
    head -c 300000 data.gz > cut.gz
    expect_status 1 "$WHARF" unpack cut.gz 2> message
    test ! -e cut
    grep -q '; --salvage writes all that decodes$' message
    expect_status 1 "$WHARF" test cut.gz 2> message
    expect_status 1 grep -e --salvage message
    expect_status 1 "$WHARF" unpack --salvage cut.gz 2> message
    cmp cut <(head -c "$(stat -c %s cut)" data)
    test "$(stat -c %s cut)" -gt 800000
    expect_status 1 grep -q 'not written' message
    expect_status 1 "$WHARF" cat --salvage -o joined data.gz cut.gz data.gz 2> message
    cat data cut data | cmp - joined
    expect_status 1 "$WHARF" decode -c gzip --salvage -o one cut.gz 2> message
    cmp one cut
    python3 -c 'import zlib
packer = zlib.compressobj(6, zlib.DEFLATED, -15)
data = packer.compress(open("data", "rb").read()) + packer.flush()
open("raw", "wb").write(data[:100000])
open("whole", "wb").write(data)'
    "$WHARF" decode -c deflate --salvage < whole | cmp - data
    expect_status 1 "$WHARF" decode -c deflate --salvage --report raw > out 2> report
    cmp out <(head -c "$(stat -c %s out)" data)
    test "$(stat -c %s out)" -gt 200000
    grep -q '"result":"bad_data","reason":"input_truncated"' report
    # Nothing is left where nothing could be had.
    head -c 100000 /dev/urandom > noise.gz
    expect_status 1 "$WHARF" unpack --salvage noise.gz 2> message
    grep -q 'nothing in it looks like gzip, BGZF or a wharf container' message
    test ! -e noise
    printf '\x28\xb5\x2f\xfdrest' > a.gz
    expect_status 1 "$WHARF" unpack --salvage a.gz 2> message
    test ! -e a
    : > empty.gz
    expect_status 1 "$WHARF" unpack --salvage empty.gz 2> message
    grep -q 'is empty' message
}

test_mistakes_are_exit_2() {
    seq 10 | gzip > data.gz
    while IFS='|' read -r words message; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" $words < data.gz > out 2> said
        grep -qF -- "$message" said
    done << 'EOS'
cat --salvage --engine gpu|--salvage works in this process, by engine cpu alone
cat --salvage --engine reference|by engine cpu alone
unpack --salvage --socket s|by engine cpu alone
decode --salvage -c lz4|codec lz4 has no part that decodes without the rest
decode --salvage -c gzip --count 5|--count and --max-output have no meaning
decode --salvage -c gzip --max-output 5|--count and --max-output have no meaning
test --salvage|--salvage: no such option
unpack --salvage --range 20:5|the range is not within it: it unpacks to 21 bytes
EOS
}

# Many beginnings with one end were all decoded to there: 100 GB of a megabyte.
test_time_and_output_stay_in_proportion() {
    python3 - << 'EOS'
import gzip, struct, zlib
header = bytes.fromhex('1f8b0800000000000000')
bad = bytearray(gzip.compress(b'x' * 100))
bad[-8] ^= 1
packer = zlib.compressobj(9, zlib.DEFLATED, -15)
tail = (packer.compress(bytes(4_000_000)) + packer.flush())[:-4]
heads = b''
for i in range(2000, 0, -1):
    left = (i - 1) * 15
    heads += header + b'\0' + struct.pack('<HH', left, 65535 - left)
open('shared.gz', 'wb').write(bytes(bad) + heads + tail + b'\xff' * 20)
open('many.gz', 'wb').write(bytes(bad) + (header + bytes.fromhex('4b4c4a4e494d4b4f01')) * 100000)
EOS
    for file in shared.gz many.gz; do
        salvage "$file"
        test "$(stat -c %s out)" -lt 20000000
    done
}

# However it is damaged: the same from a file and a pipe, never less than without --salvage, and
# an exit status that says so.
test_random_damage() {
    python3 - "$WHARF" << 'EOS'
import gzip, random, subprocess, sys
wharf, dice = sys.argv[1], random.Random(5)
def run(*words, data=b''):
    return subprocess.run([wharf, *words], input=data, capture_output=True, timeout=600)
text = b''.join(b'%d\n' % i for i in range(9000))
noise = dice.randbytes(20000)
def pack(data, *words):
    return run('pack', *words, data=data).stdout
files = [pack(text, '-b', '4K'), pack(text, '-b', '4K', '-c', 'lz4') + pack(noise, '-b', '1K'),
         pack(noise + pack(text, '-b', '2K') + noise, '-b', '4K'),
         pack(text, '--format', 'bgzf', '-b', '4K'),
         b''.join(gzip.compress(text[i:i + 5000]) for i in range(0, len(text), 5000))]
def damage(data):
    data = bytearray(data)
    for _ in range(dice.choice([1, 1, 3])):
        at, n = dice.randrange(len(data)), dice.randrange(1, 2000)
        kind = dice.randrange(4)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at:at + n] = dice.randbytes(len(data[at:at + n]))
        elif kind == 2:
            del data[at:at + n]
        else:
            data[at:at] = data[at:at + n]
        if not data:
            break
    return bytes(data)
for i in range(60):
    data = damage(files[i % len(files)])
    open('bad', 'wb').write(data)
    file, pipe, plain = run('cat', '--salvage', 'bad'), run('cat', '--salvage', data=data), run('cat', '-q', 'bad')
    assert file.returncode == pipe.returncode in (0, 1), (i, file)
    assert file.stdout == pipe.stdout, i
    assert file.stdout.startswith(plain.stdout), i
    assert file.returncode or not plain.returncode, i
EOS
}

run_tests
