#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make install and uninstall, and programs that are built against what was installed.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail

variant=$(basename "$BUILD")

# install_to PREFIX [VARIABLE=...]: quietly.
install_to() {
    local prefix=$1
    shift
    make_here prefix="$prefix" "$@" install > installed 2>&1 ||
        { cat installed; return 1; }
}

list() {
    (cd "$1" && find . ! -type d | sort)
}

test_uninstall_removes_all_that_install_put_there() {
    mkdir stage
    echo theirs > stage/other
    install_to /usr DESTDIR="$PWD/stage"
    list stage > after
    cat > expected << EOS
./etc/wharf/wharfd.conf
./other
./usr/bin/wharf
./usr/bin/wharfd
./usr/include/wharf.h
./usr/include/wharf_codec.h
./usr/include/wharf_job.h
./usr/include/wharf_result.h
./usr/include/wharf_ring.h
./usr/lib/libwharf.a
./usr/lib/libwharf.so
./usr/lib/libwharf.so.0
./usr/lib/pkgconfig/wharf.pc
./usr/lib/systemd/system/wharfd.service
./usr/lib/systemd/system/wharfd.socket
./usr/lib/wharf/libwharf-preload.so
./usr/lib/sysusers.d/wharfd.conf
./usr/lib/tmpfiles.d/wharfd.conf
./usr/share/bash-completion/completions/wharf
./usr/share/doc/wharf/DESIGN.md
./usr/share/doc/wharf/FORMAT.md
./usr/share/doc/wharf/GPU_MEMORY.md
./usr/share/doc/wharf/LINES.md
./usr/share/doc/wharf/PRELOAD.md
./usr/share/doc/wharf/PROTOCOL.md
./usr/share/doc/wharf/SECURITY.md
./usr/share/doc/wharf/control.proto
./usr/share/doc/wharf/examples/example.c
./usr/share/doc/wharf/examples/example_async.c
./usr/share/doc/wharf/examples/example_gpu.c
$(cd "$TOP" && printf './usr/share/doc/wharf/formats/%s\n' encoders/*/*_format.h | sed 's|formats/.*/|formats/|')
./usr/share/doc/wharf/job-life.svg
./usr/share/doc/wharf/processes.svg
./usr/share/doc/wharf/wharf.dashboard.json
./usr/share/doc/wharf/wharf.rules.yml
./usr/share/fish/vendor_completions.d/wharf.fish
./usr/share/man/man1/wharf.1
$(sed -n 's|.*\b\(wharf_[a-z0-9_]*\);.*|./usr/share/man/man3/\1.3|p' "$TOP/clientlib/libwharf.map")
./usr/share/man/man3/libwharf.3
./usr/share/man/man5/wharfd.conf.5
./usr/share/man/man7/libwharf-preload.7
./usr/share/man/man8/wharfd.8
./usr/share/zsh/site-functions/_wharf
EOS
    # Only where it was built, by make gpu-programs.
    [ ! -e "$BUILD/wharfd-gpu" ] || echo ./usr/libexec/wharf/wharfd-gpu >> expected
    # Where Python's headers are.
    if [ -e "$BUILD/python/wharf/_wharf.abi3.so" ]; then
        (cd "$TOP/clientlib/python/wharf" && printf './usr/lib/python3/dist-packages/wharf/%s\n' \
            _wharf.abi3.so ./*) | sed 's|/\./|/|' >> expected
        printf './usr/share/doc/wharf/%s\n' EXAMPLES.md PYTHON.md >> expected
    fi
    # Where HDF5's headers are.
    if [ -e "$BUILD/hdf5/libwharf-h5-zstd.so" ]; then
        printf './usr/lib/wharf/hdf5/libwharf-h5-%s.so\n' blosc lz4 bitshuffle zstd blosc2 >> expected
        echo ./usr/share/doc/wharf/HDF5.md >> expected
    fi
    # And by make cuda.
    if [ -e "$BUILD/libwharf-cuda.so.0" ]; then
        cat >> expected << EOS
./usr/include/wharf_cuda.h
./usr/include/wharf_assist.cuh
./usr/include/wharf_group.cuh
./usr/include/wharf_line.cuh
./usr/include/wharf_pick.cuh
./usr/lib/cmake/wharf_cuda/wharf_cuda-config.cmake
./usr/lib/libwharf-cuda.a
./usr/lib/libwharf-cuda.so
./usr/lib/libwharf-cuda.so.0
./usr/lib/pkgconfig/wharf-cuda.pc
./usr/share/doc/wharf/NVCOMP.md
./usr/share/doc/wharf/examples/example_cuda.c
./usr/share/doc/wharf/examples/example_line.cu
./usr/share/man/man3/libwharf-cuda.3
$(sed -n 's|.*\b\(wharf_cuda_[a-z0-9_]*\);.*|./usr/share/man/man3/\1.3|p' "$TOP/clientlib/cuda/libwharf-cuda.map")
EOS
    fi
    sort -o expected expected
    diff expected after
    make_here prefix=/usr DESTDIR="$PWD/stage" uninstall > removed
    expect_text ./other "$(list stage)"
}

test_folders_can_be_chosen_and_staged_with_blanks() {
    install_to /opt/w libdir=/opt/w/lib/x86_64 DESTDIR="$PWD/a stage"
    test -e 'a stage/opt/w/lib/x86_64/libwharf.so.0'
    # shellcheck disable=SC2016 # pkg-config's own variable
    grep -qx 'libdir=${prefix}/lib/x86_64' 'a stage/opt/w/lib/x86_64/pkgconfig/wharf.pc'
    # Nothing was written outside.
    test ! -e /opt/w
}

# Debian's Python finds it below /usr, and each one below its own prefix.
test_python_package_is_found_where_it_is_installed() {
    [ -e "$BUILD/python/wharf/_wharf.abi3.so" ] || skip "Python's headers are not there"
    case $BUILD in *asan | *tsan) skip 'the library of a sanitizer comes first in a process' ;; esac
    install_to /usr DESTDIR="$PWD/stage"
    cat > first.py << 'EOS'
import gzip, wharf
assert wharf.decompress(gzip.compress(b'text'), 'gzip') == b'text'
print(wharf.__file__)
EOS
    expect_text "$PWD/stage/usr/lib/python3/dist-packages/wharf/__init__.py" \
        "$(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=stage/usr/lib/python3/dist-packages python3 first.py)"
    make_here prefix=/usr DESTDIR="$PWD/stage" uninstall > removed
    test ! -e stage/usr/lib/python3/dist-packages/wharf
}

# An administrator's configuration survives install and uninstall; one that nobody changed goes.
test_configuration_belongs_to_whom_changed_it() {
    conf=stage/etc/wharf/wharfd.conf
    uninstall() {
        make_here prefix=/usr DESTDIR="$PWD/stage" uninstall > removed
    }
    install_to /usr DESTDIR="$PWD/stage"
    "$BUILD/wharfd" --print-config | cmp - "$conf"
    "$BUILD/wharfd" --check-config --config "$conf"
    echo '[cpu]' >> "$conf"
    cp "$conf" changed
    install_to /usr DESTDIR="$PWD/stage"
    cmp changed "$conf"
    uninstall
    grep -q "KEEP .*/$conf" removed
    cmp changed "$conf"
    rm "$conf"
    install_to /usr DESTDIR="$PWD/stage"
    uninstall
    test ! -e stage/etc/wharf
}

# Under a prefix of its own the daemon is told where its configuration is.
test_units_name_what_was_installed() {
    install_to /usr DESTDIR="$PWD/a"
    install_to /opt/w DESTDIR="$PWD/b"
    service=lib/systemd/system/wharfd.service
    grep -qx 'ExecStart=/usr/bin/wharfd' "a/usr/$service"
    grep -qx 'ExecStart=/opt/w/bin/wharfd --config /opt/w/etc/wharf/wharfd.conf' "b/opt/w/$service"
    test -e b/opt/w/etc/wharf/wharfd.conf
    expect_status 1 grep -rI '@[a-z]*@' a b
}

# compile COMPILER FLAG...: with what pkg-config says of the installed library.
compile() {
    local compiler=$1
    shift
    # shellcheck disable=SC2046 # words
    "$compiler" -Wall -Wextra -Wpedantic -Werror "$@" $(pkg-config --cflags --libs wharf)
}

sanitizer_flags() {
    case $variant in
        asan) echo -fsanitize=address,undefined ;;
        tsan) echo -fsanitize=thread ;;
    esac
}

