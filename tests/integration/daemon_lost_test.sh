#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command whose daemon is not there, dies or hangs: it says so, and nothing is lost.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# in_two_parts FILE N: gives N bytes of it, and the rest as soon as there is a file `go`.
in_two_parts() {
    feed head -c "$2" "$1"
    while [ ! -e go ]; do sleep 0.02; done
    feed tail -c +$(($2 + 1)) "$1"
}

# happens PID COMMAND...: waits until the command succeeds; 1 if that process ended before.
happens() {
    local pid=$1
    shift
    until "$@"; do
        kill -0 "$pid" 2> /dev/null || return 1
        sleep 0.02
    done
}

test_no_daemon_is_exit_3_and_says_how_to_start_one() {
    seq 1000 > data
    "$WHARF" pack data
    expect_status 3 "$WHARF" unpack --socket "$PWD/s" -o out data.whr 2> message
    # shellcheck disable=SC2016 # the message has these quotes
    grep -qF "no daemon: $PWD/s: no such socket: start a daemon with \`wharfd --socket $PWD/s\`" message
    test ! -e out
    start_daemon
    kill_daemon
    expect_status 3 "$WHARF" cat --socket s --report data.whr 2> message
    grep -q 'nobody listens there: start a daemon' message
    expect_text system_error "$(field result message)"
    expect_text 'Connection refused' "$(field error message)"
    expect_status 3 "$WHARF" decode -c gzip --socket data < data.whr 2> message
    grep -q 'no daemon: data: ' message
}

# The reader has half of the file when the daemon dies.
test_killed_and_restarted_daemon_loses_nothing() {
    make_daemon_files
    start_daemon
    for file in c.whr small.whr b.gz; do
        half=$(($(stat -c %s "$file") / 2))
        in_two_parts "$file" "$half" | "$WHARF" cat --socket s --patience 100 --report > out 2> report &
        command=$!
        happens "$command" test -s out
        kill_daemon
        start_daemon
        touch go
        wait "$command"
        cmp out data
        expect_text True "$(field daemon report)"
        rm go out
    done
}

# On a machine that does much else a daemon may be later than the command's patience: then it is asked
# again.
test_daemon_killed_for_good_is_exit_3_and_leaves_nothing() {
    make_daemon_files
    start_daemon '[daemon]' 'log_level = debug'
    until {
        in_two_parts c.whr 1000000 | expect_status 3 "$WHARF" unpack --socket s --patience 4 -o out 2> message &
        command=$!
        happens "$command" grep -q 'says Hello' daemon.log
    }; do
        touch go
        wait "$command"
        rm go
        kill_daemon
        start_daemon
    done
    kill_daemon
    touch go
    wait "$command"
    grep -q 'no daemon: .*nobody listens there: start a daemon with' message
    grep -q 'out: not written' message
    test ! -e out
}

# Alive, but it answers no more: nothing tells of that but time.
test_daemon_that_hangs_is_exit_3_after_patience() {
    make_daemon_files
    start_daemon
    until {
        in_two_parts c.whr 1000000 | expect_status 3 "$WHARF" cat --socket s --patience 1 > out 2> message &
        command=$!
        happens "$command" test -s out
    }; do
        touch go
        wait "$command" || true
        rm go
    done
    kill -STOP "$daemon"
    touch go
    wait "$command"
    grep -qE 'no daemon: .* (answer|answered)' message
    cmp -n "$(stat -c %s out)" out data
    expect_status 3 "$WHARF" ping --socket s --patience 1 > out 2> message
    kill -CONT "$daemon"
    "$WHARF" cat --socket s c.whr | cmp - data
}

# Where it was not asked for, the next file does without it.
test_daemon_lost_with_one_file_is_not_missed_by_the_next() {
    make_daemon_files
    for asked in '' '--socket s'; do
        start_daemon
        in_two_parts c.whr 1000000 | {
            status=0
            # shellcheck disable=SC2086 # words
            WHARF_SOCKET=s "$WHARF" cat $asked --patience 3 - b.gz m.gz small.whr > out 2> message ||
                status=$?
            expect_text 3 "$status"
        } &
        command=$!
        happens "$command" test -s out
        kill_daemon
        touch go
        wait "$command"
        grep -q 'no daemon: .*nobody listens there' message
        if [ -z "$asked" ]; then
            tail -c $((3 * $(stat -c %s data))) out | cmp - <(cat data data data)
            expect_text 3 "$(wc -l < message)"
        else
            expect_text 2 "$(grep -c 'no daemon: the daemon was lost before' message)"
            tail -c "$(stat -c %s data)" out | cmp - data
        fi
        rm go out
    done
}

run_tests
