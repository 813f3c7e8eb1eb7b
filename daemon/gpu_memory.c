/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpu_memory.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/front.h"

struct wharf_gpu_memory *wharf_gpu_memory_new(struct wharf_front *front,
                                              struct wharf_session *session, int fd,
                                              uint64_t nbytes, bool read_only)
{
    if (!front->gpu)
        return NULL;
    struct wharf_gpu_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return NULL;
    wharf_list_init(&memory->link);
    memory->session = session;
    memory->tenant = session->tenant;
    memory->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    memory->nbytes = nbytes;
    memory->read_only = read_only;
    memory->state = WHARF_GPU_MEMORY_ABSENT;
    memory->since_ns = wharf_now_ns();
    if (memory->fd < 0) {
        free(memory);
        return NULL;
    }
    return memory;
}

struct wharf_gpu_memory *wharf_gpu_memory_new_device(struct wharf_front *front,
                                                     struct wharf_session *session, int fd,
                                                     uint64_t nbytes)
{
    struct wharf_gpu_memory *memory = wharf_gpu_memory_new(front, session, fd, nbytes, false);

    if (memory)
        memory->is_device = true;
    return memory;
}

void wharf_gpu_memory_add(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    if (!memory)
        return;
    memory->number = ++front->last_memory;
    if (memory->tenant)
        memory->tenant->n_pins++;
    wharf_list_append(&front->memories, &memory->link);
    front->gpu_view.is_wanted = true;
}

void wharf_gpu_memory_give(struct wharf_gpu_memory *memory, struct wharf_session *session)
{
    memory->is_spare = false;
    memory->session = session;
    memory->tenant = session->tenant;
    memory->tenant->n_pins++;
    memory->since_ns = wharf_now_ns();
}

int wharf_gpu_memory_free(struct wharf_gpu_memory *memory)
{
    int fd = memory->fd;

    if (memory->tenant) {
        wharf_tenant_give_back(memory->tenant, &memory->use);
        memory->tenant->n_pins--;
    }
    wharf_list_remove(&memory->link);
    free(memory);
    return fd;
}

bool wharf_gpu_memory_drop(struct wharf_front *front, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use)
{
    if (!memory)
        return false;
    memory->session = NULL;
    memory->is_spare = false;
    if (!memory->is_device && memory->state != WHARF_GPU_MEMORY_ASKED &&
        memory->state != WHARF_GPU_MEMORY_READY) {
        /* The daemon's own mapping is still there: this frees no pages. */
        wharf_close_fd(wharf_gpu_memory_free(memory));
        return false;
    }
    memory->use = *use;
    front->gpu_view.has_dead |= memory->is_device;
    front->gpu_view.is_wanted = true;
    return true;
}

static enum wharf_gpu_memory_state of_region(const struct wharf_region *region)
{
    return region->memory ? region->memory->state : WHARF_GPU_MEMORY_REFUSED;
}

static enum wharf_gpu_memory_state lesser(enum wharf_gpu_memory_state a,
                                          enum wharf_gpu_memory_state b)
{
    return a < b ? a : b;
}

enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job)
{
    const struct wharf_batch *batch = job->batch;
    enum wharf_gpu_memory_state state = WHARF_GPU_MEMORY_READY;

    if (job->model)
        state = job->model->memory ? job->model->memory->state : WHARF_GPU_MEMORY_REFUSED;
    if (!batch)
        return lesser(state, lesser(of_region(job->source), of_region(job->destination)));
    for (uint32_t word = 0; word < batch->n_region_words; word++)
        for (uint64_t bits = batch->regions[word]; bits; bits &= bits - 1)
            state = lesser(
                state,
                of_region(&job->session->regions[word * 64 + (uint32_t)__builtin_ctzll(bits)]));
    return state;
}
