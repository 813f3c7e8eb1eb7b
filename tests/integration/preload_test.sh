#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libwharf-preload: zlib's functions for programs as they are.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"

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
    { exported "$PRELOAD"; printf 'libdeflate_%s\n' {deflate,zlib,gzip}_decompress{,_ex}
      printf 'ZSTD_%s\n' decompress{,DCtx} initDStream_using{Dict,DDict}
      printf 'ZSTD_DCtx_%s\n' loadDictionary{,_byReference,_advanced} ref{DDict,Prefix,Prefix_advanced} set{Format,Parameter}
      echo LZ4_decompress_safe
    } | sort > wanted
    sort all | comm -3 - wanted > others
    cat others
    test ! -s others
}

test_random_sequences_give_what_zlib_gives() {
    "$BUILD/tests/zlib_sequences" --count 20000 "$PRELOAD" > log
    grep -q '^ok 1 ' log
    # inflate() in every state but those that no input reaches: OS alone may be missed, and MEM.
    sed -n 's/^# inflate met \([0-9]*\) states:.*/\1/p' log > states
    test "$(cat states)" -ge 28
}

# inflateReset forgot the window size of the header before, with windowBits of 0.
test_sequences_that_differed_give_what_zlib_gives() {
    for seed in 5351483 11816367; do
        "$BUILD/tests/zlib_sequences" --count 1 --seed "$seed" "$PRELOAD" > log
        grep -q '^ok 1 ' log
    done
}

test_random_calls_give_what_libdeflate_gives() {
    "$BUILD/tests/libdeflate_calls" 1200 "$PRELOAD" > log
    cat log
    grep -q '^ok 1 ' log
}

test_random_calls_give_what_libzstd_and_liblz4_give() {
    "$BUILD/tests/block_calls" 1500 "$PRELOAD" > log
    cat log
    grep -q '^ok 1 ' log
}

test_programs_of_libzstd_and_liblz4_are_served() {
    skip_sanitized
    cat > read.c << 'END'
#include <lz4.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>
static char data[100000], packed[110000], again[100000];
static size_t nbytes;
static void *decode(void *unused)
{
    (void)unused;
    memset(again, 0, sizeof(again));
    return ZSTD_decompress(again, sizeof(again), packed, nbytes) == sizeof(data) &&
           memcmp(data, again, sizeof(data)) == 0 ? data : NULL;
}
int main(void)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_DStream *stream = ZSTD_createDStream();
    pthread_attr_t small;
    pthread_t thread;
    void *good;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * i >> 7);
    nbytes = LZ4_compress_default(data, packed, sizeof(data), sizeof(packed));
    if (LZ4_decompress_safe(packed, again, (int)nbytes, sizeof(again)) != sizeof(data) ||
        memcmp(data, again, sizeof(data)) != 0 || LZ4_decompress_safe(packed, again, 3, 9) >= 0)
        return 1;
    nbytes = ZSTD_compress(packed, sizeof(packed), data, sizeof(data), 3);
    /* It gives the context no dictionary. */
    ZSTD_initDStream(stream);
    if (!decode(NULL) || ZSTD_decompressDCtx(context, again, sizeof(again), packed, nbytes) != sizeof(data))
        return 2;
    puts(ZSTD_getErrorName(ZSTD_decompress(again, 10, packed, nbytes)));
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_create(&thread, &small, decode, NULL);
    pthread_join(thread, &good);
    return good ? 0 : 3;
}
END
    gcc -o read read.c -lzstd -llz4 -pthread
    ./read > without
    WHARF_PRELOAD_SKIP='' preloaded ./read > with 2> stats
    cat stats
    cmp without with
    grep -q ': libzstd: 200000 bytes taken, 100000 declined$' stats
    grep -q ': libzstd: 2 streams taken$' stats
    grep -q ': libzstd: 1 streams declined, on a small stack' stats
    grep -q ': libzstd: 1 streams declined: bad' stats
    grep -q ': liblz4: 100000 bytes taken, 0 declined$' stats
    # They are faster than wharf on a processor.
    preloaded ./read > with 2> stats
    cmp without with
    grep -q ': libzstd: 0 bytes taken, 300000 declined$' stats
    grep -q ': liblz4: 2 streams declined, as WHARF_PRELOAD_SKIP or its default says$' stats
    WHARF_PRELOAD_DAEMON=1 WHARF_SOCKET=/nonexistent preloaded ./read > with 2> stats
    cmp without with
    grep -q ': libzstd: 200000 bytes taken' stats
}

