#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The test scripts' own ground: a failure inside a test must not go unseen, and the runner must
# not take a program that ran nothing, or died, for a good one.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# script BODY: a test script with one test of that body.
script() {
    printf '#!/bin/bash\n. "%s/tests/lib/tap.sh"\ntest_it() {\n%s\n}\nrun_tests\n' "$TOP" "$1" > it.sh
    chmod +x it.sh
}

test_first_failing_command_fails_the_test() {
    script 'false
true'
    expect_status 1 ./it.sh > out
    grep -q '^not ok 1 - it' out
}

test_failing_command_in_a_function_of_the_test_is_seen() {
    script 'inner() { false; true; }; inner; true'
    expect_status 1 ./it.sh > out
}

test_expect_status_takes_the_right_status_only() {
    expect_status 0 true
    expect_status 3 sh -c 'exit 3'
    expect_status 1 expect_status 3 sh -c 'exit 4' 2> message
    grep -q '4 instead of 3' message
}

test_skips_are_counted_apart() {
    script 'skip "no such device"'
    "$TOP/tests/run-tests" ./it.sh > out
    grep -q 'skipped: it # SKIP no such device' out
    expect_text '0 passed, 0 failed' "$(tail -n 1 out)"
}

test_runner_counts_passes_and_failures() {
    cat > two.sh << 'EOF'
#!/bin/sh
echo 1..3; echo 'ok 1 - a'; echo 'not ok 2 - b'; echo 'ok 3 - c'; exit 1
EOF
    chmod +x two.sh
    expect_status 1 "$TOP/tests/run-tests" ./two.sh ./two.sh > out
    expect_text '4 passed, 2 failed' "$(tail -n 1 out)"
}

test_program_that_runs_no_test_is_a_failure() {
    expect_status 1 "$TOP/tests/run-tests" true > out
    expect_text '0 passed, 1 failed' "$(tail -n 1 out)"
}

test_program_that_dies_is_a_failure() {
    cat > dies.sh << 'EOF'
#!/bin/sh
echo 1..2; echo 'ok 1 - a'; kill -9 $$
EOF
    chmod +x dies.sh
    expect_status 1 "$TOP/tests/run-tests" ./dies.sh > out
    expect_text '1 passed, 1 failed' "$(tail -n 1 out)"
}

test_program_that_stops_early_is_a_failure() {
    expect_status 1 "$TOP/tests/run-tests" 'printf 1..2\nok\n' > out
    expect_text '1 passed, 1 failed' "$(tail -n 1 out)"
}

test_missing_program_is_a_failure() {
    expect_status 1 "$TOP/tests/run-tests" ./no-such-program > out
    expect_text '0 passed, 1 failed' "$(tail -n 1 out)"
}

run_tests
