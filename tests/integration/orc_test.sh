#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The run lengths of ORC, and columns of ORC files, against pyarrow; where PyPI cannot be reached the
# tests are skipped.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/pyarrow.sh
. "$(dirname "$0")/../lib/pyarrow.sh"

test_pyarrow_reads_our_streams_and_we_read_its() {
    make_venv
    PYTHONPATH=$TOP/tests/lib PYTHONDONTWRITEBYTECODE=1 \
        "$VENV/bin/python3" "$TOP/tests/lib/orc_interop.py" "$WHARF" > streams
    cat streams
    grep -qE '^[0-9]{2} streams of ours, [0-9]{2} of theirs$' streams
}

# Files by pyarrow, in all compressions, with nulls, structures and many stripes.
test_columns_are_those_of_pyarrow() {
    make_venv
    PYTHONPATH=$TOP/tests/lib PYTHONDONTWRITEBYTECODE=1 \
        "$VENV/bin/python3" "$TOP/tests/lib/orc_columns.py" "$WHARF" > columns
    cat columns
    grep -qE '^[0-9]{3} columns of [0-9]{2} files, 0 refused, 0 that pyarrow refuses$' columns
}

# Files of Java's writers and of Presto's, which VECTORS names a folder of.
test_columns_of_other_writers_are_those_of_pyarrow() {
    [ -d "${VECTORS:-}/orc-apache" ] || skip 'VECTORS names no folder with files'
    make_venv
    PYTHONPATH=$TOP/tests/lib PYTHONDONTWRITEBYTECODE=1 \
        "$VENV/bin/python3" "$TOP/tests/lib/orc_columns.py" "$WHARF" \
        "$VECTORS"/orc-apache/*.orc "$VECTORS"/orc-apache/corrupt/*.orc "$VECTORS"/orc-real/*.orc > columns
    cat columns
    grep -qE '^1[0-9]{2} columns of [0-9]{2} files, ' columns
}

run_tests
