#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What becomes of output files when things go wrong: full disks, forbidden folders, signals.
# shellcheck disable=SC2016 # some tests are scripts for another shell
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

make_data() { made_once data_and_packed; }

data_and_packed() {
    seq 1 600000 > data
    "$WHARF" pack -o data.whr data
}

# as_user COMMAND...: runs it as somebody whom permissions bind.
as_user() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}

# A copy of the command where everybody can run it, in this test's folder, opened to all.
open_to_all() {
    chmod 755 .
    cp "$WHARF" wharf
    chmod 755 wharf
}

# in_namespace SCRIPT: runs it where it may mount things that nobody else sees.
in_namespace() {
    unshare -rm true 2> /dev/null || skip 'no namespaces here'
    unshare -rm bash -euc "$1"
}

# ---- files ---------------------------------------------------------------------------------

test_permissions_are_the_inputs() {
    make_data
    chmod 640 data
    "$WHARF" pack -f -o a data
    expect_text 640 "$(stat -c %a a)"
    chmod 604 a
    "$WHARF" unpack -f -o b a
    expect_text 604 "$(stat -c %a b)"
    (umask 027 && "$WHARF" pack -f -o c < <(cat data))
    expect_text 640 "$(stat -c %a c)"
}

test_link_is_replaced_and_not_followed() {
    make_data
    echo precious > target
    ln -s target link
    expect_status 4 "$WHARF" pack -o link data 2> message
    "$WHARF" pack -f -o link data
    test ! -L link
    expect_text precious "$(cat target)"
    ln -s nowhere dangling
    expect_status 4 "$WHARF" pack -o dangling data 2> message
    grep -q 'exists already' message
    "$WHARF" pack -f -o dangling data
    test ! -L dangling
    test ! -e nowhere
}

test_devices_and_pipes_are_written_to() {
    make_data
    "$WHARF" unpack -o /dev/null data.whr
    "$WHARF" unpack -o /dev/stdout data.whr | cmp - data
    mkfifo fifo
    "$WHARF" unpack -o fifo data.whr &
    cmp fifo data
    wait $!
    test -p fifo
    expect_status 4 "$WHARF" pack -o /dev/full data 2> message
    grep -q '/dev/full: cannot write: No space left on device' message
}

# `-f -o` with the input's own name replaced the only copy of the data.
test_input_is_never_the_output() {
    make_data
    cp data copy
    cp data.whr copy.whr
    ln -s data.whr link
    ln data.whr hard
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 4 "$WHARF" $arguments 2> message
        grep -q 'is the input itself, which would be lost: -o NAME writes elsewhere' message
        cmp data copy
        cmp data.whr copy.whr
    done << 'EOS'
pack -f -o data data
pack -f -o ./data data
unpack -f -o data.whr data.whr
unpack -f -o data.whr link
unpack -f -o link data.whr
unpack -f -o hard data.whr
EOS
    # shellcheck disable=SC2094 # that is the point
    {
        expect_status 4 "$WHARF" pack -f -o data < data 2> message
        expect_status 4 "$WHARF" pack < data >> data 2> message
        expect_status 4 "$WHARF" cat data.whr >> data.whr 2> message
    }
    expect_status 4 "$WHARF" rans encode -f -o data data 2> message
    expect_status 4 "$WHARF" rans encode --cdf data -n 11 -f -o words data 2> message
    test ! -e words
    # Models are inputs too.
    "$WHARF" rans encode --cdf cdf -n 11 -o words data
    "$WHARF" rans import --cdf cdf -n 11 --model model -o stream words
    cp cdf cdf.copy
    cp model model.copy
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 4 "$WHARF" $arguments 2> message
        grep -q 'is the input itself, which would be lost: -o NAME writes elsewhere' message
        cmp cdf cdf.copy
        cmp model model.copy
    done << 'EOS'
rans decode --cdf cdf -n 11 -f -o cdf words
rans import --cdf cdf -n 11 -f -o cdf words
rans import --cdf cdf -n 11 --model cdf -f -o other words
decode -c rans --model model -f -o model stream
EOS
    test ! -e other
    cmp data copy
    cmp data.whr copy.whr
    "$WHARF" unpack -f -o data data.whr
    cmp data copy
    "$WHARF" unpack -o /dev/null < /dev/null 2> message || true
    expect_status 1 grep -q itself message
}

