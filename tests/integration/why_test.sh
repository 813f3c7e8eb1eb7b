#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf why: what it says of files of all formats, with and without a daemon, and of each limit.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

make_data() { made_once data_file; }

data_file() {
    head -c 300000 <(seq 1 60000) > data
}

# why FILE OPTION...: its report lies in `json`.
why() {
    "$WHARF" why --seconds 0 --json "$@" > json
}

# holds EXPRESSION...: Python's, of the report `r` and the limits' names.
holds() {
    python3 - "$@" << 'EOS'
import json, sys
with open('json', encoding='utf-8') as file:
    r = json.load(file)
limits = {one['limit'] for one in r['limits']}
for one in r['limits']:
    assert one['what'] and one['change'], one
for expression in sys.argv[1:]:
    assert eval(expression), (expression, r)
EOS
}

test_chunks_of_a_container() {
    make_data
    "$WHARF" pack -b 16K -c lz4 -o packed data
    why packed
    holds 'r["codecs"] == ["lz4"] and r["format"] == "a wharf container"' \
        'r["chunks"] == {"number": 19, "least": 300000 - 18 * 16384, "tenth": 16384, "median": 16384, "nine_tenths": 16384, "most": 16384}' \
        'r["out_nbytes"] == 300000 and r["sample_nbytes"] == 300000 and r["sample_chunks"] == 19' \
        'r["decoder"] == "process" and r["daemon"] is None and r["daemon_gb_s"] is None' \
        'r["process_gb_s"]["median"] > 0 and r["process_gb_s"]["repetitions"] >= 3' \
        '"no_daemon" in limits'
    why packed --embedded
    holds '"embedded" in limits and "no_daemon" not in limits'
    "$WHARF" why --seconds 0 packed > text
    for title in file format chunks engine daemon sample rate limit '  change'; do
        grep -q "^$title " text
    done
    # Of chunks of many sizes and codecs, in members.
    { cat packed; "$WHARF" pack -b 1K -c stored < data; } > mixed
    why mixed
    holds 'r["codecs"] == ["stored", "lz4"] and r["chunks"]["median"] == 1024 and r["chunks"]["most"] == 16384' \
        '"small_chunks" in limits'
}

# More chunks than are kept: numbers and sums are of all.
test_very_many_chunks() {
    head -c 70000 /dev/zero > data
    "$WHARF" pack -b 1 -c stored -o packed data
    why packed
    holds 'r["chunks"]["number"] == 70000 and r["out_nbytes"] == 70000' 'r["sample_chunks"] == 35000'
}

test_other_formats_are_streams_of_this_process() {
    make_data
    gzip -c data > m.gz
    "$WHARF" pack --format bgzf -o b.gz data
    "$WHARF" pack --format zstd -b 64K -o z.zst data
    "$TOP/tests/lib/make_gzip.py" zlib 1 > z.zlib
    why m.gz
    holds 'r["codecs"] == ["gzip"] and r["chunks"]["number"] == 0 and r["chunks"]["median"] is None' \
        'r["sample_nbytes"] == 300000 and r["process_gb_s"]["repetitions"] == 1 and "one_stream" in limits'
    why b.gz
    holds 'r["format"] == "BGZF" and r["chunks"]["number"] == 5 and r["sample_chunks"] == 5'
    why z.zst
    holds 'r["codecs"] == ["zstd"] and r["chunks"]["number"] == 5 and "one_stream" not in limits'
    why z.zlib
    holds 'r["codecs"] == ["zlib"] and r["sample_nbytes"] == 1048576'
    start_daemon
    why m.gz --socket s
    holds 'r["decoder"] == "process" and r["daemon"] and "format" in limits'
}

# A stream's sample ends early, and so does the measurement.
test_only_the_beginning_of_a_stream_is_decoded() {
    head -c 100000000 /dev/zero | gzip -1 > m.gz
    why m.gz
    holds 'r["sample_nbytes"] == 64 << 20'
}

