#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What systemd's own tools say of the units, where no systemd runs; systemd_test.sh boots one.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

stage_all() {
    make_here prefix=/usr DESTDIR="$PWD/stage" install > installed
    units=stage/usr/lib/systemd/system
}

# setting KEY: of the service.
setting() {
    sed -n "s/^$1=//p" "$units/wharfd.service"
}

test_units_hold_no_mistake() {
    stage_all
    # What they run and refer to has to be there.
    mkdir -p stage/bin
    touch stage/bin/kill stage/bin/sh
    chmod +x stage/bin/kill stage/bin/sh
    cp /lib/systemd/system/{basic,sysinit,shutdown,sockets,nss-user-lookup,multi-user}.target "$units"
    systemd-analyze verify --man=no --recursive-errors=no --root="$PWD/stage" \
        wharfd.socket wharfd.service
}

test_service_is_exposed_at_most_1_0() {
    stage_all
    # The threshold is in tenths.
    systemd-analyze security --offline=true --threshold=10 "$units/wharfd.service" > exposure
    tail -n 1 exposure
}

# The metrics of a daemon that never saw the file could not say that it is refused.
# shellcheck disable=SC2016 # the unit's own word
test_reload_shows_the_file_to_the_daemon_whatever_the_check_says() {
    stage_all
    setting ExecReload > reload
    expect_text '/bin/kill -HUP $MAINPID' "$(head -n 1 reload)"
    tail -n +2 reload | has_line -- ' --check-config$\|wharfd --check-config$'
}

# Not above ten seconds: what clients wait for a daemon before their calls fail.
# hook KEY RESULT: runs that line of the service, which ended like this, with a clock that says what it is asked.
hook() {
    setting "$1" | sed "s|^-/bin/sh -c '\(.*\)'$|\1|; s/[$][$]/$/g" > hook
    SERVICE_RESULT=$2 RUNTIME_DIRECTORY=$PWD/run PATH=$PWD/bin:$PATH sh hook
}

# Clients that wait would have systemd try again and again, until it gave up and took the socket away.
# systemd_test.sh sees the seconds pass.
test_starts_that_fail_stand_apart_and_go_on() {
    stage_all
    mkdir bin run
    printf '#!/bin/sh\necho "$*" >> %s/slept\n' "$PWD" > bin/sleep
    chmod +x bin/sleep
    for result in exit-code signal timeout watchdog; do
        hook ExecStopPost "$result"
        expect_text 2 "$(cat slept)"
        rm slept
        # One that was ready is back at once.
        hook ExecStartPost success
        hook ExecStopPost "$result"
        test ! -e slept
    done
    hook ExecStopPost success || true
    test ! -e slept
    expect_text on-failure "$(setting Restart)"
    expect_text 0 "$(setting StartLimitIntervalSec)"
    expect_text '' "$(setting RestartPreventExitStatus)"
}

test_hung_daemon_is_replaced_before_clients_give_up() {
    stage_all
    patience_ms=$(sed -n 's/^#define WHARF_DEFAULT_PATIENCE_MS \([0-9]*\)u$/\1/p' "$TOP/clientlib/wharf.h")
    watchdog_s=$(setting WatchdogSec)
    test "$((${watchdog_s%s} * 1000))" -lt "$patience_ms"
}

test_stop_leaves_time_to_drain() {
    stage_all
    drain=$("$BUILD/wharfd" --print-config | sed -n 's/^#drain_timeout = //p')
    stop=$(setting TimeoutStopSec)
    test "${stop%s}" -gt "${drain%s}"
}

# Clients are refused before the kernel ends anything, and none of them slows the others down.
test_limits_of_memory_stand_above_the_totals() {
    stage_all
    percent=$(setting MemoryMax)
    test "${percent%\%}" -gt 75
    expect_text '' "$(setting MemoryHigh)"
    test "$(setting OOMScoreAdjust)" -lt 0
    # As many threads as workers can be configured, and as many in their places, in the quarter that
    # is not for files.
    workers=$(sed -n 's/.*"cpu", "workers".* 0, \([0-9]*\), NULL,$/\1/p' "$TOP/daemon/base/config_table.c")
    test "$(($(setting TasksMax) / 4))" -gt "$((2 * workers))"
}

test_configuration_for_containers_is_good() {
    mkdir -p run/wharf run/wharf-pods
    sed "s,= /run/,= $PWD/run/," "$TOP/systemd/container/wharfd.conf" > conf
    "$BUILD/wharfd" --check-config --config conf
}

test_users_and_folders_are_made() {
    stage_all
    mkdir -p stage/etc stage/run
    systemd-sysusers --root="$PWD/stage" wharfd.conf 2> made
    grep -q '^wharf:' stage/etc/group
    grep -q "^$(setting User):.*:/usr/sbin/nologin$" stage/etc/passwd
    grep -q "^$(setting Group):" stage/etc/group
    grep -qx 'SocketGroup=wharf' "$units/wharfd.socket"
    # Nobody who may connect is thereby of the daemon's group.
    expect_status 1 grep '^wharf:.*wharfd' stage/etc/group
    systemd-tmpfiles --root="$PWD/stage" --create wharfd.conf
    expect_text '755 0' "$(stat -c '%a %u' stage/run/wharf)"
}

run_tests
