/* SPDX-License-Identifier: Apache-2.0 */
/* file_patience.h: how long an operation on a file has been at its last step (file_io.h). */
#ifndef WHARF_DAEMON_CORE_FILE_PATIENCE_H
#define WHARF_DAEMON_CORE_FILE_PATIENCE_H

#include <stdint.h>

struct wharf_file_patience {
    uint64_t since_ns; /* when the step was first seen; at first, when it was asked for */
    uint32_t n_steps;  /* of file_protocol.h */
};

#endif
