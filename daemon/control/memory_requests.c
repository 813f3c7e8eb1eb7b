/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_requests.c: clients' memory: registering and unregistering it.
 *
 * The GPU's worker imports GPU memory.  The client's request is answered when that is done; until
 * then the connection is on hold.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/control/connection.h"
#include "daemon/control/file_requests.h"
#include "daemon/control/region_place.h"
#include "daemon/control/replies.h"
#include "daemon/control/server.h"
#include "daemon/control/server_reap.h"
#include "daemon/core/limits.h"
#include "daemon/core/residency.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/gpu_memory.h"

/* ---- what can be wrong --------------------------------------------------------------------- */

const char *wharf_memory_error_text(int r)
{
    switch (r) {
    case -EBADF:
        return "the descriptor is no memfd (huge pages are none either)";
    case -EPERM:
        return "the memfd is not sealed with F_SEAL_SHRINK and F_SEAL_GROW, or is sealed against "
               "writing and not registered read-only";
    case -EINVAL:
        return "the memfd is shorter than nbytes says, or nbytes is 0";
    case -EFBIG:
        return "it is larger than the daemon's limit of file sizes (LimitFSIZE=, ulimit -f)";
    default:
        return "the machine does not have the memory, or does not give it";
    }
}

static int check_register_gpu(const struct wharf_connection *connection,
                              const Wharf__RegisterMemoryRequest *memory, const char **ret_text)
{
    uint8_t engine = connection->session->engine;

    *ret_text = "GPU memory was not agreed on: FEATURE_GPU_MEMORY is missing";
    if (!(connection->features & WHARF_FEATURE_GPU_MEMORY))
        return EOPNOTSUPP;
    *ret_text = "the queue's engine is the CPU, which cannot reach GPU memory";
    if (engine == WHARF_ENGINE_CPU || engine == WHARF_ENGINE_REFERENCE)
        return EOPNOTSUPP;
    *ret_text = "read-only GPU memory is for sources, which FEATURE_GPU_SOURCES has to allow";
    if (memory->read_only && !(connection->features & WHARF_FEATURE_GPU_SOURCES))
        return EINVAL;
    return 0;
}

static int check_register(struct wharf_connection *connection,
                          const Wharf__RegisterMemoryRequest *memory, const char **ret_text)
{
    *ret_text = "open the queue first: regions belong to it";
    if (!connection->session)
        return EINVAL;
    *ret_text = "region is not 1 to 65535";
    if (memory->region == WHARF_REGION_ARENA || memory->region > UINT16_MAX)
        return EINVAL;
    *ret_text = "nbytes is 0";
    if (memory->nbytes == 0)
        return EINVAL;
    *ret_text = "kind is none that is known";
    if (memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_GPU)
        return check_register_gpu(connection, memory, ret_text);
    if (memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_FILE)
        return wharf_files_check(connection, memory, ret_text);
    return memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD ? 0 : EINVAL;
}

void wharf_request_removed(struct wharf_connection *connection, uint32_t id, int r,
                           const char *what, uint32_t number)
{
    if (r == -ENOENT)
        wharf_request_refuse(connection, id, ENOENT, "there is no %s %u", what, (unsigned)number);
    else if (r == -EBUSY)
        wharf_request_refuse(connection, id, EBUSY, "jobs in flight use %s %u", what,
                             (unsigned)number);
    else if (r == -ETIME)
        wharf_connection_part_from_blocked(connection);
    else
        wharf_request_done(connection, id);
}

/* ---- the regions ----------------------------------------------------------------------------- */

/* Frees the region's place.  Returns the use to be returned when its segment is freed: memory stays
 * charged until every GPU has released it.  Under the lock. */
static struct wharf_use drop(struct wharf_core *core, struct wharf_session *session,
                             struct wharf_region *region)
{
    struct wharf_use use = wharf_region_use(region);

    session->n_device_regions -= region->is_device;
    session->starts_nbytes -= region->has_starts ? region->segment.nbytes : 0;
    wharf_core_part_with(core, session, region->memory, &use);
    *region = (struct wharf_region){.is_there = false};
    return use;
}

