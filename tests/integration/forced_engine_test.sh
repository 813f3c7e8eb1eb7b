#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the command decodes by its own engine it decodes through a daemon by the GPU's alone, with the
# same bytes and the same verdicts: engine simt, the GPU's code on the CPU.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

make_gzip="$TOP/tests/lib/make_gzip.py"

# compare: reports of both ways say the same of result, reason, bit and sizes, and the words before
# them likewise.  What is bad has no sizes: how much of it is written before that is found depends on
# the way, and so does what is said of the output.
compare() {
    python3 -c 'import json
def read(name):
    lines = open(name).read().splitlines()
    report = json.loads(lines[-1])
    names = ["result", "reason", "bit_offset", "input", "error"]
    if report["result"] == "ok":
        names += ["in_nbytes", "out_nbytes", "chunks"]
    said = [line for line in lines[:-1] if " output: " not in line]
    return [report.get(name) for name in names], said
assert read("expected.report") == read("report"), (read("expected.report"), read("report"))'
}

# same ARGUMENT...: the command ends alike in both ways, and writes the same unless it fails: then
# what it writes is the beginning of that.
same() {
    local status=0
    "$WHARF" "$@" --embedded --report > expected 2> expected.report < input || status=$?
    expect_status "$status" "$WHARF" "$@" --socket s --engine simt --report > out 2> report < input
    compare
    if [ "$status" -eq 0 ]; then
        cmp out expected
        tail -n 1 report | has_line '"engine":"simt"'
    else
        cmp -n "$(stat -c %s out)" out expected
    fi
}

# damage FILE N: writes N damaged versions of it, FILE.0 and so on: cut off, or with a bit flipped.
damage() {
    python3 -c 'import random, sys
name, n = sys.argv[1], int(sys.argv[2])
data = open(name, "rb").read()
source = random.Random(len(data))
for i in range(n):
    bad = bytearray(data)
    if i % 3 == 0:
        bad = bad[:source.randrange(len(bad))]
    else:
        bad[source.randrange(len(bad))] ^= 1 << source.randrange(8)
    open(f"{name}.{i}", "wb").write(bad)' "$1" "$2"
}

test_files_of_all_kinds() {
    : > input
    seq 1 200 | gzip > small.gz
    seq 1 200 | python3 -c 'import sys, zlib
sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))' > small.zz
    head -c 1000000 /dev/zero | gzip > zeros.gz
    gzip < /dev/null > empty.gz
    cat small.gz zeros.gz empty.gz small.gz > members.gz
    { cat small.gz; echo behind; } > behind.gz
    "$make_gzip" member 1 > text.gz
    "$make_gzip" bgzf 1 > blocks.gz
    cat blocks.gz small.gz > mixed.gz
    start_daemon '[gpu]' 'engine = simt'
    for file in small.gz small.zz zeros.gz empty.gz members.gz behind.gz text.gz blocks.gz mixed.gz; do
        same cat "$file"
    done
    # From a pipe.
    cp zeros.gz input
    same cat
    for file in small.gz small.zz members.gz blocks.gz; do
        damage "$file" 6
        for i in 0 1 2 3 4 5; do
            same cat "$file.$i"
        done
    done
}

test_containers_of_large_chunks() {
    : > input
    python3 -c 'import random
source = random.Random(2)
open("data", "wb").write(b"".join(b"%d,%d,wharf\n" % (i, source.randrange(1000)) for i in range(35000)))
open("truths", "wb").write(bytes(source.randrange(2) for _ in range(600000)))'
    start_daemon '[gpu]' 'engine = simt'
    while read -r codec options; do
        # shellcheck disable=SC2086 # words
        "$WHARF" pack -c "$codec" $options -o "$codec.whr" data
        same cat "$codec.whr"
    done << 'EOS'
deflate -b 1M
zlib -b 1M
gzip -b 4M
lz4 -b 400K
snappy -b 400K
stored -b 1M
rans -b 400K
rle1 -b 400K --type u8
rle2 -b 400K --type i64
byterle -b 1M
EOS
    "$WHARF" pack -c boolrle -b 400K truths
    same cat truths.whr
    "$WHARF" unpack --socket s --engine simt -o out.data zlib.whr
    cmp out.data data
    # Chunks of all sizes in one batch: the large ones do not keep the others from being decoded.
    { head -c 300000 data | "$WHARF" pack -b 20K; "$WHARF" pack -b 500K < data
      head -c 300000 data | "$WHARF" pack -b 20K; } > sizes.whr
    same cat sizes.whr
    for file in deflate.whr rans.whr; do
        damage "$file" 6
        for i in 0 1 2 3 4 5; do
            same cat "$file.$i"
        done
    done
}

test_raw_streams() {
    python3 -c 'import zlib
data = b"".join(b"%d,wharf\n" % i for i in range(60000))
open("data", "wb").write(data)
for name, bits, what in ("deflate", -15, data), ("zlib", 15, data), ("gzip", 31, data), \
                        ("zeros", -15, bytes(1 << 20)):
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    open(name + ".raw", "wb").write(packer.compress(what) + packer.flush())'
    start_daemon '[gpu]' 'engine = simt'
    for codec in deflate zlib gzip; do
        cp "$codec.raw" input
        same decode -c "$codec"
        head -c 90000 "$codec.raw" > input
        same decode -c "$codec"
        cp "$codec.raw" input
        # One byte less than there are.
        same decode -c "$codec" --max-output $(($(stat -c %s data) - 1))
    done
    cp zeros.raw input
    same decode -c deflate
    cp data input
    same decode -c stored
    # Of so many splits that parts are as large as places, and of none.
    for splits in 1 40; do
        "$WHARF" rans encode --splits "$splits" -o input -f data
        same decode -c rans
    done
}

