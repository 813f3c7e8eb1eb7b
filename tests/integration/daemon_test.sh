#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command through a daemon: the same as without one.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

damage() { # FILE OFFSET
    printf 'XX' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# It was "served by another daemon", and got two lock files beside it.
test_what_is_no_socket_is_left_alone_and_called_what_it_is() {
    echo 'years of work' > precious
    mkdir folder
    ln -s precious link
    for path in precious folder link; do
        kind=$(sed -n "s/^$path //p" << 'EOS'
precious a regular file
folder a folder
link a symbolic link
EOS
        )
        expect_status 1 "$BUILD/wharfd" --socket "$PWD/$path" < /dev/null > out 2> message
        grep -q "$PWD/$path is $kind, which is left as it is: choose another path" message
        printf '[listen more]\npath = %s\n' "$PWD/$path" > config
        expect_status 1 "$BUILD/wharfd" --socket "$PWD/new" --config config < /dev/null > out 2> message
        grep -q "$PWD/$path is $kind, which is left as it is: choose another path" message
        test ! -e new
    done
    expect_text 'config folder link message new.listen new.lock out precious' "$(echo ./* | sed 's/\.\///g')"
    expect_text 'years of work' "$(cat precious)"
    expect_status 3 "$WHARF" status --socket precious 2> message
    grep -qF "no daemon: precious: is a regular file, not a daemon's socket" message
    expect_status 1 grep -q 'start' message
}

# Sockets of other services, such as those of logs, were replaced: nobody seemed to serve them.
test_sockets_of_other_services_stay() {
    for type in STREAM DGRAM; do
        rm -f other ready
        mkfifo ready
        python3 - "$type" << 'EOS' &
import signal, socket, sys
other = socket.socket(socket.AF_UNIX, getattr(socket, f'SOCK_{sys.argv[1]}'))
other.bind('other')
if sys.argv[1] == 'STREAM':
    other.listen()
open('ready', 'w').close()
signal.pause()
EOS
        service=$!
        # shellcheck disable=SC2064 # as it is now
        trap "kill $service; kill_daemon" EXIT
        cat ready
        before=$(stat -c %i other)
        expect_status 1 "$BUILD/wharfd" --socket "$PWD/other" < /dev/null > out 2> message
        grep -qF "$PWD/other is a socket of another type, which is left as it is" message
        if [ "$type" = DGRAM ]; then
            printf '[daemon]\nmetrics_socket = %s\n' "$PWD/other" > config
            start_daemon
            grep -qF "there is no socket for metrics: $PWD/other is a socket of another type" daemon.log
            kill_daemon
        fi
        expect_text "$before" "$(stat -c %i other)"
        expect_text '' "$(echo other.l*[kn] | sed 's/other.l\*\[kn\]//')"
        kill "$service"
        wait "$service" || true
        # One that nobody serves any more is replaced.
        printf '[listen more]\npath = %s\n' "$PWD/other" > config
        start_daemon
        "$WHARF" ping -n 1 --socket other
        kill_daemon
    done
}

test_every_kind_comes_out_as_it_does_without_a_daemon() {
    make_daemon_files
    start_daemon
    for file in c.whr small.whr large.whr b.gz; do
        for more in '-T 1' '-T 7' '--engine cpu' '--engine reference'; do
            # shellcheck disable=SC2086 # words
            "$WHARF" cat --socket s --report $more "$file" 2> report | cmp - data
            expect_text True "$(field daemon report)"
        done
        # shellcheck disable=SC2002 # it is to be a pipe
        cat "$file" | "$WHARF" cat --socket s | cmp - data
    done
    "$WHARF" cat --socket s mixed.whr | cmp - mixed
    "$WHARF" cat --socket s growing.whr | cmp - growing
    "$WHARF" unpack --socket s --report -o out c.whr 2> report
    cmp out data
    expect_text cpu "$(field engine report)"
    expect_text "$(stat -c %s data)" "$(field out_nbytes report)"
    "$WHARF" unpack --socket s -r 1000001:70000 c.whr | cmp - <(tail -c +1000002 data | head -c 70000)
    "$WHARF" cat --socket s c.whr b.gz m.gz z.zlib small.whr | cmp - <(cat data data data data data)
}

test_decode_and_streams_that_cannot_be_split() {
    make_daemon_files
    start_daemon
    for engine in auto cpu reference; do
        "$WHARF" decode -c gzip --socket s --engine "$engine" --report < m.gz 2> report | cmp - data
        expect_text True "$(field daemon report)"
        "$WHARF" decode -c gzip --socket s --engine "$engine" < b.gz | cmp - data
        "$WHARF" decode -c zlib --socket s --engine "$engine" < z.zlib | cmp - data
        "$WHARF" cat --socket s --engine "$engine" m.gz z.zlib | cmp - <(cat data data)
    done
    # Of a thousandfold: the destination grows until it fits.
    head -c 30000000 /dev/zero | gzip -9 > zeros.gz
    "$WHARF" decode -c gzip --socket s < zeros.gz | cmp -n 30000000 - /dev/zero
    expect_status 4 "$WHARF" decode -c gzip --socket s --max-output 1M < zeros.gz > out 2> message
    grep -q 'output too small' message
    test ! -s out
}

# What is said of bad data, and what comes out, does not depend on who decodes.
test_bad_data_is_told_in_the_same_words() {
    make_daemon_files
    start_daemon
    damage c.whr 700000
    damage small.whr 500000
    damage large.whr 1000000
    damage b.gz 500000
    damage z.zlib 500000
    for command in 'cat c.whr' 'cat small.whr' 'cat large.whr' 'cat b.gz' 'cat z.zlib' \
        'unpack -f -o out c.whr' 'unpack -r 3000000: c.whr' 'unpack -f -o out large.whr' \
        'cat --engine reference small.whr' 'cat b.gz c.whr small.whr'; do
        # shellcheck disable=SC2086 # words
        status=0
        # shellcheck disable=SC2086 # words
        "$WHARF" $command --embedded > out1 2> message1 || status=$?
        # shellcheck disable=SC2086 # words
        expect_status "$status" "$WHARF" $command --socket s > out2 2> message2
        cmp message1 message2
        cmp out1 out2
        test ! -e out
    done
    expect_text 1 "$status"
    expect_status 1 "$WHARF" decode -c zlib --embedded < z.zlib 2> message1
    expect_status 1 "$WHARF" decode -c zlib --socket s < z.zlib 2> message2
    cmp message1 message2
}

test_engine_that_the_daemon_has_not_is_an_error() {
    seq 1000 > data
    "$WHARF" pack data
    start_daemon
    for engine in gpu simt; do
        expect_status 4 "$WHARF" unpack --socket s --engine "$engine" -o out data.whr 2> message
        grep -q "the daemon has no engine $engine; it has cpu, reference" message
        test ! -e out
    done
}

test_daemon_is_used_when_it_is_there() {
    seq 100000 > data
    "$WHARF" pack data
    export WHARF_SOCKET=$PWD/s
    "$WHARF" cat --report data.whr 2> message | cmp - data
    grep -q 'no such socket.*; decoding in this process' message
    expect_text False "$(field daemon message)"
    "$WHARF" cat -q data.whr 2> message | cmp - data
    test ! -s message
    start_daemon
    "$WHARF" cat --report data.whr 2> message | cmp - data
    expect_text True "$(field daemon message)"
    "$WHARF" cat --embedded --report data.whr 2> message | cmp - data
    expect_text False "$(field daemon message)"
}

test_bench_measures_a_daemon_that_is_there() {
    seq 1 40000 > data
    start_daemon
    "$WHARF" bench --socket s --seconds 0 --json --clients 3 -b 8K -c gzip -c stored data > json
    WHARF_SOCKET=$PWD/s "$WHARF" bench --seconds 0 -c zlib -l 6 data > table
    grep -q 'decode, daemon$' table
    grep -q ' cpu$' table
    python3 - << 'EOS'
import json
for row in json.load(open('json'))['rows']:
    assert row['daemon_engine'] == 'cpu', row
    assert 0 < row['decode_daemon_gb_s']['min'] <= row['decode_daemon_gb_s']['max'], row
EOS
    "$WHARF" stats --socket s --prometheus > scraped
    # Whole files, in jobs of 8 KiB and of 128 KiB: a round to compare and five to measure at least.
    chunks=$("$TOP/tests/lib/prometheus.py" value scraped wharf_chunks_total engine=cpu)
    test "$chunks" -ge $((6 * (7 * 28 + 2 * 2)))
    "$WHARF" bench --embedded --seconds 0 --json -c zlib -l 6 data > json
    expect_status 1 grep -q daemon json
    expect_status 3 "$WHARF" bench --socket none data > table 2> message
    test ! -s table
}

test_small_quotas_make_it_slower_not_wrong() {
    make_daemon_files
    start_daemon '[quota]' 'max_arena = 6M' 'max_entries = 8' 'max_batch_chunks = 3'
    for file in c.whr small.whr b.gz; do
        "$WHARF" cat --socket s "$file" | cmp - data
    done
    "$WHARF" cat --socket s mixed.whr | cmp - mixed
    expect_status 4 "$WHARF" cat --socket s large.whr > out 2> message
    grep -q 'allows .* an arena of 6291456 bytes.* max_arena, \[quota\]' message
    WHARF_SOCKET=s "$WHARF" cat large.whr c.whr | cmp - <(cat data data)
    kill_daemon
    start_daemon '[quota]' 'max_job = 64K'
    expect_status 4 "$WHARF" cat --socket s c.whr > out 2> message
    grep -q -- '--embedded decodes it in this process' message
    WHARF_SOCKET=s "$WHARF" cat c.whr | cmp - data
    expect_status 4 "$WHARF" decode -c gzip --socket s < m.gz 2> message
    grep -q 'more than the daemon takes in one job' message
    WHARF_SOCKET=s "$WHARF" decode -c gzip < m.gz | cmp - data
}

test_pack_through_the_daemon_makes_the_same_file() {
    local codec type
    cat "$TOP"/clientlib/*.c > data
    start_daemon '[quota]' 'max_compress = 256K'
    for codec in $("$WHARF" pack --help | sed -n '/^codecs:/,$s/^  \([a-z0-9]*\) .*/\1/p'); do
        type=()
        case $codec in rle1 | rle2) type=(--type u8) ;; esac
        "$WHARF" pack -c "$codec" "${type[@]}" -fo here.whr data
        "$WHARF" pack --socket s --report -c "$codec" "${type[@]}" -fo there.whr data 2> report
        cmp here.whr there.whr
        grep -q '"daemon":true' report
    done
    "$WHARF" pack -c zlib --encoder zlib -9 -b 64K < data > here.whr
    "$WHARF" pack --socket s -c zlib --encoder zlib -9 -b 64K < data | cmp - here.whr
    expect_status 2 "$WHARF" pack --socket s -b 512K -o no.whr data 2> message
    grep -q 'at most 256.* max_compress' message
    expect_status 2 "$WHARF" pack --socket s --format gzip -o no.gz data
    expect_status 2 "$WHARF" pack --socket s --encoder zlib -l 0 -o no.whr data
    expect_status 3 "$WHARF" pack --engine gpu --socket none -o no.whr data
    expect_status 3 "$WHARF" pack --socket none -o no.whr data
    kill_daemon
    start_daemon '[quota]' 'max_compress = 0'
    expect_status 4 "$WHARF" pack --socket s -o no.whr data 2> message
    grep -q 'does not compress' message
    test ! -e no.whr -a ! -e no.gz
}

# And nothing else: other codecs are refused, not left to the processors.
test_pack_by_a_gpu_makes_the_same_file() {
    local codec encoder
    cat "$TOP"/clientlib/*.c > data
    start_daemon '[gpu]' 'engine = simt'
    for codec in bdi fpc cpack best palette; do
        "$WHARF" pack -c "$codec" -fo here.whr data
        "$WHARF" pack --socket s --engine simt --report -c "$codec" -fo there.whr data 2> report
        cmp here.whr there.whr
        grep -q '"daemon":true' report
    done
    for encoder in bf16 f16 e4m3 e5m2; do
        "$WHARF" pack -c palette --encoder "$encoder" < data > here.whr
        "$WHARF" pack --socket s --engine simt -c palette --encoder "$encoder" < data | cmp - here.whr
    done
    "$WHARF" status --socket s > out
    grep -q '^         compressed [1-9][0-9]* chunks, .* 0 of 2 at a time' out
    expect_status 4 "$WHARF" pack --socket s --engine simt -c deflate -o no.whr data 2> message
    grep -q 'did not compress a chunk' message
    test ! -e no.whr
}

run_tests
