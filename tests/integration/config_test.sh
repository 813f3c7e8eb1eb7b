#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The daemon's configuration as its administrator meets it: what is wrong with it, drop-ins, what is in
# effect.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"

wharfd=$BUILD/wharfd

# check STATUS: of the file conf, whose problems are then in the file said.
check() {
    expect_status "$1" "$wharfd" --check-config --config conf 2> said
    cat said
}

test_all_errors_are_listed_with_their_lines() {
    cat > conf << 'EOF'
[daemon]
lgo_level = debug
max_memory = 1G
[cpu]
cpus = 5-3
share = none
EOF
    check 2
    expect_text "wharfd: error: conf:2: [daemon] has no setting \`lgo_level\`; did you mean log_level?
wharfd: error: conf:3: [daemon] has no setting \`max_memory\`: it is one of [quota] or [total]
wharfd: error: conf:5: cpus = 5-3: processors are numbers, as in 3, or ranges, as in 0-7, with commas between them
wharfd: error: conf:6: share = none: not a number" "$(cat said)"
}

# One wrong line kept all others from being compared with the machine.
test_errors_of_all_kinds_are_listed_together() {
    cat > conf << 'EOF'
[cpu]
workers = many
cpus = 1023
[total]
max_memory = 1000T
[gpu]
engine = cuda
worker = /nonexistent
[listen a]
path = /run/x
[listen b]
path = /run/x
EOF
    check 2
    for line in 2 3 5 8 12; do
        grep -q "^wharfd: error: conf:$line: " said
    done
    expect_text 5 "$(grep -c '^wharfd: error: ' said)"
}

# By a daemon that tries.  Each is refused by both.
test_check_refuses_what_the_start_refuses() {
    for settings in '[cpu]\ncpus = abc' '[cpu]\ncpus = 1023' '[total]\nmax_memory = 1000T' \
        '[total]\nmax_connections = 1048576' '[total]\nowners = 1048576' '[gpu]\nmemory = 1000T' \
        '[gpu]\nengine = cuda\nworker = /nonexistent' '[total]\nmax_connections = 8\nowners = 8'; do
        printf '%b\n' "$settings" > conf
        check 2
        grep -q '^wharfd: error: conf:[23]: ' said
        status=0
        timeout -k 1 600 "$wharfd" --config conf --socket "$PWD/socket" 2> log || status=$?
        [ "$status" = 1 ] || [ "$status" = 2 ]
    done
}

# Two sockets at one path passed the check.  A daemon whose metrics had the main socket's path ran, and
# could not be reached; of others it was said that another daemon was there.
test_each_socket_has_a_path_of_its_own() {
    while IFS='|' read -r settings said; do
        printf '%b\n' "$settings" > conf
        check 2
        expect_text "wharfd: error: conf:$said has this path already" "$(cat said)"
        expect_status 2 timeout -k 1 60 "$wharfd" --config conf --socket "$PWD/socket" 2> log
        grep -qF "conf:$said has this path already" log
    done << EOF
[daemon]\nsocket = $PWD/socket\nmetrics_socket = $PWD/socket|3: [daemon] metrics_socket = $PWD/socket: [daemon] socket
[daemon]\nsocket = $PWD/socket\n[listen a]\npath = $PWD/socket|4: [listen a] path = $PWD/socket: [daemon] socket
[listen a]\npath = $PWD/a\n[listen b]\npath = $PWD/a|4: [listen b] path = $PWD/a: [listen a] path
[listen a]\npath = $PWD/a\n[daemon]\nmetrics_socket = $PWD/a|2: [listen a] path = $PWD/a: [daemon] metrics_socket
EOF
    # Without paths there is nothing to compare; systemd has them.
    printf '[listen a]\n[listen b]\n' > conf
    check 0
    # By the command line, of which the file knows nothing.
    printf '[daemon]\nmetrics_socket = %s\n' "$PWD/socket" > conf
    check 0
    expect_status 2 timeout -k 1 60 "$wharfd" --config conf --socket "$PWD/socket" 2> log
    test ! -e socket
}

test_what_stands_at_a_path_is_found() {
    echo precious > file
    printf '[daemon]\nsocket = %s\nmetrics_socket = %s\n' "$PWD/file" "$PWD" > conf
    check 2
    expect_text "wharfd: error: conf:2: socket = $PWD/file: is a regular file, which is left as it is
wharfd: warning: conf:3: metrics_socket = $PWD: is a folder, which is left as it is" "$(cat said)"
    printf '[listen a]\npath = %s\n' "$PWD/file" > conf
    check 2
    grep -qF "conf:2: path = $PWD/file: is a regular file" said
    start_daemon '[daemon]' "metrics_socket = $PWD/file"
    grep -qF "there is no socket for metrics: $PWD/file is a regular file, which is left as it is" daemon.log
    expect_text precious "$(cat file)"
}

test_folder_that_others_may_write_to_is_a_warning() {
    echo > conf
    mkdir -m 755 conf.d
    check 0
    expect_text '' "$(cat said)"
    chmod 777 conf.d
    check 0
    expect_text 'wharfd: warning: conf.d: others than root and the daemon may write in this folder' "$(cat said)"
}

test_start_names_the_setting_that_no_processor_fits() {
    printf '[cpu]\ncpus = 1023\n' > conf
    expect_status 1 timeout -k 1 600 "$wharfd" --config conf --socket "$PWD/socket" 2> log
    cat log
    grep -qF 'cpus = 1023: of these the daemon may use none' log
}

test_contradictions_are_warnings() {
    printf '[quota]\nmax_arena = 8G\nmax_memory = 2G\n[tenant user:no-such-user]\nweight = 5\n' > conf
    printf '[group no-such-group]\nweight = 5\n' >> conf
    printf '[daemon]\nobserver_group = no-such-group\nmetrics_socket = /nonexistent/s\n' >> conf
    chmod 666 conf
    check 0
    grep -q '^wharfd: warning: conf: others than root and the daemon may write this file' said
    grep -q '^wharfd: warning: conf:2: \[quota\] max_arena is 8G, but max_memory is 2G' said
    grep -q '^wharfd: warning: conf:4: \[tenant user:no-such-user\] has no effect' said
    grep -q '^wharfd: warning: conf:6: \[group no-such-group\] has no effect' said
    grep -q '^wharfd: warning: conf:9: observer_group = no-such-group: there is no such group' said
    grep -q '^wharfd: warning: conf:10: metrics_socket = /nonexistent/s: there is no folder /nonexistent' said
    expect_text 6 "$(wc -l < said)"
}

# The check had only a warning for what the daemon does not start with.  A reload, in which systemd
# sets MAINPID, is of a service that is handed its sockets.
test_start_and_check_agree_about_folders_of_sockets() {
    wrong() { # FOLDER LINE
        cat conf
        check 2
        grep -qF "wharfd: error: conf:$2: " said
        grep -qF ": there is no folder $1" said
        expect_status 1 timeout -k 1 600 "$wharfd" --config conf > log 2>&1
        MAINPID=1 check 0
        grep -qF "wharfd: warning: conf:$2: " said
    }
    printf '[daemon]\nsocket = /nonexistent/s\n' > conf
    wrong /nonexistent 2
    : > file
    printf '[daemon]\nsocket = %s/file/s\n' "$PWD" > conf
    wrong "$PWD/file" 2
    printf '[daemon]\nsocket = %s/s\n[listen pods]\npath = /nonexistent/s\n' "$PWD" > conf
    wrong /nonexistent 4
    printf '[daemon]\nsocket = %s/s\nmetrics_socket = /nonexistent/s\n' "$PWD" > conf
    check 0
}

test_settings_that_are_gone_are_warnings() {
    printf '[gpu]\noutput = copy\nstaging = 1M\nshare = 50\n' > conf
    check 0
    expect_text "wharfd: warning: conf:2: [gpu] output has no effect: a GPU's kernel writes all outputs itself; delete the line
wharfd: warning: conf:3: [gpu] staging has no effect: a GPU's kernel writes all outputs itself; delete the line" "$(cat said)"
}

# A program that asks for nothing was refused by the daemon, of which the check said nothing.
test_few_jobs_are_a_warning_and_enough_for_one_program() {
    printf '[quota]\nmax_jobs = 100\n[tenant uid:1]\nweight = 5\n' > conf
    check 0
    expect_text "wharfd: warning: conf:2: [quota] max_jobs is 100, less than the 256 of a queue of the default size: \
the first program that asks for no size takes most of them" "$(cat said)"
    start_daemon '[quota]' 'max_jobs = 100'
    echo text | gzip > text.gz
    expect_text text "$("$BUILD/wharf" cat --socket s text.gz)"
}

test_unknown_section_is_told_which_there_are() {
    printf '[generel]\nx = 1\n[quotas]\n' > conf
    check 2
    grep -q 'conf:1: there is no such section \[generel\]; there are \[daemon\], .*\[group NAME\]$' said
    grep -q 'conf:3: there is no such section \[quotas\]; did you mean \[quota\]?' said
}

test_good_configuration_says_nothing() {
    "$wharfd" --print-config > conf
    check 0
    expect_text '' "$(cat said)"
}

# show SECTION KEY: the line of what is in effect.
show() {
    "$wharfd" --show-config --config conf 2> said |
        awk -v section="[$1]" -v key="$2" '/^\[/ { here = index($0, section) == 1 }
            here && $1 == key { sub(/ +#/, " #"); print }'
}

# In the order of their names, hidden files and others left out.
test_drop_ins_go_over_the_file_in_order() {
    printf '[quota]\nweight = 1\nmax_jobs = 100\nmax_regions = 3\n[tenant uid:0]\nmax_jobs = 7\n' > conf
    mkdir conf.d
    printf '\n[quota]\nweight = 2\nmax_jobs = 200\n' > conf.d/10-a.conf
    printf '[quota]\nweight = 3\n[tenant uid:0]\nmax_regions = 9\n' > conf.d/20-b.conf
    printf '[quota]\nweight = 4\n' | tee conf.d/30.conf.bak conf.d/.40.conf > conf.d/README
    check 0
    expect_text 'weight = 3 # conf.d/20-b.conf:2' "$(show quota weight)"
    expect_text 'max_jobs = 200 # conf.d/10-a.conf:4' "$(show quota max_jobs)"
    expect_text 'max_regions = 3 # conf:4' "$(show quota max_regions)"
    expect_text 'max_entries = 4096 # default' "$(show quota max_entries)"
    expect_text 'weight = 3 # conf.d/20-b.conf:2' "$(show 'tenant uid:0' weight)"
    expect_text 'max_jobs = 7 # conf:6' "$(show 'tenant uid:0' max_jobs)"
    expect_text 'max_regions = 9 # conf.d/20-b.conf:4' "$(show 'tenant uid:0' max_regions)"
    echo 'nonsense' >> conf.d/20-b.conf
    check 2
    grep -q 'conf.d/20-b.conf:5: expected' said
}

test_what_is_derived_is_shown_as_such() {
    printf '[total]\nowners = 3\n' > conf
    expect_text 'owners = 3 # conf:2' "$(show total owners)"
    show total max_memory | has_line -E '^max_memory = [1-9][0-9]*[KMGT]? # derived$'
    show cpu workers | has_line -E '^workers = [1-9][0-9]* # derived$'
    expect_text 'spin = 200us # default' "$(show cpu spin)"
}

# A directory service that does not answer while the file `hang` is there.
make_names_hang() {
    cat > names.c << EOF
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>
struct passwd *getpwnam(const char *name)
{
    struct passwd *(*next)(const char *) = (struct passwd * (*)(const char *)) dlsym(RTLD_NEXT, "getpwnam");
    if (access("$PWD/hang", F_OK) == 0)
        close(open("$PWD/asked", 0101, 0600));
    while (access("$PWD/hang", F_OK) == 0)
        usleep(1000);
    return next(name);
}
EOF
    gcc -shared -fPIC -o names.so names.c
}

# wait_until COMMAND...
wait_until() {
    for _ in $(seq 3000); do
        ! "$@" || return 0
        sleep 0.02
    done
    return 1
}

# A user's name is looked up when the configuration is read: that had stopped everybody.
test_clients_are_served_while_a_reload_waits_for_names() {
    make_names_hang
    LD_PRELOAD=$PWD/names.so start_daemon '[tenant user:root]' 'weight = 5'
    touch hang
    kill -HUP "$daemon"
    wait_until test -e asked
    "$WHARF" ping --socket s --count 1
    kill -HUP "$daemon"
    "$WHARF" ping --socket s --count 1
    expect_status 1 grep 'read the configuration again' daemon.log
    rm hang
    wait_until grep -q 'read the configuration again' daemon.log
}

run_tests
