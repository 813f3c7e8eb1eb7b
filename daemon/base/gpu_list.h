/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_list.h: which GPUs the configuration names: all, or as in 0-3, 6, GPU-8932f937-d72c.
 */
#ifndef WHARF_DAEMON_BASE_GPU_LIST_H
#define WHARF_DAEMON_BASE_GPU_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"

/* Room for a number or a UUID. */
#define WHARF_GPU_NAME_NBYTES 64

struct wharf_gpu_list {
    bool is_all; /* that the driver shows: how many, a worker tells */
    uint32_t n;  /* that are named; of all, the first one is */
    char names[WHARF_MAX_GPUS][WHARF_GPU_NAME_NBYTES];
};

/* Returns NULL, or what is wrong with the text, for people; then *ret_list is not to be used. */
const char *wharf_gpu_list_parse(const char *text, struct wharf_gpu_list *ret_list);

#endif
