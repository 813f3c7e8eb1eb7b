/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_protocol.h: messages to wharfd-io, the process that reads and writes clients' files.
 *
 * Each session that has registered a file has one such process.  The filter hands the descriptors
 * to it; the core has none.  Requests are packets on a socket; any thread of the process takes the
 * next one.  Reads and writes begin in the order of their packets, but always leave a thread for
 * TAKE and CLOSE, and STAGE leaves some for READ and WRITE.
 *
 * READ and WRITE use memory that only the core and the process share: n_slots heads of struct
 * wharf_file_slot, those of the staging area's units, struct wharf_file_counts, then, from the next
 * page on, n_slots buffers of WHARF_FILE_SLOT_NBYTES.  A slot belongs to one caller until it is
 * done:
 *
 *     core                              process
 *     is_done = 0, then the packet  -->  reads the file into the buffer, or writes from there
 *     looks at error and nbytes     <--  error, nbytes, then is_done = 1 with release; FUTEX_WAKE
 *
 * The process works in steps of WHARF_FILE_STEP_NBYTES, and counts in n_steps how often it began
 * one.  So the core can tell slow files from those that hang, and both from a request that waits
 * for a thread.
 *
 * STAGE reads into the staging area, memory of its own in which GPUs find their sources
 * (file_staging.h).  It has a head for each unit; a read uses the head of its first one.  The
 * process has no other memory to read into, and its successor gets a new area: a read that a file
 * server answers after the process was killed still writes there.
 *
 * TAKE and CLOSE are answered by packets, struct wharf_file_answer.  A client's mistake can make
 * the core close a file while a thread still takes it, since taking can hang.  So each file has a
 * number: a place, and the turn in which the place is used.  A file whose turn is over when it is
 * taken is closed, and nothing is read or written by the number of another turn.
 */
#ifndef WHARF_DAEMON_CORE_FILE_PROTOCOL_H
#define WHARF_DAEMON_CORE_FILE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHARF_FILE_SLOT_NBYTES ((size_t)256 << 10)
#define WHARF_FILE_STEP_NBYTES WHARF_FILE_SLOT_NBYTES
#define WHARF_FILE_MOST_SLOTS 32u
/* The most that is read ahead of one sequence: file_ahead.h. */
#define WHARF_FILE_MOST_AHEAD_NBYTES ((uint64_t)8 << 20)
/* Of the staging area. */
#define WHARF_FILE_UNIT_NBYTES ((size_t)16 << 10)
#define WHARF_FILE_MOST_UNITS 8192u
/* STAGE requests that may be unanswered, so that their packets always fit into the socket. */
#define WHARF_FILE_MOST_STAGED 96u
/* Files of one session. */
#define WHARF_FILE_MOST 1024u
/* No file's number: turns begin with 1. */
#define WHARF_FILE_NONE 0u

enum wharf_file_op {
    WHARF_FILE_BEGIN,   /* the first request, with the memory's descriptor */
    WHARF_FILE_STAGING, /* the second one, if there is a staging area, with its descriptor */
    WHARF_FILE_TAKE,    /* from the filter, with a client's descriptor, which becomes `file` */
    WHARF_FILE_READ,
    WHARF_FILE_STAGE,
    WHARF_FILE_WRITE,
    WHARF_FILE_CLOSE,
};

struct wharf_file_request {
    uint32_t op;
    uint32_t file;    /* wharf_file_number */
    uint32_t slot;    /* of READ and WRITE; of STAGE: its unit; of BEGIN: the number of slots */
    uint32_t nbytes;  /* of READ, WRITE and STAGE; of TAKE: whether the client wants to write; of
                         BEGIN: the number of units of the staging area, or 0 */
    uint64_t offset;  /* in the file; of BEGIN: how many bytes may be read ahead */
    uint32_t is_more; /* of READ and STAGE: for the same job as one before */
    uint32_t reserved;
};

struct wharf_file_answer {
    uint32_t op; /* TAKE or CLOSE */
    uint32_t file;
    int32_t error;       /* of TAKE: 0, or -errno if the file is refused */
    uint32_t write_only; /* of TAKE: it is not open for reading */
};

struct wharf_file_slot {
    uint32_t is_done; /* a futex */
    int32_t error;    /* 0, or an errno value */
    uint32_t nbytes;  /* bytes read or written */
    uint32_t n_steps; /* that were begun; 0: the request waits */
    uint32_t reserved[12];
};

/* What was read ahead of jobs, and of that what they have read, and what nobody will.  Of the
 * process, behind the last head; read and written atomically. */
struct wharf_file_counts {
    uint64_t ahead_nbytes, hit_nbytes, waste_nbytes;
};

_Static_assert(sizeof(struct wharf_file_counts) <= sizeof(struct wharf_file_slot),
               "they have the place of a head");

static inline uint32_t wharf_file_number(uint32_t place, uint32_t turn)
{
    return turn * WHARF_FILE_MOST + place;
}
static inline uint32_t wharf_file_place(uint32_t file)
{
    return file % WHARF_FILE_MOST;
}
/* For two files in one place: whether the turn of `file` comes after the other's.  Turns wrap. */
static inline bool wharf_file_is_later(uint32_t file, uint32_t other)
{
    return (int32_t)(file - other) > 0;
}

/* The offset of the buffers, and the size of the whole memory. */
static inline size_t wharf_file_heads_nbytes(uint32_t n_slots, uint32_t n_units)
{
    return (((size_t)n_slots + n_units + 1) * sizeof(struct wharf_file_slot) + 4095) / 4096 * 4096;
}
static inline size_t wharf_file_memory_nbytes(uint32_t n_slots, uint32_t n_units)
{
    return wharf_file_heads_nbytes(n_slots, n_units) + n_slots * WHARF_FILE_SLOT_NBYTES;
}

#endif
