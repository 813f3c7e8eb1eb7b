#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs in libwharf-cuda's manual pages compile and work as they are printed: with the SIMT layer in a GPU's
# place, and memory of the host in that of managed and device memory.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

# As much of CUDA's runtime as the pages use.
make_runtime() {
    mkdir runtime
    cat > runtime/cuda_runtime_api.h << 'EOS'
#include <stdlib.h>
typedef struct CUstream_st *cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess, cudaMemAttachGlobal };
static inline cudaError_t cudaMalloc(void **memory, size_t nbytes)
{
    return posix_memalign(memory, 256, nbytes ? nbytes : 1);
}
static inline cudaError_t cudaMallocManaged(void **memory, size_t nbytes, unsigned flags)
{
    return flags == cudaMemAttachGlobal ? cudaMalloc(memory, nbytes) : 1;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return stream != NULL; }
static inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return 0;
}
EOS
}

# program PAGE: that in its EXAMPLES, in C.
program() {
    sed -n '/^\.Sh EXAMPLES/,/^\.Ed/{/^\./d; s/\\e/\\/g; p}' "$TOP/clientlib/cuda/$1.3"
}

# What each prints, for small.gz and small.rans.
output_of() {
    case $1 in
        wharf_cuda_decode | wharf_cuda_inflate | wharf_cuda_rans_decode) seq 1 10000 ;;
        wharf_cuda_decode_chain) printf '%64s\n' '' | tr ' ' '*' ;;
        wharf_cuda_encode) echo 'less than half: 1' ;;
        wharf_cuda_model_new) echo 'scratch: 0' ;;
        wharf_cuda_open) "$WHARF" --version | sed 's/wharf \(.*\)/libwharf-cuda \1 is ready/' ;;
        *) echo "what does the page $1 print?" ;;
    esac
}

test_programs_of_the_pages_compile_and_work() {
    make_here "build/$(basename "$BUILD")/tests/libwharf-cuda-simt.a" "build/$(basename "$BUILD")/libsimt.a" \
        "build/$(basename "$BUILD")/libwharf.a" > made
    make_runtime
    seq 1 10000 | gzip > small.gz
    seq 1 10000 | "$WHARF" rans encode --splits 8 -o small.rans
    for page in "$TOP"/clientlib/cuda/wharf_cuda_*.3; do
        name=$(basename "$page" .3)
        program "$name" > "$name.c"
        test "$(wc -l < "$name.c")" -ge 15
        gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iruntime -I"$TOP/clientlib/cuda" -I"$TOP/clientlib" \
            -I"$TOP/proto" -I"$TOP/encoders" -o "$name" "$name.c" "$BUILD/tests/libwharf-cuda-simt.a" \
            "$BUILD/libsimt.a" "$BUILD/libwharf.a" -ldeflate -lz -lprotobuf-c -lboost_context -lstdc++ -lm
        input=small.gz
        [ "$name" != wharf_cuda_rans_decode ] || input=small.rans
        "./$name" < "$input" > out
        output_of "$name" | diff - out
    done
}

# With CUDA's own headers, where they are.
test_programs_of_the_pages_suit_the_runtime() {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    [ -x "$nvcc" ] || skip 'CUDA is not here'
    for page in "$TOP"/clientlib/cuda/wharf_cuda_*.3; do
        program "$(basename "$page" .3)" > program.c
        gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -isystem "${nvcc%/bin/nvcc}/include" \
            -I"$TOP/clientlib/cuda" -I"$TOP/clientlib" -I"$TOP/proto" -I"$TOP/encoders" program.c
    done
}

run_tests
