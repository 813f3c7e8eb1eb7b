#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What of the Debian packages can be told without building them; `make deb` does that.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

debian=$TOP/systemd/debian

# Into the folders that systemd/debian/rules chooses.
stage_all() {
    make_here prefix=/usr libdir=/usr/lib/triplet unitdir=/lib/systemd/system \
        DESTDIR="$PWD/stage" install > installed
}

# A new row of the Makefile's list has to go into a package too.
test_every_installed_file_is_in_one_package() {
    stage_all
    cd stage
    for list in "$debian"/*.install; do
        # shellcheck disable=SC2046 # a list of patterns
        ls -d $(sed -e '/^#/d' -e 's/ .*//' "$list")
    done | sort > ../packed
    # The GPU's worker is only there where nvcc was; systemd/debian/rules takes it then.
    find . ! -type d ! -name wharfd-gpu | sed 's|^\./||' | sort > ../staged
    diff ../staged ../packed
}

test_versions_agree() {
    expect_text "$("$WHARF" --version)" \
        "$(sed -n '1s/^wharf (\([^)]*\)) .*/wharf \1/p' "$debian/changelog")"
}

# Each version node of the library is one line, with the version that brought it.
test_symbols_are_those_of_the_library() {
    expect_text "$(grep -oE '^[A-Z]+_[0-9.]+' "$TOP/clientlib/libwharf.map")" \
        "$(grep -oE '\(symver\)[^ ]*' "$debian/libwharf0.symbols" | sed 's/(symver)//')"
}

run_tests
