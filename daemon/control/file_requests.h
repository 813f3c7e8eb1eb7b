/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_requests.h: clients' files: registering and unregistering them, and the process for them.
 *
 * A session has a process (disposable/file_main.h) from the first file that it registers to its
 * end.  The filter hands the file to that process, which looks at it; the connection is held until
 * it has answered.  The daemon kills the process when the session ends, and when a file has hung
 * it, which ends the session.  Until it is gone its tenant pays for its memory, and while two of
 * them hang the tenant registers no more files.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_FILE_REQUESTS_H
#define WHARF_DAEMON_CONTROL_FILE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/control.h"

struct wharf_connection;
struct wharf_server;
struct wharf_use;

/* Whether the request makes the daemon start a process. */
bool wharf_files_need_process(const struct wharf_connection *connection,
                              const Wharf__Request *request);

/* What that process will be charged, with the staging area; which it may have to do without. */
struct wharf_use wharf_files_start_use(const struct wharf_connection *connection);

/* Before the filter is asked: starts the process if the request needs one and there is none, and
 * finds a number for the file.  Why that failed is for wharf_files_register to tell. */
void wharf_files_prepare(struct wharf_connection *connection, const Wharf__Request *request);

/* Whether that went well, so that the filter can send the file on: by this socket, as that file. */
bool wharf_files_are_ready(const struct wharf_connection *connection);
int wharf_files_socket(const struct wharf_connection *connection, uint32_t *ret_file);

/* What is wrong with a request to register a file, whatever file it is; 0, or an errno value and
 * its text. */
int wharf_files_check(const struct wharf_connection *connection,
                      const Wharf__RegisterMemoryRequest *memory, const char **ret_text);

/* The filter has sent the file on, or `sent` is why not, negative: answers the request in time. */
void wharf_files_register(struct wharf_connection *connection, uint32_t id,
                          const Wharf__RegisterMemoryRequest *memory, int sent);

/* Instead of that, where the request is refused for another reason: gives up the file's number. */
void wharf_files_forgo(struct wharf_connection *connection);

/* A region that was a file is gone; `use` was charged for it. */
void wharf_files_close(struct wharf_connection *connection, uint32_t file,
                       const struct wharf_use *use);

/* The process has ended, or hangs: so does the connection. */
void wharf_files_are_lost(struct wharf_connection *connection);

/* The connection ends: kills its process. */
void wharf_files_forget(struct wharf_connection *connection);

/* The daemon ends: kills those that there are, and waits for none. */
void wharf_files_deinit(struct wharf_server *server);

#endif
