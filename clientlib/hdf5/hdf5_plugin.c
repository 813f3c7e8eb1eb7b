/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_plugin.c: the plugin's interface to HDF5.  HDF5 loads the libraries of its plugin folder,
 * asks each for its filter's number, and calls the filter that a dataset names.
 *
 * The filters only decode.  HDF5 itself refuses to create datasets with them ("Filter present but
 * encoding disabled"), and writing to existing ones fails here.
 */
#include <H5PLextern.h>

#include "clientlib/hdf5/hdf5_errors.h"
#include "clientlib/hdf5/hdf5_row.h"

/* Above the size of any chunk of HDF5. */
#define MAX_CHUNK_NBYTES ((uint64_t)1 << 40)

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    if (!wharf_hdf5_filter.measure(chunk))
        return false;
    if (chunk->out_nbytes == 0 || chunk->out_nbytes > MAX_CHUNK_NBYTES)
        return wharf_hdf5_fail("%zu bytes are no size of a chunk", chunk->out_nbytes);
    chunk->out = wharf_hdf5_allocate(chunk->out_nbytes);
    if (!chunk->out)
        return wharf_hdf5_fail("no memory for a chunk of %zu bytes", chunk->out_nbytes);
    if (wharf_hdf5_filter.decode(chunk))
        return true;
    wharf_hdf5_free(chunk->out);
    return false;
}

/* The filter's function, called by HDF5.  Returns the size of the new data in *buf; or 0, with
 * nothing changed. */
static size_t filter(unsigned flags, size_t n_values, const unsigned values[], size_t nbytes,
                     size_t *buf_nbytes, void **buf)
{
    struct wharf_hdf5_chunk chunk = {
        .in = *buf, .in_nbytes = nbytes, .values = values, .n_values = n_values};

    wharf_hdf5_find_caller(__builtin_return_address(0), wharf_hdf5_filter.name);
    if (!(flags & H5Z_FLAG_REVERSE)) {
        wharf_hdf5_fail("wharf's filter %s decodes only: put another plugin for it first into "
                        "HDF5_PLUGIN_PATH to write",
                        wharf_hdf5_filter.name);
        return 0;
    }
    if (!decode(&chunk))
        return 0;
    wharf_hdf5_free(*buf);
    *buf = chunk.out;
    *buf_nbytes = chunk.out_nbytes;
    return chunk.out_nbytes;
}

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
    static H5Z_class2_t about = {
        .version = H5Z_CLASS_T_VERS,
        .encoder_present = 0,
        .decoder_present = 1,
        .filter = filter,
    };

    about.id = wharf_hdf5_filter.id;
    about.name = wharf_hdf5_filter.name;
    return &about;
}
