#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The build itself: what `make test` would run, and that sources are found by name.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# In a test's source: threads of its own, or what has them.
HAS_THREADS='<pthread\.h>|wharf\.h"|"daemon/(control|cpu|dispatch|gpu|worker|core/core\.h)|tests/lib/test_(client|daemon|core|handle|service|storm|wharfd)'

# A list in the Makefile once got lost in a merge, and with it all fuzz targets from the tests.
test_make_test_runs_every_test_file() {
    # From the line on that runs them; no make is needed that only says what it would build.
    make -C "$TOP" --no-print-directory -n test VECTORS=/vectors MAKE=: | sed -n '/tests\/run-tests/,$p' > commands
    tr -s '[:blank:]"' '\n' < commands > words
    cd "$TOP"
    for path in tests/unit/*_test.c tests/unit/*_test.cc; do
        name=$(basename "${path%.*}")
        for variant in release asan; do
            grep -qx "build/$variant/tests/$name" "$OLDPWD/words"
        done
    done
    # The Makefile says which the thread sanitizer need not see.  Such a test must really have one
    # thread alone, its own or a warp's lanes.
    for path in tests/unit/*_test.c; do
        if ! grep -qx "build/tsan/tests/$(basename "${path%.*}")" "$OLDPWD/words"; then
            grep -q wharf_simt "$path" || expect_status 1 grep -E "$HAS_THREADS" "$path"
        fi
    done
    for path in tests/fuzz/*_fuzz.c; do
        grep -qx "build/asan/fuzz/$(basename "${path%.*}")" "$OLDPWD/words"
    done
    for path in tests/integration/*_test.sh tests/integration/*_test.py tests/check/*_check.*; do
        grep -qx "$path" "$OLDPWD/words"
    done
    grep -q 'build/asan/tests/vectors --one-order tests/vectors' "$OLDPWD/commands"
    grep -q 'build/release/tests/vectors --one-order build/vectors.table /vectors' "$OLDPWD/commands"
}

test_every_fuzz_target_has_a_corpus() {
    for path in "$TOP"/tests/fuzz/*_fuzz.c; do
        test -n "$(ls "$TOP/tests/fuzz/corpus/$(basename "${path%.c}")")"
    done
}

test_help_names_every_target_that_people_type() {
    make -C "$TOP" --no-print-directory help > list
    for target in all test test-unit test-integration test-gpu check fuzz bench bench-daemon bench-gpu format \
        demo install uninstall deps clean help; do
        grep -q "^  $target  *[a-z]" list
    done
}

test_unknown_variant_is_refused() {
    expect_status 2 make -C "$TOP" VARIANT=fast all 2> message
    grep -q 'unknown VARIANT=fast: release, debug, asan or tsan' message
}

# A fresh machine's first `make` said "protoc-c: No such file or directory".
test_make_without_packages_names_them() {
    # Finds no header of zlib.
    cat > cxx << 'END'
#!/bin/sh
! grep -q zlib
END
    chmod +x cxx
    for target in all "$PWD/built/libwharf.a" "$PWD/built/tests/vectors"; do
        expect_status 2 make -C "$TOP" --no-print-directory BUILD="$PWD/built" CXX="$PWD/cxx" \
            PROTOC_C=no-such-program NVCC= "$target" > output 2> message
        expect_text "To build wharf, install: zlib1g-dev protobuf-c-compiler" "$(sed -n 1p message)"
        grep -q 'make deps' message
        test ! -s output
        expect_text 0 "$(find built -name '*.o' -o -name '*.pb-c.*' | wc -l)"
    done
}

# Whoever has everything is not kept waiting: it is looked for once.
test_packages_are_looked_for_once() {
    make_here "$BUILD/deps"
    make -C "$TOP" --no-print-directory VARIANT="$(basename "$BUILD")" -n all > commands
    expect_status 1 grep find-deps commands
}

test_changed_flags_rebuild_objects() {
    mkdir -p tree/proto tree/tests
    cp -R "$TOP/Makefile" "$TOP/.ci" tree
    cp "$TOP"/proto/wharf_result.h "$TOP"/proto/result_strings.c tree/proto
    cd tree
    object=build/release/obj/proto/result_strings.c.o
    make "$object" > first
    grep -q result_strings first
    make "$object" > second
    expect_status 1 grep result_strings second
    make "$object" CFLAGS=-DSOMETHING > third
    grep -q result_strings third
    # Well ahead: a clock tick may be longer than the commands in between.
    touch -d '1 minute' proto/wharf_result.h
    make "$object" CFLAGS=-DSOMETHING > fourth
    grep -q result_strings fourth
}

run_tests
