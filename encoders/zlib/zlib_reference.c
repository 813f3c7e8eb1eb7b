/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_reference.c: the reference decoder of zlib streams: the zlib library
 * (inflate_reference.h). */
#include "encoders/deflate/inflate_reference.h"
#include "encoders/zlib/zlib.h"

void wharf_zlib_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    wharf_inflate_reference(WHARF_REFERENCE_ZLIB, in, in_nbytes, out, out_avail, setting,
                            ret_outcome);
}