/* Whether it can hold start words.  Its pages are the daemon's from then on, locked ones, also
 * those that the client never wrote: so a session has few. */
static bool may_have_starts(const struct wharf_session *session,
                            const Wharf__RegisterMemoryRequest *memory)
{
    return session->max_start_ns > 0 && memory->read_only &&
           memory->nbytes <= WHARF_RING_MAX_START_NBYTES - session->starts_nbytes;
}

static int add_region(struct wharf_connection *connection,
                      const Wharf__RegisterMemoryRequest *memory, int fd, const char **ret_text)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    struct wharf_region *place;
    struct wharf_region wanted = {
        .number = (uint16_t)memory->region,
        .is_there = true,
        .read_only = memory->read_only,
        .segment = {.nbytes = memory->nbytes, .fd = -1},
    };
    int r = wharf_region_begin(connection, &wanted, &place, ret_text);

    if (r < 0)
        return r;
    r = wharf_segment_adopt(fd, memory->nbytes, memory->read_only, &wanted.segment);
    if (r == 0 && may_have_starts(session, memory))
        wanted.has_starts = wharf_segment_keep(fd, &wanted.segment);
    if (r == 0)
        wanted.memory = wharf_gpu_memory_new(core, session, fd, memory->nbytes, memory->read_only);
    r = wharf_region_enter(connection, &wanted, place, r);
    if (r == 0 && wanted.has_starts)
        session->starts_nbytes += memory->nbytes;
    return r;
}

/* Adds a region to a place where submissions do not find it until it is imported. */
static int add_gpu_region(struct wharf_connection *connection,
                          const Wharf__RegisterMemoryRequest *memory, int fd, const char **ret_text)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    struct wharf_region *place;
    struct wharf_region wanted = {
        .number = (uint16_t)memory->region,
        .read_only = memory->read_only,
        .write_only = !(connection->features & WHARF_FEATURE_GPU_SOURCES),
        .is_device = true,
        .segment = {.nbytes = memory->nbytes, .fd = -1},
    };
    int r = wharf_region_begin(connection, &wanted, &place, ret_text);

    if (r < 0)
        return r;
    wanted.memory = wharf_gpu_memory_new_device(core, session, fd, memory->nbytes);
    return wharf_region_enter(connection, &wanted, place, wanted.memory ? 0 : -ENOMEM);
}

/* ---- GPU memory ---------------------------------------------------------------------------- */

static const char *gpu_error_text(int r)
{
    switch (r) {
    case -EBADF:
        return "the descriptor is none that cuMemExportToShareableHandle gives (with engine simt: "
               "no sealed memfd)";
    case -ENODEV:
        return "there is no GPU at present; the daemon's log says why";
    default:
        return "the machine does not have the memory";
    }
}

static struct wharf_region *placed_region(struct wharf_session *session, uint32_t number)
{
    for (uint32_t i = 1; i < session->n_regions; i++) {
        struct wharf_region *region = &session->regions[i];
        if (!region->is_there && region->memory && region->number == number)
            return region;
    }
    return NULL;
}

/* Whether a worker may still import it: one that was asked, or will be. */
static bool may_be_taken(const struct wharf_core *core, const struct wharf_gpu_memory *memory)
{
    for (uint32_t i = 0; i < core->fleet.n_gpus; i++) {
        const struct wharf_gpu_view *gpu = &core->fleet.gpus[i];
        if (gpu->may_come && !gpu->is_lost && memory->on[i].state != WHARF_GPU_MEMORY_REFUSED)
            return true;
    }
    return false;
}

/* Returns 0; -EAGAIN if the outcome is not known yet; or an errno value with its text.  Under the
 * lock. */
static int decide_gpu_region(struct wharf_core *core, struct wharf_session *session,
                             struct wharf_region *region, char text[], size_t text_nbytes)
{
    const struct wharf_gpu_memory *memory = region->memory;
    int error = memory->error;

