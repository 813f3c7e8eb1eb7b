/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_protocol.h: what is said to wharfd-io, the process that reads and writes clients' files.
 *
 * There is one for each session that has registered a file.  It has the descriptors, which the
 * filter hands to it; the core has none.  Requests are packets of a socket, and any thread of the
 * process takes the next one.
 *
 * READ and WRITE go through memory that the core and the process share, and no one else: `n_slots`
 * heads of struct wharf_file_slot, then from the next page on as many buffers of
 * WHARF_FILE_SLOT_NBYTES.  A slot is one caller's until it is done:
 *
 *     core                              process
 *     is_done = 0, then the packet  -->  reads the file into the buffer, or writes from there
 *     looks at error and nbytes     <--  error, nbytes, then is_done = 1 with release; FUTEX_WAKE
 *
 * The answers to TAKE and CLOSE are packets, struct wharf_file_answer.
 */
#ifndef WHARF_DAEMON_CORE_FILE_PROTOCOL_H
#define WHARF_DAEMON_CORE_FILE_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define WHARF_FILE_SLOT_NBYTES ((size_t)256 << 10)
#define WHARF_FILE_MOST_SLOTS 32u
/* Files of one session. */
#define WHARF_FILE_MOST 1024u

enum wharf_file_op {
    WHARF_FILE_BEGIN, /* with the memory's descriptor: the first one */
    WHARF_FILE_TAKE,  /* with a client's descriptor, from the filter: `file` is this from now on */
    WHARF_FILE_READ,
    WHARF_FILE_WRITE,
    WHARF_FILE_CLOSE,
};

struct wharf_file_request {
    uint32_t op;
    uint32_t file;   /* below WHARF_FILE_MOST */
    uint32_t slot;   /* of READ and WRITE; of BEGIN, how many there are */
    uint32_t nbytes; /* likewise; of TAKE, whether the file is to be written */
    uint64_t offset; /* in the file */
};

struct wharf_file_answer {
    uint32_t op; /* TAKE or CLOSE */
    uint32_t file;
    int32_t error;       /* of TAKE: 0, or -errno: why it is not taken */
    uint32_t write_only; /* of TAKE: it is not open for reading */
};

struct wharf_file_slot {
    uint32_t is_done; /* a futex */
    int32_t error;    /* 0, or the errno value of what failed */
    uint32_t nbytes;  /* that were read or written */
    uint32_t reserved[13];
};

/* Where the buffers begin, and how long all is. */
static inline size_t wharf_file_heads_nbytes(uint32_t n_slots)
{
    return (n_slots * sizeof(struct wharf_file_slot) + 4095) / 4096 * 4096;
}
static inline size_t wharf_file_memory_nbytes(uint32_t n_slots)
{
    return wharf_file_heads_nbytes(n_slots) + n_slots * WHARF_FILE_SLOT_NBYTES;
}

#endif
