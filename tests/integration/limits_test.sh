#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A daemon whose surroundings are narrow: a log that nobody reads, a limit of file sizes.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# until COMMAND...: repeats it until it succeeds.
until_good() {
    for _ in $(seq 3000); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.02
    done
    return 1
}

# start_narrow DESCRIPTOR: with standard error there; and wait until it serves.
start_narrow() {
    { echo "[daemon]"; echo "log_level = debug"; } > config
    "$BUILD/wharfd" --socket "$PWD/s" --config config < /dev/null > /dev/null 2>&"$1" &
    daemon=$!
    trap 'kill_daemon' EXIT
    until_good "$WHARF" ping --socket s
}

test_log_that_nobody_reads_stops_nobody() {
    mkfifo log
    exec 8<> log
    # As much as the pipe holds.
    dd if=/dev/zero of=/dev/fd/8 bs=4096 count=1000 oflag=nonblock 2> /dev/null || true
    start_narrow 8
    "$WHARF" ping --socket s > /dev/null
    "$WHARF" ping --socket s > /dev/null
    # What it had to say comes when there is room.
    grep -aqm 1 'wharfd: ' <&8
    exec 8>&-
}

test_limit_of_file_sizes_refuses_what_is_larger() {
    seq 1 60000 > data
    "$WHARF" pack -o data.whr data
    exec 8> log
    (
        ulimit -f 2048
        exec "$BUILD/wharfd" --socket "$PWD/s" < /dev/null > /dev/null 2>&8
    ) &
    daemon=$!
    trap 'kill_daemon' EXIT
    until_good "$WHARF" ping --socket s
    expect_status 4 "$WHARF" cat --socket s data.whr 2> message
    grep -qF "limit of file sizes (LimitFSIZE=, ulimit -f)" message
    "$WHARF" ping --socket s > /dev/null
    exec 8>&-
}

run_tests
