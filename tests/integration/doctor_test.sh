#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf doctor: each check in an environment where it is as it should be, and in one where it is not.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
unset WHARF_SOCKET

# A machine with nothing in it, but what a test puts there.
make_root() {
    mkdir -p root/sys/kernel/mm/transparent_hugepage root/proc/sys/vm
    echo 'always [madvise] never' > root/sys/kernel/mm/transparent_hugepage/enabled
    echo 65530 > root/proc/sys/vm/max_map_count
}

add_gpu() {
    mkdir -p root/sys/bus/pci/devices/0000:0"$1":00.0
    echo 0x10de > root/sys/bus/pci/devices/0000:0"$1":00.0/vendor
    echo 0x030200 > root/sys/bus/pci/devices/0000:0"$1":00.0/class
}

# doctor STATUS OPTION...: of the machine below root, without a Python; its report lies in `json`.
doctor() {
    local expected=$1
    shift
    PATH=${DOCTORS_PATH-/none} expect_status "$expected" "$WHARF" doctor --root "$PWD/root" --patience 1 --json "$@" > json
}

# says CHECK STATE [FOUND [MEND]]: patterns of the report of that check.
says() {
    local one
    one=$(tr '{' '\n' < json | grep "^\"check\":\"$1\",\"state\":\"$2\",")
    [[ $one =~ \"found\":\"(.*)\",\"costs\":(.*),\"mend\":(.*)\}.* ]]
    local found=${BASH_REMATCH[1]} costs=${BASH_REMATCH[2]} mend=${BASH_REMATCH[3]%%\}*}
    # Whatever is wrong has a cost and a command.
    if [ "$2" = ok ]; then
        expect_text 'null null' "$costs $mend"
    else
        [[ $costs == \"?* && $mend == \"?* ]]
    fi
    mend=${mend#\"} mend=${mend%\"} mend=${mend//\\\\/\\}
    grep -qE -- "${3:-}" <<< "$found" || { echo "$found"; return 1; }
    grep -qE -- "${4:-}" <<< "$mend" || { echo "$mend"; return 1; }
}

test_all_is_well_beside_a_daemon() {
    make_root
    start_daemon
    doctor 0 --socket s
    for check in group socket daemon driver toolkit gpus memlock nofile mappings hugepages pidfd memfd; do
        says "$check" ok
    done
    says socket ok '^s$'
    says daemon ok "^wharfd $("$WHARF" --version | sed 's/wharf //') answers in [0-9]+ us; 0 of [0-9]+ workers busy"
}

test_people_are_told_the_same_as_programs() {
    make_root
    add_gpu 1
    echo 400 > root/proc/sys/vm/max_map_count
    doctor 3 --socket s
    PATH=/none expect_status 3 "$WHARF" doctor --root "$PWD/root" --socket s > out
    PATH=/none expect_status 3 "$WHARF" doctor --root "$PWD/root" --socket s -q > bad
    python3 - << 'EOS'
import json

with open('json', encoding='utf-8') as file:
    report = json.load(file)
ok, bad = '', ''
for one in report['checks']:
    line = f'{one["check"]:10} {one["state"]:8} {one["found"]}\n'
    ok += line
    if one['state'] != 'ok':
        more = f'           costs    {one["costs"]}\n           mend     {one["mend"]}\n'
        ok, bad = ok + more, bad + line + more
ok += f'ok {report["ok"]}, warnings {report["warnings"]}, missing {report["missing"]}\n'
with open('out', encoding='utf-8') as file:
    assert file.read() == ok, ok
with open('bad', encoding='utf-8') as file:
    assert file.read() == bad, bad
EOS
}

# The members that wharf(1) lists, and the checks that it names.
test_json_has_the_documented_members() {
    make_root
    doctor 3 --socket s
    expect_text 1 "$(wc -l < json)"
    python3 - "$TOP/clientlib/cli/wharf.1" << 'EOS'
import json
import re
import sys

with open('json', encoding='utf-8') as file:
    report = json.load(file)
with open(sys.argv[1], encoding='utf-8') as page:
    text = page.read()
section = re.search(r'^\.Sh DOCTOR AS JSON\n(.*?)^\.Sh', text, re.M | re.S).group(1)
listed = re.findall(r'\w+', ' '.join(re.findall(r'^\.It Cm (.*)', section, re.M)))
one = report['checks'][0]
assert sorted(listed) == sorted([*report, *one]), listed
assert all(set(entry) == set(one) for entry in report['checks'])
states = [entry['state'] for entry in report['checks']]
assert report['ok'] == states.count('ok') and report['warnings'] == states.count('warning')
assert report['missing'] == states.count('missing') == 2, states
names = re.search(r'^\.Bl -tag -width toolkit -compact\n(.*?)^\.El', text, re.M | re.S).group(1)
named = re.findall(r'\w+', ' '.join(re.findall(r'^\.It Cm (.*)', names, re.M)))
assert sorted(named) == sorted(entry['check'] for entry in report['checks']), named
EOS
}

test_missing_daemon_is_exit_3() {
    make_root
    doctor 3 --socket "$PWD/it's"
    says socket missing "it's: there is none" "^wharfd --socket '.*/it'\\\\''s' &$"
    says daemon missing '' "^wharfd --socket"
    # The command that it names mends it.
    mend=$(python3 -c 'import json; print(*(c["mend"] for c in json.load(open("json"))["checks"]
        if c["check"] == "socket"))')
    PATH=$BUILD:$PATH bash -c "${mend%&}" < /dev/null > /dev/null 2> daemon.log &
    daemon=$!
    trap 'kill_daemon' EXIT
    until grep -q 'serves with' daemon.log; do sleep 0.02; done
    doctor 0 --socket "$PWD/it's"
    says socket ok
}

test_stale_socket_is_told_from_a_missing_one() {
    make_root
    start_daemon
    kill_daemon
    # What is left of a killed daemon may still answer for a moment.
    until "$WHARF" doctor --socket s | has_line 'nobody listens'; do sleep 0.02; done
    doctor 3 --socket s
    says socket missing 's: nobody listens there' '^wharfd --socket s &$'
}

test_other_things_at_the_path_are_told() {
    make_root
    echo text > s
    doctor 3 --socket s
    says socket missing 's: is a regular file, not' '^mv s s.old && wharfd --socket s &$'
    doctor 3 --socket "$PWD"
    says socket missing 'is a folder'
    export WHARF_SOCKET=$PWD/s
    doctor 3
    says socket missing 'is a regular file' '^unset WHARF_SOCKET$'
}

test_daemon_that_hangs_is_told() {
    make_root
    start_daemon
    kill -STOP "$daemon"
    doctor 3 --socket s
    says socket ok
    says daemon missing 's: the daemon does not answer$' "^kill -KILL $daemon; wharfd --socket s &$"
    # And errors of others point here.
    expect_status 3 "$WHARF" ping --socket s --patience 1 2> message
    # shellcheck disable=SC2016 # a message's quotes
    grep -qF '`wharf doctor` says' message
    kill -CONT "$daemon"
    doctor 0 --socket s
    says daemon ok
}

as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# A user without connections left: operators have some of their own.
test_daemon_that_refuses_is_told() {
    test "$(id -u)" = 0 || skip 'only root has other users'
    cp "$WHARF" wharf
    chmod 755 . wharf
    make_root
    start_daemon '[quota]' 'max_connections = 1'
    chmod 666 s
    as_nobody ./wharf top --socket s --interval 1 > shown &
    top=$!
    until [ -s shown ]; do sleep 0.02; done
    expect_status 3 as_nobody ./wharf doctor --root "$PWD/root" --socket s --json > json
    says daemon missing 'over max_connections = 1' 'less \+/max_connections$'
    kill "$top"
    wait "$top" || true
}

test_group_is_told_by_the_socket() {
    test "$(id -u)" = 0 || skip 'only root has other users'
    cp "$WHARF" wharf
    chmod 755 . wharf
    make_root
    start_daemon
    WHARF=$PWD/wharf
    chgrp games s
    chmod 660 s
    expect_status 3 as_nobody ./wharf doctor --root "$PWD/root" --socket s --json > json
    says group missing 'nobody is not in the group games' '^sudo usermod -aG games nobody$'
    says socket ok
    says daemon missing '' usermod
    setpriv --reuid=65534 --regid=65534 --groups=games ./wharf doctor --root "$PWD/root" --socket s > out
    grep -qE '^group +ok' out
    # A daemon of root's own.
    chgrp root s
    expect_status 3 as_nobody ./wharf doctor --root "$PWD/root" --socket s --json > json
    says group missing 'serves the user root alone' 'export WHARF_SOCKET=~/.wharf.sock$'
    # A folder that nobody may enter.
    mkdir -m 700 closed
    expect_status 3 as_nobody ./wharf doctor --root "$PWD/root" --socket closed/s --json > json
    says socket missing 'a folder on the way is closed'
}

# What the service is given is not there yet.
test_group_that_is_not_there_is_told() {
    if getent group wharf > found || test -e /run/wharf; then skip 'this machine has the service'; fi
    make_root
    doctor 3
    says group warning 'there is no group wharf'
    says socket missing '/run/wharf/wharfd.sock: there is none' '^make && sudo make install$'
    # What is there already is a daemon of one's own, where no other user can put a socket.
    DOCTORS_PATH=$BUILD doctor 3
    says socket missing '' '^wharfd --socket ~/.wharf.sock & export WHARF_SOCKET=~/.wharf.sock$'
}

# apt is asked, and not believed to have what `make deb` makes.
test_packages_are_installed_as_they_can_be() {
    if getent group wharf > found || test -e /run/wharf; then skip 'this machine has the service'; fi
    make_root
    mkdir bin
    DOCTORS_PATH=$PWD/bin
    printf '#!/bin/sh\necho "python3-wharf | 0.1.0 | https://archive"\nexit 3\n' > bin/python3
    printf '#!/bin/sh\necho "$*" >> asked\ncat list' > bin/apt-cache
    sed -i "s|list|$PWD/list|; s|asked|$PWD/asked|; 2i PATH=/bin:/usr/bin" bin/apt-cache
    chmod 755 bin/*
    touch list
    doctor 3
    says socket missing '' '^make deb && sudo apt install ./build/deb/wharfd_\*.deb$'
    says group warning '' '^make deb && sudo apt install ./build/deb/wharfd_\*.deb$'
    says python warning '' '^make deb && sudo apt install ./build/deb/python3-wharf_\*.deb$'
    has_line 'madison wharfd' < asked
    has_line 'madison python3-wharf' < asked
    echo 'wharfd | 0.1.0 | http://archive.example stable/main amd64 Packages' > list
    doctor 3
    says socket missing '' '^sudo apt install wharfd$'
    says group warning '' '^sudo apt install wharfd$'
    says python warning '' '^sudo apt install python3-wharf$'
    # Of an apt that fails nothing is believed, nor of one that says no end of things.
    printf 'exit 1\n' >> bin/apt-cache
    doctor 3
    says socket missing '' '^make deb '
    cp "$WHARF" wharf
    WHARF=$PWD/wharf doctor 3
    says preload warning '' '^make deb && sudo apt install --reinstall ./build/deb/wharf_\*.deb$'
    # The files that it names are made by `make deb`.
    for name in wharf wharfd python3-wharf; do
        grep -qx "Package: $name" "$TOP/systemd/debian/control"
    done
}

test_limits_of_the_daemon_count() {
    make_root
    add_gpu 1
    printf '%s\n' '[gpu]' 'engine = cpu' > config
    prlimit --nofile=800 --memlock=65536 "$BUILD/wharfd" --socket "$PWD/s" --config config \
        < /dev/null > /dev/null 2> daemon.log &
    daemon=$!
    trap 'kill_daemon' EXIT
    until grep -q 'serves with' daemon.log; do sleep 0.02; done
    doctor 4 --socket s
    says memlock warning 'the daemon may lock 64.0 KiB' "^sudo prlimit --pid $daemon --memlock=unlimited$"
    says nofile warning 'the daemon may have 800 descriptors' "^sudo prlimit --pid $daemon --nofile=524288$"
    grep -q '"costs":"at most 100 clients at a time"' json
}

test_limits_of_this_process_count_without_a_daemon() {
    make_root
    add_gpu 1
    expect_status 3 prlimit --nofile=256 --memlock=65536 "$WHARF" doctor --root "$PWD/root" --socket s --json > json
    # shellcheck disable=SC2016 # the reader's shell
    says memlock warning 'a daemon started here may lock 64.0 KiB' '^sudo prlimit --pid \$\$ --memlock=unlimited$'
    says nofile warning 'may have 256'
    # Without a GPU nothing is pinned.
    rm -r root/sys/bus
    expect_status 3 prlimit --memlock=65536 "$WHARF" doctor --root "$PWD/root" --socket s --json > json
    says memlock ok 'may lock 64.0 KiB'
}

test_settings_of_the_system_are_told() {
    make_root
    echo 400 > root/proc/sys/vm/max_map_count
    echo 'always madvise [never]' > root/sys/kernel/mm/transparent_hugepage/enabled
    doctor 3 --socket s
    says mappings warning 'vm.max_map_count is 400' '^sudo sysctl vm.max_map_count=65530$'
    says hugepages warning 'the kernel gives none' '^echo madvise \| sudo tee /sys/kernel/mm/transparent_hugepage/enabled$'
}

test_driver_is_followed_from_hardware_to_library() {
    make_root
    mkdir -p root/sys/bus/pci/devices/0000:00:00.0
    # Another maker's, and another device of NVIDIA's.
    echo 0x8086 > root/sys/bus/pci/devices/0000:00:00.0/vendor
    add_gpu 1
    echo 0x040300 > root/sys/bus/pci/devices/0000:01:00.0/class
    doctor 3 --socket s
    says driver ok 'there is no NVIDIA GPU'
    add_gpu 1
    doctor 3 --socket s
    says driver missing 'is not installed' '^sudo apt install nvidia-driver$'
    says gpus warning '^1 in this machine' '^wharfd --socket s &$'
    mkdir -p "root/lib/modules/$(uname -r)/updates/dkms"
    touch "root/lib/modules/$(uname -r)/updates/dkms/nvidia.ko.xz"
    doctor 3 --socket s
    says driver missing 'is not loaded' '^sudo modprobe nvidia$'
    mkdir -p root/proc/driver/nvidia root/dev root/usr/lib/x86_64-linux-gnu
    echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build' \
        > root/proc/driver/nvidia/version
    doctor 3 --socket s
    says driver missing 'there is no /dev/nvidiactl' '^sudo nvidia-modprobe -u -c0$'
    touch root/dev/nvidiactl
    doctor 3 --socket s
    says driver missing 'no libcuda.so.1' '^sudo apt install libcuda1$'
    touch root/usr/lib/x86_64-linux-gnu/libcuda.so.1
    doctor 3 --socket s
    says driver ok '580.82.07'
}

test_worker_for_gpus_is_built_by_the_toolkit() {
    make_root
    add_gpu 1
    doctor 3 --socket s
    says toolkit missing 'nor nvcc' '^sudo apt install cuda-toolkit$'
    mkdir -p root/usr/local/cuda/bin root/usr/libexec/wharf
    touch root/usr/local/cuda/bin/nvcc
    doctor 3 --socket s
    says toolkit missing 'nvcc is there' '^make gpu-worker && sudo make install$'
    touch root/usr/libexec/wharf/wharfd-gpu
    doctor 3 --socket s
    says toolkit ok 'usr/libexec/wharf/wharfd-gpu is built'
}

test_gpus_that_are_expected_are_counted() {
    make_root
    add_gpu 1
    start_daemon '[gpu]' 'engine = auto' 'device = 0' 'expected = 2' 'start_timeout = 100ms'
    doctor 4 --socket s
    says gpus missing '^0 of 2 that the daemon expects are up; 1 in this machine; the daemon.s log'
    kill_daemon
    rm -f s s.metrics
    start_daemon '[gpu]' 'engine = simt'
    doctor 4 --socket s
    says gpus ok '^1 of 1 '
}

test_python_of_this_folder_is_not_run() {
    make_root
    DOCTORS_PATH=$PATH
    mkdir wharf
    # shellcheck disable=SC2016 # Python's
    echo '__version__ = "0.0.1"; open("was-run", "w")' > wharf/__init__.py
    doctor 3 --socket s
    test ! -e was-run
    PYTHONPATH=$PWD doctor 3 --socket s
    says python warning 'the package is wharf 0.0.1' '^(make|sudo apt install) '
    test -e was-run
    if [ -d "$BUILD/python/wharf" ]; then
        case $BUILD in *asan | *tsan) return ;; esac
        PYTHONPATH=$BUILD/python doctor 3 --socket s
        says python ok 'the package wharf '
    fi
}

test_command_line_is_checked() {
    expect_status 2 "$WHARF" doctor --embedded 2> message
    expect_status 2 "$WHARF" doctor --root here 2> message
    grep -q 'absolute path of a folder' message
    expect_status 2 "$WHARF" doctor operand 2> message
    expect_status 3 "$WHARF" doctor -q --socket "$(printf 's\033[2J')" > out
    expect_status 1 grep -q "$(printf '\033')" out
    expect_status 1 grep -qE '^[a-z_]+ +ok ' out
    "$WHARF" help doctor > text
    grep -q 'Exit status: 0 if nothing is missing' text
}

run_tests
