/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.cu: which GPU a name means, and whether this build can use it. */
#include "kernels/cuda_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_error.h"

namespace
{

/* Device code is compiled for this and what comes later. */
constexpr int LEAST_MAJOR = 8;

constexpr size_t UUID_TEXT = 48;

int uuid_text(int device, char text[UUID_TEXT])
{
    cudaDeviceProp properties;
    size_t n;
    WHARF_CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    n = (size_t)snprintf(text, UUID_TEXT, "GPU-");
    for (unsigned i = 0; i < sizeof(properties.uuid.bytes); i++)
        n += (size_t)snprintf(text + n, UUID_TEXT - n,
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                              (unsigned char)properties.uuid.bytes[i]);
    return 0;
}

int find_by_number(const char *name, int n_devices, int *ret_device)
{
    char *end;
    long number = strtol(name, &end, 10);
    if (*end)
        return wharf_cuda_refuse(
            -ENODEV, "device = %s is neither a number nor a UUID (nvidia-smi -L)", name);
    if (number < 0 || number >= n_devices)
        return wharf_cuda_refuse(-ENODEV, "there is no GPU %s: the driver shows %d, from 0 on",
                                 name, n_devices);
    *ret_device = (int)number;
    return 0;
}

int find_by_uuid(const char *name, int n_devices, int *ret_device)
{
    char text[UUID_TEXT] = "";
    int found = -1;
    for (int i = 0; i < n_devices; i++) {
        if (int rc = uuid_text(i, text))
            return rc;
        if (strncasecmp(text, name, strlen(name)) != 0)
            continue;
        if (found >= 0)
            return wharf_cuda_refuse(-ENODEV, "several GPUs are called %s: give more digits", name);
        found = i;
    }
    if (found < 0)
        return wharf_cuda_refuse(-ENODEV,
                                 "there is no %s among the %d GPUs that the driver shows, "
                                 "such as %s",
                                 name, n_devices, text);
    *ret_device = found;
    return 0;
}

} // namespace

int wharf_cuda_find_device(const char *name, int *ret_device)
{
    bool is_instance = strncmp(name, "MIG-", 4) == 0;
    int n_devices = 0;
    /* CUDA shows an instance to those who ask for it, and to them nothing else. */
    if (is_instance && setenv("CUDA_VISIBLE_DEVICES", name, 1))
        return wharf_cuda_refuse(-ENOMEM, "out of memory");
    WHARF_CUDA_TRY(cudaGetDeviceCount(&n_devices));
    if (is_instance) {
        *ret_device = 0;
        return 0;
    }
    if (strncmp(name, "GPU-", 4) == 0)
        return find_by_uuid(name, n_devices, ret_device);
    return find_by_number(name, n_devices, ret_device);
}

int wharf_cuda_count_devices(int *ret_n_devices)
{
    int n_devices = 0;
    WHARF_CUDA_TRY(cudaGetDeviceCount(&n_devices));
    *ret_n_devices = n_devices;
    return 0;
}

int wharf_cuda_check_device(int device)
{
    static const struct {
        cudaDeviceAttr attribute;
        const char *what;
    } wanted[] = {
        {cudaDevAttrUnifiedAddressing, "one address space with the host"},
        {cudaDevAttrHostRegisterSupported, "registered memory of the host"},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, "registered memory at the host's addresses"},
    };
    int value, minor;
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    if (value < LEAST_MAJOR)
        return wharf_cuda_refuse(-ENODEV, "GPU %d has compute capability %d.%d; %d.0 is the least",
                                 device, value, minor, LEAST_MAJOR);
    for (auto &one : wanted) {
        WHARF_CUDA_TRY(cudaDeviceGetAttribute(&value, one.attribute, device));
        if (!value)
            return wharf_cuda_refuse(-ENODEV, "GPU %d, or its driver here, lacks %s", device,
                                     one.what);
    }
    return 0;
}

int wharf_cuda_has_mps(int device)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, cudaDevAttrMpsEnabled, device) != cudaSuccess)
        (void)cudaGetLastError(); /* a driver that does not know */
    return value;
}
