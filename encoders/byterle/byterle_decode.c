/* SPDX-License-Identifier: Apache-2.0 */
/* byterle_decode.c: the CPU engine of byterle. */
#include "encoders/byterle/byterle.h"

#include <string.h>

#include "encoders/byterle/byterle_groups.h"

WHARF_RLE_INLINE size_t put_group(void *to, size_t out_at, const uint8_t *bytes, size_t n,
                                  int is_run)
{
    uint8_t *out = to;

    if (is_run)
        memset(out + out_at, *bytes, n);
    else
        memcpy(out + out_at, bytes, n);
    return n;
}

void wharf_byterle_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    wharf_byterle_take_groups(in, in_nbytes, out_avail, setting, put_group, out, ret_outcome);
}
