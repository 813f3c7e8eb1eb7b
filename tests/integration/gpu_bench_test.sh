#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf bench --gpu, with libwharf-cuda on the SIMT layer, a stand-in for CUDA's driver, and a daemon whose
# GPU is device code on the CPU.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# Warps of the SIMT layer have variables of threads, for which programs that load it late make room.
gpu_bench() {
    GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536 LD_LIBRARY_PATH=$BUILD/tests/cuda-simt \
        "$WHARF" bench --gpu --seconds 0 -b 8K "$@"
}

make_data() {
    head -c 50000 <(seq 1 60000) > data
}

test_library_and_daemon_beside_this_process() {
    make_data
    start_daemon '[gpu]' 'engine = simt'
    gpu_bench --socket s --engine simt -c lz4 -c deflate -l 1 --json data > json
    python3 - << 'EOS'
import json
with open('json', encoding='utf-8') as file:
    bench = json.load(file)
assert bench['gpu'] == 'the SIMT layer', bench
assert {row['codec'] for row in bench['rows']} == {'lz4', 'deflate'}
for row in bench['rows']:
    assert row['decode_cpu_gb_s']['median'] > 0 and row['decode_library_gb_s']['repetitions'] >= 5, row
    assert row['library_copies'] > 1 and row['daemon_engine'] == 'simt' and row['decode_daemon_gb_s']['median'] > 0
    assert 'compress_gb_s' not in row and 'decode_reference_gb_s' not in row
EOS
    gpu_bench --socket s --engine simt -c lz4 -l 1 data > table
    grep -q '^library: libwharf-cuda .* on the SIMT layer' table
    grep -q '^daemon: wharfd .* and its GPU' table
    grep -qE '^lz4 +lz4 +1 ' table
}

test_either_alone() {
    make_data
    gpu_bench --embedded -c snappy data > table 2> message
    grep -q '^library:' table
    grep -q 'no daemon with a GPU is measured: none can be used' message
    start_daemon '[gpu]' 'engine = simt'
    "$WHARF" bench --gpu --seconds 0 -b 8K --socket s --engine simt -c snappy data > table 2> message
    expect_status 1 grep -q '^library:' table
    grep -q '^daemon:' table
    grep -q 'libwharf-cuda is not measured: libwharf-cuda.so.0: cannot open' message
}

test_without_any_gpu_it_says_what_is_missing() {
    make_data
    expect_status 4 "$WHARF" bench --gpu data > table 2> message
    grep -q 'no GPU can be measured: libwharf-cuda: libwharf-cuda.so.0: cannot open' message
    grep -q 'there is no daemon that has one' message
    DRIVER_SIMT_FAILS=cuInit expect_status 4 gpu_bench data > table 2> message
    grep -q "CUDA's driver says: no CUDA-capable device is detected" message
    start_daemon
    expect_status 4 "$WHARF" bench --gpu --socket s data > table 2> message
    grep -q 'the daemon has no GPU' message
    expect_status 2 "$WHARF" bench --gpu --engine cpu data > table 2> message
    grep -q 'contradict' message
}

test_failures_of_the_gpu_are_told() {
    make_data
    DRIVER_SIMT_FAILS=cuMemAlloc_v2 expect_status 4 gpu_bench --embedded -c lz4 data > table 2> message
    grep -q "libwharf-cuda: CUDA's driver says: out of memory" message
    DRIVER_SIMT_FAILS=cuMemcpyDtoH_v2 expect_status 4 gpu_bench --embedded -c lz4 data > table 2> message
    grep -q 'a decoder gave wrong bytes' message
}

run_tests