    if (memory->owner < WHARF_MAX_GPUS) {
        region->is_there = true;
        return 0;
    }
    if (may_be_taken(core, memory))
        return -EAGAIN;
    if (error) {
        snprintf(text, text_nbytes, "the GPU does not take it: %s",
                 memory->text[0] ? memory->text
                                 : "it is no memory of this GPU, or of another size");
        /* That of no GPU that is served: no more of it is known. */
        error = error == EXDEV ? EINVAL : error;
    } else {
        error = ENODEV;
        snprintf(text, text_nbytes, "%s", gpu_error_text(-ENODEV));
    }
    drop(core, session, region);
    return error;
}

void wharf_request_decided(struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    uint32_t number = connection->import_region;
    char text[160];

    if (!(connection->holds & WHARF_HOLD_IMPORT))
        return;
    struct wharf_region *region = placed_region(session, number);
    /* It is a file that is waited for. */
    if (!region)
        return;
    if (wharf_core_enter_alone(core, session) < 0) {
        wharf_connection_part_from_blocked(connection);
        return;
    }
    int error = decide_gpu_region(core, session, region, text, sizeof(text));
    wharf_core_leave_alone(core, session);
    if (error == -EAGAIN)
        return;
    if (error)
        wharf_request_refuse(connection, connection->import_id, error, "region %u: %s",
                             (unsigned)number, text);
    else
        wharf_request_done(connection, connection->import_id);
    wharf_connection_release_import(connection);
}

/* ---- registering and unregistering --------------------------------------------------------- */

void wharf_request_register(struct wharf_connection *connection, uint32_t id,
                            const Wharf__RegisterMemoryRequest *memory, int fd)
{
    bool is_gpu = memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
    const char *text;
    int code = check_register(connection, memory, &text);

    if (code) {
        wharf_files_forgo(connection);
        wharf_request_refuse(connection, id, code, "%s", text);
        return;
    }
    if (memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_FILE) {
        wharf_files_register(connection, id, memory, fd);
        return;
    }
    text = NULL;
    int r = fd < 0   ? fd
            : is_gpu ? add_gpu_region(connection, memory, fd, &text)
                     : add_region(connection, memory, fd, &text);
    if (r == -ETIME) {
        wharf_connection_part_from_blocked(connection);
    } else if (r < 0) {
        if (!text)
            text = is_gpu ? gpu_error_text(r) : wharf_memory_error_text(r);
        wharf_request_refuse(connection, id, -r, "region %u: %s", (unsigned)memory->region, text);
    } else if (is_gpu) {
        connection->import_id = id;
        connection->import_region = memory->region;
        wharf_connection_hold_import(connection);
    } else {
        wharf_request_done(connection, id);
    }
}

static int remove_region(struct wharf_connection *connection, uint32_t number)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    struct wharf_segment segment = {.fd = -1};
    struct wharf_use use;
    bool is_file = false;
    uint32_t file = 0;
    int r = session ? wharf_core_enter_alone(core, session) : -ENOENT;

    if (r < 0)
        return r;
    struct wharf_region *region = wharf_session_region(session, number);
    if (!region) {
        r = -ENOENT;
    } else if (region->n_users) {
        r = -EBUSY;
    } else {
        segment = region->segment;
        is_file = region->is_file;
        file = region->file;
        use = drop(core, session, region);
    }
    wharf_core_leave_alone(core, session);
    if (r == 0 && is_file)
        wharf_files_close(connection, file, &use);
    else if (r == 0)
        wharf_server_reap_segment(connection->server, &segment, connection->tenant, &use);
    return r;
}

void wharf_request_unregister(struct wharf_connection *connection, uint32_t id,
                              const Wharf__UnregisterMemoryRequest *memory)
{
    if (memory->region == WHARF_REGION_ARENA)
        wharf_request_refuse(connection, id, EINVAL, "the arena stays as long as the queue");
    else
        wharf_request_removed(connection, id, remove_region(connection, memory->region), "region",
                              memory->region);
}
