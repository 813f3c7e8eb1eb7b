/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_io.h: a session's files, as the threads have them that run its jobs.
 *
 * A thread that needs bytes of a file asks the session's process for them (file_protocol.h) and
 * waits: for the process, for its end, for the time limit, or until the job is stopped, whichever
 * comes first.  So a file can hang the process, and no thread for longer than the limit.  A slot
 * whose answer nobody waited for stays the process's until it has answered.
 *
 * When the process has ended, or a limit has passed, the session is over for files: what else asks
 * is told that they are lost.  The loop thread then ends the connection, whose client comes again.
 */
#ifndef WHARF_DAEMON_CORE_FILE_IO_H
#define WHARF_DAEMON_CORE_FILE_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/file_protocol.h"
#include "daemon/core/segment.h"

struct wharf_file_io {
    int socket;                  /* to the process */
    struct wharf_segment memory; /* of file_protocol.h */
    uint32_t n_slots;
    uint64_t timeout_ns;
    const bool *is_short; /* threads are short: none may wait for long; read atomically */
    bool is_lost;         /* atomically, as all below */
    bool is_hung;         /* since it took too long */
    uint64_t free_slots;  /* bits */
    uint64_t left_slots;  /* nobody waits for their answers */
};

/* How an operation ended. */
enum wharf_file_how {
    WHARF_FILE_DONE,    /* with `error` and `nbytes` */
    WHARF_FILE_LOST,    /* not begun, or a read of no consequence: the process has ended */
    WHARF_FILE_LATE,    /* it took too long */
    WHARF_FILE_STOPPED, /* the job was stopped meanwhile */
    WHARF_FILE_UNKNOWN, /* a write was begun, and nobody knows what became of it */
};
struct wharf_file_end {
    enum wharf_file_how how;
    int error;       /* errno value, or 0; with 0, fewer bytes than asked for are the file's end */
    uint64_t nbytes; /* that were read or written */
};

/* Makes the memory.  Takes the socket over, also when it fails.  0 or -errno. */
int wharf_file_io_new(int socket, uint32_t n_slots, uint64_t timeout_ns, const bool *is_short,
                      struct wharf_file_io **ret_io);
/* The process may live on.  NULL is allowed. */
void wharf_file_io_free(struct wharf_file_io *io);

/* Nothing more is to be had from the process; wakes who waits.  From any thread. */
void wharf_file_io_lose(struct wharf_file_io *io);

static inline bool wharf_file_io_is_lost(const struct wharf_file_io *io)
{
    return __atomic_load_n(&io->is_lost, __ATOMIC_RELAXED);
}

/*
 * Reads into, or writes from, the daemon's own memory, and waits for that; without the core lock.
 * stopped: 0 until the job is to end, read atomically.  A write that was begun is waited for all
 * the same.
 */
struct wharf_file_end wharf_file_io_read(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                         void *to, uint64_t nbytes, const uint8_t *stopped);
struct wharf_file_end wharf_file_io_write(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                          const void *from, uint64_t nbytes,
                                          const uint8_t *stopped);

#endif