use_installed() {
    install_to "$PWD/root"
    export PKG_CONFIG_PATH=$PWD/root/lib/pkgconfig LD_LIBRARY_PATH=$PWD/root/lib
    read -ra flags <<< "$(sanitizer_flags)"
    seq 1 100000 > data
    gzip -k data
}

# It lacked headers and declarations that it takes.
test_first_example_of_the_header_compiles_and_works() {
    use_installed
    sed -n '/^ \*     #include/,/^ \*     }$/{s/^ \*     //; s/^ \*$//; p}' \
        root/include/wharf.h > header.c
    seq 1 10000 | gzip > small.gz
    compile gcc -std=c11 -Wall -Wextra -Werror "${flags[@]}" -o header header.c
    WHARF_SOCKET=$PWD/none ./header < small.gz | cmp - <(seq 1 10000)
    head -c 100 small.gz > cut.gz
    WHARF_SOCKET=$PWD/none expect_status 1 ./header < cut.gz 2> message
    grep -q ' at bit [0-9]*$' message
}

test_example_works_against_the_shared_library() {
    use_installed
    compile gcc -std=c11 "${flags[@]}" -o example "$TOP/clientlib/example.c"
    ./example gzip < data.gz | cmp - data
    # Not through a pipe: grep is content with the first line, and ldd would die of SIGPIPE.
    ldd ./example > libraries
    grep -q "libwharf.so.0 => $PWD/root/lib/libwharf.so.0" libraries
    expect_status 1 ./example gzip < data 2> message
    expect_text 'bad data: not in gzip format, at byte 0 bit 0' "$(cat message)"
    expect_status 1 ./example nonsense 2> message
    grep -q '  zlib     zlib, RFC 1950' message
}

