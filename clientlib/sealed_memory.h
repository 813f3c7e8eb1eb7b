/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed_memory.h: shared memory from descriptors, looked at before it is mapped.
 *
 * Memory that its other owner can shrink, or that is of huge pages and can be punched, ends its
 * reader with SIGBUS.  So what a daemon sends, and what a program registers, has to be a memfd that
 * is sealed against that, as PROTOCOL.md says.
 */
#ifndef WHARF_CLIENT_SEALED_MEMORY_H
#define WHARF_CLIENT_SEALED_MEMORY_H

#include <stdint.h>

/*
 * wharf_client_memfd_check: whether `fd` is a memfd of at least nbytes, without huge pages, with
 * the seal SHRINK and those of `more_seals`.  Returns 0 with its seals in *ret_seals; or, with a
 * message that starts with `name`, -EBADF (not such a descriptor), -EPERM (a seal is missing) or
 * -EINVAL (too short).
 */
int wharf_client_memfd_check(int fd, uint64_t nbytes, int more_seals, const char *name,
                             int *ret_seals);

/*
 * wharf_client_map: maps the first nbytes with `protection` (PROT_*), not for forked children.
 * Returns 0 or -errno of mmap.
 */
int wharf_client_map(int fd, uint64_t nbytes, int protection, void **ret_address);

#endif
