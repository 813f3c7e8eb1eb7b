#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests' own ground: a failure inside a test must not go unseen, the runner must not take a
# program that ran nothing, or died, for a good one, and a wrong vector must not pass.
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

test_variables_before_a_program_are_for_it() {
    # shellcheck disable=SC2016 # the script is to expand them
    script 'expect_text "a b=c" "$IT $AND"'
    IT=not "$TOP/tests/run-tests" 'IT=a AND=b=c ./it.sh' > out
    grep -q '^  ok   ./it.sh: 1 passed' out
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

# vector EXPECTATION: a stored vector of three bytes in a folder of its own.
vector() {
    mkdir -p v/stored/ok
    printf abc > v/stored/ok/three
    printf '%s\n' "$@" > v/stored/ok/three.expect
}

test_right_vector_passes() {
    vector 'result ok' 'out_nbytes 3' 'crc32 352441c2'
    "$BUILD/tests/vectors" v
}

test_wrong_expectations_of_a_vector_fail() {
    vector 'result ok' 'out_nbytes 3' 'crc32 352441c3'
    expect_status 1 "$BUILD/tests/vectors" v
    vector 'result ok' 'out_nbytes 4'
    expect_status 1 "$BUILD/tests/vectors" v
    vector 'result bad_data'
    expect_status 1 "$BUILD/tests/vectors" v
    vector 'result ok' 'out_nbytes 3' 'reason input_truncated'
    expect_status 1 "$BUILD/tests/vectors" v
    vector 'result ok' 'out_nbytes 3' 'in_nbytes 2'
    expect_status 1 "$BUILD/tests/vectors" v
    vector 'result ok' 'out_nbytes 3' 'bit_offset 8'
    expect_status 1 "$BUILD/tests/vectors" v
}

test_vectors_that_would_be_left_out_are_an_error() {
    vector 'result ok' 'out_nbytes 3'
    printf 'result ok\nout_nbytes 0\n' > v/stored/ok/missing.expect
    expect_status 2 "$BUILD/tests/vectors" v
    rm v/stored/ok/*.expect
    expect_status 2 "$BUILD/tests/vectors" v
    vector 'result ok' 'out_nbytes 3' 'colour red'
    expect_status 2 "$BUILD/tests/vectors" v
    expect_status 2 "$BUILD/tests/vectors" no-such-folder
    printf 'vector stored/ok/three\ncodec stored\nresult ok\nout_nbytes 3\ncount 2\n' > table
    expect_status 2 "$BUILD/tests/vectors" table v
    sed -i 's/count 2/count 1/' table
    "$BUILD/tests/vectors" table v
}

run_tests
