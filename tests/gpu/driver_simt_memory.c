/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_simt_memory.c: of CUDA's driver interface what makes memory that another process can be
 * given, with memfds in its place, as workers with the device's code on the CPU take them.  The
 * structures are those of cuda.h.  What was waited for, and what is mapped, is counted.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long address;
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, PAGE_NBYTES = 1 << 16 };

struct location {
    int type, id;
};

struct properties {
    int type, handle_types;
    struct location location;
    void *windows;
    unsigned char flags[8];
};
_Static_assert(sizeof(struct properties) == 32, "CUmemAllocationProp of cuda.h");

struct access {
    struct location location;
    int flags;
};

int driver_simt_n_mapped, driver_simt_n_waits;
void *driver_simt_stream; /* that was waited for last */

int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuStreamSynchronize(void *stream);
int cuMemGetAllocationGranularity(size_t *nbytes, const struct properties *properties, int option);
int cuMemCreate(address *handle, size_t nbytes, const struct properties *properties,
                unsigned long long flags);
int cuMemExportToShareableHandle(int *fd, address handle, int type, unsigned long long flags);
int cuMemRelease(address handle);
int cuMemAddressReserve(address *at, size_t nbytes, size_t alignment, address hint,
                        unsigned long long flags);
int cuMemMap(address at, size_t nbytes, size_t offset, address handle, unsigned long long flags);
int cuMemSetAccess(address at, size_t nbytes, const struct access *access, size_t n);
int cuMemUnmap(address at, size_t nbytes);
int cuMemAddressFree(address at, size_t nbytes);

static int fails(const char *name)
{
    const char *failing = getenv("DRIVER_SIMT_FAILS");

    return failing && strcmp(failing, name) == 0;
}

int cuCtxPushCurrent_v2(void *context)
{
    (void)context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = NULL;
    return 0;
}

int cuCtxSynchronize(void)
{
    driver_simt_n_waits++;
    driver_simt_stream = NULL;
    return fails("cuCtxSynchronize") ? INVALID_VALUE : 0;
}

int cuStreamSynchronize(void *stream)
{
    driver_simt_n_waits++;
    driver_simt_stream = stream;
    return 0;
}

int cuMemGetAllocationGranularity(size_t *nbytes, const struct properties *properties, int option)
{
    *nbytes = PAGE_NBYTES;
    return properties->type == 1 && option == 0 ? 0 : INVALID_VALUE;
}

int cuMemCreate(address *handle, size_t nbytes, const struct properties *properties,
                unsigned long long flags)
{
    if (properties->type != 1 || properties->handle_types != 1 || properties->location.type != 1 ||
        nbytes % PAGE_NBYTES || flags)
        return INVALID_VALUE;
    if (fails("cuMemCreate"))
        return OUT_OF_MEMORY;
    int fd = memfd_create("gpu memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)nbytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return OUT_OF_MEMORY;
    *handle = (address)fd;
    return 0;
}

int cuMemExportToShareableHandle(int *fd, address handle, int type, unsigned long long flags)
{
    *fd = type == 1 && !flags ? fcntl((int)handle, F_DUPFD_CLOEXEC, 3) : -1;
    return *fd < 0 ? INVALID_VALUE : 0;
}

int cuMemRelease(address handle)
{
    return close((int)handle) < 0 ? INVALID_VALUE : 0;
}

int cuMemAddressReserve(address *at, size_t nbytes, size_t alignment, address hint,
                        unsigned long long flags)
{
    void *place = mmap(NULL, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *at = (address)(uintptr_t)place;
    return place == MAP_FAILED || alignment || hint || flags ? OUT_OF_MEMORY : 0;
}

int cuMemMap(address at, size_t nbytes, size_t offset, address handle, unsigned long long flags)
{
    if (offset || flags ||
        mmap((void *)(uintptr_t)at, nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)handle, 0) ==
            MAP_FAILED)
        return INVALID_VALUE;
    driver_simt_n_mapped++;
    return 0;
}

int cuMemSetAccess(address at, size_t nbytes, const struct access *access, size_t n)
{
    if (fails("cuMemSetAccess") || n != 1 || access->location.type != 1 || access->flags != 3)
        return INVALID_VALUE;
    return mprotect((void *)(uintptr_t)at, nbytes, PROT_READ | PROT_WRITE) < 0;
}

int cuMemUnmap(address at, size_t nbytes)
{
    driver_simt_n_mapped--;
    return mmap((void *)(uintptr_t)at, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) == MAP_FAILED;
}

int cuMemAddressFree(address at, size_t nbytes)
{
    return munmap((void *)(uintptr_t)at, nbytes) < 0;
}
