/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_blosc.c: filter 32001, Blosc 1 (hdf5-blosc).  The header of a chunk has its decoded size. */
#include "clientlib/hdf5/hdf5_decode.h"
#include "clientlib/hdf5/hdf5_errors.h"
#include "encoders/blosc/blosc_format.h"
#include "encoders/little_endian.h"
#include "encoders/wharf_codec.h"

static bool measure(struct wharf_hdf5_chunk *chunk)
{
    if (chunk->in_nbytes < WHARF_BLOSC_HEADER_NBYTES)
        return wharf_hdf5_fail("%zu bytes are too few for a chunk of Blosc", chunk->in_nbytes);
    chunk->out_nbytes = wharf_load_le32(chunk->in + 4);
    return true;
}

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    return wharf_hdf5_decode(chunk, &(struct wharf_hdf5_stream){
                                        .codec = WHARF_CODEC_BLOSC,
                                        .nbytes = chunk->in_nbytes,
                                        .out = chunk->out,
                                        .out_nbytes = chunk->out_nbytes,
                                    });
}

const struct wharf_hdf5_filter wharf_hdf5_filter = {32001, "blosc (wharf)", measure, decode};
