/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpu/gpu_spare_maker.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/segment.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_spares.h"

static void spare_free(struct wharf_gpu_spare *spare)
{
    wharf_segment_free(&spare->segment);
    free(spare);
}

static struct wharf_gpu_spare *spare_new(uint64_t nbytes)
{
    struct wharf_gpu_spare *spare = calloc(1, sizeof(*spare));

    if (spare && wharf_segment_make(WHARF_SEGMENT_ARENA, nbytes, &spare->segment) == 0) {
        spare->memory = wharf_gpu_memory_new_spare(spare->segment.fd, nbytes);
        if (spare->memory)
            return spare;
        wharf_segment_free(&spare->segment);
    }
    free(spare);
    return NULL;
}

static void free_all(struct wharf_list *spares)
{
    while (!wharf_list_is_empty(spares)) {
        struct wharf_gpu_spare *spare = WHARF_LIST_FIRST(spares, struct wharf_gpu_spare, link);
        wharf_list_remove(&spare->link);
        spare_free(spare);
    }
}

bool wharf_gpu_spare_maker_refill(struct wharf_core *core, uint32_t gpu)
{
    struct wharf_list unwanted;
    bool gave_up = false;

    wharf_core_enter_first(core);
    uint64_t nbytes =
        wharf_gpu_spares_maker(core) == 1u << gpu ? wharf_gpu_spares_choose(core, &gave_up) : 0;
    wharf_gpu_spares_take_unwanted(&core->residency.spares, &unwanted);
    wharf_core_leave(core);
    free_all(&unwanted);
    struct wharf_gpu_spare *spare = nbytes ? spare_new(nbytes) : NULL;
    if (!spare)
        return gave_up;
    wharf_core_enter_first(core);
    wharf_list_append(&core->residency.spares.list, &spare->link);
    core->residency.spares.nbytes += nbytes;
    wharf_gpu_memory_add(core, spare->memory);
    wharf_core_leave(core);
    return true;
}

void wharf_gpu_spare_maker_deinit(struct wharf_core *core)
{
    struct wharf_gpu_spares *spares = &core->residency.spares;

    while (!wharf_list_is_empty(&spares->list)) {
        struct wharf_gpu_spare *spare =
            WHARF_LIST_FIRST(&spares->list, struct wharf_gpu_spare, link);
        wharf_core_enter(core);
        wharf_list_remove(&spare->link);
        int fd = wharf_gpu_memory_free(spare->memory);
        wharf_core_leave(core);
        wharf_close_fd(fd);
        spare_free(spare);
    }
    free_all(&spares->unwanted);
    spares->nbytes = 0;
}
