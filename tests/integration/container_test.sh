#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The recipe for containers: what the mounts that it documents let root of a client's container do.
# What a container is, lib/container_root.sh says.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

recipe=$TOP/systemd/container
# Any that is nobody's.
daemon_user=54321

# volumes_of SERVICE: what compose.yaml mounts there, one SOURCE:TARGET[:ro] a line.
volumes_of() {
    awk -v service="  $1:" '/^  [a-z]/ { is_it = $0 == service; is_list = 0 }
        /^[a-z]/ { is_it = 0 }
        is_it && /^    [a-z]/ { is_list = $1 == "volumes:" }
        is_it && is_list && $1 == "-" { print $2 }' "$recipe/compose.yaml"
}

# words_of SERVICE KEY: those of its list in brackets, one a line.
words_of() {
    awk -v service="  $1:" '/^  [a-z]/ { is_it = $0 == service } /^[a-z]/ { is_it = 0 } is_it' "$recipe/compose.yaml" |
        sed -n "s/^ *$2: \\[\\(.*\\)\\]$/\\1/p" | sed 's/, /\n/g' | tr -d '"'
}

# setting_of SERVICE KEY: a word.
setting_of() {
    awk -v service="  $1:" '/^  [a-z]/ { is_it = $0 == service } /^[a-z]/ { is_it = 0 } is_it' "$recipe/compose.yaml" |
        sed -n "s/^ *$2: \\([a-z0-9]*\\)$/\\1/p"
}

