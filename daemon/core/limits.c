/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/limits.h"

#include <stddef.h>

#include "daemon/core/totals.h"

#define PREFIX "total_"

struct row {
    const char *label;
    size_t in_quota;
    size_t in_use;
};

#define SHARED(name, quota, use)                                                                   \
    {                                                                                              \
        name, offsetof(struct wharf_quota, quota), offsetof(struct wharf_use, use)                 \
    }
#define OF_ONE(name, quota)                                                                        \
    {                                                                                              \
        name, offsetof(struct wharf_quota, quota), 0                                               \
    }
#define OF_ALL(name)                                                                               \
    {                                                                                              \
        PREFIX name, 0, 0                                                                          \
    }

static const struct row rows[WHARF_N_LIMITS] = {
    [WHARF_LIMIT_CONNECTIONS] = SHARED("max_connections", max_connections, n_connections),
    [WHARF_LIMIT_DESCRIPTORS] = SHARED("max_descriptors", max_descriptors, n_descriptors),
    [WHARF_LIMIT_JOBS] = SHARED("max_jobs", max_jobs, n_jobs),
    [WHARF_LIMIT_MEMORY] = SHARED("max_memory", max_memory_nbytes, memory_nbytes),
    [WHARF_LIMIT_GPU_MEMORY] = SHARED("max_gpu_memory", max_gpu_memory_nbytes, gpu_nbytes),
    [WHARF_LIMIT_GPU_REGIONS] = SHARED("max_gpu_regions", max_gpu_regions, n_gpu_regions),
    [WHARF_LIMIT_ENTRIES] = OF_ONE("max_entries", max_entries),
    [WHARF_LIMIT_ARENA] = OF_ONE("max_arena", max_arena_nbytes),
    [WHARF_LIMIT_REGIONS] = OF_ONE("max_regions", max_regions),
    [WHARF_LIMIT_MODELS] = OF_ONE("max_models", max_models),
    [WHARF_LIMIT_HUNG_GATES] = {"hung_gates", 0, 0},
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_CONNECTIONS] = OF_ALL("max_connections"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_DESCRIPTORS] = OF_ALL("max_descriptors"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_JOBS] = OF_ALL("max_jobs"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_MAPPINGS] = OF_ALL("max_mappings"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_MEMORY] = OF_ALL("max_memory"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_GPU_MEMORY] = OF_ALL("max_gpu_memory"),
    [WHARF_LIMIT_TOTAL + WHARF_TOTAL_TASKS] = OF_ALL("max_tasks"),
};

const char *wharf_limit_label(enum wharf_limit limit)
{
    return rows[limit].label;
}

const char *wharf_limit_setting(enum wharf_limit limit)
{
    return rows[limit].label + (limit >= WHARF_LIMIT_TOTAL ? sizeof(PREFIX) - 1 : 0);
}

uint64_t wharf_limit_used(enum wharf_limit limit, const struct wharf_use *use)
{
    return *(const uint64_t *)(const void *)((const char *)use + rows[limit].in_use);
}

uint64_t wharf_limit_allowed(enum wharf_limit limit, const struct wharf_quota *quota)
{
    return *(const uint64_t *)(const void *)((const char *)quota + rows[limit].in_quota);
}
