#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What other people's tools say of the sources.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# files_of PATTERN...: the tree's own files with such names, one a line.
files_of() {
    local patterns=(-name "$1")
    shift
    for pattern in "$@"; do
        patterns+=(-o -name "$pattern")
    done
    (cd "$TOP" && find . -path ./build -prune -o -path ./.git -prune -o -type f \
        \( "${patterns[@]}" \) -print)
}

# begins_with PATTERN: those whose first line has it, one a line.
begins_with() {
    # shellcheck disable=SC2016  # awk's $0
    files_of '*' | (cd "$TOP" && LC_ALL=C xargs -d '\n' awk -v pattern="$1" \
        'FNR == 1 && $0 ~ pattern { print FILENAME } { nextfile }')
}

test_code_is_formatted() {
    files_of '*.[ch]' '*.cc' '*.cu' '*.cuh' > sources
    test -s sources
    cd "$TOP"
    xargs clang-format --dry-run -Werror < "$OLDPWD/sources"
}

# SC2317 (unreachable command) is said of every function that is called by name only, as tests are.
test_scripts_pass_shellcheck() {
    begins_with '^#!/bin/(ba)?sh|^# shellcheck shell=' > scripts
    files_of '*.bash' >> scripts
    test -s scripts
    cd "$TOP"
    sort -u "$OLDPWD/scripts" | xargs shellcheck -x -e SC2317
}

test_python_compiles() {
    begins_with '^#!.*python3' > scripts
    test -s scripts
    cd "$TOP"
    # Without -B, compiled files would be left in the tree.
    xargs python3 -B -c 'import ast, sys; [ast.parse(open(p).read(), p) for p in sys.argv[1:]]' \
        < "$OLDPWD/scripts"
}

test_manual_pages_pass_mandoc() {
    files_of '*.[1-8]' > pages
    test -s pages
    cd "$TOP"
    xargs mandoc -Tlint -W warning < "$OLDPWD/pages"
}

run_tests