test_libraries_that_are_named_are_left_alone() {
    skip_sanitized
    make_reader
    ./read < a.gz > without
    for skipped in libdeflate zlib,libdeflate 'libdeflate,'; do
        WHARF_PRELOAD_SKIP=$skipped preloaded ./read < a.gz > with 2> stats
        cmp without with
        grep -q ": libdeflate: 0 bytes taken, $(stat -c %s with) declined$" stats
        grep -q ': libdeflate: 2 streams declined, as WHARF_PRELOAD_SKIP or its default says$' stats
    done
    for skipped in deflate libdeflate2 zlib ''; do
        WHARF_PRELOAD_SKIP=$skipped preloaded ./read < a.gz > with 2> stats
        grep -q ": libdeflate: $(stat -c %s with) bytes taken, 0 declined$" stats
    done
    WHARF_PRELOAD_SKIP=libzstd,zlib preloaded python3 -c 'import zlib; zlib.decompress(zlib.compress(bytes(5000)))' 2> stats
    grep -q ': zlib: 0 bytes taken, 5000 declined$' stats
}

# As modules of Python bring them: a copy that is not in the global scope, nor has the usual name.
test_modules_with_their_own_copy_get_its_answers() {
    skip_sanitized
    cat > copy.c << 'END'
#include <stddef.h>
int libdeflate_deflate_decompress_ex(void *d, const void *in, size_t nbytes, void *out, size_t avail, size_t *a, size_t *b)
{
    return nbytes < 5 ? 77 : 0;
}
int libdeflate_deflate_decompress(void *d, const void *in, size_t nbytes, void *out, size_t avail, size_t *b)
{
    return libdeflate_deflate_decompress_ex(d, in, nbytes, out, avail, NULL, b);
}
END
    cat > module.c << 'END'
#include <libdeflate.h>
int answer(const void *in, size_t nbytes, void *out, size_t avail)
{
    int result = libdeflate_deflate_decompress(0, in, nbytes, out, avail, 0);
    return result;
}
END
    gcc -shared -fPIC -o libcopy.so copy.c
    gcc -shared -fPIC -o module.so module.c -L. -lcopy -Wl,-rpath,"$PWD"
    cat > ask.py << 'END'
import ctypes, zlib
module = ctypes.CDLL("./module.so")
packer = zlib.compressobj(wbits=-15)
packed = packer.compress(bytes(1000)) + packer.flush()
out = ctypes.create_string_buffer(2000)
print([module.answer(packed, n, out, 1000) for n in (len(packed), 3, 3)])
END
    expect_text '[0, 77, 77]' "$(python3 ask.py)"
    expect_text '[0, 77, 77]' "$(preloaded python3 ask.py 2> stats)"
    cat stats
    grep -q ': libdeflate: 1 streams taken' stats
}

make_reader() { made_once reader_files; }

reader_files() {
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
}

test_programs_of_libdeflate_are_served() {
    skip_sanitized
    make_reader
    ./read < a.gz > without
    preloaded ./read < a.gz > with 2> stats
    cat stats
    cmp without with
    grep -q ": libdeflate: $(stat -c %s with) bytes taken, 0 declined$" stats
    grep -q ': libdeflate: 1 streams declined: bad' stats
}

# How many connections the daemon has had, the one that asks included.
connections() {
    "$WHARF" stats --socket s --prometheus | sed -n 's/^wharf_all_connections_total //p'
}

# Only if that is wanted, and for streams of 1 MiB and more.
test_daemon_is_asked_where_that_is_wanted() {
    skip_sanitized
    make_reader
    start_daemon ''
    gzip -dc a.gz > whole
    export WHARF_SOCKET=$PWD/s
    WHARF_PRELOAD_DAEMON=0 preloaded ./read < a.gz > with 2> stats
    expect_text 1 "$(connections)"
    WHARF_PRELOAD_DAEMON=1 preloaded ./read < a.gz > with 2> stats
    cmp whole with
    grep -q ": libdeflate: $(stat -c %s with) bytes taken, 0 declined$" stats
    expect_text 3 "$(connections)"
    echo a line | gzip > small.gz
    WHARF_PRELOAD_DAEMON=1 preloaded ./read < small.gz > with 2> stats
    expect_text 'a line' "$(cat with)"
    expect_text 4 "$(connections)"
    # Without one the program decodes itself.
    kill_daemon
    WHARF_PRELOAD_DAEMON=1 preloaded ./read < a.gz > with 2> stats
    cmp whole with
    grep -q ": libdeflate: $(stat -c %s with) bytes taken, 0 declined$" stats
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

make_files() { made_once files; }

files() {
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