# An index was replaced by what was decoded with it.
test_index_is_never_the_output() {
    seq 1 60000 | "$WHARF" pack --format bgzf -o data.gz -
    "$WHARF" index data.gz
    "$WHARF" index -o other.whi data.gz
    cp data.gz.whi copy.whi
    ln -s other.whi link
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 4 "$WHARF" $arguments 2> message
        grep -q 'is the input itself, which would be lost: -o NAME writes elsewhere' message
        cmp data.gz.whi copy.whi
        cmp other.whi copy.whi
    done << 'EOS'
cat -r 5:9 -f -o data.gz.whi data.gz
unpack -f --index other.whi -o other.whi data.gz
unpack -f --index other.whi -o link data.gz
unpack -f --index link -o ./other.whi data.gz
EOS
    "$WHARF" cat -r 5:9 -o part data.gz
    expect_text 9 "$(stat -c %s part)"
}

# What other inputs gave was kept, and replaced the one that was refused.
test_salvage_never_replaces_an_input() {
    make_data
    echo other | "$WHARF" pack -o other.whr
    cp data.whr copy.whr
    expect_status 4 "$WHARF" cat --salvage -f -o data.whr other.whr data.whr 2> message
    grep -q 'data.whr: is the input itself' message
    cmp data.whr copy.whr
    expect_status 4 "$WHARF" cat --salvage -f -o data.whr other.whr data.whr other.whr 2> message
    cmp data.whr copy.whr
}

test_times_are_the_inputs() {
    make_data
    touch -d '2001-02-03 04:05:06' data
    "$WHARF" pack -f data
    expect_text "$(stat -c %Y data)" "$(stat -c %Y data.whr)"
    "$WHARF" unpack -f -o other data.whr
    expect_text "$(stat -c %Y data)" "$(stat -c %Y other)"
}

test_sparse_makes_holes() {
    { head -c 5000001 /dev/zero; echo middle; head -c 3000001 /dev/zero; } > data
    "$WHARF" pack data
    gzip -k data
    for file in data.whr data.gz; do
        "$WHARF" unpack --sparse -f -o holes "$file"
        cmp data holes
        test "$(stat -c %b holes)" -le 64
    done
    "$WHARF" unpack --sparse -o - data.gz | cmp - data
}

# With -f the link in /dev was replaced by a file: as somebody who cannot, so that it stays whole.
test_dev_stdout_is_standard_output_when_that_is_a_file() {
    make_data
    open_to_all
    chmod 644 data.whr
    as_user ./wharf unpack -f -o /dev/stdout data.whr > out
    cmp out data
    as_user ./wharf unpack -o /dev/stdout data.whr > out
    cmp out data
    test -L /dev/stdout
}

# "cannot create: No such file or directory" was said of those that are files, and the link /dev/stderr
# was replaced.
test_names_of_descriptors_are_what_is_open() {
    make_data
    open_to_all
    chmod 644 data.whr
    for name in /dev/fd/7 /proc/self/fd/7; do
        for force in -f -k; do
            "$WHARF" unpack "$force" -o "$name" data.whr 7> out
            cmp out data
            "$WHARF" unpack "$force" -o "$name" data.whr 7>&1 | cmp - data
        done
    done
    as_user ./wharf unpack -f -o /dev/stderr data.whr 2> out
    cmp out data
    test -L /dev/stderr
    # It is the caller's: what stands there already stays.
    echo before > out
    "$WHARF" unpack -o /dev/fd/7 data.whr 7>> out
    tail -n +2 out | cmp - data
    expect_status 4 "$WHARF" unpack -o /dev/fd/7 data.whr 7>&- 2> message
    grep -q '/dev/fd/7: cannot create: Bad file descriptor' message
    expect_status 4 "$WHARF" pack -f -o /dev/fd/7 data 7<> data 2> message
    grep -q 'is the input itself' message
    "$WHARF" rans encode -n 11 --cdf /dev/fd/7 -o /dev/fd/8 data 7> cdf 8> words
    "$WHARF" rans decode -n 11 --cdf cdf words | cmp - data
}

test_full_standard_output_is_exit_4() {
    make_data
    gzip -k data
    bgzip -c data > data.bgz
    for file in data.whr data.gz data.bgz; do
        expect_status 4 "$WHARF" cat "$file" > /dev/full 2> message
        expect_text 'wharf: standard output: cannot write: No space left on device' "$(cat message)"
        expect_status 4 "$WHARF" cat --report "$file" "$file" > /dev/full 2> message
        tail -n 1 message | python3 -c 'import json, sys
report = json.load(sys.stdin)
assert (report["result"], report["error"]) == ("system_error", "No space left on device"), report'
    done
}

