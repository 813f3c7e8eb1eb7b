/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_errors.h: the error stack and the memory of the HDF5 library that called a filter. */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_ERRORS_H
#define WHARF_CLIENTLIB_HDF5_HDF5_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the HDF5 that called the filter `name`, by an address in its code.  Keeps `name`.  Must be
 * called before the functions below. */
void wharf_hdf5_find_caller(const void *address, const char *name);

/* Pushes a text onto HDF5's error stack.  Returns false, for the caller to return. */
__attribute__((format(printf, 1, 2))) bool wharf_hdf5_fail(const char *format, ...);

/* Memory of the calling HDF5, which it frees or has allocated. */
void *wharf_hdf5_allocate(size_t nbytes);
void wharf_hdf5_free(void *memory);

#endif
