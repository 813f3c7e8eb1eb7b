/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver, of which nothing is needed before somebody wants GPU memory: it is loaded then.
 * No header of CUDA's is needed to build this; the numbers and structures are those of cuda.h.
 */
#include "clientlib/python/src/pywharf_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PINNED = 1, POSIX_DESCRIPTOR = 1, ON_DEVICE = 1, READ_WRITE = 3, MAX_DEVICES = 64 };

struct location {
    int type;
    int id;
};

struct properties {
    int type;
    int handle_types;
    struct location location;
    void *windows;
    unsigned char flags[8];
};

struct access {
    struct location location;
    int flags;
};

typedef unsigned long long address;

static struct {
    void *library;
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*primary_retain)(void **, int);
    int (*push)(void *);
    int (*pop)(void **);
    int (*synchronize)(void);
    int (*stream_synchronize)(void *);
    int (*granularity)(size_t *, const struct properties *, int);
    int (*create)(address *, size_t, const struct properties *, unsigned long long);
    int (*export)(int *, address, int, unsigned long long);
    int (*release)(address);
    int (*reserve)(address *, size_t, size_t, address, unsigned long long);
    int (*map)(address, size_t, size_t, address, unsigned long long);
    int (*set_access)(address, size_t, const struct access *, size_t);
    int (*unmap)(address, size_t);
    int (*address_free)(address, size_t);
    int (*error_string)(int, const char **);
} driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *contexts[MAX_DEVICES]; /* of each device the primary one, kept */
static bool is_ready;

static int fail(char text[PYWHARF_DRIVER_TEXT_NBYTES], int error, const char *what, const char *why)
{
    snprintf(text, PYWHARF_DRIVER_TEXT_NBYTES, "%s: %s", what, why);
    return error;
}

/* 0, or -errno after a call of the driver's. */
static int check(int error, const char *what, char *text)
{
    const char *why = NULL;

    if (error == 0)
        return 0;
    driver.error_string(error, &why);
    return fail(text,
                error == 2                     ? -ENOMEM
                : error == 100 || error == 101 ? -ENODEV
                                               : -EIO,
                what, why ? why : "unknown error");
}

static int load(char *text)
{
    static const struct {
        const char *name;
        void **at;
    } names[] = {
        {"cuInit", (void **)&driver.init},
        {"cuDeviceGet", (void **)&driver.device_get},
        {"cuDevicePrimaryCtxRetain", (void **)&driver.primary_retain},
        {"cuCtxPushCurrent_v2", (void **)&driver.push},
        {"cuCtxPopCurrent_v2", (void **)&driver.pop},
        {"cuCtxSynchronize", (void **)&driver.synchronize},
        {"cuStreamSynchronize", (void **)&driver.stream_synchronize},
        {"cuMemGetAllocationGranularity", (void **)&driver.granularity},
        {"cuMemCreate", (void **)&driver.create},
        {"cuMemExportToShareableHandle", (void **)&driver.export},
        {"cuMemRelease", (void **)&driver.release},
        {"cuMemAddressReserve", (void **)&driver.reserve},
        {"cuMemMap", (void **)&driver.map},
        {"cuMemSetAccess", (void **)&driver.set_access},
        {"cuMemUnmap", (void **)&driver.unmap},
        {"cuMemAddressFree", (void **)&driver.address_free},
        {"cuGetErrorString", (void **)&driver.error_string},
    };

    if (!driver.library)
        driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver.library)
        return fail(text, -ENODEV, "there is no CUDA driver", dlerror());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].at = dlsym(driver.library, names[i].name);
        if (!*names[i].at)
            return fail(text, -EOPNOTSUPP, "the CUDA driver is too old", names[i].name);
    }
    return check(driver.init(0), "cuInit", text);
}

/* With the lock. */
static int find_context(int device, void **ret_context, char *text)
{
    int r = is_ready ? 0 : load(text), number;

    is_ready = r == 0;
    if (r == 0 && (device < 0 || device >= MAX_DEVICES))
        r = fail(text, -ENODEV, "there is no such GPU", "its number is out of range");
    if (r == 0 && !contexts[device]) {
        r = check(driver.device_get(&number, device), "cuDeviceGet", text);
        if (r == 0)
            r = check(driver.primary_retain(&contexts[device], number), "cuDevicePrimaryCtxRetain",
                      text);
    }
    *ret_context = r == 0 ? contexts[device] : NULL;
    return r;
}

/* The device's context is the thread's until leave(). */
static int enter(int device, char *text)
{
    void *context;

    pthread_mutex_lock(&lock);
    int r = find_context(device, &context, text);
    pthread_mutex_unlock(&lock);
    return r < 0 ? r : check(driver.push(context), "cuCtxPushCurrent", text);
}

static void leave(void)
{
    void *context;

    driver.pop(&context);
}

static int map(struct pywharf_gpu_piece *piece, address handle, char *text)
{
    struct access access = {{ON_DEVICE, piece->device}, READ_WRITE};
    address at = 0;
    int r = check(driver.reserve(&at, piece->nbytes, 0, 0, 0), "cuMemAddressReserve", text);

    if (r < 0)
        return r;
    r = check(driver.map(at, piece->nbytes, 0, handle, 0), "cuMemMap", text);
    if (r == 0) {
        r = check(driver.set_access(at, piece->nbytes, &access, 1), "cuMemSetAccess", text);
        if (r < 0)
            driver.unmap(at, piece->nbytes);
    }
    if (r < 0)
        driver.address_free(at, piece->nbytes);
    piece->address = r < 0 ? 0 : at;
    return r;
}

static int make(struct pywharf_gpu_piece *piece, int *ret_fd, char *text)
{
    struct properties properties = {
        PINNED, POSIX_DESCRIPTOR, {ON_DEVICE, piece->device}, NULL, {0}};
    size_t unit = 0;
    address handle;
    int r = check(driver.granularity(&unit, &properties, 0), "cuMemGetAllocationGranularity", text);

    if (r < 0)
        return r;
    if (unit == 0 || piece->nbytes > SIZE_MAX / 2)
        return fail(text, -ENOMEM, "cuMemCreate", "the size is out of range");
    piece->nbytes = (piece->nbytes + unit - 1) / unit * unit;
    r = check(driver.create(&handle, piece->nbytes, &properties, 0), "cuMemCreate", text);
    if (r < 0)
        return r;
    *ret_fd = -1;
    r = check(driver.export(ret_fd, handle, POSIX_DESCRIPTOR, 0), "cuMemExportToShareableHandle",
              text);
    if (r == 0)
        r = map(piece, handle, text);
    /* Mapping and descriptor keep it. */
    driver.release(handle);
    return r;
}

int pywharf_driver_make(struct pywharf_gpu_piece *piece, int *ret_fd, char *text)
{
    int r = enter(piece->device, text);

    if (r < 0)
        return r;
    r = make(piece, ret_fd, text);
    leave();
    return r;
}

void pywharf_driver_free(const struct pywharf_gpu_piece *piece)
{
    char text[PYWHARF_DRIVER_TEXT_NBYTES];

    if (enter(piece->device, text) < 0)
        return;
    driver.unmap(piece->address, piece->nbytes);
    driver.address_free(piece->address, piece->nbytes);
    leave();
}

int pywharf_driver_wait(int device, bool has_stream, uintptr_t stream, char *text)
{
    int r = enter(device, text);

    if (r < 0)
        return r;
    r = has_stream ? check(driver.stream_synchronize((void *)stream), "cuStreamSynchronize", text)
                   : check(driver.synchronize(), "cuCtxSynchronize", text);
    leave();
    return r;
}
