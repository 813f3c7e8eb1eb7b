/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_rans_stream.h"

#include <string.h>

#include "tests/gpu/gpu_symbols.h"

struct gpu_rans_stream gpu_rans_stream_of_symbols(uint32_t n_distributions, uint32_t n_bits,
                                                  size_t total)
{
    struct gpu_symbols symbols = {
        .n_bits = n_bits, .n_distributions = n_distributions, .is_registered = true};
    struct gpu_source source = {0};
    struct gpu_rans_stream stream;

    gpu_symbols_pack(&symbols, &source, total, 1);
    stream = (struct gpu_rans_stream){
        .plain = symbols.plain,
        .plain_nbytes = total,
        .stream = source.packed[0].data,
        .stream_nbytes = source.packed[0].nbytes,
        .image = symbols.image,
        .image_nbytes = symbols.image_nbytes,
    };
    memcpy(stream.name, symbols.name, sizeof(stream.name));
    return stream;
}
