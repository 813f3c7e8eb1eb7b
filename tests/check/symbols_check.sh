#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the built libraries export and what they import.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# Whoever links the archive sees every global symbol in it.
test_archive_defines_only_names_that_begin_with_wharf() {
    nm -g --defined-only "$BUILD/libwharf.a" | awk 'NF == 3 { print $3 }' > defined
    grep -q '^wharf_decompress$' defined
    expect_status 1 grep -v '^wharf_' defined
}

test_shared_library_exports_what_its_map_lists() {
    nm -D --defined-only --without-symbol-versions "$BUILD"/libwharf.so |
        awk '$2 != "A" { print $3 }' | sort > exported
    # The names between `global:` and `local:`, one or more a line.
    sed -n '/global:/,/local:/p' "$TOP/clientlib/libwharf.map" |
        grep -oE '\bwharf_[a-z0-9_]+' | sort > listed
    test -s listed
    diff listed exported
}

# The public header is the manual of every exported function.
test_public_headers_declare_what_the_map_lists() {
    sed -n '/global:/,/local:/p' "$TOP/clientlib/libwharf.map" |
        grep -oE '\bwharf_[a-z0-9_]+' > listed
    while read -r name; do
        grep -qE "\b$name\(" "$TOP"/clientlib/wharf.h "$TOP"/proto/wharf_*.h ||
            echo "$name is in no public header"
    done < listed > missing
    expect_text '' "$(cat missing)"
}

# And one page of section 3 shows how each is called.
test_manual_page_shows_what_the_map_lists() {
    sed -n '/global:/,/local:/p' "$TOP/clientlib/libwharf.map" |
        grep -oE '\bwharf_[a-z0-9_]+' > listed
    while read -r name; do
        n_pages=$(cat "$TOP"/clientlib/*.3 | grep -cE "^\.F[no] $name \"|^\.Fo $name\$|^\.Fn $name void\$" || true)
        [ "$n_pages" = 1 ] || echo "$name is on $n_pages pages"
    done < listed > missing
    expect_text '' "$(cat missing)"
}

# The names that libwharf-cuda's map lists.
cuda_names() {
    sed -n '/global:/,/local:/p' "$TOP/clientlib/cuda/libwharf-cuda.map" |
        grep -oE '\bwharf_[a-z0-9_]+' | sort
}

test_cuda_header_and_pages_have_what_its_map_lists() {
    cuda_names > listed
    test -s listed
    grep -oE '\bwharf_cuda_[a-z_]+\(' "$TOP/clientlib/cuda/wharf_cuda.h" | tr -d '(' | sort -u > used
    grep -vxFf listed used > unknown || true
    expect_text '' "$(cat unknown)"
    sed -nE 's/^\.F[no] (wharf_cuda_[a-z_]+).*/\1/p' "$TOP"/clientlib/cuda/*.3 |
        sort -u > shown
    grep -vxFf shown listed > missing || true
    expect_text '' "$(cat missing)"
    grep -vxFf used listed > missing || true
    expect_text '' "$(cat missing)"
}

# Where there is nvcc, and somebody made it.
test_cuda_library_exports_what_its_map_lists() {
    if [ ! -e "$BUILD"/libwharf-cuda.so.0 ]; then
        skip 'libwharf-cuda is not built: make cuda'
        return
    fi
    nm -D --defined-only --without-symbol-versions "$BUILD"/libwharf-cuda.so.0 |
        awk '$2 != "A" { print $3 }' | sort > exported
    cuda_names > listed
    diff listed exported
    # It brings CUDA's runtime and nothing of C++.
    readelf -d "$BUILD"/libwharf-cuda.so.0 | grep NEEDED > needed
    expect_status 1 grep -vE 'lib(c|m|dl|rt|pthread)\.so|ld-linux' needed
}

# Libraries neither print nor end the program: that is for the programs to decide.
test_library_never_prints_or_exits() {
    nm -u "$BUILD/libwharf.a" | awk '{ print $2 }' | sort -u > used
    expect_status 1 grep -E \
        '^_*(v?[fd]?printf(_chk)?|puts|putchar|perror|syslog|abort|exit|_exit|quick_exit|assert_fail)$' used
}

# Whoever only decodes is not to load what encoders are made of: every client of the shared library
# would.  The daemon compresses, and its worker for the GPU does not.
test_decoding_loads_no_encoders_library() {
    ldd "$BUILD"/libwharf.so > loaded
    readelf -d "$BUILD"/wharfd-simt | grep NEEDED | grep -v 'stdc++' >> loaded
    grep -q libc.so loaded
    expect_status 1 grep -E 'lib(lz4|snappy|zstd|stdc\+\+)' loaded
    readelf -d "$BUILD"/wharf | has_line 'NEEDED.*liblz4'
    readelf -d "$BUILD"/wharfd | has_line 'NEEDED.*libzstd'
}

run_tests
