/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_protocol.h: the process that receives clients' descriptors, and what is said to it.
 *
 * DESIGN.md says why it is a process of its own.  The front sends it struct wharf_gate_question,
 * with the socket of a client whose next packet has descriptors.  It receives the packet, keeps the
 * descriptor if it is exactly one and of that kind, closes everything else, and sends back:
 *
 *     struct wharf_gate_answer, then the packet's bytes; and the descriptor, if it was kept
 *
 * A file is not for the front: with the question comes the front's socket to the session's process
 * for files (core/file_protocol.h), and the gate sends the file there.
 *
 * It does one packet at a time, and closes before it answers: a close that hangs is the fault of
 * the client whose answer is awaited.  First of all it sends an answer to nothing: it has started.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_GATE_PROTOCOL_H
#define WHARF_DAEMON_DISPOSABLE_GATE_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

enum wharf_gate_kind {
    WHARF_GATE_MEMFD = 0, /* a plain memfd that is sealed against changing its size */
    WHARF_GATE_GPU = 1,   /* one of the GPU driver's, as exported memory is */
    WHARF_GATE_FILE = 2,  /* anything, for the process for files, which is told that it is read, */
    WHARF_GATE_FILE_WRITE = 3, /* or written as well */
};

static inline bool wharf_gate_is_file(uint32_t kind)
{
    return kind == WHARF_GATE_FILE || kind == WHARF_GATE_FILE_WRITE;
}

struct wharf_gate_question {
    uint32_t kind; /* enum wharf_gate_kind: what the packet asks for */
    uint32_t file; /* what a file is called */
};

struct wharf_gate_answer {
    int32_t error;   /* of receiving, negative; 0 */
    int32_t verdict; /* on the one descriptor: 0, or why it was not kept, as of
                         wharf_segment_check and wharf_segment_check_gpu; of a file, whether it
                         was sent on */
    uint32_t n_fds;  /* that came */
    uint32_t packet_nbytes;
};

/* Its main function; `fd` leads to the front, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_gate_main(int fd, pid_t parent);

#endif
