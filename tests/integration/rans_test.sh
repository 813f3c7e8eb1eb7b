#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf rans: wharf's own streams, and those of Recoil's program with their models.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_data() {
    # Bytes of falling frequency; none that is over 127, so that models have to name some for nothing.
    python3 -c 'import random, sys
source = random.Random(3)
sys.stdout.buffer.write(bytes(min(127, int(source.expovariate(0.07))) for _ in range(200000)))' > data
}

test_own_streams_come_back() {
    make_data
    while read -r n symbols; do
        "$WHARF" rans encode -n "$n" --splits 20 --symbols "$symbols" -o s -f data
        "$WHARF" decode -c rans --type "$symbols" < s | cmp - data
        "$WHARF" decode -c rans --type "$symbols" --engine reference < s | cmp - data
    done << 'EOS'
8 u8
11 u8
12 u8
16 u8
15 u16
16 u16
EOS
    # Pairs of bytes are more than 2^11 different ones.
    expect_status 4 "$WHARF" rans encode -n 11 --symbols u16 data > out 2> message
    grep -q 'more different symbols than -n 11' message
}

test_recoil_streams_come_back() {
    make_data
    for n in 9 11 14 16; do
        "$WHARF" rans encode -n "$n" --splits 30 --cdf "m$n" -o "s$n" data
        test "$(stat -c %s "m$n")" = 514
        for engine in auto cpu reference; do
            "$WHARF" rans decode --cdf "m$n" -n "$n" --engine "$engine" "s$n" | cmp - data
        done
        "$WHARF" rans decode --cdf "m$n" -n "$n" < "s$n" | cmp - data
        "$WHARF" rans import --cdf "m$n" -n "$n" "s$n" | "$WHARF" decode -c rans | cmp - data
    done
    # Every byte has a frequency, and one slot is left.
    python3 -c 'import struct
sums = struct.unpack("<257H", open("m11", "rb").read())
assert sums[0] == 0 and sums[256] == 2047, sums
assert all(a < b for a, b in zip(sums, sums[1:]))'
}

test_thinning_changes_nothing_but_splits() {
    make_data
    "$WHARF" rans encode --splits 100 --cdf model -o recoil data
    "$WHARF" rans encode --splits 100 -o own data
    for m in 1 7 100 65535; do
        "$WHARF" rans thin --splits "$m" recoil > thinned
        "$WHARF" rans decode --cdf model -n 11 thinned | cmp - data
        "$WHARF" rans thin --splits "$m" -o own_thin -f own
        "$WHARF" decode -c rans < own_thin | cmp - data
        "$WHARF" rans info --json own_thin > facts
        python3 -c 'import json, sys
info = json.load(open("facts"))
assert info["splits"] == min(100, int(sys.argv[1])), info' "$m"
    done
    cmp thinned recoil
}

test_info_says_what_a_stream_is() {
    make_data
    "$WHARF" rans encode -n 12 --splits 9 -o own data
    "$WHARF" rans encode -n 12 --splits 9 --cdf model -o recoil data
    "$WHARF" rans info own > text
    grep -qE '^format +wharf$' text
    grep -qE '^symbols +200000$' text
    grep -qE '^splits +9$' text
    "$WHARF" rans info --json own > own.json
    "$WHARF" rans info --json recoil > recoil.json
    python3 -c 'import json, os
own, recoil = (json.load(open(name + ".json")) for name in ("own", "recoil"))
assert own["format"] == "wharf" and recoil["format"] == "recoil"
assert own["n"] == 12 and own["symbol_nbytes"] == 1 and own["alphabet"] == 128
for info in own, recoil:
    parts = ("fields_nbytes", "words_nbytes", "model_nbytes", "indexes_nbytes")
    assert info["nbytes"] == sum(info.get(part, 0) for part in parts) + 16 * (info is own)
    assert info["nbytes"] == os.stat(info["format"].replace("wharf", "own")).st_size
    assert info["groups"] == 6250 and 0 < info["window_groups"] < 100'
}

