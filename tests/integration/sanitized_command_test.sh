#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command's own tests once more, with the command that the sanitizers watch: its threads under
# tsan, its buffers under asan.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# run_with VARIANT SCRIPT [PATTERN]: another script's tests, those whose names match.
run_with() {
    # Nothing to do in `make test`; elsewhere an old one would tell of old code.  Parts of this script run
    # beside each other.
    mkdir -p "$TOP/build/$1"
    flock "$TOP/build/$1/make.lock" make -s -C "$TOP" VARIANT="$1" "build/$1/wharf" "build/$1/wharfd" > built 2>&1 || {
        cat built
        return 1
    }
    BUILD=$TOP/build/$1 ONLY=${3:-.} "$TOP/tests/integration/$2" > out || {
        grep -v '^ok' out
        return 1
    }
    # A pattern that nothing matches would pass.
    grep '^ok' out
}

test_address_sanitizer_on_cat() { run_with asan cat_test.sh; }
test_address_sanitizer_on_command_line() { run_with asan command_line_test.sh; }
test_address_sanitizer_on_daemon() { run_with asan daemon_test.sh; }
test_address_sanitizer_on_decode() { run_with asan decode_test.sh; }
test_address_sanitizer_on_gzip_format() { run_with asan gzip_format_test.sh 'size|random|failures'; }
test_address_sanitizer_on_output() { run_with asan output_test.sh; }
test_address_sanitizer_on_pack() { run_with asan pack_test.sh; }
test_address_sanitizer_on_range() { run_with asan range_test.sh; }
test_address_sanitizer_on_salvage() { run_with asan salvage_test.sh 'random|headers|nested|bgzf|mistakes'; }
test_address_sanitizer_on_status() { run_with asan status_test.sh; }
test_thread_sanitizer_on_cat() { run_with tsan cat_test.sh 'reader|everywhere|every_kind|bgzf_then'; }
test_thread_sanitizer_on_daemon() { run_with tsan daemon_test.sh 'killed|lost|bench|quotas'; }
test_thread_sanitizer_on_gzip_format() { run_with tsan gzip_format_test.sh 'whoever'; }
test_thread_sanitizer_on_salvage() { run_with tsan salvage_test.sh 'bgzf|next_member'; }
test_thread_sanitizer_on_pack() { run_with tsan pack_test.sh 'thread|pipes|before'; }

run_tests