# The first step of the output's size, or the next one, exceeds max_arena; the output itself does not.
test_steps_are_smaller_where_the_arena_is() {
    python3 -c 'import random, sys, zlib
def deflate(data):
    packer = zlib.compressobj(9, 8, -15)
    return packer.compress(data) + packer.flush()
noise = random.Random(1).randbytes
open("first", "wb").write(deflate(noise(900000) + bytes(600000)))
open("next", "wb").write(deflate(noise(100000) + bytes(3500000)))
open("no", "wb").write(deflate(noise(100000) + bytes(4300000)))'
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_arena = 4M'
    for input in first next; do
        cp "$input" input
        same decode --codec deflate
        "$WHARF" decode --codec deflate --socket s --engine cpu input | cmp - expected
    done
    for engine in simt cpu; do
        expect_status 4 "$WHARF" decode --codec deflate --socket s --engine "$engine" no > out 2> message
        grep -q ' max_arena, \[quota\] ' message
        test ! -s out
    done
}

n_sessions() {
    "$WHARF" stats --socket s --prometheus | sed -n 's/^wharf_sessions_total{.*} //p'
}

# Memory that a first session had registered for nothing would have to leave the GPU before a second
# one's stream begins.
test_a_large_file_takes_one_session() {
    head -c 8000000 /dev/urandom > data
    gzip < data > large.gz
    start_daemon '[gpu]' 'engine = simt'
    before=$(n_sessions)
    "$WHARF" cat -T 1 --socket s --engine simt large.gz | cmp - data
    # And one that asks.
    test "$(n_sessions)" -eq $((before + 2))
}

# `test` wants no output, which has no room in the arena either.
test_outputs_that_are_not_wanted_take_no_memory() {
    : > input
    head -c 5000000 /dev/urandom > noise
    { cat noise; head -c 6000000 /dev/zero; } | gzip > large.gz
    python3 -c 'import sys, zlib
sys.stdout.buffer.write(zlib.compress(open("noise", "rb").read() + bytes(6000000)))' > large.zz
    { cat large.gz; echo behind; } > behind.gz
    { cat large.gz; seq 1 9999 | gzip; } > members.gz
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_arena = 8M'
    damage large.gz 3
    for file in large.gz large.zz behind.gz members.gz large.gz.0 large.gz.1 large.gz.2; do
        same test -T 1 "$file"
    done
    expect_status 4 "$WHARF" cat --socket s --engine simt large.gz > out 2> message
}

# What a GPU has no such way for goes the usual one.
test_other_outputs_are_not_discarded() {
    : > input
    head -c 1500000 /dev/urandom > noise
    "$WHARF" pack --format zstd -o large.zst noise
    head -c 300000 noise | gzip > usual.gz
    start_daemon '[gpu]' 'engine = simt'
    same test usual.gz
    "$WHARF" test --socket s --engine simt large.zst
}

# What the GPU has for too long is no reason for another engine.
test_nothing_is_moved_to_the_cpu_for_taking_long() {
    : > input
    head -c 400000 /dev/urandom | base64 | gzip > large.gz
    head -c 150000 /dev/urandom | base64 | gzip > usual.gz
    start_daemon '[gpu]' 'engine = simt' 'longest = 1us'
    for file in large.gz usual.gz; do
        same cat "$file"
    done
    # Batches, too: some of their chunks are in time.
    seq 1 60000 | "$WHARF" pack -b 4K -o many.whr
    same cat many.whr
    "$WHARF" stats --socket s --prometheus > counted
    grep -q '^wharf_chunks_total{.*engine="simt"' counted
    expect_status 1 grep '^wharf_chunks_total{.*engine="cpu"' counted
}

test_limits_are_named_and_nothing_is_called_damaged() {
    : > input
    head -c 3000000 /dev/zero | gzip > zeros.gz
    head -c 3000000 /dev/zero | "$WHARF" pack -b 2M -o zeros.whr
    start_daemon '[gpu]' 'engine = simt' 'large = 1M'
    for file in zeros.gz zeros.whr; do
        expect_status 4 "$WHARF" cat --socket s --engine simt "$file" > out 2> message
        grep -q 'over quota.*may be 1.0 MiB, \[gpu\] large ' message
        expect_status 1 grep damaged message
        test ! -s out
        "$WHARF" cat --embedded "$file" | cmp - <(head -c 3000000 /dev/zero)
        # With any engine it is not the GPU's limit that counts.
        "$WHARF" cat --socket s "$file" | cmp - <(head -c 3000000 /dev/zero)
    done
    kill_daemon
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_job = 1M'
    for file in zeros.gz zeros.whr; do
        expect_status 4 "$WHARF" cat --socket s --engine simt "$file" > out 2> message
        grep -q '1.0 MiB, \[quota\] max_job ' message
        expect_status 1 grep damaged message
    done
    kill_daemon
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_memory = 1M' 'max_arena = 1M'
    expect_status 4 "$WHARF" cat --socket s --engine simt zeros.gz > out 2> message
    grep -q 'an arena of 1048576 bytes.* max_arena, \[quota\] ' message
    kill_daemon
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_memory = 1M'
    expect_status 4 "$WHARF" cat --socket s --engine simt zeros.gz > out 2> message
    grep -q 'over max_memory = 1048576 of \[quota\]' message
    expect_status 1 grep damaged message
}

run_tests
