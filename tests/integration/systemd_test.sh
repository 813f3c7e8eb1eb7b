#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages under a real systemd: installed, started, killed, upgraded, purged.
#
#     LAB=PROGRAM tests/integration/systemd_test.sh
#
# PROGRAM SCRIPT [ARG...] has to run SCRIPT as root on a machine or container that can be thrown
# away, in which systemd is process 1 and where the current folder is to be seen, and to give back
# its output and status, within LAB_TIMEOUT seconds.  LAB=env takes this machine.  Needs what
# `make test-systemd` builds first.

if [ "${1:-}" = --inside ]; then
    BUILD=$3 ONLY=$4
    # shellcheck source=tests/lib/tap.sh
    . "$2/tests/lib/tap.sh"
else
    # shellcheck source=tests/lib/tap.sh
    . "$(dirname "$0")/../lib/tap.sh"
    if [ -n "${LAB:-}" ]; then
        cd "$TOP" || exit 2
        # What systemd-nspawn's wrapper may bound the run by; run-tests ends what hangs.
        export LAB_TIMEOUT=${LAB_TIMEOUT:-1200}
        exec "$LAB" "$TOP/tests/integration/systemd_test.sh" --inside "$TOP" "$BUILD" "${ONLY:-.}"
    fi
    test_service_under_systemd() {
        skip "no LAB=PROGRAM that boots a systemd, see tests/README.md"
    }
    run_tests
fi

# ---- tools ---------------------------------------------------------------------------------

client=$BUILD/tests/steady_client

# until_true SECONDS COMMAND...: fails when it has not come true by then.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "not within time: $*" >&2
            return 1
        fi
        sleep 0.02
    done
}

# show PROPERTY: of the service.
show() {
    systemctl show --value -p "$1" wharfd.service
}

has_failed_times() {
    [ "$(show NRestarts)" -ge "$1" ]
}

is_active() {
    [ "$(show ActiveState)" = active ]
}

# Another main process than $1 runs, and is ready.
is_replaced() {
    local pid
    pid=$(show MainPID)
    [ "$pid" != 0 ] && [ "$pid" != "$1" ] && is_active
}

has_status() {
    [[ $(show StatusText) == "$1"* ]]
}

# The journal's messages of the daemon since the test began have this text.
is_logged() {
    journalctl -q -u wharfd.service --since "@$began" -o cat --no-pager > log
    grep -qF -- "$1" log
}

# As every test begins: the packages are there, in the version that was built, nothing runs, and
# two users may connect, one not.
begin() {
    [ ! -s /tmp/client.pid ] || kill -KILL "$(cat /tmp/client.pid)" || true
    rm -f /tmp/client.pid
    if ! dpkg-query -W -f '${db:Status-Status} ${Version}\n' wharfd 2> /dev/null |
        has_line -x "installed $version"; then
        dpkg --force-unsafe-io -i "${packages[@]}" > installed 2>&1 || { cat installed; return 1; }
    fi
    for user in alice bob mallory; do
        id "$user" > /dev/null 2>&1 || useradd --no-create-home "$user"
    done
    usermod -aG wharf alice
    usermod -aG wharf bob
    systemctl stop wharfd.socket wharfd.service
    systemctl reset-failed wharfd.socket wharfd.service 2> /dev/null || true
    "$BUILD/wharfd" --print-config > /etc/wharf/wharfd.conf
    systemctl start wharfd.socket
    began=$(date +%s)
}

# start_client USER [SOCKET]: in the background; end_client gets what it says.
start_client() {
    rm -f said
    # The signal that ends it is for the client, not for runuser.
    # shellcheck disable=SC2016 # the inner shell's own variables
    runuser -u "$1" -- bash -c 'echo $$; exec "$0" "$@" 2>&1' "$client" "${@:2}" > said &
    runner=$!
    until_true 15 test -s said
    head -n 1 said > /tmp/client.pid
}