test_what_is_no_compressed_file_is_refused() {
    make_data
    : > empty
    expect_status 1 "$WHARF" why empty 2> message
    grep -q 'empty: is empty' message
    expect_status 1 "$WHARF" why data 2> message
    grep -q 'data: is not gzip' message
    expect_status 4 "$WHARF" why none 2> message
    gzip -c data > m.gz
    expect_status 2 "$WHARF" why - < <(cat m.gz) 2> message
    grep -q 'is no file' message
    "$WHARF" why --seconds 0 - < m.gz > text
    expect_status 3 "$WHARF" why --socket none m.gz 2> message
    expect_status 4 "$WHARF" why m.gz > /dev/full 2> message
}

# The place is that which `test` tells.
test_damage_is_told() {
    make_data
    "$WHARF" pack -b 16K -c deflate -o packed data
    printf 'damage' | dd of=packed bs=1 seek=20000 conv=notrunc status=none
    expect_status 1 "$WHARF" why packed 2> message > out
    test ! -s out
    expect_status 1 "$WHARF" test packed 2> tested
    expect_text "$(grep -oE 'byte [0-9]+ bit [0-9]+: .*' tested | head -1)" "$(grep -oE 'byte [0-9]+ bit [0-9]+: .*' message | head -1)"
    head -c 30000 packed > short
    expect_status 1 "$WHARF" why short 2> message
}

test_a_daemon_without_a_gpu() {
    make_data
    "$WHARF" pack -b 16K -o packed data
    start_daemon '[quota]' 'max_job = 2M' '[cpu]' 'workers = 1'
    why packed --socket s
    holds 'r["decoder"] == "daemon" and set(r["daemon_gb_s"]["chunks"]) == {"cpu"}' \
        'r["daemon"]["gpu"] is None and r["gpu_gb_s"] is None and "no_gpu" in limits' \
        'r["daemon"]["max_job_bytes"] == 2 << 20 and r["daemon"]["quotas"]["max_jobs"]["limit"] > 0' \
        'r["placements"]["no_gpu"] > 0'
    why packed --socket s --engine reference
    holds 'set(r["daemon_gb_s"]["chunks"]) == {"reference"} and "engine" in limits'
    # Chunks of which this process decodes those that are too large for a job.
    head -c 5000000 /dev/zero > zeros
    { cat packed; "$WHARF" pack -b 4M -c deflate < zeros; } > large
    why large --socket s
    holds '"max_job" in limits and r["decoder"] == "daemon"'
    "$WHARF" pack -b 4M -c deflate -o alone zeros
    why alone --socket s
    holds '"max_job" in limits and r["daemon_gb_s"]["chunks"]["cpu"] > 0'
}

test_a_daemon_with_device_code() {
    make_data
    head -c 60000 data > some
    "$WHARF" pack -b 8K -c lz4 -o packed some
    start_daemon '[gpu]' 'engine = simt' 'chunk = 16K' 'longest = 7ms'
    why packed --socket s
    holds 'r["daemon"]["gpu"]["chunk_bytes"] == 16384' \
        'abs(r["daemon"]["gpu"]["longest_seconds"] - 0.007) < 1e-9' \
        'r["daemon"]["gpu"]["chunks_at_a_time"] > 0' \
        'r["gpu_gb_s"]["chunks"].get("simt", 0) > 0 and "gpu_chunk" not in limits' \
        'sum(r["placements"].values()) >= 8'
    why packed --socket s --engine simt
    holds 'set(r["daemon_gb_s"]["chunks"]) == {"simt"} and "engine" in limits' \
        'r["daemon"]["gpu"]["warp_gb_s"] > 0'
    "$WHARF" pack -f -b 32K -c lz4 -o packed some
    why packed --socket s --engine cpu
    holds '"gpu_chunk" in limits and set(r["daemon_gb_s"]["chunks"]) == {"cpu"}'
    "$WHARF" why --seconds 0 --socket s --engine cpu packed | has_line '^gpu  *simt in its place; chunk = 16.0 KiB'
}

run_tests
