#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Files that the command hands over to a daemon, which reads and writes them: the same bytes, messages and
# exit statuses as without, whatever becomes of the files and of who has them.

# The daemon writes no files in memory, where /tmp may be.
export TMPDIR=/var/tmp
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"

# counted METRIC: its sum over all tenants.
counted() {
    "$WHARF" stats --socket s --prometheus | awk -v name="wharf_$1{" 'index($0, name) == 1 { sum += $NF } END { printf "%d\n", sum }'
}

# expect_counted N METRIC: in time; what was done is counted just behind its completion.
expect_counted() {
    local n
    for _ in $(seq 3000); do
        n=$(counted "$2")
        [ "$n" -ne "$1" ] || return 0
        sleep 0.01
    done
    echo "$2 is $n instead of $1" >&2
    return 1
}

size() { stat -c %s "$1"; }

# same_as_here COMMAND...: by the daemon and in this process it says and writes the same, with the same status.
same_as_here() {
    local there=0 here=0
    "$WHARF" "$@" --socket s > there.out 2> there.said || there=$?
    "$WHARF" "$@" --embedded > here.out 2> here.said || here=$?
    expect_text "$here" "$there"
    cmp here.out there.out
    diff here.said there.said
}

test_outputs_are_written_by_the_daemon_and_inputs_read() {
    make_daemon_files
    start_daemon ''
    local written=0
    for _ in 1 2 3; do cat mixed.whr; done > three.whr
    for _ in 1 2 3; do cat mixed; done > three
    for name in c small large growing three; do
        "$WHARF" unpack --socket s --report -o out "$name.whr" 2> report
        case $name in growing | three) cmp out "$name" ;; *) cmp out data ;; esac
        expect_text True "$(field daemon report)"
        expect_text "$(size out)" "$(field out_nbytes report)"
        written=$((written + $(size out)))
        expect_counted "$written" file_output_bytes_total
        rm out
    done
    # To a pipe or a file that is open already, and to nobody, inputs alone are the daemon's.
    local read
    read=$(counted file_input_bytes_total)
    [ "$read" -gt 0 ]
    "$WHARF" cat --socket s c.whr | cmp - data
    "$WHARF" cat --socket s c.whr > out
    cmp out data
    "$WHARF" test --socket s c.whr
    expect_counted "$written" file_output_bytes_total
    [ "$(counted file_input_bytes_total)" -gt "$read" ]
    # What comes through a pipe is read here, and so is what is small.
    read=$(counted file_input_bytes_total)
    "$WHARF" unpack --socket s -f -o out < <(cat c.whr)
    cmp out data
    "$WHARF" unpack --socket s -f -o out mixed.whr
    cmp out mixed
    expect_counted "$read" file_input_bytes_total
    expect_counted 0 files
}

test_offsets_are_those_of_the_command() {
    make_daemon_files
    start_daemon ''
    # A file that stands behind other bytes, several inputs of one output, and ranges.
    { head -c 4099 data; cat c.whr; } > behind
    exec 7< behind
    dd bs=4099 count=1 of=/dev/null <&7 2> /dev/null
    "$WHARF" unpack --socket s -f -o out <&7
    exec 7<&-
    cmp out data
    "$WHARF" cat --socket s -f -o out c.whr small.whr m.gz growing.whr
    cat data data data growing | cmp - out
    "$WHARF" unpack --socket s -f -r 1000000:2000000 -o out c.whr
    tail -c +1000001 data | head -c 2000000 | cmp - out
    "$WHARF" unpack --socket s -f --sparse -o out c.whr
    cmp out data
}

# What the command decodes itself is not handed over: after a failure of the daemon's it is not done again.
test_lines_of_a_range_are_read_by_the_command() {
    make_daemon_files
    start_daemon ''
    "$WHARF" pack -q -c bdi -o lines.whr data
    [ "$(size lines.whr)" -gt 1048576 ]
    "$WHARF" cat -q --socket s --direct -r 1000001:777777 lines.whr > out
    tail -c +1000002 data | head -c 777777 | cmp - out
    expect_counted 0 file_input_bytes_total
}

test_bad_files_are_told_as_elsewhere() {
    make_daemon_files
    start_daemon ''
    "$WHARF" pack -b 20K -c zlib -o base.whr data
    local n at
    n=$(size base.whr)
    for at in 40 100 5000 10016 $((n / 2)) $((n - 300)) $((n - 70)) $((n - 5)); do
        { head -c "$at" base.whr; printf '\377\1\252'; tail -c +$((at + 4)) base.whr; } > bad.whr
        same_as_here unpack -o out bad.whr
        same_as_here cat bad.whr
        same_as_here test bad.whr
        head -c "$at" base.whr > bad.whr
        same_as_here unpack -o out bad.whr
        same_as_here test bad.whr
        [ ! -e out ]
    done
    # Padding that is not zero is read by nobody else.
    python3 - << 'END'
import struct
data = bytearray(open('base.whr', 'rb').read())
at = 32
while struct.unpack_from('<I', data, at)[0] == 0x4b484357:
    nbytes = struct.unpack_from('<I', data, at + 8)[0]
    if nbytes % 16:
        data[at + 64 + nbytes] = 1
        open('bad.whr', 'wb').write(data)
        break
    at += 64 + (nbytes + 15) // 16 * 16
END
    same_as_here unpack -o out bad.whr
    grep -q 'in chunk' there.said
}

