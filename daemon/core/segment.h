/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h: shared memory, both the daemon's and clients'.
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
    bool empty; /* its pages are freed with it */
};

enum wharf_segment_kind {
    WHARF_SEGMENT_C,      /* the daemon reads; the client writes, and can add seals */
    WHARF_SEGMENT_D,      /* only the daemon can ever write */
    WHARF_SEGMENT_ARENA,  /* both write */
    WHARF_SEGMENT_WORKER, /* the daemon and the GPU worker write; all pages are allocated */
    WHARF_SEGMENT_FILES,  /* the same, for the daemon and wharfd-io */
};

/*
 * wharf_segment_make: a new memfd of nbytes zeroed bytes (a multiple of 4096, above 0),
 * close-on-exec, sealed against shrinking and growing, and mapped.  Returns 0 or -errno.
 */
int wharf_segment_make(enum wharf_segment_kind kind, size_t nbytes,
                       struct wharf_segment *ret_segment);

/*
 * wharf_segment_open: opens a segment C or D again, for the client; D for reading only.  While the
 * client has this descriptor, a mapping of it or an unread packet with it, the segment is held.
 * Returns the descriptor, which the caller owns, or -errno.
 */
int wharf_segment_open(const struct wharf_segment *segment, enum wharf_segment_kind kind);

/* Whether somebody besides the daemon has the segment C or D of this descriptor open.  False where
 * the kernel cannot tell. */
bool wharf_segment_is_held(int fd);

/* Whether nobody can ever punch holes into it, because it is sealed against further writing
 * (existing mappings stay writable).  Its descriptor must have been kept.  Never blocks. */
bool wharf_segment_is_whole(const struct wharf_segment *segment);

/*
 * wharf_segment_keep: makes all pages of a client's memory, which is mapped for reading, present
 * for good, so that reading it never blocks.  False: it is not sealed against holes, or lacks
 * memory.
 */
bool wharf_segment_keep(int fd, struct wharf_segment *segment);

/*
 * wharf_segment_check: whether the daemon may keep a client's descriptor: it must be a memfd,
 * sealed against shrinking and growing, without huge pages.  F_GET_SEALS comes first, because it
 * calls no file server; without seals nothing else touches the descriptor.  Returns 0, -EBADF (not
 * such a descriptor) or -EPERM (not sealed), with the seals and the size.
 */
int wharf_segment_check(int fd, unsigned *ret_seals, uint64_t *ret_nbytes);

/*
 * wharf_segment_check_gpu: whether a client's descriptor is an open device of the GPU driver.  The
 * driver exports memory as such descriptors; only the driver can tell whether this one is.  The
 * call may hang in a file server, so it is for the filter.  Returns 0 or -EBADF.
 */
int wharf_segment_check_gpu(int fd);

/*
 * wharf_segment_adopt: maps the first nbytes of a client's memfd, after wharf_segment_check.  The
 * descriptor stays the caller's.  Returns 0, -EBADF, -EPERM (not sealed, or sealed against writing
 * and wanted for writing), -EINVAL (shorter than nbytes, or nbytes is 0), -ENOMEM, or an error of
 * mmap.
 */
int wharf_segment_adopt(int fd, uint64_t nbytes, bool read_only, struct wharf_segment *ret_segment);

/* Frees the pages if `empty` is set, unmaps the memory and closes the descriptor.  Takes about 50
 * ms for a GiB. */
void wharf_segment_free(struct wharf_segment *segment);

#endif
