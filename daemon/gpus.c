/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpus.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cleanup.h"
#include "daemon/front.h"
#include "daemon/gpu_state.h"
#include "daemon/log.h"
#include "proto/wharf_job.h"

/* ---- what there is ------------------------------------------------------------------------- */

/* The worker that the configuration names, or the one that was installed with this program, or the
 * one that was built with it. */
static int find_program(const struct wharf_config *config, char program[], size_t nbytes)
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

/* Drivers make these; where there are none nobody need be asked. */
static bool has_device_node(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* An engine that was asked for by name has to be there before anybody is served. */
static int wait_until_up(struct wharf_front *front)
{
    int r = 0;

    wharf_front_enter(front);
    for (uint32_t i = 0; i < front->n_gpus && r == 0; i++) {
        const struct wharf_gpu_view *view = &front->gpus[i];
        while (view->n_ups == 0 && view->n_ended == 0)
            pthread_cond_wait(&front->gpus_changed, &front->lock);
        r = view->n_ups > 0 ? 0 : -ENODEV;
    }
    wharf_front_leave(front);
    return r;
}

int wharf_gpus_start(struct wharf_front *front, const struct wharf_config *config)
{
    bool is_asked_for = config->gpu_engine != WHARF_GPU_AUTO;
    char program[PATH_MAX];

    if (config->gpu_engine == WHARF_GPU_NONE || (!is_asked_for && !has_device_node()))
        return 0;
    int r = find_program(config, program, sizeof(program));
    if (r < 0)
        wharf_log(is_asked_for ? WHARF_LOG_ERROR : WHARF_LOG_INFO,
                  &(struct wharf_log_fields){.error = -r}, "there is no GPU worker %s", program);
    if (r == 0)
        r = wharf_gpu_backend_start(front, config, program, config->gpu_device);
    if (r == 0 && is_asked_for)
        r = wait_until_up(front);
    if (r < 0)
        wharf_gpus_stop(front);
    return is_asked_for ? r : 0;
}

void wharf_gpus_stop(struct wharf_front *front)
{
    for (uint32_t i = 0; i < front->n_gpus; i++)
        wharf_gpu_backend_stop(front->gpus[i].backend);
    for (uint32_t i = 0; i < front->n_gpus; i++) {
        wharf_gpu_backend_free(front->gpus[i].backend);
        front->gpus[i].backend = NULL;
    }
    wharf_gpu_spares_deinit(front);
    wharf_front_enter(front);
    front->n_gpus = 0;
    front->gpu_engine = WHARF_ENGINE_AUTO;
    front->gpus_up = front->gpus_asleep = front->gpus_looking = front->gpus_wanted = 0;
    front->gpus_left = 0;
    wharf_front_leave(front);
}
