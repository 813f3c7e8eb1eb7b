/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h: shared memory, the daemon's own and that of clients.
 */
#ifndef WHARF_DAEMON_CORE_SEGMENT_H
#define WHARF_DAEMON_CORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_segment {
    void *address; /* NULL: not mapped */
    size_t nbytes;
    int fd;     /* -1: not kept */
    bool empty; /* to be emptied when it is let go */
};

enum wharf_segment_kind {
    WHARF_SEGMENT_C,      /* the daemon reads, the client writes, and can add seals */
    WHARF_SEGMENT_D,      /* the daemon writes, nobody else ever can */
    WHARF_SEGMENT_ARENA,  /* both write */
    WHARF_SEGMENT_WORKER, /* the daemon and the GPU's worker write; it has all its pages */
    WHARF_SEGMENT_FILES,  /* likewise, the daemon and the process for files */
};

/*
 * wharf_segment_make: a new memfd of nbytes zeroed bytes (a multiple of 4096, above 0),
 * close-on-exec, sealed so that it stays as long as it is, and mapped.  Returns 0 or -errno.
 */
int wharf_segment_make(enum wharf_segment_kind kind, size_t nbytes,
                       struct wharf_segment *ret_segment);

/*
 * wharf_segment_open: a descriptor of a segment C or D for the client, with an opening of its own:
 * as long as the client has it, mapped or in a packet that nobody has read, the segment is held.
 * D's is only for reading.  It is the caller's.  Returns it, or -errno.
 */
int wharf_segment_open(const struct wharf_segment *segment, enum wharf_segment_kind kind);

/* Whether anybody beside the daemon has an opening of a segment C or D, whose descriptor this is.
 * Where the kernel does not tell, nobody has. */
bool wharf_segment_is_held(int fd);

/* Whether nobody can punch holes into it, for good: it was sealed against further writing, by which
 * mappings that there were before lose nothing.  Its descriptor has been kept.  Waits for nobody.
 */
bool wharf_segment_is_whole(const struct wharf_segment *segment);

/*
 * wharf_segment_check: whether a client's descriptor is one that the daemon may keep: a memfd,
 * sealed against shrinking and growing, not of huge pages.  F_GET_SEALS is asked first, which asks
 * no server of the client's; unless it knows seals, nothing else is done with the descriptor.
 * Returns 0, -EBADF (not such a descriptor) or -EPERM (not sealed), with the seals and the size.
 */
int wharf_segment_check(int fd, unsigned *ret_seals, uint64_t *ret_nbytes);

/*
 * wharf_segment_check_gpu: whether a client's descriptor is an open device of the GPU's driver, as
 * the descriptors are that it exports memory by; which of them is such memory the driver alone can
 * tell.  Asks the file's server, which may hang: for the filter.  Returns 0 or -EBADF.
 */
int wharf_segment_check_gpu(int fd);

/*
 * wharf_segment_adopt: maps the first nbytes of a client's memfd, after wharf_segment_check.  The
 * descriptor stays the caller's.  Returns 0, -EBADF, -EPERM (not sealed, or sealed against writing
 * and wanted for writing), -EINVAL (shorter than nbytes, or nbytes is 0), -ENOMEM, or what mmap
 * said.
 */
int wharf_segment_adopt(int fd, uint64_t nbytes, bool read_only, struct wharf_segment *ret_segment);

/* Empties the memory, if it is to be, unmaps it and closes the descriptor: some 50 ms for a GiB. */
void wharf_segment_free(struct wharf_segment *segment);

#endif