test_gpus_get_no_files() {
    make_daemon_files
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" unpack --socket s -o out small.whr
    cmp out data
    expect_counted 0 file_output_bytes_total
    "$WHARF" unpack --socket s --engine cpu -f -o out small.whr
    cmp out data
    expect_counted "$(size data)" file_output_bytes_total
}

# What is written there would be charged to the daemon.
test_outputs_in_memory_are_written_by_the_command() {
    make_daemon_files
    start_daemon ''
    local folder read
    folder=$(mktemp -d /dev/shm/wharf-handover.XXXXXX) || skip 'there is no /dev/shm'
    cp c.whr "$folder"
    (
        trap 'rm -rf "$folder"' EXIT
        same_as_here unpack -f -o "$folder/out" "$folder/c.whr"
        cmp "$folder/out" data
        expect_text '' "$(cat there.said)"
    )
    expect_counted 0 file_output_bytes_total
    # The input stays the daemon's.
    read=$(counted file_input_bytes_total)
    [ "$read" -gt 0 ]
}

test_full_disks_are_told_as_elsewhere() {
    make_daemon_files
    start_daemon ''
    (
        ulimit -f 1000
        same_as_here unpack -o out c.whr
        grep -q 'out: cannot write: File too large; nothing is left of it' there.said
    )
    [ ! -e out ]
    [ "$(id -u)" -eq 0 ] || skip 'a file system of 2 MiB needs root'
    mkdir small
    truncate -s 2M disk
    { mkfs.ext4 -q -m 0 disk && mount -o loop disk small; } || skip 'cannot mount'
    rmdir small/lost+found
    local status=0
    same_as_here unpack -o small/out c.whr || status=$?
    ls -A small > left
    umount small
    expect_text 0 "$status"
    grep -q 'small/out: cannot write: No space left on device; nothing is left of it' there.said
    expect_text '' "$(cat left)"
}

# io_processes: of the daemon, those for files.
io_processes() {
    cat /proc/"$daemon"/task/*/children 2> /dev/null | tr ' ' '\n' | while read -r process; do
        [ "$(cat /proc/"$process"/comm 2> /dev/null)" != wharfd-io ] || echo "$process"
    done
}

# until_the_end PID COMMAND: again and again as long as the process is there and the command succeeds.
until_the_end() {
    while kill -0 "$1" 2> /dev/null && $2; do
        :
    done
}

# Not for ever: each time the command connects again, and jobs that it had are done again.
kill_io() {
    local process
    [ "$n_killed" -lt "$most_killed" ] || return 1
    for process in $(io_processes); do
        kill -9 "$process" 2> /dev/null || true
        n_killed=$((n_killed + 1))
    done
}

test_killed_processes_for_files_are_not_noticed() {
    make_daemon_files
    start_daemon ''
    for _ in 1 2 3 4 5 6 7 8; do cat small.whr; done > long.whr
    for _ in 1 2 3 4 5 6 7 8; do cat data; done > long
    n_killed=0
    for most_killed in 5 10 15; do
        "$WHARF" unpack --socket s -fq -o out long.whr 2> said &
        until_the_end $! kill_io
        wait $!
        cat said
        [ ! -s said ]
        cmp out long
    done
    most_killed=20
    "$WHARF" test --socket s long.whr &
    until_the_end $! kill_io
    wait $!
    echo "$n_killed killed"
    [ "$n_killed" -gt 0 ]
}

restart() {
    [ "$n_restarts" -lt 3 ] || return 1
    [ -n "$(io_processes)" ] || return 0
    n_restarts=$((n_restarts + 1))
    kill_daemon
    start_daemon
}

test_killed_daemons_are_not_noticed() {
    make_daemon_files
    start_daemon ''
    for _ in 1 2 3 4 5 6 7 8; do cat small.whr; done > long.whr
    for _ in 1 2 3 4 5 6 7 8; do cat data; done > long
    n_restarts=0
    for _ in 1 2 3 4 5; do
        "$WHARF" unpack --socket s --patience 300 -fq -o out long.whr 2> said &
        local command=$!
        until_the_end "$command" restart
        wait "$command"
        cat said
        [ ! -s said ]
        cmp out long
        [ "$n_restarts" -lt 3 ] || break
    done
    [ "$n_restarts" -gt 0 ]
}

test_lost_daemon_leaves_no_output() {
    make_daemon_files
    start_daemon ''
    mkfifo gate
    # The input does not end before the daemon is gone.
    "$WHARF" cat --socket s --patience 10 -o out c.whr - < gate 2> said &
    local command=$!
    exec 8> gate
    for _ in $(seq 3000); do
        [ "$(counted output_bytes_total)" -lt "$(size data)" ] || break
        sleep 0.01
    done
    kill_daemon
    cat c.whr >&8 || true
    exec 8>&-
    expect_status 3 wait "$command"
    grep -q 'no daemon' said
    [ ! -e out ]
}

run_tests