test_folder_in_place_of_a_file() {
    make_data
    mkdir folder
    expect_status 4 "$WHARF" pack folder 2> message
    grep -q '^wharf: folder: cannot read: Is a directory' message
    expect_status 4 "$WHARF" cat folder 2> message
    expect_status 4 "$WHARF" pack -f -o folder data 2> message
    grep -q '^wharf: folder: cannot create: Is a directory' message
    expect_status 4 "$WHARF" pack -o missing/out data 2> message
    grep -q '^wharf: missing/out: cannot create: No such file or directory' message
    expect_text '' "$(ls folder)"
}

test_unreadable_file_and_read_only_folder() {
    make_data
    open_to_all
    chmod 600 data.whr
    expect_status 4 as_user ./wharf unpack -o - data.whr 2> message
    grep -q '^wharf: data.whr: cannot open: Permission denied' message
    expect_status 4 as_user ./wharf cat data.whr 2> message
    chmod 644 data.whr
    # This folder is ours alone to write in.
    chmod 555 .
    expect_status 4 as_user ./wharf unpack -o out data.whr 2> message || return
    chmod 755 .
    grep -q '^wharf: out: cannot create: Permission denied' message
    test ! -e out
}

# A name as long as a file system takes, and the folder's path relative and absolute.
test_long_names_and_paths() {
    make_data
    name=$(printf 'n%.0s' {1..255})
    "$WHARF" unpack -o "$name" data.whr
    cmp "$name" data
    "$WHARF" unpack -f -o "$name" data.whr
    mkdir -p a/b
    "$WHARF" unpack -o a/b/out data.whr
    "$WHARF" unpack -f -o "$PWD/a/b/out" data.whr
    (cd a/b && "$WHARF" unpack -o ../out ../../data.whr)
    cmp a/out data
    expect_status 4 "$WHARF" unpack -o "${name}x" data.whr 2> message
    grep -q 'File name too long' message
    expect_text 'out' "$(ls -A a/b)"
}

# Somebody else's file appears while ours is being written: it stays.
test_file_that_appears_meanwhile_stays() {
    make_data
    mkfifo fifo
    "$WHARF" pack -o out fifo 2> message &
    pid=$!
    exec 5> fifo
    cat data >&5
    echo precious > out
    exec 5>&-
    expect_status 4 wait "$pid"
    grep -q 'out: exists already' message
    expect_text precious "$(cat out)"
}

# ---- full disks ----------------------------------------------------------------------------

test_full_disk_leaves_nothing_and_the_old_file() {
    head -c 3000000 /dev/urandom > data
    "$WHARF" pack -o data.whr data
    export WHARF
    in_namespace '
        mkdir disk
        mount -t tmpfs -o size=1m tmpfs disk
        echo precious > disk/old
        for command in "pack -f -o disk/old data" "unpack -f -o disk/old data.whr" \
            "pack -o disk/new data" "unpack -o disk/new data.whr" \
            "unpack -T 4 -f -o disk/old data.whr" "unpack -T 4 -o disk/new data.whr"; do
            status=0
            "$WHARF" $command 2> message || status=$?
            [ "$status" -eq 4 ]
            grep -q "cannot write: No space left on device; nothing is left of it" message
            [ "$(cat disk/old)" = precious ]
            [ "$(ls -A disk)" = old ]
        done'
}

# The same bytes, size and permissions as by one thread, of an old file and of a new one.
test_several_threads_write_to_tmpfs() {
    seq 1 9000000 > data
    "$WHARF" pack -c stored -o data.whr data
    "$WHARF" pack --format gzip -1 -o data.gz data
    chmod 640 data.whr
    export WHARF
    in_namespace '
        mkdir disk
        mount -t tmpfs -o size=200m tmpfs disk
        echo old > disk/a
        "$WHARF" unpack -T 4 -f -o disk/a data.whr
        cmp disk/a data
        [ "$(stat -c %a disk/a)" = 640 ]
        "$WHARF" cat -T 4 -o disk/b data.gz
        cmp disk/b data
        (ulimit -f 40000 && exec "$WHARF" unpack -T 4 -f -o disk/a data.whr) 2> message && exit 1
        grep -q "disk/a: cannot write: File too large" message
        cmp disk/a data
        [ "$(ls -A disk | tr "\n" " ")" = "a b " ]'
}

test_file_size_limit_is_like_a_full_disk() {
    make_data
    status=0
    (ulimit -f 100 && exec "$WHARF" unpack -o out data.whr) 2> message || status=$?
    expect_text 4 "$status"
    grep -q 'out: cannot write: File too large' message
    test ! -e out
}

# ---- signals -------------------------------------------------------------------------------