# Right to the end, and at least so many connections to new daemons.
end_client() {
    local status=0 pid killer
    pid=$(cat /tmp/client.pid)
    kill "$pid"
    # One that hangs fails the test, not the whole run.
    (sleep 20 && kill -KILL "$pid") &
    killer=$!
    wait "$runner" || status=$?
    kill "$killer"
    rm -f /tmp/client.pid
    cat said
    [ "$status" = 0 ]
    [ "$(value jobs)" -gt 0 ]
    [ "$(value reconnects)" -ge "${1:-0}" ]
}

# value NAME: of what the client said.
value() {
    sed -n "s/.*$1=\([0-9]*\).*/\1/p" said
}

# ---- install, start ------------------------------------------------------------------------

test_first_client_starts_the_daemon() {
    begin
    expect_text enabled "$(systemctl is-enabled wharfd.socket)"
    expect_text disabled "$(systemctl is-enabled wharfd.service || true)"
    expect_text 'root wharf 660' "$(stat -c '%U %G %a' /run/wharf/wharfd.sock)"
    expect_text inactive "$(show ActiveState)"
    start_client alice
    until_true 15 is_active
    sleep 1
    end_client
    expect_text wharfd "$(ps -o user= -p "$(show MainPID)")"
    is_logged "serves with"
}

test_ready_waits_for_what_is_left_of_an_earlier_daemon() {
    begin
    systemctl start wharfd.service
    systemctl stop wharfd.service
    flock /run/wharfd/wharfd.lock sleep 2 &
    until_true 15 expect_status 1 flock -n /run/wharfd/wharfd.lock true 2> /dev/null
    systemctl start --no-block wharfd.service
    until_true 15 has_status 'Waiting for what is left'
    expect_text activating "$(show ActiveState)"
    until_true 15 is_active
    expect_text 'Serving 0 connections' "$(show StatusText)"
    wait
}

# Clients that do not stop knocking.
knock() {
    while [ ! -e knocked ]; do
        runuser -u alice -- wharf status > /dev/null 2>&1 || true
    done
}

# Two further tries, which take as long as two pauses between tries.
expect_tries_at_leisure() {
    local since took_ms n
    until_true 20 has_failed_times 1
    since=$(date +%s%N)
    n=$(show NRestarts)
    until_true 30 has_failed_times $((n + 2))
    took_ms=$((($(date +%s%N) - since) / 1000000))
    echo "two further tries took $took_ms ms"
    [ "$took_ms" -ge 3500 ]
}

# It had made the socket unit fail, and with it whoever waited for a mended file.
test_mended_configuration_brings_the_service_back() {
    begin
    runuser -u alice -- wharf status > /dev/null
    socket=$(stat -c %i /run/wharf/wharfd.sock)
    echo 'nonsense = 1' >> /etc/wharf/wharfd.conf
    rm -f knocked
    knock &
    expect_status 1 systemctl restart wharfd.service 2> /dev/null
    expect_tries_at_leisure
    until_true 15 is_logged 'has no setting'
    grep -q '/wharfd.conf.*[0-9]: .*nonsense' log
    sed -i '/nonsense/d' /etc/wharf/wharfd.conf
    until_true 15 is_active
    touch knocked
    wait
    expect_text "active $socket" \
        "$(systemctl is-active wharfd.socket) $(stat -c %i /run/wharf/wharfd.sock)"
    runuser -u alice -- wharf status > /dev/null
}

# start_by COMMAND: in the place of the daemon.
start_by() {
    mkdir -p /run/systemd/system/wharfd.service.d
    printf '[Service]\nExecStart=\nExecStart=%s\n' "$1" > /run/systemd/system/wharfd.service.d/other.conf
    systemctl daemon-reload
}

