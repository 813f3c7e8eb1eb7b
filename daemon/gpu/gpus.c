/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus.c: starts and stops a backend for each configured GPU.
 */
#include "daemon/gpu/gpus.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_arena_maker.h"
#include "daemon/gpu/gpu_state.h"
#include "proto/wharf_job.h"

/* ---- what there is ------------------------------------------------------------------------- */

int wharf_gpus_find_program(const struct wharf_config *config, char program[], size_t nbytes)
{
    const char *name = config->gpu_engine == WHARF_GPU_SIMT ? "wharfd-simt" : "wharfd-gpu";
    char own[PATH_MAX - 64];

    if (config->gpu_worker[0]) {
        snprintf(program, nbytes, "%s", config->gpu_worker);
        return access(program, X_OK) < 0 ? -errno : 0;
    }
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0)
        return -errno;
    own[n] = 0;
    *strrchr(own, '/') = 0;
    snprintf(program, nbytes, "%s/../libexec/wharf/%s", own, name);
    if (access(program, X_OK) == 0)
        return 0;
    snprintf(program, nbytes, "%s/%s", own, name);
    return access(program, X_OK) < 0 ? -errno : 0;
}

bool wharf_gpus_have_device_node(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

/* Counts nvidia0 and so on; a container sees only the devices that it was given. */
static uint32_t count_device_nodes(void)
{
    DIR *folder = opendir("/dev");
    const struct dirent *entry;
    uint32_t n = 0;

    while (folder && (entry = readdir(folder))) {
        const char *number = entry->d_name + strlen("nvidia");
        if (strncmp(entry->d_name, "nvidia", strlen("nvidia")) == 0 && *number &&
            strspn(number, "0123456789") == strlen(number))
            n++;
    }
    if (folder)
        closedir(folder);
    return n < WHARF_MAX_GPUS ? n : WHARF_MAX_GPUS;
}

/* The number of GPUs to expect, by what is known without a worker. */
static uint32_t count_gpus(const struct wharf_config *config, const struct wharf_gpu_list *list)
{
    if (config->gpu_engine == WHARF_GPU_NONE)
        return 0;
    if (!list->is_all)
        return list->n;
    return config->gpu_engine == WHARF_GPU_SIMT ? 1 : count_device_nodes();
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* A killed worker says nothing about the GPU, and another one replaces it.  But after so many that
 * were killed before the first one was ready, for example by a memory limit, starting fails. */
#define MOST_KILLS 10

/* Whether no worker has been ready and none is expected to become ready. */
static bool has_failed(const struct wharf_gpu_view *view)
{
    return view->n_ups == 0 && (view->n_own_ends > 0 || view->n_ended >= MOST_KILLS);
}

/* Whether the outcome is decided: enough GPUs are ready, or not enough can become ready. */
static bool is_decided(const struct wharf_core *core, bool needs_all, bool *ret_good)
{
    uint32_t n_ready = 0, n_failed = 0;

    for (uint32_t i = 0; i < core->fleet.n_gpus; i++) {
        const struct wharf_gpu_view *view = &core->fleet.gpus[i];
        n_ready += view->n_ups > 0;
        n_failed += has_failed(view);
    }
    *ret_good = n_ready > 0 && !(needs_all && n_failed > 0);
    return needs_all ? n_failed > 0 || n_ready == core->fleet.n_gpus
                     : n_ready > 0 || n_failed == core->fleet.n_gpus;
}

/* Waits for an engine that the configuration names, before any client is served. */
static int wait_until_up(struct wharf_core *core, bool needs_all)
{
    bool is_good;

    wharf_core_enter(core);
    while (!is_decided(core, needs_all, &is_good))
        pthread_cond_wait(&core->fleet.gpus_changed, &core->lock);
    wharf_core_leave(core);
    return is_good ? 0 : -ENODEV;
}

/* The first worker has reported the number of GPUs: starts backends for the others, once. */
static void add_others(struct wharf_core *core, const struct wharf_config *config,
                       const char *program, uint32_t n_gpus)
{
    int r = 0;

    if (n_gpus > WHARF_MAX_GPUS)
        wharf_log(WHARF_LOG_NOTICE, NULL, "of %u GPUs the first %u are used", (unsigned)n_gpus,
                  WHARF_MAX_GPUS);
    for (uint32_t i = core->fleet.n_gpus; i < n_gpus && i < WHARF_MAX_GPUS && r == 0; i++) {
        char name[WHARF_GPU_NAME_NBYTES];
        snprintf(name, sizeof(name), "%u", (unsigned)i);
        r = wharf_gpu_backend_start(core, config, program, name, NULL);
        if (r < 0)
            wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                      "cannot start a thread for GPU %s", name);
    }
}

int wharf_gpus_start(struct wharf_core *core, const struct wharf_config *config)
{
    bool is_asked_for = config->gpu_engine != WHARF_GPU_AUTO;
    struct wharf_gpu_list list;
    char program[PATH_MAX];

    /* The configuration was checked when it was read. */
    if (wharf_gpu_list_parse(config->gpu_device, &list))
        return -EINVAL;
    wharf_core_enter(core);
    core->fleet.n_gpus_there = count_gpus(config, &list);
    wharf_core_leave(core);
    if (config->gpu_engine == WHARF_GPU_NONE || (!is_asked_for && !wharf_gpus_have_device_node()))
        return 0;
    int r = wharf_gpus_find_program(config, program, sizeof(program));
    if (r < 0)
        wharf_log(
            is_asked_for ? WHARF_LOG_ERROR : WHARF_LOG_INFO,
            &(struct wharf_log_fields){.error = -r}, "there is no GPU worker %s%s", program,
            config->gpu_engine == WHARF_GPU_SIMT ? "" : ", which make gpu-worker builds with nvcc");
    for (uint32_t i = 0; i < list.n && r == 0; i++)
        r = wharf_gpu_backend_start(core, config, program, list.names[i],
                                    list.is_all ? add_others : NULL);
    if (r == 0 && is_asked_for)
        r = wait_until_up(core, !list.is_all);
    if (r < 0)
        wharf_gpus_stop(core);
    return is_asked_for ? r : 0;
}

uint32_t wharf_gpus_expected(const struct wharf_core *core)
{
    if (core->config.n_gpus_expected)
        return (uint32_t)core->config.n_gpus_expected;
    return core->fleet.n_gpus > core->fleet.n_gpus_there ? core->fleet.n_gpus
                                                         : core->fleet.n_gpus_there;
}

uint32_t wharf_gpus_up(const struct wharf_core *core)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < core->fleet.n_gpus; i++)
        n += wharf_place_is_up(core, i);
    return n;
}

