/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_model.h: a model that a client has registered.
 */
#ifndef WHARF_DAEMON_CORE_SESSION_MODEL_H
#define WHARF_DAEMON_CORE_SESSION_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/segment.h"
#include "daemon/core/totals.h"

struct wharf_gpu_memory;

/* Guarded like the session's regions. */
struct wharf_session_model {
    bool is_there;
    uint16_t codec;
    uint32_t n_users;             /* jobs in flight that name it */
    struct wharf_segment segment; /* its image */
    struct wharf_gpu_memory *memory;
    struct wharf_use use; /* charged for it */
};

#endif
