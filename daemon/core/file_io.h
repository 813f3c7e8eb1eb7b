/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_io.h: a session's files, for the threads that run its jobs.
 *
 * A thread that needs bytes of a file asks the session's process (file_protocol.h).  It waits for
 * the answer, the process's end, the time limit or a stop of the job, whichever comes first.  The
 * limit counts from the beginning of a step; for a request that waits for others, from the last
 * step of any.  So a slow file keeps its own session waiting, and a file that hangs keeps no thread
 * for longer than the limit.  A slot that a thread abandoned belongs to the process until the
 * answer arrives.
 *
 * After the process's end or a passed limit, all files of the session are lost, and every further
 * request says so.  The loop thread then ends the connection; the client may connect again.
 */
#ifndef WHARF_DAEMON_CORE_FILE_IO_H
#define WHARF_DAEMON_CORE_FILE_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/file_protocol.h"
#include "daemon/core/segment.h"

struct wharf_file_patience;
struct wharf_file_staging;
struct wharf_shared_charge;

struct wharf_file_io {
    int socket;                         /* to the process */
    struct wharf_segment memory;        /* of file_protocol.h */
    struct wharf_file_staging *staging; /* NULL: no GPU can have its files */
    uint32_t n_slots;
    uint64_t timeout_ns;
    const bool *is_short; /* too few threads are left, so none may wait for long; read atomically */
    bool is_lost;         /* atomically, as all below */
    uint64_t moved_ns;    /* when some step was last seen to begin or end */
    bool is_hung;         /* an operation exceeded the limit */
    uint64_t free_slots;  /* bits */
    uint64_t left_slots;  /* abandoned: no thread waits for their answers */
    struct wharf_file_counts counted; /* under the core lock: what the tenant's statistics have */
};

/* How an operation ended. */
enum wharf_file_how {
    WHARF_FILE_DONE,    /* with `error` and `nbytes` */
    WHARF_FILE_LOST,    /* the process has ended; nothing was started, or only a read */
    WHARF_FILE_LATE,    /* it exceeded the time limit */
    WHARF_FILE_STOPPED, /* the job was stopped meanwhile */
    WHARF_FILE_UNKNOWN, /* a write was started, and its result is unknown */
};
struct wharf_file_end {
    enum wharf_file_how how;
    int error; /* errno value, or 0.  With 0, fewer bytes than requested mean the end of the file */
    uint64_t nbytes; /* bytes read or written */
};

struct wharf_file_io_options {
    uint32_t n_slots;
    uint64_t timeout_ns;
    uint64_t ahead_nbytes; /* how far to read ahead of jobs in sequence: file_ahead.h */
    const bool *is_short;
};

/* Creates the memory.  Takes ownership of the socket, also on failure, and on success of the
 * staging area, which may be NULL.  0 or -errno. */
int wharf_file_io_new(int socket, const struct wharf_file_io_options *options,
                      struct wharf_file_staging *staging, struct wharf_file_io **ret_io);
/* Does not wait for the process.  NULL is allowed. */
void wharf_file_io_free(struct wharf_file_io *io);

/* The charge for the staging area; NULL: there is none.  NULL is allowed. */
struct wharf_shared_charge *wharf_file_io_charge(const struct wharf_file_io *io);

/* Adds what was read ahead since the last call, under the core lock.  is_over: none of it will be
 * used any more. */
void wharf_file_io_count(struct wharf_file_io *io, bool is_over, struct wharf_file_counts *to);

/* Declares the process's files lost and wakes all waiting threads.  From any thread. */
void wharf_file_io_lose(struct wharf_file_io *io);

static inline bool wharf_file_io_is_lost(const struct wharf_file_io *io)
{
    return __atomic_load_n(&io->is_lost, __ATOMIC_RELAXED);
}

/*
 * Reads into, or writes from, the daemon's own memory, and waits for the end; without the core
 * lock.  is_more: a read for the same job was before.  stopped: 0 until the job should stop, read
 * atomically.  A write that was started is waited for even then.
 */
struct wharf_file_end wharf_file_io_read(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                         void *to, uint64_t nbytes, bool is_more,
                                         const uint8_t *stopped);
struct wharf_file_end wharf_file_io_write(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                          const void *from, uint64_t nbytes,
                                          const uint8_t *stopped);

/*
 * Has a range read to a place of the staging area that was taken for it; does not wait.  Whether
 * that has ended, and how, _is_staged tells: after the answer, the process's end or the time limit.
 */
void wharf_file_io_stage(struct wharf_file_io *io, uint32_t file, uint64_t offset, uint64_t nbytes,
                         uint32_t place, bool is_more);
bool wharf_file_io_is_staged(struct wharf_file_io *io, uint32_t place,
                             struct wharf_file_patience *patience, uint64_t now_ns, uint64_t nbytes,
                             struct wharf_file_end *ret_end);

#endif
