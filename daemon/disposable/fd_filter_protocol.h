/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter_protocol.h: the process that receives clients' descriptors, and what is said to it.
 *
 * DESIGN.md says why it is a process of its own.  The core sends it struct
 * wharf_fd_filter_question, with the socket of a client whose next packet has descriptors.  It
 * receives the packet, keeps the descriptor if it is exactly one and of that kind, closes
 * everything else, and sends back:
 *
 *     struct wharf_fd_filter_answer, then the packet's bytes; and the descriptor, if it was kept
 *
 * A file is not for the core: with the question comes the core's socket to the session's process
 * for files (core/file_protocol.h), and the filter sends the file there.
 *
 * It does one packet at a time, and closes before it answers: a close that hangs is the fault of
 * the client whose answer is awaited.  First of all it sends an answer to nothing: it has started.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROTOCOL_H
#define WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

enum wharf_fd_filter_kind {
    WHARF_FD_FILTER_MEMFD = 0, /* a plain memfd that is sealed against changing its size */
    WHARF_FD_FILTER_GPU = 1,   /* one of the GPU driver's, as exported memory is */
    WHARF_FD_FILTER_FILE =
        2, /* anything, for the process for files, which is told that it is read, */
    WHARF_FD_FILTER_FILE_WRITE = 3, /* or written as well */
};

static inline bool wharf_fd_filter_is_file(uint32_t kind)
{
    return kind == WHARF_FD_FILTER_FILE || kind == WHARF_FD_FILTER_FILE_WRITE;
}

struct wharf_fd_filter_question {
    uint32_t kind; /* enum wharf_fd_filter_kind: what the packet asks for */
    uint32_t file; /* what a file is called */
};

struct wharf_fd_filter_answer {
    int32_t error;   /* of receiving, negative; 0 */
    int32_t verdict; /* on the one descriptor: 0, or why it was not kept, as of
                         wharf_segment_check and wharf_segment_check_gpu; of a file, whether it
                         was sent on */
    uint32_t n_fds;  /* that came */
    uint32_t packet_nbytes;
};

/* Its main function; `fd` leads to the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_fd_filter_main(int fd, pid_t parent);

#endif
