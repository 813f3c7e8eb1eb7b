# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# pyarrow.sh: pyarrow for scripts, which holds the ORC project's own reader and writer.  It comes from PyPI,
# into a folder of the build.  After tap.sh.

PYARROW='pyarrow==26.0.1'

# In $VENV: python3 with pyarrow.  What pip says when it reaches nobody makes it a skip.
make_venv() {
    VENV=$TOP/build/venv-orc
    mkdir -p "$TOP/build"
    exec {venv_lock}> "$TOP/build/venv-orc.lock"
    flock "$venv_lock"
    fill_venv
    exec {venv_lock}>&-
}

fill_venv() {
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
