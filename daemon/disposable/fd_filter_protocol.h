/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter_protocol.h: the process that receives clients' descriptors, and its messages.
 *
 * DESIGN.md says why it is a separate process.  The core sends struct wharf_fd_filter_question,
 * with the socket of a client whose next packet has descriptors.  The filter receives the packet.
 * It keeps the descriptor if there is exactly one and it has the right kind, closes all others, and
 * sends back:
 *
 *     struct wharf_fd_filter_answer, then the packet's bytes; and the descriptor, if it was kept
 *
 * A file never goes to the core.  Its question comes with the core's socket to the session's
 * wharfd-io (core/file_protocol.h), and the filter sends the file there.
 *
 * The filter handles one packet at a time, and closes descriptors before it answers; so a close
 * that hangs is the fault of the client whose answer is awaited.  It sends one unsolicited answer
 * when it has started.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROTOCOL_H
#define WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

enum wharf_fd_filter_kind {
    WHARF_FD_FILTER_MEMFD = 0,      /* a plain memfd, sealed against shrinking and growing */
    WHARF_FD_FILTER_GPU = 1,        /* a device of the GPU driver, as exported memory is */
    WHARF_FD_FILTER_FILE = 2,       /* anything, to be sent to wharfd-io for reading, */
    WHARF_FD_FILTER_FILE_WRITE = 3, /* or for writing too */
};

static inline bool wharf_fd_filter_is_file(uint32_t kind)
{
    return kind == WHARF_FD_FILTER_FILE || kind == WHARF_FD_FILTER_FILE_WRITE;
}

struct wharf_fd_filter_question {
    uint32_t kind; /* enum wharf_fd_filter_kind that the packet requires */
    uint32_t file; /* the number for a file */
};

struct wharf_fd_filter_answer {
    int32_t error;   /* of receiving: 0 or -errno */
    int32_t verdict; /* on the descriptor: 0, or an error of wharf_segment_check or
                         wharf_segment_check_gpu; for a file, of sending it on */
    uint32_t n_fds;  /* that the packet had */
    uint32_t packet_nbytes;
};

/* Its main function; `fd` leads to the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_fd_filter_main(int fd, pid_t parent);

#endif