# It refused its first ordinary file: each had to fit into a slot of 256 KiB.
test_example_with_many_chunks_in_flight_takes_any_file() {
    use_installed
    compile gcc -std=c11 "${flags[@]}" -o example_async "$TOP/clientlib/example_async.c"
    # More files than it has places for, without a daemon.
    mapfile -t files < <(yes data.gz | head -n 40)
    WHARF_SOCKET=$PWD/none ./example_async gzip "${files[@]}" > lines
    expect_text 40 "$(grep -c "^data.gz: $(stat -c %s data) bytes, by cpu$" lines)"
    head -c 1000 data > plain
    : > empty
    WHARF_SOCKET=$PWD/none expect_status 1 ./example_async gzip data.gz plain empty no-such-file \
        . > lines 2> message
    grep -q '^plain: bad data: not in gzip format, at byte 0$' lines
    grep -q '^empty: bad data: the input ends too early, at byte 0$' lines
    grep -q '^no-such-file: ' message
    # Ones that do not fit beside each other, whose output is not what was guessed, and that are larger
    # than the arena, by themselves or by their output.
    for size in 0 1 300000 9000000 40000000; do
        head -c "$size" /dev/urandom | gzip -1 > "noise.$size.gz"
        head -c "$size" /dev/zero | gzip -1 > "zeros.$size.gz"
    done
    WHARF_SOCKET=$PWD/none ./example_async gzip zeros.*.gz noise.*.gz noise.*.gz > lines
    for size in 0 1 300000 9000000 40000000; do
        expect_text 1 "$(grep -c "^zeros.$size.gz: $size bytes, by " lines)"
        expect_text 2 "$(grep -c "^noise.$size.gz: $size bytes, by " lines)"
    done
    grep -q '^noise.40000000.gz: .* by one call$' lines
    grep -q '^zeros.9000000.gz: .* by cpu$' lines
    expect_status 1 ./example_async brotli data.gz 2> message
    grep -q "there is no codec 'brotli': the names are " message
}

test_example_works_against_the_static_library() {
    use_installed
    # shellcheck disable=SC2046 # words
    gcc -std=c11 "${flags[@]}" -o example "$TOP/clientlib/example.c" \
        $(pkg-config --cflags wharf) root/lib/libwharf.a \
        $(pkg-config --static --libs wharf | sed 's/-lwharf//')
    ./example gzip < data.gz | cmp - data
}

# Each header alone, in the strictest dialect, as C and as C++.
test_headers_stand_alone_in_c_and_cxx() {
    use_installed
    for header in wharf.h wharf_codec.h wharf_job.h wharf_result.h wharf_ring.h; do
        echo "#include <$header>" > alone.c
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iroot/include -fsyntax-only alone.c
        g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iroot/include -fsyntax-only -x c++ alone.c
    done
}

