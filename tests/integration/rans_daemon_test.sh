#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf rans decode through a daemon, by each of its engines: as in this process.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail

ENGINES='auto cpu simt reference'

# Streams of bytes with one distribution, with several, and with splits that overlap.
make_streams() {
    python3 -c 'import random, sys
source = random.Random(3)
sys.stdout.buffer.write(bytes(min(127, int(source.expovariate(0.07))) for _ in range(60000)))' > bytes
    "$WHARF" rans encode --splits 8 --cdf bytes.cdf -o bytes.stream bytes
    PYTHONPATH=$TOP/tests/lib python3 -c 'import random
import rans_model as rans
source = random.Random(5)

def write(name, coded, rows):
    open(name + ".stream", "wb").write(coded.body())
    open(name + ".cdf", "wb").write(
        rans.bytes_of(sum(row[:i]) for row in rows for i in range(len(row) + 1)))

def row_of(counts, n):
    row = rans.even_frequencies(counts, n)
    row[row.index(max(row))] -= 1
    return row

indexes = bytes(source.randrange(5) for _ in range(3000))
symbols = [min(300, int(source.expovariate(0.02 * (5 - i)))) for i in indexes]
rows = []
for d in range(5):
    counts = [1] * 301
    for symbol, i in zip(symbols, indexes):
        counts[symbol] += 50 * (i == d)
    rows.append(row_of(counts, 16))
write("indexed", rans.Coded(symbols, 16, rows, indexes, n_splits=6), rows)
open("indexes", "wb").write(indexes)
open("indexed", "wb").write(rans.bytes_of(symbols))

symbols = [min(255, int(source.expovariate(0.05))) for _ in range(2000)]
counts = [1] * 256
for symbol in symbols:
    counts[symbol] += 20
row = row_of(counts, 11)
splits = []
for m in (7, 5):
    splits += rans.Coded(symbols, 11, [row], n_splits=m).splits
coded = rans.Coded(symbols, 11, [row])
coded.splits = sorted(splits, key=lambda split: -split[0])
write("overlapping", coded, [row])
open("overlapping", "wb").write(bytes(symbols))'
}

# decode NAME STREAM OPTION...: with the model, and what belongs to it, of the streams called NAME.
decode() {
    local name=$1 stream=$2 more='-n 11'
    shift 2
    if [ "$name" = indexed ]; then
        more='-n 16 --symbols u16 --indexes indexes'
    fi
    # shellcheck disable=SC2086 # words
    "$WHARF" rans decode --cdf "$name.cdf" $more "$@" "$stream"
}

test_every_engine_decodes_with_the_registered_model() {
    make_streams
    start_daemon '[gpu]' 'engine = simt'
    for name in bytes indexed overlapping; do
        for engine in $ENGINES; do
            decode "$name" "$name.stream" --socket s --engine "$engine" --report 2> report | cmp - "$name"
            grep -q '"daemon":true' report
            test "$engine" = auto || grep -q "\"engine\":\"$engine\"" report
        done
    done
    # Where there is a daemon it is used without being asked for, and where there is none it is not.
    WHARF_SOCKET=s decode bytes bytes.stream --report 2>&1 > out | has_line '"daemon":true'
    kill_daemon
    decode bytes bytes.stream --report 2>&1 > out | has_line '"daemon":false'
    cmp out bytes
}

test_damage_is_told_as_it_is_without_a_daemon() {
    make_streams
    start_daemon '[gpu]' 'engine = simt'
    for name in bytes indexed overlapping; do
        python3 -c 'import random, sys
source = random.Random(7)
stream = open(sys.argv[1], "rb").read()
for i in range(10):
    damaged = bytearray(stream)
    at = source.randrange(len(damaged)) if i < 8 else len(damaged) - 1 - i
    damaged[at] ^= 1 << source.randrange(8)
    open(f"damaged.{i}", "wb").write(damaged)
for i in range(4):
    open(f"damaged.1{i}", "wb").write(stream[:len(stream) * i // 4])' "$name.stream"
        for damaged in damaged.*; do
            status=0
            decode "$name" "$damaged" --embedded --report > expected 2> report || status=$?
            sed -E 's/"engine.*//' report > told
            for engine in $ENGINES; do
                expect_status "$status" decode "$name" "$damaged" --socket s --engine "$engine" --report \
                    > out 2> report
                cmp out expected
                sed -E 's/"engine.*//' report | cmp - told
            done
        done
    done
}

test_what_one_job_cannot_be_names_the_limit() {
    make_streams
    start_daemon '[quota]' 'max_job = 64K'
    expect_status 4 decode bytes bytes.stream --socket s > out 2> message
    grep -qF 'more than the daemon takes in one job: 64.0 KiB, [quota] max_job' message
    test ! -s out
    WHARF_SOCKET=s decode bytes bytes.stream | cmp - bytes
}

# Less room is no use to whom a model is refused: it was asked for 15 times.
test_a_model_over_the_limit_is_refused_once() {
    make_streams
    start_daemon '[gpu]' 'engine = simt' '[quota]' 'max_models = 0'
    for engine in simt cpu; do
        expect_status 4 decode bytes bytes.stream --socket s --engine "$engine" > out 2> message
        grep -q 'max_models' message
        test ! -s out
    done
    "$WHARF" stats --prometheus --socket s > metrics
    grep -q '^wharf_refused_total{.*limit="max_models".*} 2$' metrics
}

run_tests
