/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_list.h: parses the configuration's list of GPUs: all, or for example 0-3, 6,
 * GPU-8932f937-d72c.
 */
#ifndef WHARF_DAEMON_BASE_GPU_LIST_H
#define WHARF_DAEMON_BASE_GPU_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"

/* Room for a number or a UUID. */
#define WHARF_GPU_NAME_NBYTES 64

struct wharf_gpu_list {
    bool is_all; /* all GPUs of the driver; a worker reports their number */
    uint32_t n;  /* length of `names`; for is_all only the first one */
    char names[WHARF_MAX_GPUS][WHARF_GPU_NAME_NBYTES];
};

/* Returns NULL, or an error message; then *ret_list is undefined. */
const char *wharf_gpu_list_parse(const char *text, struct wharf_gpu_list *ret_list);

#endif
