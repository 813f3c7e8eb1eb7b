/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_energy.c: NVML is loaded where it is, since programs are built on machines that have none. */
#include "tests/gpu/gpu_energy.h"

#include <dlfcn.h>
#include <stddef.h>

typedef int init_fn(void);
typedef int handle_fn(const char *pci_address, void **ret_device);
typedef int energy_fn(void *device, unsigned long long *ret_mj);

static void *device;
static energy_fn *read_energy;

bool gpu_energy_open(const char *pci_address)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    init_fn *init = library ? (init_fn *)dlsym(library, "nvmlInit_v2") : NULL;
    handle_fn *handle =
        library ? (handle_fn *)dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2") : NULL;
    uint64_t mj;
    if (!init || !handle || init() != 0 || handle(pci_address, &device) != 0)
        return false;
    read_energy = (energy_fn *)dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
    return gpu_energy_read(&mj);
}

bool gpu_energy_read(uint64_t *ret_mj)
{
    unsigned long long mj;
    if (!read_energy || read_energy(device, &mj) != 0)
        return false;
    *ret_mj = mj;
    return true;
}
