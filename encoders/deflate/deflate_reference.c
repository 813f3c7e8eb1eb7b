/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_reference.c: the reference decoder of Deflate: the zlib library. */
#include "encoders/deflate/deflate.h"
#include "encoders/deflate/inflate_reference.h"

void wharf_deflate_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                    size_t out_avail, const struct wharf_codec_setting *setting,
                                    struct wharf_outcome *ret_outcome)
{
    wharf_inflate_reference(WHARF_REFERENCE_RAW, in, in_nbytes, out, out_avail, setting,
                            ret_outcome);
}
