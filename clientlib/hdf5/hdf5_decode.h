/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_decode.h: the way from a filter for HDF5 to libwharf. */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_DECODE_H
#define WHARF_CLIENTLIB_HDF5_HDF5_DECODE_H

#include "clientlib/hdf5/hdf5_row.h"

/* One stream of a chunk. */
struct wharf_hdf5_stream {
    uint32_t codec;
    uint32_t parameter;
    size_t offset; /* in the chunk */
    size_t nbytes;
    uint8_t *out;
    size_t out_nbytes;
    size_t *ret_out_nbytes; /* NULL: it must be all of out_nbytes */
};

/* Decodes it through libwharf: the embedded engine for less than 1 MiB of output. */
bool wharf_hdf5_decode(const struct wharf_hdf5_chunk *chunk,
                       const struct wharf_hdf5_stream *stream);

#endif
