#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command and a second implementation of encoders/FORMAT.md read each other's containers.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

model() {
    python3 "$TOP/tests/lib/container_model.py" "$@"
}

# make_input NBYTES: a file `input` that packs, but not too well.
make_input() {
    cat "$TOP"/encoders/*.[ch] | head -c "$1" > input
}

test_model_reads_what_pack_writes() {
    for size in 0 1 4096 4097 100000; do
        make_input "$size"
        for codec in stored deflate zlib gzip; do
            "$WHARF" pack --codec "$codec" --chunk 4096 -f -o packed input
            model read packed | cmp - input
            # From a pipe to a pipe: the total is not known.
            "$WHARF" pack --codec "$codec" --chunk 4096 -o - - < input > piped
            model read piped | cmp - input
        done
    done
}

test_model_finds_its_way_in_the_index() {
    make_input 300000
    "$WHARF" pack --codec deflate --chunk 1K -o packed input
    cat packed packed > joined
    cat input input > twice
    for offset in 0 1023 262143 262144 299999 300000 599999; do
        model read joined "$offset" 3000 > part
        tail -c +$((offset + 1)) twice | head -c 3000 | cmp - part
    done
}

test_unpack_reads_what_model_writes() {
    for size in 0 1 4096 4097 100000; do
        make_input "$size"
        for codec in stored deflate zlib gzip; do
            model write "$codec" 333 input > packed
            "$WHARF" unpack -o - packed | cmp - input
        done
    done
    "$WHARF" unpack --range 65536:1000 -o part packed
    tail -c +65537 input | head -c 1000 | cmp - part
}

test_both_agree_on_small_files_good_and_bad() {
    for path in "$TOP"/tests/fuzz/corpus/container_fuzz/*.whr; do
        expected=0
        model read "$path" > output 2> /dev/null || expected=1
        expect_status "$expected" "$WHARF" unpack -o unpacked "$path"
        if [ "$expected" -eq 0 ]; then
            cmp output unpacked
        else
            test ! -e unpacked
        fi
        rm -f unpacked
    done
}

run_tests