# They sent readers to files of the source.
test_headers_name_only_files_that_are_installed() {
    use_installed
    grep -hvE '^#include <|^ \*     #include' root/include/*.h |
        grep -ohE '[A-Za-z0-9_]+\.(h|c|md|proto|cuh)\b' | sort -u > named
    grep -qx wharf_job.h named
    while read -r name; do
        [ -n "$(find root -name "${name/#CODEC_/*_}")" ] || echo "$name"
    done < named > missing
    expect_text '' "$(cat missing)"
    # Nor do they name folders of it.
    expect_status 1 grep -nE '\b(encoders|proto|kernels|daemon|clientlib)/' root/include/*.h
}

# What each page's program prints, for input from small.gz.
output_of() {
    case $1 in
        wharf_alloc) echo 'jobs may use it now' ;;
        wharf_decompress | wharf_submit) seq 1 10000 ;;
        wharf_error_message) printf '2: zlib, RFC 1950, Adler-32 verified\nbad checksum\ngzip_checksum\n' ;;
        wharf_next_runs) printf '100 values in 2 bytes at 0\n2 values in 3 bytes at 2\n' ;;
        wharf_open) echo "$2, 255 jobs at a time" ;;
        wharf_compress) cat small.gz ;;
        wharf_register_file) echo ok && seq 1 10000 ;;
        wharf_register_model) echo 'jobs name it: 1' ;;
        wharf_stats) echo 'wharf_workers 2' ;;
        wharf_wait) printf 'job %d is done\n' 0 1 2 ;;
        *) echo "what does the page $1 print?" ;;
    esac
}

# run_example NAME SOCKET: what the program prints, of a stream that it makes what that holds.
run_example() {
    if [ "$1" = wharf_compress ]; then
        WHARF_SOCKET=$PWD/$2 "./$1" < small.gz | gzip -dc
    elif [ "$1" = wharf_register_file ]; then
        # On a disk: the daemon writes no files in memory, where this folder may be.
        local decoded
        decoded=$(mktemp /var/tmp/wharf-decoded.XXXXXX)
        WHARF_SOCKET=$PWD/$2 "./$1" small.gz "$decoded"
        cat "$decoded"
        rm "$decoded"
    else
        WHARF_SOCKET=$PWD/$2 "./$1" < small.gz
    fi
}

# Each page of functions has a program, which compiles and works as it is printed, with a daemon and, but for
# those about a daemon, without.
test_examples_of_manual_pages_compile_and_work() {
    use_installed
    seq 1 10000 | gzip > small.gz
    start_daemon '[cpu]' 'workers = 2'
    for page in root/share/man/man3/*.3; do
        name=$(basename "$page" .3)
        # Those of libwharf-cuda, which is installed where it was built, are cuda_pages_test's.
        if [ -L "$page" ] || [[ $name = libwharf* || $name = wharf_cuda* ]]; then continue; fi
        sed -n '/^\.Sh EXAMPLES/,/^\.Ed/{/^\./d; s/\\e/\\/g; p}' "$page" > "$name.c"
        test "$(wc -l < "$name.c")" -ge 15
        compile gcc -std=c11 -Wall -Wextra -Werror "${flags[@]}" -o "$name" "$name.c"
        run_example "$name" s > out
        output_of "$name" "$(pkg-config --modversion wharf)" | diff - out
        [[ $name = wharf_stats || $name = wharf_register_file ]] && continue
        run_example "$name" none > out
        output_of "$name" embedded | diff - out
    done
    WHARF_SOCKET=$PWD/none expect_status 1 ./wharf_stats 2> message
    WHARF_SOCKET=$PWD/none expect_status 1 ./wharf_error_message brotli 2> message
    grep -q "no codec 'brotli'" message
}

test_library_works_from_cxx() {
    use_installed
    cat > program.cc << 'EOS'
#include <wharf.h>

#include <cstring>
#include <vector>

int main()
{
    static const unsigned char stream[] = {0x78, 0xda, 0x2b, 0xcf, 0x48, 0x2c, 0x4a,
                                           0x03, 0x00, 0x06, 0x65, 0x02, 0x19};
    std::vector<unsigned char> out(5);
    wharf_options options = WHARF_OPTIONS_INIT;
    options.engine = WHARF_ENGINE_REFERENCE;
    struct wharf *handle = nullptr;
    if (wharf_open(&options, &handle) != 0)
        return 1;
    wharf_job job = WHARF_JOB_INIT;
    job.codec = WHARF_CODEC_ZLIB;
    job.flags = WHARF_JOB_EXACT_OUTPUT | WHARF_JOB_EXACT_INPUT;
    job.in = stream;
    job.in_nbytes = sizeof(stream);
    job.out = out.data();
    job.out_avail = out.size();
    wharf_outcome outcome;
    int r = wharf_decompress(handle, &job, &outcome);
    wharf_close(handle);
    return r != 0 || outcome.result != WHARF_OK || std::memcmp(out.data(), "wharf", 5) != 0;
}
EOS
    compile g++ -std=c++17 "${flags[@]}" -o program program.cc
    ./program
}

test_installed_command_and_pages_work() {
    use_installed
    root/bin/wharf cat data.gz | cmp - data
    expect_text "$(root/bin/wharf --version)" "wharf $(pkg-config --modversion wharf)"
    expect_text "$(root/bin/wharfd --version)" "wharfd $(pkg-config --modversion wharf)"
    mandoc -Tlint -W warning root/share/man/man*/*
    # Whatever it includes must be there without us.
    bash -c ". root/share/bash-completion/completions/wharf"
}

run_tests
