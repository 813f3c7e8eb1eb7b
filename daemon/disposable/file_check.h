/* SPDX-License-Identifier: Apache-2.0 */
/* file_check.h: which files the daemon accepts; PROTOCOL.md, section 1, has the rules. */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_CHECK_H
#define WHARF_DAEMON_DISPOSABLE_FILE_CHECK_H

#include <stdbool.h>

/* Whether a client's descriptor is of such a file, and open for the wanted access.  May hang in a
 * file server.  Returns 0, with whether the file is open for writing only; or -EBADF, -EACCES,
 * -EINVAL, -EROFS, -EOPNOTSUPP or an error of fstat. */
int wharf_file_check(int fd, bool wants_write, bool *ret_write_only);

#endif
