/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_row.h: the interface of a filter for HDF5.  HDF5.md says how filters are used.
 *
 * Each filter is a shared library, made of its own file with one row and the parts that all share:
 * hdf5_plugin.c is the interface to HDF5, hdf5_errors.c finds HDF5's functions, and hdf5_decode.c
 * calls libwharf.  Chunks, and the values that a file has for a filter, are hostile.
 */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_ROW_H
#define WHARF_CLIENTLIB_HDF5_HDF5_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_hdf5_chunk {
    const uint8_t *in;
    size_t in_nbytes;
    const unsigned *values; /* the filter's n_values parameters in the file */
    size_t n_values;
    uint8_t *out;
    size_t out_nbytes; /* set by `measure`; `decode` may reduce it */
};

struct wharf_hdf5_filter {
    int id; /* its number, as registered with The HDF Group */
    const char *name;
    /* Sets out_nbytes to the size in the chunk's headers, or to an upper bound.  False, after
     * wharf_hdf5_fail, for a malformed chunk. */
    bool (*measure)(struct wharf_hdf5_chunk *chunk);
    /* Fills `out`.  False, after wharf_hdf5_fail. */
    bool (*decode)(struct wharf_hdf5_chunk *chunk);
};

/* Each library defines its own. */
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
