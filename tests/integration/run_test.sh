#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf run: programs with libwharf-preload in front of their libraries.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# A sanitizer's library has to come first in a process.
skip_sanitized() {
    case $BUILD in *asan | *tsan) exit "$SKIP_STATUS" ;; esac
}

run() {
    "$WHARF" run "$@"
}

# build NAME OPTION...: a program of standard input, linked so.
build() {
    local name=$1
    shift
    gcc -o "$name" -x c - -x none "$@"
}

says_not_reached() {
    run ./"$1" 2> message > out
    cat message
    test "$(wc -l < message)" = 1
    grep -q "^wharf: ./$1: not reached: .*$2" message
    expect_text works "$(cat out)"
    run -q ./"$1" 2> message
    test ! -s message
    expect_status 1 run --check ./"$1" 2> message
}

test_program_inflates_by_the_library() {
    skip_sanitized
    seq 100000 | gzip > a.gz
    run --stats python3 -c 'import gzip; print(len(gzip.open("a.gz").read()))' 2> stats > out
    cat stats
    expect_text "$(seq 100000 | wc -c)" "$(cat out)"
    grep -qE '^wharf-preload: python3?[.0-9]*\[[0-9]+\]: zlib: 588895 bytes taken, 0 declined$' stats
    # Processes that inflate nothing say nothing.
    run --stats sh -c ':; true | cat' 2> stats
    test ! -s stats
}

test_scripts_and_their_children_are_reached() {
    skip_sanitized
    echo 'import zlib; zlib.decompress(zlib.compress(bytes(5000)))' > script.py
    printf '#!/usr/bin/env -S LANG=C python3\nexec(open("script.py").read())\n' > script
    printf '#!/bin/sh -e\n./script\n' > outer
    chmod +x script outer
    for program in ./script ./outer; do
        run --stats "$program" 2> stats
        grep -q ': 5000 bytes taken' stats
        expect_status 1 grep -q 'not reached' stats
    done
}

test_program_takes_the_command_s_place() {
    skip_sanitized
    expect_status 5 run sh -c 'exit 5'
    expect_text "a b--stats-x" "$(run printf '%s' 'a b' --stats -x)"
    expect_text "-c" "$(run -- printf '%s' -c)"
    expect_text "one" "$(echo one | run cat)"
    # Its signals and its closed descriptors, too.
    # shellcheck disable=SC2016 # the inner shell's
    expect_status 141 run sh -c 'kill -PIPE $$'
    run sh -c 'test ! -e /proc/self/fd/0' <&-
    LD_PRELOAD='' run sh -c 'echo "$LD_PRELOAD"' > out
    expect_text "$BUILD/libwharf-preload.so" "$(cat out)"
    # shellcheck disable=SC2016 # the inner shell's
    run sh -c 'echo "$WHARF_PRELOAD_DAEMON"' > out
    expect_text '' "$(cat out)"
    # shellcheck disable=SC2016 # the inner shell's
    run --daemon sh -c 'echo "$WHARF_PRELOAD_DAEMON"' > out
    expect_text 1 "$(cat out)"
    LD_PRELOAD=libm.so.6 run sh -c 'echo "$LD_PRELOAD"' > out
    expect_text "$BUILD/libwharf-preload.so:libm.so.6" "$(cat out)"
}

test_statuses_are_those_of_env() {
    expect_status 127 run no-such-program 2> message
    grep -q 'no-such-program: No such file' message
    expect_status 127 run ./no-such-program 2> message
    expect_status 126 run / 2> message
    echo text > text
    expect_status 126 run ./text 2> message
    chmod +x text
    expect_status 126 run ./text 2> message
    printf '#!%s/loop\n' "$PWD" > loop
    chmod +x loop
    expect_status 126 run ./loop 2> message
    expect_status 2 run 2> message
    grep -q 'a program is missing' message
    expect_status 2 run --stat true 2> message
    PATH='' expect_status 127 "$WHARF" run sh 2> message
}

test_what_it_cannot_reach_is_said() {
    skip_sanitized
    echo 'int puts(const char *); int main(void) { puts("works"); return 0; }' > works.c
    build static -static < works.c
    says_not_reached static 'linked statically'
    build with-zlib -l:libz.a << 'EOS'
#include <stdio.h>
#include <zlib.h>
int main(void)
{
    unsigned char out[1];
    z_stream s = {.next_out = out, .avail_out = sizeof(out)};
    return inflateInit(&s) == Z_OK && inflate(&s, 0) == Z_BUF_ERROR ? puts("works") < 0 : 1;
}
EOS
    says_not_reached with-zlib 'zlib linked in'
    # The note of Go's linker, behind another one.
    cat works.c - > go.c << 'EOS'
__asm__(".pushsection .note.go.buildid,\"a\",@note\n"
        ".long 4, 5, 4\n.asciz \"Go\\0\"\n.ascii \"abcde\"\n.balign 4\n.popsection\n");
EOS
    build go < go.c
    says_not_reached go 'Go program'
    build plain < works.c
    run ./plain 2> message
    test ! -s message
    expect_text '' "$(run --check ./plain)"
}

test_setuid_programs_are_told() {
    test "$(id -u)" = 0 || skip 'only root makes setuid programs'
    cp /bin/true program
    chown nobody program
    chmod u+s program
    run ./program 2> message
    grep -q "not reached: it runs with another user's rights" message
}

# Whatever the file says of itself.
test_damaged_programs_are_no_danger() {
    python3 - "$WHARF" << 'EOS'
import os, random, subprocess, sys
random.seed(5)
good = open('/bin/true', 'rb').read()
for i in range(60):
    data = bytearray(good[:random.choice([3, 15, 16, 63, 64, 100, 500, 5000, len(good)])])
    for _ in range(random.randrange(1, 12)):
        at = random.randrange(4, min(len(data), 1000)) if len(data) > 4 else 0
        data[at] = random.choice([0, 1, 255, random.randrange(256)])
    # Never one that runs.
    data[:2] = b'\x7fE' if i % 4 else b'#!'
    data[16:18] = b'\xff\xff'  # the kind of file
    with open('program', 'wb') as file:
        file.write(data)
    os.chmod('program', 0o755)
    done = subprocess.run([sys.argv[1], 'run', './program'], stderr=subprocess.PIPE, timeout=600)
    assert done.returncode == 126 or done.returncode == 127, (i, done)
EOS
}

run_tests
