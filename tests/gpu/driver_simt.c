/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_simt.c: of CUDA's driver interface what `wharf bench --gpu` calls, with the host's memory
 * in a GPU's place: for tests of the command beside libwharf-cuda on the SIMT layer.  It has little
 * memory, so that the input is decoded once.  DRIVER_SIMT_FAILS in the environment names a function
 * that fails.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long address;
enum { NO_DEVICE = 100, OUT_OF_MEMORY = 2, ROOM_NBYTES = 1 << 20 };

static int result_of(const char *name, int failure)
{
    const char *fails = getenv("DRIVER_SIMT_FAILS");

    return fails && strcmp(fails, name) == 0 ? failure : 0;
}

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int number);
int cuDeviceGetName(char *name, int name_nbytes, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemGetInfo_v2(size_t *free_nbytes, size_t *all_nbytes);
int cuMemAlloc_v2(address *memory, size_t nbytes);
int cuMemFree_v2(address memory);
int cuMemcpyHtoD_v2(address to, const void *from, size_t nbytes);
int cuMemcpyDtoH_v2(void *to, address from, size_t nbytes);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventSynchronize(void *event);
int cuEventElapsedTime(float *ms, void *start, void *end);
int cuGetErrorString(int error, const char **text);

int cuInit(unsigned flags)
{
    (void)flags;
    return result_of("cuInit", NO_DEVICE);
}

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return 0;
}

int cuDeviceGetName(char *name, int name_nbytes, int device)
{
    (void)device;
    strncpy(name, "the SIMT layer", (size_t)name_nbytes - 1);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = NULL;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    (void)context;
    return 0;
}

int cuMemGetInfo_v2(size_t *free_nbytes, size_t *all_nbytes)
{
    *free_nbytes = *all_nbytes = ROOM_NBYTES;
    return 0;
}

int cuMemAlloc_v2(address *memory, size_t nbytes)
{
    void *p = NULL;

    if (result_of("cuMemAlloc_v2", OUT_OF_MEMORY) || posix_memalign(&p, 256, nbytes + 1) != 0)
        return OUT_OF_MEMORY;
    *memory = (address)(uintptr_t)p;
    return 0;
}

int cuMemFree_v2(address memory)
{
    free((void *)(uintptr_t)memory);
    return 0;
}

int cuMemcpyHtoD_v2(address to, const void *from, size_t nbytes)
{
    memcpy((void *)(uintptr_t)to, from, nbytes);
    return 0;
}

/* With a wrong byte in all that is large, if that is what is to fail: outputs, not outcomes. */
int cuMemcpyDtoH_v2(void *to, address from, size_t nbytes)
{
    memcpy(to, (const void *)(uintptr_t)from, nbytes);
    if (nbytes > 8192 && result_of("cuMemcpyDtoH_v2", 1))
        ((char *)to)[nbytes / 2] ^= 1;
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(struct timespec));
    return *event ? 0 : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, event);
    return 0;
}

int cuEventSynchronize(void *event)
{
    (void)event;
    return 0;
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
    const struct timespec *from = start, *to = end;

    *ms = 1e3f * (float)(to->tv_sec - from->tv_sec) + 1e-6f * (float)(to->tv_nsec - from->tv_nsec);
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    *text = error == NO_DEVICE ? "no CUDA-capable device is detected" : "out of memory";
    return 0;
}
