/* SPDX-License-Identifier: Apache-2.0 */
/* file_check.h: which files are served: PROTOCOL.md, section 1. */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_CHECK_H
#define WHARF_DAEMON_DISPOSABLE_FILE_CHECK_H

#include <stdbool.h>

/* Whether a client's descriptor is of such a file, and open for that.  Asks the file's server,
 * which may hang.  Returns 0 with whether it can be written alone, -EBADF, -EACCES, -EINVAL,
 * -EOPNOTSUPP or what fstat said. */
int wharf_file_check(int fd, bool wants_write, bool *ret_write_only);

#endif
