/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_row.h: what a filter for HDF5 is.  HDF5.md says how they are used.
 *
 * A filter is a shared library with one row and the parts that all have: hdf5_plugin.c speaks to
 * HDF5, hdf5_errors.c finds its functions, hdf5_decode.c is the way to libwharf.  Chunks and the
 * values that are stored with a filter come from a file, so they are hostile.
 */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_ROW_H
#define WHARF_CLIENTLIB_HDF5_HDF5_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_hdf5_chunk {
    const uint8_t *in;
    size_t in_nbytes;
    const unsigned *values; /* n_values of them, that the file has for this filter */
    size_t n_values;
    uint8_t *out;
    size_t out_nbytes; /* as `measure` said; `decode` may make it less */
};

struct wharf_hdf5_filter {
    int id; /* as it is registered with The HDF Group */
    const char *name;
    /* Sets out_nbytes to what the chunk's headers say, or the most that there can be.  False, after
     * wharf_hdf5_fail, for a chunk that is bad. */
    bool (*measure)(struct wharf_hdf5_chunk *chunk);
    /* Fills out.  False, after wharf_hdf5_fail. */
    bool (*decode)(struct wharf_hdf5_chunk *chunk);
};

/* Each library's own. */
extern const struct wharf_hdf5_filter wharf_hdf5_filter;

/* ---- numbers -------------------------------------------------------------------------------- */

static inline uint32_t wharf_hdf5_big32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static inline uint64_t wharf_hdf5_big64(const uint8_t *from)
{
    return (uint64_t)wharf_hdf5_big32(from) << 32 | wharf_hdf5_big32(from + 4);
}

#endif
