/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_error.h: why there is no connection, for the person who has to do something about it.
 */
#ifndef WHARF_CLIENT_CONNECT_ERROR_H
#define WHARF_CLIENT_CONNECT_ERROR_H

#include <stddef.h>

/*
 * wharf_client_explain_connect: writes one line about connect's `err` (positive) for the socket at
 * `path`.  Looks at the socket, and at users and groups where that helps.
 */
void wharf_client_explain_connect(const char *path, int err, char *text, size_t text_nbytes);

#endif
