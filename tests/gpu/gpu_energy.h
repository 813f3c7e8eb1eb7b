/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_energy.h: what a card has consumed, as NVML tells it.
 */
#ifndef WHARF_TESTS_GPU_ENERGY_H
#define WHARF_TESTS_GPU_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens NVML for a card by its PCI address, such as "00000000:0A:00.0".  False if there is no NVML
 * or the card does not count its energy. */
bool gpu_energy_open(const char *pci_address);

/* Millijoules since the driver was loaded.  The card brings it up to date some ten times a second,
 * so a difference is good for half a second and more. */
bool gpu_energy_read(uint64_t *ret_mj);

#ifdef __cplusplus
}
#endif

#endif
