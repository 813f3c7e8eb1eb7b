# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# daemon.sh: a private daemon for a test script, after tap.sh.  It belongs to one test: it listens
# on the socket `s` in the test's folder, and ends with the test.

# start_daemon [CONFIG-LINE...]: and wait until it serves.  Without lines: as it was started before.
start_daemon() {
    if [ $# -gt 0 ] || [ ! -e config ]; then
        printf '%s\n' "$@" > config
    fi
    : > daemon.log
    # The test's own descriptors are not the daemon's.
    "$BUILD/wharfd" --socket "$PWD/s" --config config < /dev/null > /dev/null 2> daemon.log &
    daemon=$!
    trap 'kill_daemon' EXIT
    for _ in $(seq 3000); do
        grep -q 'serves with' daemon.log && return
        sleep 0.02
    done
    cat daemon.log
    return 1
}

# kill_daemon: at once, whatever it does.
kill_daemon() {
    kill -9 "$daemon" 2> /dev/null || true
    wait "$daemon" 2> /dev/null || true
}

# make_daemon_files: 4 MiB of output in files m.gz, b.gz, z.zlib, and containers of small, usual, large and
# mixed chunks.
make_daemon_files() { made_once daemon_files; }

daemon_files() {
    "$TOP/tests/lib/make_gzip.py" member 4 > m.gz
    "$TOP/tests/lib/make_gzip.py" bgzf 4 > b.gz
    "$TOP/tests/lib/make_gzip.py" zlib 4 > z.zlib
    gzip -dc m.gz > data
    "$WHARF" pack -o c.whr data
    "$WHARF" pack -b 1K -o small.whr data
    "$WHARF" pack -b 3M -c zlib -o large.whr data
    for codec in stored deflate gzip zlib deflate; do
        head -c 300000 data | "$WHARF" pack -b 7K -c "$codec"
    done > mixed.whr
    for _ in 1 2 3 4 5; do head -c 300000 data; done > mixed
    cat small.whr large.whr > growing.whr
    cat data data > growing
}

# field NAME FILE: of the report, which is the last line.
field() {
    tail -n 1 "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
