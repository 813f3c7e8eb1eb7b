/* SPDX-License-Identifier: Apache-2.0 */
/* worker_memory.c: clients' memory, mapped and registered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gpu/worker.h"

#define PAGE_NBYTES 4096u

struct memory {
    struct wharf_list link;
    uint32_t number;
    struct wharf_segment segment;
    size_t mapped_nbytes; /* whole pages */
};

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
               const struct wharf_worker_message *message, int fd, uint64_t *ret_address)
{
    int r = wharf_segment_adopt(fd, message->nbytes, message->read_only, &memory->segment);

    if (r < 0)
        return r;
    memory->mapped_nbytes = (message->nbytes + PAGE_NBYTES - 1) & ~(size_t)(PAGE_NBYTES - 1);
    r = worker->ops->map_host(worker->epoch, memory->segment.address, memory->mapped_nbytes,
                              (int)message->read_only, ret_address);
    if (r < 0)
        wharf_segment_free(&memory->segment);
    return r;
}

void wharf_worker_register(struct wharf_worker *worker, const struct wharf_worker_message *message,
                           int fd)
{
    uint64_t address = 0;
    struct memory *memory = calloc(1, sizeof(*memory));

    if (!memory) {
        answer(WHARF_WORKER_REGISTERED, message->number, -ENOMEM, 0, NULL);
        return;
    }
    memory->number = message->number;
    int r = map(worker, memory, message, fd, &address);
    if (r == -EIO)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, EIO, "registering memory",
                          worker->ops->error_text());
    if (r < 0)
        free(memory);
    else
        wharf_list_append(&worker->memories, &memory->link);
    answer(WHARF_WORKER_REGISTERED, message->number, r, address, NULL);
}

void wharf_worker_forget(struct wharf_worker *worker, uint32_t number)
{
    WHARF_LIST_FOR(link, &worker->memories)
    {
        struct memory *memory = WHARF_LIST_ENTRY(link, struct memory, link);
        if (memory->number != number)
            continue;
        if (worker->ops->unmap_host(worker->epoch, memory->segment.address, memory->mapped_nbytes) <
            0)
            wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, EIO, "letting go of memory",
                              worker->ops->error_text());
        wharf_list_remove(&memory->link);
        wharf_segment_free(&memory->segment);
        free(memory);
        answer(WHARF_WORKER_FORGOTTEN, number, 0, 0, NULL);
        return;
    }
}