# Status 1, 203 of a program that is not there, a signal, and a success that is none.
test_daemon_that_cannot_start_is_tried_again_at_leisure() {
    begin
    printf '[gpu]\nengine = cuda\nworker = /nonexistent\n' >> /etc/wharf/wharfd.conf
    systemctl start --no-block wharfd.service
    expect_tries_at_leisure
    sed -i '/^engine = cuda$/d' /etc/wharf/wharfd.conf
    until_true 15 is_active
    for command in /nonexistent "/bin/sh -c 'kill -SEGV \$\$\$\$'" /bin/true; do
        systemctl stop wharfd.service
        start_by "$command"
        systemctl start --no-block wharfd.service
        expect_tries_at_leisure
        rm -r /run/systemd/system/wharfd.service.d
        systemctl daemon-reload
        until_true 15 is_active
    done
    expect_text active "$(systemctl is-active wharfd.socket)"
}

test_outsider_is_told_which_group_to_join() {
    begin
    expect_status 1 runuser -u mallory -- "$client" 2> message
    cat message
    grep -qF 'only the group wharf may use it, and mallory is not in it' message
    grep -qF 'sudo usermod -aG wharf mallory' message
    seq 1000 | gzip > data.gz
    expect_status 3 runuser -u mallory -- wharf cat --socket /run/wharf/wharfd.sock \
        < data.gz 2> message
    cat message
    grep -qF 'sudo usermod -aG wharf mallory' message
    # Who does not insist on the daemon does without.
    expect_text 1000 "$(runuser -u mallory -- wharf cat < data.gz | wc -l)"
}

# ---- reload --------------------------------------------------------------------------------

test_reload_takes_a_good_configuration_and_refuses_a_bad_one() {
    begin
    start_client alice
    until_true 15 is_active
    pid=$(show MainPID)
    printf '[daemon]\nlog_level = debug\n' >> /etc/wharf/wharfd.conf
    systemctl reload wharfd.service
    until_true 15 is_logged 'read the configuration again'
    until_true 15 is_active
    echo 'log_level = loud' >> /etc/wharf/wharfd.conf
    expect_status 1 systemctl reload wharfd.service 2> /dev/null
    until_true 15 is_logged 'log_level = loud: not one of the words'
    until_true 15 is_logged 'the configuration stays as it was'
    until_true 15 is_active
    expect_text "$pid" "$(show MainPID)"
    wharf stats --scrape | has_line -x 'wharf_config_last_reload_successful 0'
    end_client
    expect_text 0 "$(value reconnects)"
}

# ---- deaths --------------------------------------------------------------------------------

test_stopped_daemon_is_restarted_by_the_watchdog() {
    begin
    start_client alice
    until_true 15 is_active
    pid=$(show MainPID)
    sleep 0.3
    kill -STOP "$pid"
    until_true 20 is_replaced "$pid"
    is_logged 'Watchdog timeout'
    until_true 30 serves alice
    end_client 1
    # What clients wait before they give up.
    [ "$(value longest_ms)" -lt 10000 ]
}

# serves USER: this daemon, which has finished jobs of the user's clients.
serves() {
    wharf stats --prometheus > counters &&
        grep -q "^wharf_jobs_total{tenant=\"uid:$(id -u "$1")\",.*result=\"ok\".* [1-9]" counters
}

