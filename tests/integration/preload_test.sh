#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libwharf-preload: zlib's functions for programs as they are.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

PRELOAD=$BUILD/libwharf-preload.so
ZLIB=$(ldconfig -p | awk '$1 == "libz.so.1" { print $NF; exit }')

# What no sanitizer's library can be loaded in front of.
skip_sanitized() {
    case $BUILD in *asan | *tsan) exit "$SKIP_STATUS" ;; esac
}

preloaded() {
    LD_PRELOAD=$PRELOAD WHARF_PRELOAD_STATS=1 "$@"
}

exported() {
    nm -D --defined-only "$1" | sed -n 's/^[0-9a-f]* [TWi] \([a-z0-9A-Z_]*\).*/\1/p' |
        grep -E '^(inflate|uncompress|crc32|adler32)' | sort
}

test_exports_all_that_zlib_does() {
    exported "$ZLIB" > zlib
    exported "$PRELOAD" > preload
    test -s zlib
    comm -23 zlib preload > missing
    cat missing
    test ! -s missing
}

test_exports_nothing_else() {
    nm -D --defined-only "$PRELOAD" | awk '{ print $3 }' > all
    { exported "$PRELOAD"; printf 'libdeflate_%s\n' {deflate,zlib,gzip}_decompress{,_ex}; } | sort > wanted
    sort all | comm -3 - wanted > others
    cat others
    test ! -s others
}

test_random_sequences_give_what_zlib_gives() {
    "$BUILD/tests/zlib_sequences" --count 4000 "$PRELOAD" > log
    grep -q '^ok 1 ' log
    # inflate() in every state but those that no input reaches: OS alone may be missed, and MEM.
    sed -n 's/^# inflate met \([0-9]*\) states:.*/\1/p' log > states
    test "$(cat states)" -ge 28
}

test_random_calls_give_what_libdeflate_gives() {
    "$BUILD/tests/libdeflate_calls" 1200 "$PRELOAD" > log
    cat log
    grep -q '^ok 1 ' log
}

test_programs_of_libdeflate_are_served() {
    skip_sanitized
    make_files
    cat > read.c << 'END'
#include <libdeflate.h>
#include <stdio.h>
int main(void)
{
    static unsigned char in[10 << 20], out[10 << 20];
    size_t nbytes = fread(in, 1, sizeof(in), stdin), made;
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    int good = libdeflate_gzip_decompress(d, in, nbytes, out, sizeof(out), &made) == 0;
    int bad = libdeflate_zlib_decompress(d, in, nbytes, out, 100, NULL) == LIBDEFLATE_BAD_DATA;
    fwrite(out, 1, made, stdout);
    return !(good && bad);
}
END
    gcc -o read read.c -ldeflate
    ./read < a.gz > without
    preloaded ./read < a.gz > with 2> stats
    cat stats
    cmp without with
    grep -q ": libdeflate: $(stat -c %s with) bytes taken, 0 declined$" stats
    grep -q ': libdeflate: 1 streams declined, for they are bad' stats
}

cat_by_python() {
    cat > read.py << 'END'
import gzip, io, sys, zipfile, zlib
out = sys.stdout.buffer
out.write(gzip.open("a.gz").read())
for line in gzip.open("a.gz"):
    out.write(line)
out.write(zipfile.ZipFile("a.zip").read("a"))
data = open("a.zlib", "rb").read()
out.write(zlib.decompress(data))
decoder = zlib.decompressobj()
for at in range(0, len(data), 1000):
    out.write(decoder.decompress(data[at:at + 1000], 777))
    while decoder.unconsumed_tail:
        out.write(decoder.decompress(decoder.unconsumed_tail, 777))
for damaged in data[:5000], data[:3000] + b"damage" + data[3006:], b"x" + data[1:]:
    try:
        zlib.decompress(damaged)
    except zlib.error as error:
        out.write(str(error).encode())
END
    "$@" python3 read.py
}

make_files() {
    python3 - << 'END'
import gzip, random, zipfile, zlib
random.seed(1)
words = [b"%d " % random.randrange(10 ** random.randrange(1, 9)) for _ in range(3000)]
data = b"".join(random.choice(words) + b"\n" * (i % 9 == 0) for i in range(120000))
gzip.open("a.gz", "wb").write(data)
zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED).writestr("a", data)
open("a.zlib", "wb").write(zlib.compress(data))
END
}

test_python_reads_the_same() {
    skip_sanitized
    make_files
    cat_by_python > without
    cat_by_python preloaded > with 2> stats
    cmp without with
    cat stats
    # Of what zlib inflates at least 90 % are taken.
    awk '/bytes taken/ { exit !($4 > 1000000 && $4 >= 9 * $7) }' stats
}

# What programs write to standard error may be read by others.
test_statistics_go_to_a_file() {
    skip_sanitized
    make_files
    for _ in 1 2; do
        LD_PRELOAD=$PRELOAD WHARF_PRELOAD_STATS=$PWD/stats \
            python3 -c 'import zlib; zlib.decompress(open("a.zlib", "rb").read())' 2> message
        test ! -s message
    done
    expect_text 2 "$(grep -c 'bytes taken' stats)"
    # Nowhere to write is no failure.
    LD_PRELOAD=$PRELOAD WHARF_PRELOAD_STATS=/no/such/file python3 -c 'import zlib; zlib.decompress(zlib.compress(b""))'
}

test_child_after_fork_is_left_alone() {
    skip_sanitized
    make_files
    preloaded python3 -c '
import os, sys, zlib
data = open("a.zlib", "rb").read()
decoder = zlib.decompressobj()
first = decoder.decompress(data[:2000])
pid = os.fork()
if pid == 0:
    whole = zlib.decompress(data)
    good = first + decoder.decompress(data[2000:]) == whole
    sys.exit(0 if good else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' 2> stats
    cat stats
    grep -q 'declined, in a child after fork' stats
}

run_tests
