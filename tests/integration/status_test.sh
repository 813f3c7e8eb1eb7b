#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The commands about a daemon: status, stats, top, ping, drain.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

prometheus="$TOP/tests/lib/prometheus.py"

# value METRIC [LABEL=VALUE...]: as the daemon says now.
value() {
    "$WHARF" stats --socket s --prometheus > scraped
    "$prometheus" value scraped "$@"
}

# Until the daemon has noticed that commands before have ended: who asks has one connection.
wait_until_alone() {
    for _ in $(seq 3000); do
        [ "$(value wharf_connections)" = 1 ] && return
        sleep 0.02
    done
    return 1
}

# Three chunks, a bad one behind them, one by the reference engine.
do_some_work() {
    seq 1 60000 > data
    head -c 300000 data > part
    "$WHARF" pack -b 100000 -o part.whr part
    "$WHARF" cat --socket s part.whr | cmp - part
    cp part.whr bad.whr
    printf 'XX' | dd of=bad.whr bs=1 seek=96 conv=notrunc status=none
    expect_status 1 "$WHARF" cat --socket s bad.whr 2> message
    gzip -c part > part.gz
    "$WHARF" decode -c gzip --engine reference --socket s < part.gz | cmp - part
}

# The reader takes nothing that it should not: else what follows would say little.
test_prometheus_reader_is_strict() {
    head='# HELP a_total A.\n# TYPE a_total counter\n'
    histogram='# HELP h H.\n# TYPE h histogram\n'
    printf '%ba_total{x="1",y="a\\\\\\"\\n"} 1\n' "$head" > good
    "$prometheus" check good
    printf '%bh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n' "$histogram" > good
    "$prometheus" check good
    number=0
    while IFS= read -r text; do
        printf '%b' "$text" > bad
        expect_status 1 "$prometheus" check bad 2> message
        number=$((number + 1))
    done << EOS

a_total 1\n
$head
${head}a_total 1
${head}a_total one\n
${head}a_total -1\n
${head}a_total 1\na_total 1\n
${head}b_total 1\n
${head}a_total{x=1} 1\n
${head}a_total{x="1" y="2"} 1\n
${head}a_total{x="1",} 1\n
${head}a_total{x="1",x="2"} 1\n
${head}a_total{x="\\\\q"} 1\n
${head}a_total{x="a"b"} 1\n
${head}a_total{1x="a"} 1\n
${head}a_total 1\n$head
# TYPE a_total counter\n# HELP a_total A.\na_total 1\n
# HELP a A.\n# TYPE a counter\na 1\n
# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n
${histogram}h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 3\n
${histogram}h_bucket{le="1"} 3\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n
${histogram}h_bucket{le="1"} 2\nh_sum 3\nh_count 2\n
${histogram}h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n
${histogram}h 2\n
EOS
    expect_text 24 "$number"
}

test_prometheus_and_json_say_the_same_by_their_rules() {
    start_daemon
    "$WHARF" stats --socket s --prometheus > before
    "$prometheus" check before
    do_some_work
    "$WHARF" stats --socket s --prometheus > after
    "$WHARF" stats --socket s --json > json
    "$prometheus" same after json
    "$prometheus" grown before after
    "$WHARF" stats --socket s > text
    grep -qE '^  tenant=uid:[0-9]+ engine=cpu result=ok [0-9]+$' text
    grep -qE '^  tenant=.* engine=cpu count [0-9]+, mean [0-9.e-]+, half below .*, 99 % below ' text
}

test_counters_count_what_was_done() {
    start_daemon
    do_some_work
    me=tenant=uid:$(id -u)
    # A batch of three chunks, one with a bad one among them; one stream.
    expect_text 1 "$(value wharf_jobs_total "$me" engine=cpu result=ok)"
    expect_text 1 "$(value wharf_jobs_total "$me" engine=cpu result=bad_data)"
    expect_text 1 "$(value wharf_jobs_total "$me" engine=reference result=ok)"
    expect_text 6 "$(value wharf_chunks_total "$me" engine=cpu)"
    expect_text 300000 "$(value wharf_output_bytes_total engine=reference)"
    expect_text "$(stat -c %s part.gz)" "$(value wharf_input_bytes_total engine=reference)"
    expect_text 2 "$(value wharf_job_run_seconds_count engine=cpu)"
    wait_until_alone
    expect_text 1 "$(value wharf_info version="$("$WHARF" --version | sed 's/wharf //')")"
}

test_status_and_top_show_the_daemon_and_its_tenants() {
    start_daemon
    do_some_work
    wait_until_alone
    "$WHARF" status --socket s > out
    grep -qE "^daemon   wharfd [0-9.]+ at s, up [0-9]+ s$" out
    grep -q '^engines  cpu, reference' out
    grep -q '^codecs   stored, deflate' out
    grep -qE '^work     [0-9]+ of [0-9]+ workers busy, 0 jobs queued' out
    grep -qE '^TENANT +CONN/MAX +MEMORY/MAX +JOBS +BAD +REFUSED ' out
    grep -qE "^uid:$(id -u) +1/256 +[0-9.]+ [KM]iB/9.0 GiB +2 +1 +0 .* $(id -un)$" out
    wait_until_alone
    "$WHARF" top --socket s --count 1 > out
    grep -q 'JOBS/s' out
    grep -qE "^uid:$(id -u) +1/256 .* 0 +0 +0 .* $(id -un)$" out
    # A reader that goes away ends them quietly.
    "$WHARF" stats --socket s 2> message | head -n 1 > /dev/null || expect_text 141 $?
    expect_text '' "$(cat message)"
}

# A directory service that is down: who asks the daemon for its state then gets it.
test_status_does_not_wait_for_names() {
    start_daemon
    do_some_work
    cat > hang.c << 'END'
#include <pwd.h>
#include <unistd.h>
struct passwd *getpwuid(uid_t uid)
{
    for (;;)
        pause();
}
END
    gcc -shared -fPIC -o hang.so hang.c
    # The address sanitizer wants to come first.
    export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
    LD_PRELOAD=$PWD/hang.so "$WHARF" status --socket s > out
    grep -qE "^uid:$(id -u) +1/256 .*[0-9]$" out
    LD_PRELOAD=$PWD/hang.so "$WHARF" status --socket s --json > json
    grep -qF "\"tenant\":\"uid:$(id -u)\",\"user\":\"\"" json
}

# Bytes that a terminal takes for a command, written as UTF-8 too, and what is no UTF-8.
test_status_prints_no_commands_that_are_in_names() {
    start_daemon
    cat > odd.c << 'END'
#include <pwd.h>
struct passwd *getpwuid(uid_t uid)
{
    static struct passwd found;

    found.pw_name = "j\u00fcrg\x1b[2J\xc2\x9b""2J\xff";
    return &found;
}
END
    gcc -shared -fPIC -o odd.so odd.c
    export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
    LD_PRELOAD=$PWD/odd.so "$WHARF" status --socket s > out
    grep -qF ' jürg?[2J??2J?' out
    LD_PRELOAD=$PWD/odd.so "$WHARF" status --socket s --json > json
    grep -qF '"user":"jürg?[2J??2J?"' json
}

# Of a daemon that had no work yet they were null, and 0 in the table.
test_status_as_json_counts_from_zero() {
    start_daemon
    "$WHARF" status --socket s --json | python3 -c 'import json, sys
tenant, = json.load(sys.stdin)["tenants"]
names = ["jobs_ok", "jobs_bad", "refused", "input_bytes", "output_bytes", "busy_seconds"]
assert [tenant[name] for name in names] == [0] * 6, tenant'
}

# The members that wharf(1) lists, with what they are.
test_status_as_json_has_the_documented_members() {
    start_daemon '[gpu]' 'engine = simt'
    do_some_work
    wait_until_alone
    "$WHARF" status --socket s --json > json
    expect_text 1 "$(wc -l < json)"
    python3 - json "uid:$(id -u)" "$TOP/clientlib/cli/wharf.1" << 'EOS'
import json
import re
import sys

with open(sys.argv[1], encoding='utf-8') as file:
    status = json.load(file)
number, names = (int, float), list
shape = {'version': str, 'socket': str, 'uptime_seconds': number, 'io': str, 'engines': names,
         'codecs': names, 'workers': number, 'workers_busy': number, 'jobs_queued': number,
         'max_job_bytes': number, 'max_batch_chunks': number}
gpu_shape = {'gpu': str, 'up': bool, 'chunks_in_flight': number, 'chunks_at_a_time': number,
             'chunks': number, 'workers_ended': number}
tenant_shape = {'tenant': str, 'user': str, 'connections': number, 'memory_bytes': number, 'jobs_ok': number,
                'jobs_bad': number, 'refused': number, 'input_bytes': number,
                'output_bytes': number, 'busy_seconds': number, 'limits': dict}


def check(value, members):
    assert set(value) == set(members), set(value) ^ set(members)
    for name, kind in members.items():
        assert isinstance(value[name], kind), (name, value[name])


assert set(status) == {'daemon', 'gpus', 'tenants', 'tenants_not_listed'}, status.keys()
check(status['daemon'], shape)
assert status['daemon']['socket'] == 's' and 'cpu' in status['daemon']['engines']
assert status['daemon']['codecs'][:2] == ['stored', 'deflate'], status['daemon']['codecs']
assert [gpu['gpu'] for gpu in status['gpus']] == ['0'], status['gpus']
check(status['gpus'][0], gpu_shape)
assert [tenant['tenant'] for tenant in status['tenants']] == [sys.argv[2]], status['tenants']
tenant = status['tenants'][0]
check(tenant, tenant_shape)
assert (tenant['connections'], tenant['jobs_ok'], tenant['jobs_bad'], tenant['refused']) == (1, 2, 1, 0), tenant
with open(sys.argv[3], encoding='utf-8') as page:
    section = re.search(r'^\.Sh STATUS AS JSON\n(.*?)^\.Sh', page.read(), re.M | re.S).group(1)
listed = re.findall(r'\w+', ' '.join(re.findall(r'^\.It Cm (.*)', section, re.M)))
assert sorted(listed) == sorted([*status, *shape, *gpu_shape, *tenant_shape]), listed
assert tenant['output_bytes'] >= 600000 and status['tenants_not_listed'] == 0
EOS
}

# One that is refused is one refusal, and does not wait until its patience is over.
test_refusals_are_shown_beside_their_limits() {
    start_daemon '[quota]' 'max_connections = 1'
    "$WHARF" top --socket s --interval 1 > shown &
    top=$!
    until [ -s shown ]; do sleep 0.02; done
    echo text | gzip > text.gz
    expect_status 4 "$WHARF" cat --socket s text.gz > out 2> message
    grep -q 'over max_connections = 1 of \[quota\], the limit' message
    cat message
    kill "$top"
    wait "$top" || true
    "$WHARF" status --socket s > out
    grep -qE "^uid:$(id -u) +1/1 +[0-9.]+ [KM]iB/9.0 GiB +[0-9]+ +0 +1 " out
    expect_text 1 "$(value wharf_refused_total limit=max_connections)"
    expect_text 1 "$(value wharf_limit limit=max_connections)"
    expect_text 1 "$(value wharf_limit_used limit=max_connections)"
    expect_text 1 "$(value wharf_all_refused_total)"
    grep -q "refused tenant uid:$(id -u), 1 time: over max_connections = 1, " daemon.log
}

# Operators could not end the daemon, nor see why, when all their connections were taken.
test_operators_can_look_and_drain_when_connections_are_used_up() {
    start_daemon '[quota]' 'max_connections = 1'
    "$WHARF" top --socket s --interval 1 > shown &
    until [ -s shown ]; do sleep 0.02; done
    "$WHARF" status --socket s > out
    "$WHARF" ping -n 1 --socket s > out
    "$WHARF" drain --socket s
    kill %%
    wait
}

# They took 256 of them, so that who had fewer left could not even end the daemon.
test_commands_about_the_daemon_need_few_jobs() {
    start_daemon '[quota]' 'max_jobs = 4'
    for command in status stats 'top -n 1' 'ping -n 1' drain; do
        # shellcheck disable=SC2086 # some have options
        "$WHARF" $command --socket s > out
    done
    wait "$daemon"
}

test_status_has_a_line_for_each_gpu() {
    start_daemon '[gpu]' 'engine = simt' 'device = 0,1'
    "$WHARF" status --socket s > out
    for gpu in 0 1; do
        grep -q "^gpu $gpu    up, 0 chunks there of 2 at a time, 0 decoded, 0 workers ended$" out
        expect_text 1 "$(value wharf_gpu_up gpu="$gpu")"
    done
}

# A container of three chunks, twice.
test_status_tells_of_chunks_that_gpus_keep() {
    start_daemon '[gpu]' 'engine = simt' 'memo = 8M'
    "$WHARF" status --socket s > out
    expect_status 1 grep -q '^memo' out
    seq 2500 > data
    "$WHARF" pack --embedded -c zlib -b 4K -o data.whr data
    for _ in 1 2; do
        "$WHARF" unpack --socket s --engine simt -fo out.data data.whr
        cmp out.data data
    done
    "$WHARF" status --socket s > out
    grep -q '^memo     3 of 6 chunks copied instead of decoded, 50.0 %; 3 kept, 0 evicted$' out
}

test_ping_answers_and_drain_ends_it() {
    start_daemon
    "$WHARF" ping --socket s -n 3 > out
    grep -qE '^wharfd [0-9.]+ answers; median of 3' out
    grep -qE '^  job that does nothing: [0-9.]+ us \([0-9.]+ to [0-9.]+\)$' out
    expect_text 3 "$(value wharf_jobs_total engine=none result=ok)"
    "$WHARF" drain --socket s 2> message
    grep -q 'finishes the jobs that it has, and ends' message
    wait "$daemon"
    expect_status 3 "$WHARF" ping --socket s > out 2> message
    # shellcheck disable=SC2016 # the message has these quotes
    grep -q 'no daemon: s: .*start a daemon with `wharfd --socket s`' message
    test ! -s out
    for command in status stats top ping drain; do
        expect_status 3 "$WHARF" "$command" --socket none 2> message > out
        grep -q 'no daemon: none: no such socket' message
        expect_text 1 "$(wc -l < message)"
        expect_status 2 "$WHARF" "$command" --embedded 2> message > out
        expect_status 2 "$WHARF" "$command" more 2> message > out
        test ! -s out
    done
}

# as_nobody COMMAND...: another user, who is in no group.
as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

test_other_users_are_told_what_they_may_not() {
    [ "$(id -u)" = 0 ] || skip "only root can be somebody else"
    chmod 755 .
    cp "$WHARF" wharf
    start_daemon
    # Nobody is sent into root's group.
    chgrp root s
    expect_status 3 as_nobody ./wharf status --socket "$PWD/s" > out 2> message
    grep -q 'permission denied: this daemon serves the user root alone: start another one' message
    group=users
    chgrp "$group" s
    expect_status 3 as_nobody ./wharf status --socket "$PWD/s" > out 2> message
    grep -q "permission denied: only the group $group may use it, and nobody is not in it" message
    grep -qF "run \`sudo usermod -aG $group nobody\`, then log in again" message
    # Without --socket somebody can go on alone.
    seq 10 | gzip > ten.gz
    WHARF_SOCKET=$PWD/s as_nobody ./wharf decode -c gzip < ten.gz 2> message | cmp - <(seq 10)
    grep -q 'only the group .*; decoding in this process' message
    kill_daemon
    start_daemon '[daemon]' 'socket_mode = 0666'
    "$WHARF" ping --socket s > out
    expect_status 4 as_nobody ./wharf drain --socket s 2> message
    grep -q "only root and the daemon's own user may drain it" message
    as_nobody ./wharf stats --socket s --prometheus > theirs
    "$prometheus" check theirs
    expect_text 0 "$("$prometheus" value theirs wharf_connections_total tenant=uid:0)"
    as_nobody ./wharf ping --socket s > out
    expect_text 10 "$(value wharf_jobs_total engine=none result=ok tenant=uid:65534)"
    test "$(value wharf_connections_total tenant=uid:0)" -gt 1
}

# Members of the group see everybody and may drain nothing; others see themselves, and no metrics.
test_observers_see_all_tenants_without_root() {
    [ "$(id -u)" = 0 ] || skip "only root can be somebody else"
    chmod 755 .
    cp "$WHARF" wharf
    start_daemon '[daemon]' 'socket_mode = 0666' 'observer_group = users'
    "$WHARF" ping --socket s > out
    # By another group than the first one, and by the first one.
    for groups in "--regid 65534 --groups 7,$(getent group users | cut -d: -f3)" \
        '--regid users --clear-groups'; do
        read -ra who <<< "setpriv --reuid 65534 $groups"
        "${who[@]}" ./wharf stats --socket s --prometheus > theirs
        "$prometheus" check theirs
        test "$("$prometheus" value theirs wharf_connections_total tenant=uid:0)" -gt 0
        "${who[@]}" ./wharf stats --scrape=s.metrics > theirs
        "$prometheus" check theirs
        test "$("$prometheus" value theirs wharf_connections_total tenant=uid:0)" -gt 0
        "${who[@]}" ./wharf status --socket s > out
        grep -q '^uid:0 ' out
        expect_status 4 "${who[@]}" ./wharf drain --socket s 2> message
    done
    expect_status 4 as_nobody ./wharf stats --scrape=s.metrics > out 2> message
    grep -q "s.metrics: only root, the daemon's own user and its observer_group may read its metrics" message
    test ! -s out
    as_nobody ./wharf status --socket s > out
    expect_status 1 grep -q '^uid:0 ' out
}

# A name that needs every kind of escaping.
test_names_of_tenants_are_escaped() {
    start_daemon '[listen a"b\c]' "path = $PWD/odd" 'tenant = socket'
    "$WHARF" ping --socket odd > out
    "$WHARF" stats --socket s --prometheus > scraped
    "$prometheus" check scraped
    expect_text 1 "$("$prometheus" value scraped wharf_connections_total 'tenant=socket:a"b\c')"
    "$WHARF" stats --socket s --json > json
    "$prometheus" same scraped json
}

run_tests
