/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_main.h: wharfd-io, the process that has a session's files (core/file_protocol.h).
 *
 * Every call here may hang in a file for as long as its server likes, even beyond SIGKILL: fstat,
 * read, write, close, and the process's own exit.  Nobody waits for it.  It reads into and writes
 * from its own memory; the core copies the bytes.  So a late action of a file server affects no
 * client's memory and no other session.
 *
 * It uses threads with pread and pwrite, not io_uring.  When a killed process is gone, its pread
 * and pwrite calls have ended, except for requests that a file server still has.  Requests of a
 * ring would continue.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_MAIN_H
#define WHARF_DAEMON_DISPOSABLE_FILE_MAIN_H

#include <sys/types.h>

/* Its main function; `fd` leads to the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_file_main(int fd, pid_t parent);

#endif
