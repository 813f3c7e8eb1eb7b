/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_decode.c: the CPU engine: the fast decoders of the codecs inside, and the best form of
 * unshuffling. */
#include "encoders/blosc/blosc.h"
#include "encoders/blosc/blosc_lz.h"
#include "encoders/blosc/blosc_run.h"
#include "encoders/lz4/lz4.h"
#include "encoders/snappy/snappy.h"
#include "encoders/zlib/zlib.h"
#include "encoders/zstd/zstd.h"

void wharf_blosc_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                        const struct wharf_codec_setting *setting,
                        struct wharf_outcome *ret_outcome)
{
    uint8_t scratch[WHARF_BLOSC_SCRATCH_NBYTES];
    const struct wharf_blosc_parts parts = {
        .inside = {[WHARF_BLOSC_BLOSCLZ] = wharf_blosc_lz_decode,
                   [WHARF_BLOSC_LZ4] = wharf_lz4_decode,
                   [WHARF_BLOSC_SNAPPY] = wharf_snappy_decode,
                   [WHARF_BLOSC_ZLIB] = wharf_zlib_decode,
                   [WHARF_BLOSC_ZSTD] = wharf_zstd_decode},
        .order = wharf_blosc_best_order(),
    };

    wharf_blosc_run(&parts, in, in_nbytes, out, out_avail, setting, scratch, ret_outcome);
}
