/* SPDX-License-Identifier: Apache-2.0 */
/* queue_use.c: the options and the charge of a requested queue. */
#include "daemon/control/queue_use.h"

#include "daemon/control/connection.h"
#include "daemon/control/server.h"
#include "daemon/core/session.h"

struct wharf_session_options wharf_request_queue_options(const struct wharf_connection *connection,
                                                         const Wharf__OpenQueueRequest *open,
                                                         int fd)
{
    return (struct wharf_session_options){
        .id = connection->number,
        .n_entries = open->n_entries,
        .arena_nbytes = open->bring_arena ? 0 : open->arena_nbytes,
        .n_regions = (uint32_t)connection->told.max_regions,
        .n_models = (uint32_t)connection->told.max_models,
        .max_job_nbytes = connection->told.max_job_nbytes,
        .max_batch_chunks = connection->told.max_batch_chunks,
        .max_compress_nbytes = connection->features & WHARF_FEATURE_COMPRESS
                                   ? connection->told.max_compress_nbytes
                                   : 0,
        .max_start_ns =
            connection->features & WHARF_FEATURE_START_WORDS ? connection->told.max_start_ns : 0,
        .generation = connection->server->core.generation,
        .default_class = open->default_class ? (uint8_t)open->default_class : WHARF_CLASS_NORMAL,
        .engine = (uint8_t)open->engine,
        .has_marks = (connection->features & WHARF_FEATURE_MARKS) != 0,
        .has_words = (connection->features & WHARF_FEATURE_DONE_WORDS) != 0,
        .has_chains = (connection->features & WHARF_FEATURE_CHAINS) != 0,
        .brought_fd = open->bring_arena ? fd : -1,
        .brought_nbytes = open->bring_arena ? open->arena_nbytes : 0,
    };
}

struct wharf_use wharf_request_queue_use(const struct wharf_connection *connection,
                                         const Wharf__OpenQueueRequest *open)
{
    struct wharf_session_options options = wharf_request_queue_options(connection, open, -1);

    return wharf_session_use(&options);
}
