#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The unit's system-call filter and what goes with it, without systemd: what it stops, and that
# daemon, filter and worker run under it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# A command that begins so is that process itself, which a signal reaches.
under_unit=("$TOP/tests/lib/under_unit.py" run restrictions)

begin() {
    trap end_jobs EXIT
    "$TOP/tests/lib/under_unit.py" compile "$TOP/systemd/wharfd.service.in" > restrictions
}

# refuses ERROR STATEMENT: of Python.
refuses() {
    expect_status 1 "${under_unit[@]}" python3 -c "import ctypes, mmap, os, socket; $2" 2> message
    tail -n 1 message
    tail -n 1 message | has_line "Errno $1]"
}

test_calls_that_the_unit_refuses_are_refused() {
    begin
    refuses 1 'mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)'
    refuses 97 'socket.socket(socket.AF_INET)'
    refuses 97 'socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'
    refuses 1 'os.chroot("/")'
    refuses 1 'os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))'
    refuses 1 'r = ctypes.CDLL(None, use_errno=True).unshare(0x10000000)
if r < 0: raise OSError(ctypes.get_errno(), "unshare")'
}

test_what_programs_need_is_not_refused() {
    begin
    "${under_unit[@]}" python3 -c 'import ctypes, mmap, os, socket, struct
mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.nice(1)
slices = struct.pack("IIQiI3Q", 48, 0, 0, os.nice(0), 0, 100000, 0, 0)
assert ctypes.CDLL(None).syscall(314, 0, slices, 0) == 0  # sched_setattr
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)'
    expect_text '0000000000000000 1 2' \
        "$("${under_unit[@]}" sed -n 's/^\(CapEff\|NoNewPrivs\|Seccomp\):.//p' /proc/self/status | xargs)"
}

# Daemons of a test that fails end with it.
end_jobs() {
    local jobs
    jobs=$(jobs -p)
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$jobs" ] || kill $jobs
}

# end PID: of the daemon, by SIGTERM.
end() {
    kill "$1"
    wait "$1"
}

# until_said WORDS PID LOG: by that daemon, which may also end.
until_said() {
    for _ in {1..1200}; do
        ! grep -q "$1" "$3" || return 0
        kill -0 "$2" || break
        sleep 0.05
    done
    cat "$3"
    echo "not said by daemon $2: $1" >&2
    return 1
}

# n_chunks: that the daemon has decoded.
n_chunks() {
    "$WHARF" stats --socket "$PWD/socket" --prometheus > scraped
    "$TOP/tests/lib/prometheus.py" value scraped wharf_chunks_total engine=cpu || echo 0
}

# The client's registered memory goes through the filter.
test_daemon_serves_under_the_restrictions() {
    begin
    # Far above what the filter takes on a machine that does much else.
    printf '[daemon]\ngate_timeout = 1min\n' > config
    "$BUILD/wharfd" --socket "$PWD/plain" --config config 2> plain.log &
    plain=$!
    "${under_unit[@]}" "$BUILD/wharfd" --socket "$PWD/socket" --config config 2> log &
    daemon=$!
    until_said ' serves with ' "$plain" plain.log
    until_said ' serves with ' "$daemon" log
    export LD_LIBRARY_PATH=$BUILD
    "$BUILD/tests/steady_client" "$PWD/socket" > said &
    client=$!
    for _ in {1..1200}; do
        [ "$(n_chunks)" -ge 100 ] && break
        sleep 0.05
    done
    kill "$client"
    wait "$client"
    cat said
    end "$daemon"
    end "$plain"
    cat log
    # It waits in the same way as without the filter.
    expect_text "$(grep -o 'by [a-z_]*$' plain.log)" "$(grep -o 'by [a-z_]*$' log)"
    expect_text '' "$(grep -E 'error|warning' log)"
}

# The one that runs the GPU's code on the CPU.
test_worker_runs_under_the_restrictions() {
    begin
    printf '[gpu]\nengine = simt\n' > config
    "${under_unit[@]}" "$BUILD/wharfd" --socket "$PWD/socket" --config config 2> log &
    daemon=$!
    until_said 'GPU 0: worker .* is ready' "$daemon" log
    seq 100 | gzip > data.gz
    "$WHARF" decode --socket "$PWD/socket" --engine simt --codec gzip < data.gz | cmp - <(seq 100)
    end "$daemon"
}

run_tests
