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
