/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_main.h: wharfd-io, the process that has a session's files (core/file_protocol.h).
 *
 * Anything here may hang in a file for as long as its server likes, beyond SIGKILL: fstat, read,
 * write, close, and the process's own end.  Nobody waits for it.  It reads into its own memory and
 * writes from there; the core copies what it wants.  Whatever a file's server does later, no
 * client's memory and no other session's is concerned.
 *
 * It uses pread and pwrite by threads, not io_uring: a thread that was killed in one of these has
 * ended it before its process is gone, but for files whose server still has the request.  A ring's
 * requests go on after that.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_MAIN_H
#define WHARF_DAEMON_DISPOSABLE_FILE_MAIN_H

#include <sys/types.h>

/* Its main function; `fd` leads to the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_file_main(int fd, pid_t parent);

#endif