# kill_often N [USER]: and wait for the next daemon each time, and until it serves the user's client.
kill_often() {
    local n pid
    for ((n = 0; n < $1; n++)); do
        pid=$(show MainPID)
        sleep 0.2
        kill -KILL "$pid"
        until_true 30 is_replaced "$pid"
        [ $# -lt 2 ] || until_true 30 serves "$2"
    done
}

test_seven_kills_in_a_row_lose_nothing() {
    begin
    start_client alice
    until_true 15 is_active
    kill_often 7 alice
    end_client 7
    expect_text 7 "$(show NRestarts)"
    expect_text active "$(systemctl is-active wharfd.socket)"
}

# report KEY: of what the command said.
report() {
    sed -n "s/.*\"$1\":\"*\([a-z0-9]*\).*/\1/p" reported
}

test_command_goes_on_while_the_daemon_is_killed() {
    begin
    seq 1 8000000 > data
    wharf pack --embedded -o packed data
    runuser -u alice -- wharf unpack --report -o - < packed 2> reported | cmp - data
    cat reported
    expect_text 'ok true' "$(report result) $(report daemon)"
    kill_often 5 &
    while kill -0 $! 2> /dev/null; do
        runuser -u alice -- wharf unpack --report -o - < packed 2> reported | cmp - data
        expect_text ok "$(report result)"
    done
    expect_text 5 "$(show NRestarts)"
}

test_stop_under_load_is_clean_and_loses_nothing() {
    begin
    start_client alice
    until_true 15 is_active
    sleep 0.5
    group=/sys/fs/cgroup$(show ControlGroup)
    time systemctl stop wharfd.socket wharfd.service
    expect_text 'inactive success 0' "$(show ActiveState) $(show Result) $(show ExecMainStatus)"
    test ! -e "$group/cgroup.procs" || expect_text '' "$(cat "$group/cgroup.procs")"
    test ! -e /run/wharf/wharfd.sock
    until_true 15 is_logged 'TERM: finishing jobs'
    sleep 0.5
    systemctl start wharfd.socket
    until_true 15 is_active
    until_true 30 serves alice
    end_client 1
}

# ---- what it may do, what it says ----------------------------------------------------------

# rights PID: what it may not gain, the capabilities it has, whether its system calls are filtered.
rights() {
    sed -n 's/^\(NoNewPrivs\|CapEff\|Seccomp\):.//p' "/proc/$1/status" | xargs
}

# hard_limit PID NAME
hard_limit() {
    sed -n "s/^$2 *[a-z0-9]* *\([a-z0-9]*\) .*/\1/p" "/proc/$1/limits"
}

# has_limit NAME VALUE: or what the machine allows, where that is less: systemd cannot exceed it.
has_limit() {
    local most has
    most=$(hard_limit 1 "$1")
    has=$(hard_limit "$(show MainPID)" "$1")
    [ "$has" = "$2" ] || [ "$has" = "$most" ]
}

# Registered memory goes through the filter, a process of its own, under the same restrictions.
test_restrictions_hold_and_do_not_get_in_the_way() {
    begin
    start_client alice
    until_true 15 is_active
    sleep 0.5
    end_client
    expect_text '0000000000000000 1 2' "$(rights "$(show MainPID)")"
    has_limit 'Max open files' 524288
    has_limit 'Max locked memory' unlimited
    is_logged 'by io_uring'
    expect_text '' "$(grep -iE 'error|warning|cannot|not work' log)"
    systemd-analyze security --no-pager --threshold=10 wharfd.service > exposure
    tail -n 1 exposure
}

# decode_by ENGINE: a stream, through the daemon.
decode_by() {
    seq 100 | gzip | runuser -u alice -- wharf decode --engine "$1" --codec gzip --report \
        2> reported | cmp - <(seq 100)
    expect_text "ok $1" "$(report result) $(report engine)"
}

n_workers_ready() {
    is_logged 'GPU 0: worker' && [ "$(grep -c 'is ready after' log)" = "$1" ]
}

# With the GPU's code on the CPU instead of a GPU, but the same process under the same restrictions.
test_worker_for_the_gpu_works_under_the_restrictions() {
    begin
    # Where the unit sees it: the tree may be in /tmp or a home folder.
    install -m755 "$BUILD/wharfd-simt" /usr/local/bin/wharfd-simt
    printf '[gpu]\nengine = simt\nworker = /usr/local/bin/wharfd-simt\n' >> /etc/wharf/wharfd.conf
    systemctl start wharfd.service
    until_true 15 n_workers_ready 1
    decode_by simt
    pid=$(show MainPID)
    worker=$(pgrep -P "$pid" wharfd-gpu)
    expect_text "$(rights "$pid")" "$(rights "$worker")"
    kill -KILL "$worker"
    until_true 15 n_workers_ready 2
    decode_by simt
    expect_text "$pid" "$(show MainPID)"
}

test_journal_tells_tenants_apart_by_fields() {
    begin
    printf '[daemon]\nlog_level = debug\n' >> /etc/wharf/wharfd.conf
    for user in alice bob; do
        start_client "$user"
        sleep 0.3
        end_client
    done
    for user in alice bob; do
        journalctl -q -u wharfd.service --since "@$began" -o json --no-pager \
            "WHARF_TENANT=uid:$(id -u "$user")" > entries
        test -s entries
        grep -q '"SYSLOG_IDENTIFIER":"wharfd"' entries
        grep -q '"PRIORITY":"[3-7]"' entries
        grep -q '"WHARF_CONNECTION":"[1-9]' entries
        expect_status 1 grep -qv '"WHARF_TENANT"' entries
    done
}

# write_literal FILE: what the manual page says to put there.
write_literal() {
    awk -v file="$1" '$1 == ".Pa" && $2 == file && $3 == ":" { is_next = 1 }
        /^\.Ed/ { is_next = is_text = 0 }
        is_text { print }
        is_next && /^\.Bd/ { is_text = 1 }' "$TOP/daemon/wharfd.8" > "$1"
}

# Root of a container that has the pods' folder as the page says: it can lock the folder, which nobody
# else does, and nothing else, and the next daemon starts beside it.
attack_by_mount() {
    local mount target
    mount=$(grep -oE -e '-v /run/wharf-pods:[^ ]+' "$TOP/daemon/wharfd.8")
    target=/run/wharf
    expect_text "-v /run/wharf-pods:$target:ro" "$mount"
    mkfifo go
    exec 3<> go
    "$TOP/tests/lib/container_root.sh" -v "/run/wharf-pods:$target:ro" -v "$TOP:$TOP:ro" \
        "$TOP/tests/lib/mount_attack.py" "$target" < go > did 3>&- &
    until_true 20 grep -qx 'done' did
    expect_text "lock $target
lock a range of $target
done" "$(cat did)"
    kill_often 2
    "$TOP/tests/lib/container_root.sh" -v "/run/wharf-pods:$target:ro" wharf status > answer
    grep -q socket:pods answer
    exec 3>&-
    wait
}

test_example_of_the_manual_page_gives_containers_a_tenant() {
    begin
    write_literal /etc/systemd/system/wharfd-pods.socket
    write_literal /etc/wharf/wharfd.conf
    printf '[daemon]\nlog_level = debug\n' >> /etc/wharf/wharfd.conf
    grep -q 'FileDescriptorName=pods' /etc/systemd/system/wharfd-pods.socket
    grep -q 'weight = 300' /etc/wharf/wharfd.conf
    systemctl daemon-reload
    # The page's own commands, while the service runs.
    start_client alice
    until_true 15 is_active
    sed -n 's/^\.Dl # \(systemctl enable wharfd-pods.socket\)$/\1/p
        s/^\.Dl # \(systemctl restart wharfd.service\)$/\1/p' "$TOP/daemon/wharfd.8" > commands
    expect_text 2 "$(wc -l < commands)"
    bash -e commands
    expect_text 'active active' \
        "$(systemctl is-active wharfd-pods.socket wharfd.service | xargs)"
    until_true 30 serves alice
    end_client 1
    start_client mallory /run/wharf-pods/wharfd.sock
    sleep 0.3
    end_client
    start_client alice
    sleep 0.3
    end_client
    for tenant in socket:pods "uid:$(id -u alice)"; do
        journalctl -q -u wharfd.service --since "@$began" -o cat "WHARF_TENANT=$tenant" > entries
        grep -q 'steady_client .* says Hello' entries
    done
    attack_by_mount
    systemctl disable --now wharfd-pods.socket
    rm /etc/systemd/system/wharfd-pods.socket
    rm -r /run/wharf-pods
}

# ---- maintenance ---------------------------------------------------------------------------

# As the manual page says: nobody who knocks starts it again.
test_service_stays_down_until_it_is_wanted() {
    begin
    start_client alice
    until_true 15 is_active
    end_client
    systemctl disable --now wharfd.socket wharfd.service 2> /dev/null
    expect_status 3 runuser -u alice -- wharf status 2> /dev/null
    expect_text 'inactive inactive' \
        "$(systemctl is-active wharfd.socket wharfd.service | xargs || true)"
    systemctl enable --now wharfd.socket 2> /dev/null
    runuser -u alice -- wharf status > /dev/null
}

# By the drop-in of the manual page.
test_crash_leaves_a_core_where_it_is_allowed() {
    [ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip "cores go elsewhere on this machine"
    begin
    mkdir -p /etc/systemd/system/wharfd.service.d
    sed -n '/^LimitCORE/,/^\.Ed/{/^\.Ed/d;p}' "$TOP/daemon/wharfd.8" |
        sed '1i [Service]' > /etc/systemd/system/wharfd.service.d/core.conf
    cat /etc/systemd/system/wharfd.service.d/core.conf
    systemctl daemon-reload
    systemctl start wharfd.service
    pid=$(show MainPID)
    kill -ABRT "$pid"
    until_true 15 is_replaced "$pid"
    test -s /run/wharfd/core || test -s "/run/wharfd/core.$pid"
    rm -r /run/wharfd/core* /etc/systemd/system/wharfd.service.d
    systemctl daemon-reload
}

# Nothing that says of a machine without a GPU that it has none.
test_machine_without_a_gpu_hears_nothing_of_it() {
    [ ! -e /dev/nvidiactl ] || skip "there is a GPU"
    begin
    systemctl start wharfd.service
    journalctl -q -u wharfd.service --since "@$began" -o cat --no-pager > log
    expect_text '' "$(grep -i nvidia log)"
    journalctl -q -u wharfd.service --since "@$began" -o cat --no-pager -p warning |
        { grep -v 'loopback network device' || true; } > warnings
    expect_text '' "$(cat warnings)"
}

# ---- upgrade, purge ------------------------------------------------------------------------

# The same packages under a later version.
make_next_version() {
    for package in "${packages[@]}"; do
        rm -rf unpacked
        dpkg-deb -R "$package" unpacked
        sed -i -e "s/^Version: .*/Version: $1/" -e "s/(= $version)/(= $1)/" unpacked/DEBIAN/control
        dpkg-deb -Znone -b unpacked "next-$(basename "$package")"
    done > packed
}

test_upgrade_restarts_the_daemon_while_clients_work() {
    begin
    make_next_version "$version+next"
    # Not touched by us: dpkg would ask whose configuration to take.
    dpkg --force-unsafe-io -i --force-confnew "${packages[@]}" > installed 2>&1
    start_client alice
    until_true 15 is_active
    pid=$(show MainPID)
    socket=$(stat -c %i /run/wharf/wharfd.sock)
    sleep 0.5
    dpkg --force-unsafe-io -i --force-confold ./next-*.deb > upgraded 2>&1 ||
        { cat upgraded; return 1; }
    until_true 10 is_replaced "$pid"
    # The program that was installed, not the one that it replaced.
    expect_text /usr/bin/wharfd "$(readlink "/proc/$(show MainPID)/exe")"
    expect_text "$socket" "$(stat -c %i /run/wharf/wharfd.sock)"
    until_true 30 serves alice
    end_client 1
    expect_text 0 "$(show NRestarts)"
}

# The daemon that runs stays, from a program that is gone, until the file is mended.
test_upgrade_leaves_the_daemon_alone_if_its_configuration_is_refused() {
    begin
    make_next_version "$version+refusing"
    dpkg --force-unsafe-io -i --force-confnew "${packages[@]}" > installed 2>&1
    start_client alice
    until_true 15 is_active
    pid=$(show MainPID)
    echo 'nonsense = 1' >> /etc/wharf/wharfd.conf
    dpkg --force-unsafe-io -i --force-confold ./next-*.deb > upgraded 2>&1 ||
        { cat upgraded; return 1; }
    cat upgraded
    grep -q 'the new version does not take the configuration' upgraded
    grep -q 'nonsense' upgraded
    expect_text "$pid active" "$(show MainPID) $(show ActiveState)"
    until_true 30 serves alice
    end_client
    expect_text 0 "$(value reconnects)"
    sed -i '/nonsense/d' /etc/wharf/wharfd.conf
    systemctl restart wharfd.service
    expect_text /usr/bin/wharfd "$(readlink "/proc/$(show MainPID)/exe")"
}

purge() {
    dpkg --purge libwharf-dev wharf wharfd libwharf0 > purged 2>&1 || { cat purged; return 1; }
    cat purged
}

# What could be left behind, by its name.  User and groups stay, as those of Debian's packages do.
list_traces() {
    find /etc /lib/systemd /run /usr /var -xdev -name '*wharf*' | sort
}

accounts() {
    getent passwd wharfd
    getent group wharfd
    getent group wharf
}

# refuses COMMAND NAME WORD: a person has the account that COMMAND makes.
refuses() {
    $1
    made=$(getent passwd "$2"; getent group "$2")
    expect_status 1 dpkg --force-unsafe-io -i "${packages[@]}" > installed 2>&1
    cat installed
    grep -qF "the $3 $2 is there already" installed
    expect_text "$made" "$(getent passwd "$2"; getent group "$2")"
    test ! -e /usr/bin/wharfd
    test ! -e /lib/systemd/system/wharfd.service
    purge
}

# Neither adopted nor, at the end, removed.
test_account_of_a_person_keeps_the_package_out() {
    begin
    purge
    userdel wharfd
    groupdel wharf
    refuses 'useradd -m wharfd' wharfd user
    test -d /home/wharfd
    userdel -r wharfd
    refuses 'groupadd wharf' wharf group
    groupdel wharf
    refuses 'groupadd wharfd' wharfd group
    groupdel wharfd
    begin
}

# Whoever made them, and whoever is in the group.
test_purge_leaves_user_and_group() {
    begin
    purge
    userdel wharfd
    groupdel wharf
    groupadd -r wharf
    useradd -r -m -c 'mine' wharfd
    usermod -aG wharf alice
    accounts > before
    begin
    accounts | diff <(sed 's/:alice$/:alice,bob/' before) -
    accounts > before
    purge
    accounts | diff before -
    test -d /home/wharfd
    userdel -r wharfd
    groupdel wharf
}

test_purge_leaves_nothing() {
    begin
    accounts > before
    start_client alice
    until_true 15 is_active
    sleep 0.3
    end_client
    purge
    list_traces | diff "$traces_before" -
    accounts | diff before -
    # Nobody logs in as that user.
    expect_text /usr/sbin/nologin "$(getent passwd wharfd | cut -d: -f7)"
    expect_text '!' "$(getent shadow wharfd | cut -d: -f2 | cut -c1)"
    expect_text '' "$(systemctl list-units --all --plain --no-legend | grep wharf)"
    expect_text '' "$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep '^[a-z]*wharf.*config')"
    expect_text '' "$(pgrep -x wharfd)"
}

# ---- the whole -----------------------------------------------------------------------------

if [ "$(cat /proc/1/comm)" != systemd ]; then
    echo "process 1 is not systemd" >&2
    exit 2
fi
for package in libwharf0 libwharf-dev wharf wharfd; do
    packages+=("$(ls "$TOP"/build/deb/"$package"_*.deb)")
done
version=$(dpkg-deb -f "${packages[0]}" Version)
# Images for containers forbid packages to start services.
rm -f /usr/sbin/policy-rc.d
# Ten seconds each time for the index of manual pages are not what is tested here.
rm -f /var/lib/man-db/auto-update
traces_before=$(mktemp)
list_traces > "$traces_before"
run_tests
