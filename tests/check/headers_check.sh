#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Headers that C and C++ both see: each alone is good C11 and good C++17, those of programs that use
# the library good C99 and good C++11 too, for two compilers.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

warnings=(-Wall -Wextra -Wundef -Wshadow -Wpointer-arith -Werror)

# compiles C C++ HEADER FLAG...: by every compiler, in these dialects.
compiles() {
    local c=$1 cxx=$2 header=$3
    shift 3
    echo "#include \"$header\"" > only.c
    cp only.c only.cc
    for compiler in gcc clang; do
        "$compiler" -std="$c" "${warnings[@]}" -Wstrict-prototypes "$@" -fsyntax-only only.c
    done
    for compiler in g++ clang++; do
        "$compiler" -std="$cxx" "${warnings[@]}" "$@" -fsyntax-only only.cc
    done
}

# As they are installed: in one folder, with nothing else of the tree.
test_public_headers_stand_alone() {
    mkdir include
    cp "$TOP"/proto/wharf_*.h "$TOP"/encoders/wharf_*.h "$TOP"/clientlib/wharf.h \
        "$TOP"/clientlib/cuda/wharf_cuda.h include
    for header in include/*.h; do
        compiles c11 c++17 "$(basename "$header")" -Iinclude
        compiles c99 c++11 "$(basename "$header")" -Iinclude
    done
}

test_ring_steps_are_c_and_cplusplus() {
    compiles c11 c++17 proto/ring_ops.h "-I$TOP"
}

test_work_queue_steps_are_c_and_cplusplus() {
    compiles c11 c++17 kernels/work_queue_ops.h "-I$TOP"
}

run_tests
