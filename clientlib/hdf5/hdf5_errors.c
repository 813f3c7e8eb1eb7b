/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_errors.c: finds functions of the HDF5 library that called a filter.
 *
 * The plugin is not linked with HDF5, since a process can have several: Debian's, and those in
 * Python wheels, whose symbols are private.  So the calling library is found by the return address.
 * If it exports no symbols, as when HDF5 is linked into the program, errors have no text and memory
 * comes from malloc, as HDF5 requires of plugins in that case.
 */
#include "clientlib/hdf5/hdf5_errors.h"

#include <H5Epublic.h>
#include <H5Ipublic.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT_NBYTES = 512 };

typedef herr_t push_fn(hid_t stack, const char *file, const char *function, unsigned line,
                       hid_t error_class, hid_t major, hid_t minor, const char *format, ...);

/* The HDF5 that called, for each thread, since there may be several. */
static _Thread_local struct {
    const char *filter;
    const void *base; /* of its object file in memory */
    push_fn *push;
    const hid_t *error_class, *major, *minor;
    herr_t (*is_paused)(hid_t stack, hbool_t *ret_is_paused);
    hid_t (*create_stack)(void);
    herr_t (*set_stack)(hid_t stack);
    void *(*allocate)(size_t nbytes, hbool_t clear);
    herr_t (*release)(void *memory);
} caller;

/* Identifiers have 64 bits from HDF5 1.10 on. */
static bool has_wide_identifiers(void *library)
{
    herr_t (*version)(unsigned *, unsigned *, unsigned *) = NULL;
    unsigned major = 0, minor = 0, release;

    *(void **)&version = dlsym(library, "H5get_libversion");
    return version && version(&major, &minor, &release) >= 0 && (major > 1 || minor >= 10);
}

static void find_functions(void *library)
{
    *(void **)&caller.allocate = dlsym(library, "H5allocate_memory");
    *(void **)&caller.release = dlsym(library, "H5free_memory");
    if (!caller.allocate || !caller.release) {
        caller.allocate = NULL;
        caller.release = NULL;
    }
    if (!has_wide_identifiers(library))
        return;
    *(void **)&caller.push = dlsym(library, "H5Epush2");
    caller.error_class = dlsym(library, "H5E_ERR_CLS_g");
    caller.major = dlsym(library, "H5E_PLINE_g");
    caller.minor = dlsym(library, "H5E_CANTFILTER_g");
    *(void **)&caller.is_paused = dlsym(library, "H5Eis_paused");
    *(void **)&caller.create_stack = dlsym(library, "H5Ecreate_stack");
    *(void **)&caller.set_stack = dlsym(library, "H5Eset_current_stack");
}

void wharf_hdf5_find_caller(const void *address, const char *name)
{
    Dl_info about;

    caller.filter = name;
    if (!dladdr(address, &about) || caller.base == about.dli_fbase)
        return;
    caller.push = NULL;
    caller.allocate = NULL;
    caller.release = NULL;
    caller.base = about.dli_fbase;
    /* The library is loaded already.  For the program itself, the name is not that of a library. */
    void *library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        library = dlopen(NULL, RTLD_LAZY);
    if (!library)
        return;
    find_functions(library);
    dlclose(library);
}

/* In HDF5 2 a filter cannot push onto the thread's error stack, only replace the stack. */
static bool has_to_replace(void)
{
    hbool_t is_paused = 0;

    return caller.is_paused && caller.create_stack && caller.set_stack &&
           caller.is_paused(H5E_DEFAULT, &is_paused) >= 0 && is_paused;
}

bool wharf_hdf5_fail(const char *format, ...)
{
    char text[MAX_TEXT_NBYTES];
    va_list arguments;

    if (!caller.push || !caller.error_class || !caller.major || !caller.minor)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    hid_t stack = has_to_replace() ? caller.create_stack() : H5E_DEFAULT;
    caller.push(stack, "libwharf", caller.filter, 0, *caller.error_class, *caller.major,
                *caller.minor, "%s", text);
    if (stack > 0)
        caller.set_stack(stack);
    return false;
}

void *wharf_hdf5_allocate(size_t nbytes)
{
    return caller.allocate ? caller.allocate(nbytes, 0) : malloc(nbytes);
}

void wharf_hdf5_free(void *memory)
{
    if (caller.release)
        caller.release(memory);
    else
        free(memory);
}
