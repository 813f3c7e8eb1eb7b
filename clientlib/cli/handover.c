/* SPDX-License-Identifier: Apache-2.0 */
/* handover.c: hands input and output over to the daemon as files (handover.h). */
#include "clientlib/cli/handover.h"

#include "clientlib/wharf.h"

/* The daemon starts a process for the files of each command, which takes some milliseconds: what is
 * smaller is read by then. */
#define LEAST_NBYTES (UINT64_C(1) << 20)

/* For GPUs this process reads sooner than the daemon, whose memory for files has to be pinned. */
static bool has_gpu(const struct wharf_cli_service *service)
{
    const uint32_t gpus = 1u << WHARF_ENGINE_GPU | 1u << WHARF_ENGINE_SIMT;

    return service->options->engine == WHARF_ENGINE_GPU ||
           service->options->engine == WHARF_ENGINE_SIMT ||
           (service->options->engine == WHARF_ENGINE_AUTO && service->info.engines & gpus);
}

/* What is not taken is read or written here. */
static void *hand_over(struct wharf *wharf, int fd, uint32_t flags)
{
    void *address = NULL;

    return wharf_register_file(wharf, fd, flags, &address) < 0 ? NULL : address;
}

/* A whole new file, which nobody sees before it is complete. */
static bool is_for_daemon(const struct wharf_cli_output *output)
{
    return output->is_file && !output->is_sparse && !output->is_range;
}

void wharf_cli_handover_begin(struct wharf_cli_handover *handover, struct wharf_cli_task *task,
                              uint64_t out_begin)
{
    struct wharf_cli_service *service = task->service;

    *handover = (struct wharf_cli_handover){.service = service};
    if (!service->wharf || has_gpu(service) || !task->input->is_seekable ||
        task->input->nbytes < LEAST_NBYTES)
        return;
    handover->in_file = hand_over(service->wharf, task->input->fd, WHARF_MEMORY_READ_ONLY);
    if (!handover->in_file)
        return;
    handover->in = (const uint8_t *)handover->in_file + task->input->base;
    if (out_begin == UINT64_MAX || !is_for_daemon(task->output))
        return;
    handover->out_file = hand_over(service->wharf, task->output->fd, 0);
    if (!handover->out_file)
        return;
    handover->out = (uint8_t *)handover->out_file + out_begin;
    /* What this process may have to write comes between what the daemon writes. */
    wharf_cli_output_use_threads(task->output, 1);
}

void wharf_cli_handover_end(struct wharf_cli_handover *handover)
{
    const struct wharf_cli_service *service = handover->service;

    if (!service->wharf || service->is_lost)
        return;
    if (handover->out_file)
        wharf_unregister(service->wharf, handover->out_file);
    if (handover->in_file)
        wharf_unregister(service->wharf, handover->in_file);
}