/* NULL behind the last one. */
static struct wharf_gpu_backend *backend_at(struct wharf_core *core, uint32_t gpu)
{
    wharf_core_enter(core);
    struct wharf_gpu_backend *backend =
        gpu < core->fleet.n_gpus ? core->fleet.gpus[gpu].backend : NULL;
    wharf_core_leave(core);
    return backend;
}

void wharf_gpus_stop(struct wharf_core *core)
{
    struct wharf_gpu_backend *backend;
    uint32_t n;

    /* The first one is over before the others: nobody starts more then. */
    for (n = 0; (backend = backend_at(core, n)); n++)
        wharf_gpu_backend_stop(backend);
    for (uint32_t i = 0; i < n; i++) {
        wharf_gpu_backend_free(core->fleet.gpus[i].backend);
        core->fleet.gpus[i].backend = NULL;
    }
    wharf_gpu_arena_maker_deinit(core);
    wharf_core_enter(core);
    core->fleet.n_gpus = 0;
    core->fleet.gpu_engine = WHARF_ENGINE_AUTO;
    core->fleet.gpus_up = core->fleet.gpus_asleep = core->fleet.gpus_looking =
        core->fleet.gpus_wanted = 0;
    core->fleet.gpus_left = 0;
    wharf_core_leave(core);
}