# contain SERVICE ARGUMENT...: in a container with that service's mounts, for container_root.sh.  With
# exec='exec', for the background, a signal to the job ends the container.
contain() {
    local volume options=(-v "$TOP:$TOP:ro" -v "$BUILD:$BUILD:ro")
    for volume in $(volumes_of "$1"); do
        case $volume in
        ./*) options+=(-v "$recipe/${volume#./}") ;;
        *) options+=(-v "$PWD/volumes/$volume") ;;
        esac
    done
    ${exec:-} "$TOP/tests/lib/container_root.sh" "${options[@]}" "${@:2}"
}

# The test's folder is the test's own, and a user who is nobody has to come through it.
begin() {
    local volume
    [ "$(id -u)" -eq 0 ] || skip 'needs root, for namespaces'
    unshare --mount --pid --fork --net --ipc --uts true 2> /dev/null ||
        skip 'no namespaces can be made here'
    export LD_LIBRARY_PATH=$BUILD
    chmod 755 .
    for volume in $(volumes_of wharfd | grep -v '^\./'); do
        mkdir -p "volumes/${volume%%:*}"
        chown "$daemon_user" "volumes/${volume%%:*}"
    done
    trap 'kill_jobs' EXIT
}

kill_jobs() {
    local jobs
    jobs=$(jobs -p)
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$jobs" ] || kill -KILL $jobs
}

# until_true COMMAND...
until_true() {
    for _ in {1..3000}; do
        "$@" && return
        sleep 0.02
    done
    echo "not within time: $*" >&2
    cat daemon.log
    return 1
}

start_daemon() {
    : > daemon.log
    expect_text true "$(setting_of wharfd read_only)"
    exec='exec' contain wharfd -r -u "$daemon_user" "$BUILD/wharfd" > daemon.log 2>&1 &
    daemon=$!
    until_true grep -q 'serves with' daemon.log
}

# Nobody need have waited for it.
is_gone() {
    [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

# As no daemon likes to end, and with all its processes.
kill_daemon() {
    local first
    first=$(xargs < "/proc/$daemon/task/$daemon/children")
    kill -KILL "$daemon"
    wait "$daemon" || true
    # The kernel ends a container's first process after all others.
    until_true is_gone "$first"
}

# The daemon answers a client in a container.
serves_clients() {
    contain client -u 1000 "$WHARF" status > answer
    grep -q socket:pods answer
}

# What is there, whose it is and who may what.
list() {
    find volumes -mindepth 1 -printf '%p %y %m %U %i\n' | sort
}

test_clients_are_served_through_their_mount() {
    begin
    start_daemon
    serves_clients
    seq 1000 | gzip > data.gz
    contain client -u 1000 "$WHARF" cat --socket /run/wharf/wharfd.sock < data.gz | cmp - <(seq 1000)
    # Nothing is said of the places of sockets.
    expect_text '' "$(grep -i 'warning\|folder' daemon.log)"
}

# And no other sockets than the one for them.
test_clients_have_nothing_mounted_but_their_socket() {
    begin
    start_daemon
    target=$(volumes_of client | cut -d: -f2)
    expect_text "s $target/wharfd.sock" \
        "$(contain client find "$target" ! -type d -printf '%y %p\n')"
    # The locks are somewhere.
    expect_text 1 "$(find volumes -name '*.lock' | wc -l)"
}

test_root_of_a_client_can_lock_remove_and_replace_nothing() {
    begin
    start_daemon
    list > before
    mkfifo go
    exec 3<> go
    target=$(volumes_of client | cut -d: -f2)
    exec='exec' contain client "$TOP/tests/lib/mount_attack.py" "$target" < go > did 3>&- &
    attacker=$!
    until_true grep -qx 'done' did
    cat did
    # The folder itself can be locked, which nobody else does.
    expect_text "lock $target
lock a range of $target
done" "$(cat did)"
    list | diff before -
    # The next daemons find nothing in their way while all those locks are held.
    for _ in 1 2; do
        kill_daemon
        start_daemon
        until_true serves_clients
    done
    kill -0 "$attacker"
}

# What Podman and Docker ask the daemon's container.
is_healthy() {
    local words
    mapfile -t words < <(words_of wharfd test)
    expect_text CMD "${words[0]}"
    contain wharfd -u "$daemon_user" env "PATH=$BUILD:$PATH" "${words[@]:1}" > health 2>&1
}

test_health_check_says_whether_the_daemon_serves() {
    begin
    expect_status 3 is_healthy
    start_daemon
    is_healthy
    first=$(xargs < "/proc/$daemon/task/$daemon/children")
    kill -STOP "$first"
    expect_status 3 is_healthy
    # It has to say so before its time is over.
    timeout=$(setting_of wharfd timeout)
    patience=$(words_of wharfd test | tail -n 1)
    test "$patience" -lt "${timeout%s}"
    kill -CONT "$first"
    until_true is_healthy
    kill_daemon
    expect_status 3 is_healthy
}

# The operator's view, by the daemon's own user in its container.
test_daemons_own_container_sees_all() {
    begin
    start_daemon
    contain client -u 1000 "$WHARF" ping --count 1 > /dev/null
    contain wharfd -u "$daemon_user" "$WHARF" status > answer
    grep -q "uid:$daemon_user" answer
    contain wharfd -u "$daemon_user" "$WHARF" drain
    wait "$daemon"
}

# Whether a client of containers has work with the daemon that is there.
has_work() {
    contain wharfd -u "$daemon_user" "$WHARF" stats --prometheus > answer
    grep -q '^wharf_queue_entries{tenant="socket:pods"} [1-9]' answer
}

# As `restart: always` does it: a client in the middle of its work notices a pause.
test_work_goes_on_after_a_restart() {
    begin
    expect_text always "$(setting_of wharfd restart)"
    start_daemon
    exec='exec' contain client -u 1000 "$BUILD/tests/steady_client" /run/wharf/wharfd.sock > did &
    client=$!
    until_true has_work
    kill_daemon
    start_daemon
    until_true has_work
    kill -TERM "$(xargs < "/proc/$client/task/$client/children")"
    wait "$client"
    cat did
    grep -qE '^jobs=[1-9][0-9]* reconnects=[1-9][0-9]* ' did
}

# A socket for containers beside the main one puts the locks into their hands.
test_daemon_warns_of_a_socket_for_containers_beside_its_locks() {
    printf '[listen pods]\npath = %s/pods.sock\ntenant = socket\n' "$PWD" > config
    mkdir elsewhere
    trap 'kill_jobs' EXIT
    "$BUILD/wharfd" --socket "$PWD/s" --config config 2> daemon.log &
    until_true grep -q 'serves with' daemon.log
    grep -qF "[listen pods] has the folder of the main socket" daemon.log
    "$BUILD/wharfd" --socket "$PWD/elsewhere/s" --config config 2> daemon.log &
    until_true grep -qE 'serves with|served by another' daemon.log
    expect_status 1 grep -qF 'has the folder of the main socket' daemon.log
}

# The words of the page for podman are those of compose.yaml.  What --device gives, cdi_test.sh holds.
test_commands_of_the_page_mount_the_same() {
    # Commands go on behind a backslash.
    sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' "$recipe/CONTAINERS.md" |
        grep '^podman run' | grep -v -- '--device' | sed "s|\$PWD/systemd/container/|./|" > commands
    mounts() {
        grep -e "$1" commands | grep -oE -e '-v [^ ]+' | sed 's/^-v //' | sort
    }
    expect_text "$(volumes_of wharfd | sort)" "$(mounts '--name wharfd')"
    expect_text "$(volumes_of client)" "$(mounts '--rm')"
    expect_text '/run/wharf-pods:/run/wharf:ro' "$(mounts ' IMAGE')"
    expect_text 3 "$(wc -l < commands)"
    # And so are restart and health check.
    option() { grep -e '--name wharfd' commands | sed -n "s/.* --$1 \\('[^']*'\\|[^ ]*\\).*/\\1/p" | tr -d "'"; }
    expect_text "$(setting_of wharfd restart)" "$(option restart)"
    expect_text "$(words_of wharfd test | tail -n +2 | xargs)" "$(option health-cmd)"
    for key in interval timeout retries start_period; do
        expect_text "$(setting_of wharfd "$key")" "$(option "health-${key/_/-}")"
    done
}

run_tests
