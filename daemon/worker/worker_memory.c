/* SPDX-License-Identifier: Apache-2.0 */
/* worker_memory.c: maps and registers clients' memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/list.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/worker/worker.h"
#include "daemon/worker/worker_populate.h"
#include "proto/wharf_job.h"
#include "proto/wharf_ring.h"

struct memory {
    struct wharf_list link;
    uint32_t number;
    bool is_imported;             /* GPU memory of a client */
    bool is_model;                /* the device has a copy of it */
    uint64_t address;             /* on the device; of a model, the parameter of items */
    struct wharf_segment segment; /* of host memory */
    size_t mapped_nbytes;         /* whole pages of host memory; all of GPU memory */
};

static struct wharf_list *chain_of(struct wharf_worker *worker, uint32_t number)
{
    return &worker->memories[number % WHARF_WORKER_N_CHAINS];
}

static void answer(uint32_t kind, uint32_t number, int r, uint64_t address, const char *text)
{
    struct wharf_worker_message message = {
        .kind = kind,
        .number = number,
        .error = -r,
        .address = address,
    };

    if (text)
        strncpy(message.text, text, sizeof(message.text) - 1);
    wharf_worker_say(&message);
}

static int map(struct wharf_worker *worker, struct memory *memory,
               const struct wharf_worker_message *message, int fd)
{
    int r = wharf_segment_adopt(fd, message->nbytes, message->read_only, &memory->segment);

    if (r < 0)
        return r;
    memory->mapped_nbytes = (size_t)wharf_ring_whole_pages(message->nbytes);
    if (wharf_worker_engine_number == WHARF_ENGINE_GPU)
        wharf_worker_populate(memory->segment.address, memory->mapped_nbytes, message->read_only);
    r = worker->ops->map_host(worker->main.epoch, memory->segment.address, memory->mapped_nbytes,
                              (int)message->read_only, &memory->address);
    if (r < 0)
        wharf_segment_free(&memory->segment);
    return r;
}

static int import(struct wharf_worker *worker, struct memory *memory,
                  const struct wharf_worker_message *message, int fd)
{
    /* The GPU that tests of the daemon's speed simulate has no such memory. */
    if (!worker->ops->import_memory)
        return -EOPNOTSUPP;
    memory->is_imported = true;
    memory->mapped_nbytes = message->nbytes;
    return worker->ops->import_memory(worker->main.epoch, fd, message->nbytes, &memory->address);
}

static int copy_model(struct wharf_worker *worker, struct memory *memory,
                      const struct wharf_worker_message *message, int fd)
{
    struct wharf_segment image;
    uint32_t parameter;
    int r = wharf_segment_adopt(fd, message->nbytes, true, &image);

    if (r < 0)
        return r;
    r = worker->ops->add_model(worker->main.epoch, image.address, message->nbytes, &parameter);
    wharf_segment_free(&image);
    memory->is_model = true;
    memory->address = r < 0 ? 0 : parameter;
    return r;
}

static int take(struct wharf_worker *worker, struct memory *memory,
                const struct wharf_worker_message *message, int fd)
{
    switch (message->kind) {
    case WHARF_WORKER_IMPORT:
        return import(worker, memory, message, fd);
    case WHARF_WORKER_MODEL:
        return copy_model(worker, memory, message, fd);
    default:
        return map(worker, memory, message, fd);
    }
}

void wharf_worker_register(struct wharf_worker *worker, const struct wharf_worker_message *message,
                           int fd)
{
    bool is_import = message->kind == WHARF_WORKER_IMPORT;
    struct memory *memory = calloc(1, sizeof(*memory));

    if (!memory) {
        answer(WHARF_WORKER_REGISTERED, message->number, -ENOMEM, 0, NULL);
        return;
    }
    memory->number = message->number;
    answer(WHARF_WORKER_REGISTERING, message->number, 0, 0, NULL);
    int r = take(worker, memory, message, fd);
    if (r == -EIO)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, EIO, "registering memory",
                          worker->ops->error_text());
    answer(WHARF_WORKER_REGISTERED, message->number, r, memory->address,
           is_import && r < 0 ? worker->ops->error_text() : NULL);
    if (r < 0)
        free(memory);
    else
        wharf_list_append(chain_of(worker, memory->number), &memory->link);
}

static int let_go(struct wharf_worker *worker, struct memory *memory)
{
    if (memory->is_imported)
        return worker->ops->unimport_memory(worker->main.epoch, memory->address,
                                            memory->mapped_nbytes);
    if (memory->is_model)
        return worker->ops->remove_model(worker->main.epoch, (uint32_t)memory->address);
    int r =
        worker->ops->unmap_host(worker->main.epoch, memory->segment.address, memory->mapped_nbytes);
    if (r == 0)
        wharf_segment_free(&memory->segment);
    return r;
}

void wharf_worker_forget(struct wharf_worker *worker, uint32_t number)
{
    WHARF_LIST_FOR(link, chain_of(worker, number))
    {
        struct memory *memory = WHARF_LIST_ENTRY(link, struct memory, link);
        if (memory->number != number)
            continue;
        if (let_go(worker, memory) < 0)
            wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, EIO, "letting go of memory",
                              worker->ops->error_text());
        wharf_list_remove(&memory->link);
        free(memory);
        answer(WHARF_WORKER_FORGOTTEN, number, 0, 0, NULL);
        return;
    }
}
