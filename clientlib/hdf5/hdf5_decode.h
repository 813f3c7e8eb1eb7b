/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_decode.h: decodes streams for filters of HDF5 by libwharf. */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_DECODE_H
#define WHARF_CLIENTLIB_HDF5_HDF5_DECODE_H

#include "clientlib/hdf5/hdf5_row.h"

/* A stream of a chunk. */
struct wharf_hdf5_stream {
    uint32_t codec;
    uint32_t parameter;
    size_t offset; /* in the chunk */
    size_t nbytes;
    uint8_t *out;
    size_t out_nbytes;
    size_t *ret_out_nbytes; /* or NULL: the stream must give exactly out_nbytes */
};

/* Decodes a stream by libwharf.  The embedded engine decodes less than 1 MiB of output. */
bool wharf_hdf5_decode(const struct wharf_hdf5_chunk *chunk,
                       const struct wharf_hdf5_stream *stream);

#endif
