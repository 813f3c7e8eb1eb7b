# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# tap.sh: what test scripts begin with.  A script is
#
#     #!/bin/bash
#     # SPDX-License-Identifier: Apache-2.0
#     # shellcheck source=tests/lib/tap.sh
#     . "$(dirname "$0")/../lib/tap.sh"
#
#     test_unpack_gives_back_what_pack_took() {
#         "$WHARF" pack --codec zlib -o packed "$TOP/README.md"
#         "$WHARF" unpack -o unpacked packed
#         cmp unpacked "$TOP/README.md"
#     }
#     test_missing_file_is_exit_4() {
#         expect_status 4 "$WHARF" cat no-such-file 2> message
#         grep -q no-such-file message
#     }
#     run_tests
#
# Every function whose name begins with test_ is one test.  It runs in an empty folder of its own,
# which is removed afterwards, in a subshell under `set -e`: the first command that fails fails the
# test.  (Inside `if`, `&&`, `||` and `!` bash does not look at failures: write expect_status.)

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The folder with the programs under test.
BUILD=${BUILD:-build/release}
case $BUILD in /*) ;; *) BUILD=$TOP/$BUILD ;; esac
# shellcheck disable=SC2034 # used by the scripts
WHARF=$BUILD/wharf
SKIP_STATUS=77
# A make inside a test takes nothing from the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL

# make_here ARGUMENT...: make in the tree itself, for the build under test.  One at a time: test
# programs run beside each other, and some files are made anew for every prefix.
make_here() {
    flock "$BUILD/make.lock" make -s -C "$TOP" VARIANT="$(basename "$BUILD")" "$@"
}

# expect_status N COMMAND...: fails unless the command exits with status N.
expect_status() {
    local expected=$1 status=0
    shift
    "$@" || status=$?
    if [ "$status" -ne "$expected" ]; then
        echo "exit status $status instead of $expected: $*" >&2
        return 1
    fi
}

# expect_text EXPECTED ACTUAL
expect_text() {
    if [ "$1" != "$2" ]; then
        printf 'expected: %s\nbut got:  %s\n' "$1" "$2" >&2
        return 1
    fi
}

# made_once FUNCTION: the files that it makes in an empty folder.  The script's first test that asks has them
# made, the others get copies.
made_once() {
    if [ ! -e "$made/$1.done" ]; then
        rm -rf "${made:?}/$1"
        mkdir "$made/$1"
        (
            cd "$made/$1"
            "$1"
        )
        touch "$made/$1.done"
    fi
    cp -- "$made/$1"/* .
}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# feed COMMAND...: writes to a pipe whose reader may end before it has read everything.  With pipefail the
# writer, which a signal tells of that, would fail the test now and then.
feed() {
    local status=0
    "$@" || status=$?
    [ "$status" -eq 141 ] || return "$status"
}

# has_line GREP-ARGUMENT...: whether a line of what comes from a pipe matches.  `grep -q` ends at the first
# one, and then a signal ends the writer, where it has more to write.
has_line() {
    test "$(grep -ac "$@")" -gt 0
}

# skip REASON: ends the test as skipped, which the totals count apart.
skip() {
    echo "$*"
    exit "$SKIP_STATUS"
}

# To be called on its own, not in a condition, which would switch `set -e` off inside; so it counts
# failures instead of returning them.
run_one_test() {
    local name=$1 number=$2 folder status
    folder=$(mktemp -d)
    (
        set -eE
        trap 'echo "failed in line $LINENO: $BASH_COMMAND" >&2' ERR
        cd "$folder"
        "$name"
    ) > "$folder.log" 2>&1
    status=$?
    case $status in
        0) echo "ok $number - ${name#test_}" ;;
        "$SKIP_STATUS") echo "ok $number - ${name#test_} # SKIP $(tail -n 1 "$folder.log")" ;;
        *)
            echo "not ok $number - ${name#test_} (status $status)"
            sed 's/^/# /' "$folder.log"
            ;;
    esac
    chmod -R u+rwX "$folder"
    rm -rf "$folder" "$folder.log"
    case $status in 0 | "$SKIP_STATUS") ;; *) n_failed=$((n_failed + 1)) ;; esac
}

# Runs the tests in the order of their names; ONLY=pattern in the environment chooses some.
run_tests() {
    local names number=0
    n_failed=0
    mapfile -t names < <(declare -F | awk -v t="${ONLY:-.}" '$3 ~ /^test_/ && $3 ~ t { print $3 }')
    echo "1..${#names[@]}"
    for name in "${names[@]}"; do
        number=$((number + 1))
        run_one_test "$name" "$number"
    done
    exit "$((n_failed > 0))"
}
