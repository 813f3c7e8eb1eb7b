#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the README prints works as it is printed.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

# printed PATTERN: the lines of the README's shell commands that match, without their remarks.
# shellcheck disable=SC2016 # the page's own marks
printed() {
    sed -n '/^```sh$/,/^```$/{/^```/d; s/ *#.*//; p}' "$TOP/README.md" | grep -E "$1"
}

test_commands_that_work_at_once_do() {
    mkdir build
    ln -s "$BUILD" build/release
    cp "$TOP/README.md" .
    printed '^build/release/' > commands
    expect_text 3 "$(wc -l < commands)"
    number=0
    while read -r command; do
        number=$((number + 1))
        WHARF_SOCKET=$PWD/none bash -ec "$command" < /dev/null > "out.$number"
    done < commands
    test -s README.md.whr
    head -c 512 README.md | cmp - out.2
    grep -q '^deflate ' out.3
}

# It poured the file into the terminal.
test_commands_about_a_bad_file_print_no_data() {
    seq 1 20000 | gzip > bad.gz
    printf 'XXXX' | dd of=bad.gz bs=1 seek=20000 conv=notrunc status=none
    printed '^wharf .*bad.gz' > commands
    test -s commands
    while read -r command; do
        PATH=$BUILD:$PATH expect_status 1 bash -c "$command" > out 2> report
        test ! -s out
        grep -q '^{"result":"bad_' report
    done < commands
}

test_tables_have_no_empty_cells() {
    expect_status 1 grep -nE '^\|.*\| *\|' "$TOP/README.md"
}

# One place has the names of packages, and the page of other distributions follows it.
test_packages_of_other_distributions_are_those_of_debian() {
    awk '$2 == "build" && !/^#/ { print $1 }' "$TOP/.ci/packages" > debian
    test -s debian
    sed -n '/^| --- /,/^$/p' "$TOP/.ci/PACKAGES.md" | tail -n +2 | grep . > rows
    awk -F ' *[|] *' '{ print $3 }' rows | diff debian -
    # Each has a name everywhere.
    awk -F ' *[|] *' 'NF != 7 || $4 == "" || $5 == "" || $6 == "" { print; bad = 1 } END { exit bad }' rows
    grep -q 'PACKAGES.md](.ci/PACKAGES.md)' "$TOP/README.md"
}

run_tests