# A model of several distributions, with an index for each symbol, made here.  The first has no slots
# for the last symbols: its sums end with several of all.
test_indexed_models() {
    PYTHONPATH=$TOP/tests/lib python3 -c 'import random
import rans_model as rans
source, n = random.Random(5), 16
indexes = bytes(source.randrange(5) for _ in range(3000))
symbols = [min(300, int(source.expovariate(0.02 * (5 - i)))) for i in indexes]
rows = []
for d in range(5):
    counts = [1] * 301 if d else [1] * 150 + [0] * 151
    for symbol, i in zip(symbols, indexes):
        counts[symbol] += 50 * (i == d)
    row = rans.even_frequencies(counts, n)
    row[row.index(max(row))] -= 1
    rows.append(row)
coded = rans.Coded(symbols, n, rows, indexes, n_splits=6)
open("stream", "wb").write(coded.body())
open("indexes", "wb").write(indexes)
open("model", "wb").write(rans.bytes_of(sum(row[:i]) for row in rows for i in range(302)))
open("data", "wb").write(rans.bytes_of(symbols))'
    for engine in cpu reference; do
        "$WHARF" rans decode --cdf model -n 16 --symbols u16 --indexes indexes --engine "$engine" \
            stream | cmp - data
    done
    expect_status 2 "$WHARF" rans decode --cdf model -n 16 --symbols u16 stream 2> message
    grep -q 'several distributions' message
    head -c 2999 indexes > few
    expect_status 1 "$WHARF" rans decode --cdf model -n 16 --symbols u16 --indexes few stream \
        2> message
    # Its tables are too large for a stream that brings them with it.
    expect_status 4 "$WHARF" rans import --cdf model -n 16 --symbols u16 --indexes indexes stream \
        2> message
    grep -q '65536 slots' message
}

# That program writes such splits of few symbols: they are left out.
test_overlapping_splits_are_left_out() {
    PYTHONPATH=$TOP/tests/lib python3 -c 'import random
import rans_model as rans
source = random.Random(6)
symbols = [min(255, int(source.expovariate(0.05))) for _ in range(2000)]
counts = [1] * 256
for symbol in symbols:
    counts[symbol] += 20
row = rans.even_frequencies(counts, 11)
row[0] -= 1
splits = []
for m in (7, 5):
    splits += rans.Coded(symbols, 11, [row], n_splits=m).splits
coded = rans.Coded(symbols, 11, [row])
coded.splits = sorted(splits, key=lambda split: -split[0])
windows = [(min(split[1]), max(split[1])) for split in coded.splits]
assert any(b[0] <= a[1] for a, b in zip(windows, windows[1:])), windows
open("stream", "wb").write(coded.body())
open("model", "wb").write(rans.bytes_of(sum(row[:i]) for i in range(257)))
open("data", "wb").write(bytes(symbols))'
    "$WHARF" rans decode --cdf model -n 11 stream | cmp - data
    "$WHARF" rans import --cdf model -n 11 stream > own
    "$WHARF" decode -c rans < own | cmp - data
    "$WHARF" rans thin --splits 3 stream | "$WHARF" rans decode --cdf model -n 11 | cmp - data
}

test_damage_is_exit_1_and_nothing_comes_out() {
    make_data
    "$WHARF" rans encode --splits 8 --cdf model -o recoil data
    for keep in 0 1 100 130 5000 $(($(stat -c %s recoil) - 2)); do
        head -c "$keep" recoil > ./cut
        expect_status 1 "$WHARF" rans decode --cdf model -n 11 cut > out 2> message
        test ! -s out
        grep -q '^wharf: cut: bad data at ' message
    done
    head -c 512 model > short
    expect_status 1 "$WHARF" rans decode --cdf short -n 11 recoil 2> message
    expect_status 1 "$WHARF" rans decode --cdf model -n 12 recoil 2> message
    grep -q 'no model for -n 12' message
    # Nothing is wrong with the stream.
    expect_status 1 grep 'recoil: bad data' message
    expect_status 1 "$WHARF" rans thin --splits 2 model > out 2> message
    expect_status 1 "$WHARF" rans info model > out 2> message
    expect_status 4 "$WHARF" rans decode --cdf missing -n 11 recoil 2> message
}

test_mistakes_are_exit_2() {
    make_data
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" rans $arguments data > out 2> message
        test ! -s out
        grep -qE '^wharf: .wharf rans.*--help. ' message
    done << 'EOS'
frobnicate
decode
decode --cdf model
decode -n 11
decode --cdf model -n 7
decode --cdf model -n 17
decode --cdf model -n 11 --symbols u32
thin
thin --splits 0
thin --splits 65536
encode --cdf model -n 8
encode --cdf model --symbols u16
info more
EOS
}

test_help_of_subcommands() {
    for subcommand in decode import thin info encode; do
        "$WHARF" rans "$subcommand" --help > help
        head -n 1 help | has_line "^usage: wharf rans $subcommand "
        expect_status 1 grep -E '.{81}' help
    done
}