# start_writing COMMAND SOURCE OUT: from a pipe that goes on behind SOURCE; $pid is wharf, which has begun to write.
start_writing() {
    mkfifo fifo
    # Bash's children in the background have SIGINT switched off, and whoever runs the tests may
    # have switched off others.
    env --default-signal=HUP,INT,QUIT,TERM,PIPE "$WHARF" "$1" -f -o "$3" fifo 2> message &
    pid=$!
    exec 5> fifo
    cat "$2" >&5
    for _ in {1..1200}; do
        # Its file has no name, or a temporary one, and some size.
        find "/proc/$pid/fd" \( -lname '*(deleted)' -o -lname '*/.out*' \) \
            -exec stat -L -c %s '{}' + 2> /dev/null | has_line '[1-9]' && return
        sleep 0.05
    done
    echo 'it does not write' >&2
    return 1
}

# What a shell sees of each signal tells a script which it was.
test_signals_leave_nothing_and_the_old_file() {
    ulimit -c 0
    head -c 3000000 /dev/urandom > data
    "$WHARF" pack -o whole data
    head -c 2900000 whole > begun
    for case in "KILL pack data" "TERM pack data" "INT pack data" "HUP pack data" "QUIT pack data" \
        "TERM unpack begun" "INT unpack begun"; do
        read -r signal command source <<< "$case"
        mkdir "$signal-$command"
        cd "$signal-$command"
        echo precious > out
        start_writing "$command" "../$source" out
        kill "-$signal" "$pid"
        status=0
        wait "$pid" 2> /dev/null || status=$?
        exec 5>&-
        expect_text $((128 + $(kill -l "$signal"))) "$status"
        expect_text precious "$(cat out)"
        expect_text '' "$(cat message)"
        expect_text 'fifo message out' "$(find . -type f -o -type p | sort | sed 's|./||' | xargs)"
        cd ..
    done
}

# Nobody reads on: they end as any filter does.
test_pack_and_unpack_into_a_closed_pipe_end_by_its_signal() {
    head -c 3000000 /dev/urandom > data
    "$WHARF" pack -o whole data
    for case in "pack data" "unpack whole"; do
        read -r command source <<< "$case"
        mkfifo "$command"
        env --default-signal=PIPE "$WHARF" "$command" -o "$command" "$source" 2> message &
        head -c 10 "$command" > /dev/null
        status=0
        wait $! 2> /dev/null || status=$?
        expect_text 141 "$status"
        expect_text '' "$(cat message)"
    done
}

# Without /proc a file without a name cannot be given one: then it has a temporary name.
test_signals_remove_the_temporary_name() {
    export WHARF
    in_namespace '
        mkfifo fifo
        bash -c "
            echo \$\$ > pid
            exec \"\$WHARF\" pack -o out fifo" &
        mount -t tmpfs tmpfs /proc
        exec 5> fifo
        head -c 3000000 /dev/urandom >&5
        for _ in {1..1200}; do
            [ -z "$(find . -name ".out.*" -size +0)" ] || break
            sleep 0.05
        done
        [ -n "$(find . -name ".out.*")" ]
        kill -TERM "$(cat pid)"
        wait || true
        exec 5>&-
        [ "$(find . ! -type d | sort | xargs)" = "./fifo ./pid" ]'
}

test_works_without_proc() {
    # The leak checker wants /proc, and learns from /proc alone that it is not wanted.
    case $BUILD in */asan) skip 'not under the address sanitizer' ;; esac
    make_data
    export WHARF
    in_namespace '
        mount -t tmpfs tmpfs /proc
        "$WHARF" unpack -o out data.whr
        cmp out data
        echo old > out
        if "$WHARF" unpack -o out data.whr 2> message; then exit 1; fi
        [ "$(cat out)" = old ]
        "$WHARF" unpack -f -o out data.whr
        cmp out data
        printf damage | dd of=data.whr bs=1 seek=1000000 conv=notrunc status=none
        if "$WHARF" unpack -f -o out data.whr 2> message; then exit 1; fi
        cmp out data
        [ -z "$(find . -name ".out.*")" ]'
}

# ---- closed descriptors --------------------------------------------------------------------

test_closed_descriptors_are_errors_and_not_files() {
    make_data
    expect_status 4 "$WHARF" cat <&- 2> message
    grep -q 'standard input: cannot read: Bad file descriptor' message
    expect_status 4 "$WHARF" cat data.whr >&- 2> message
    grep -q 'standard output: cannot write: Bad file descriptor' message
    echo damage >> data.whr
    expect_status 1 "$WHARF" unpack -o out data.whr 2>&-
    test ! -e out
    "$WHARF" pack -f -o fine data <&- >&- 2>&-
    "$WHARF" cat fine | cmp - data
}

run_tests
