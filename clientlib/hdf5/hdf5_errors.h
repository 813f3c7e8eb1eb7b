/* SPDX-License-Identifier: Apache-2.0 */
/* hdf5_errors.h: functions of the HDF5 that called: its error stack, and its memory. */
#ifndef WHARF_CLIENTLIB_HDF5_HDF5_ERRORS_H
#define WHARF_CLIENTLIB_HDF5_HDF5_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the HDF5 that called the filter `name`, which stays, by an address in its code.  Before all
 * that follows. */
void wharf_hdf5_find_caller(const void *address, const char *name);

/* Puts a text on HDF5's error stack.  False, for the caller to return. */
__attribute__((format(printf, 1, 2))) bool wharf_hdf5_fail(const char *format, ...);

/* Memory that the HDF5 that called frees, or has allocated. */
void *wharf_hdf5_allocate(size_t nbytes);
void wharf_hdf5_free(void *memory);

#endif