test_models_of_their_own_files() {
    make_data
    "$WHARF" rans encode --splits 9 --cdf cdf -o recoil data
    "$WHARF" rans import --cdf cdf -n 11 --model model -o without recoil
    "$WHARF" rans import --cdf cdf -n 11 -o with recoil
    test "$(stat -c %s without)" -lt "$(stat -c %s with)"
    for engine in auto reference; do
        "$WHARF" decode -c rans --engine "$engine" --model model < without | cmp - data
    done
    # What may be wrong with the command is said.
    expect_status 1 "$WHARF" decode -c rans --type u16 < with 2> message
    grep -q 'symbols of 1 byte: --type u8' message
    expect_status 1 "$WHARF" decode -c rans < without 2> message
    grep -q 'leaves its model out: --model' message
    # Nor is it damaged.
    expect_status 1 grep 'get it again' message
    expect_status 1 "$WHARF" decode -c rans --model model < with 2> message
    grep -q 'brings its model with it' message
    expect_status 1 "$WHARF" decode -c rans --model with < without 2> message
    grep -q 'with: is no model of codec rans' message
    expect_status 2 "$WHARF" decode -c zlib --model model < without 2> message
    expect_status 2 "$WHARF" decode -c rans --type u16 --model model < without 2> message
    "$WHARF" rans encode -n 12 --cdf other_cdf -o other data
    "$WHARF" rans import --cdf other_cdf -n 12 --model other_model -o other_without other
    expect_status 1 "$WHARF" decode -c rans --model other_model < without 2> message
    grep -q 'coded with another model' message
    "$WHARF" rans info without | has_line 'of the model *none'
    expect_status 1 "$WHARF" rans info model 2> message
    grep -q 'ends with the model' message
    for command in decode import; do
        expect_status 1 "$WHARF" rans "$command" --cdf cdf -n 11 without 2> message
        grep -q 'wharf decode -c rans --model FILE` decodes it' message
        expect_status 1 "$WHARF" rans "$command" --cdf cdf -n 11 with 2> message
        grep -q 'wharf decode -c rans` decodes it' message
    done
}

test_what_is_no_stream_is_told_of() {
    make_data
    "$WHARF" pack -c rans -o packed data
    for subcommand in info 'thin --splits 2'; do
        # shellcheck disable=SC2086 # a word or three
        expect_status 1 "$WHARF" rans $subcommand packed > out 2> message
        grep -q 'is a wharf container' message
        python3 -c 'print("some text " * 10000)' > text
        # shellcheck disable=SC2086
        expect_status 1 "$WHARF" rans $subcommand text > out 2> message
        grep -q 'is no stream of codec rans' message
        head -c 90000 data > even
        # shellcheck disable=SC2086
        expect_status 1 "$WHARF" rans $subcommand even > out 2> message
        grep -qE 'is (no|neither a) stream of codec rans' message
        test ! -s out
    done
}

test_containers_of_symbols() {
    make_data
    for type in u8 u16; do
        "$WHARF" pack -c rans --type "$type" -o packed -f data
        "$WHARF" unpack -o - packed | cmp - data
    done
    "$WHARF" pack -c rans -o packed -f data
    test "$(stat -c %s packed)" -lt 170000
    expect_status 2 "$WHARF" pack -c rans --type u32 -o other data 2> message
    grep -q 'u8 (the default) and u16' message
}

# One of them was lost, with exit status 0.
test_stream_and_model_do_not_get_one_name() {
    seq 10000 > data
    mkdir folder
    ln -s folder link
    for pair in 'x x' 'x ./x' 'folder/x link/x'; do
        for first in "$PWD/" ''; do
            # shellcheck disable=SC2086 # two words
            set -- $pair
            expect_status 4 "$WHARF" rans encode -f --cdf "$first$1" -o "$2" data 2> message
            grep -q 'is the output of the stream too' message
            test ! -e "$1"
        done
    done
    expect_status 4 "$WHARF" rans encode --cdf - data 2> message > out
    test ! -s out
    "$WHARF" rans encode --cdf x -o folder/x data
    expect_status 4 "$WHARF" rans import -f --cdf x -n 11 --model y -o y folder/x 2> message
    test ! -e y
    "$WHARF" rans decode --cdf x -n 11 folder/x | cmp - data
}

# Either both are there in the end or neither.
test_model_of_a_stream_that_fails_is_not_left() {
    seq 10000 > data
    expect_status 4 "$WHARF" rans encode --cdf model -o /dev/full data 2> message
    grep -q '^wharf: /dev/full: cannot write' message
    test ! -e model
    "$WHARF" rans encode --cdf cdf -o stream data
    expect_status 4 "$WHARF" rans import --cdf cdf -n 11 --model model -o /dev/full stream 2> message
    test ! -e model
    # Somebody else takes the stream's name meanwhile.
    mkfifo pipe
    "$WHARF" rans encode --cdf model -o taken < pipe 2> message &
    pid=$!
    exec 3> pipe
    for _ in $(seq 3000); do
        find "/proc/$pid/fd" -lname "$PWD/*" ! -lname '*/pipe' ! -lname '*/message' | has_line . && break
        sleep 0.01
    done
    echo mine > taken
    seq 100 >&3
    exec 3>&-
    expect_status 4 wait "$pid"
    grep -q '^wharf: taken: exists already' message
    test ! -e model
    expect_text mine "$(cat taken)"
    expect_text 'cdf data message pipe stream taken' "$(echo *)"
}

run_tests
