/* SPDX-License-Identifier: Apache-2.0 */
/* bgzf_write.c: makes blocks of BGZF. */
#include "encoders/gzip/bgzf_write.h"

#include <errno.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/deflate/deflate_encode.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/little_endian.h"

enum {
    /* The fixed part of the marker's header, up to the block's size: no time, no name, no operating
     * system. */
    FIXED_NBYTES = 16,
    HEADER_NBYTES = FIXED_NBYTES + 2,
    DATA_AVAIL = WHARF_BGZF_MAX_NBYTES - HEADER_NBYTES - WHARF_GZIP_TRAILER_NBYTES,
    STORED_HEADER_NBYTES = 5, /* type 0, last block; length and its complement */
};
_Static_assert(WHARF_BGZF_PACK_NBYTES + STORED_HEADER_NBYTES <= DATA_AVAIL,
               "what cannot be compressed fits a block");

static size_t store(const uint8_t *in, size_t in_nbytes, uint8_t *out)
{
    out[0] = 1;
    wharf_store_le16(out + 1, (uint16_t)in_nbytes);
    wharf_store_le16(out + 3, (uint16_t)~in_nbytes);
    memcpy(out + STORED_HEADER_NBYTES, in, in_nbytes);
    return STORED_HEADER_NBYTES + in_nbytes;
}

int wharf_bgzf_pack(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                    uint8_t *out, size_t *ret_nbytes)
{
    uint8_t *data = out + HEADER_NBYTES;
    size_t data_nbytes;
    size_t nbytes;

    if (in_nbytes < 1 || in_nbytes > WHARF_BGZF_PACK_NBYTES)
        return -EINVAL;
    if (wharf_deflate_encoder_encode(encoder, in, in_nbytes, data, DATA_AVAIL, &data_nbytes) < 0 ||
        data_nbytes > STORED_HEADER_NBYTES + in_nbytes)
        data_nbytes = store(in, in_nbytes, data);
    nbytes = HEADER_NBYTES + data_nbytes + WHARF_GZIP_TRAILER_NBYTES;
    memcpy(out, wharf_bgzf_marker, FIXED_NBYTES);
    wharf_store_le16(out + FIXED_NBYTES, (uint16_t)(nbytes - 1));
    wharf_store_le32(data + data_nbytes, wharf_crc32(WHARF_CRC32_INIT, in, in_nbytes));
    wharf_store_le32(data + data_nbytes + 4, (uint32_t)in_nbytes);
    *ret_nbytes = nbytes;
    return 0;
}
