#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The run lengths of ORC against pyarrow, which holds the ORC project's own reader and writer.  It
# comes from PyPI, into a folder of the build; where PyPI cannot be reached the test is skipped.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

PYARROW='pyarrow==26.0.1'

# In $VENV: python3 with pyarrow.  What pip says when it reaches nobody makes it a skip.
make_venv() {
    VENV=$TOP/build/venv-orc
    "$VENV/bin/python3" -c 'import pyarrow.orc' 2> /dev/null && return
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    if ! "$VENV/bin/pip" install --quiet --disable-pip-version-check "$PYARROW" > pip.log 2>&1; then
        rm -rf "$VENV"
        cat pip.log
        ! grep -qE 'NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError|ProxyError' pip.log ||
            skip 'PyPI cannot be reached'
        return 1
    fi
}

test_pyarrow_reads_our_streams_and_we_read_its() {
    make_venv
    PYTHONPATH=$TOP/tests/lib PYTHONDONTWRITEBYTECODE=1 \
        "$VENV/bin/python3" "$TOP/tests/lib/orc_interop.py" "$WHARF" > streams
    cat streams
    grep -qE '^[0-9]{2} streams of ours, [0-9]{2} of theirs$' streams
}

run_tests
