/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_requests.h: handles requests about models.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_MODEL_REQUESTS_H
#define WHARF_DAEMON_CONTROL_MODEL_REQUESTS_H

#include "daemon/control/connection.h"
#include "daemon/control/model.h"

/* Carry out a request and answer it; a model that is registered is answered by
 * wharf_model_take_made.  fd as for wharf_request_handle. */
void wharf_model_register(struct wharf_connection *connection, uint32_t id,
                          const Wharf__RegisterModelRequest *model, int fd);
void wharf_model_unregister(struct wharf_connection *connection, uint32_t id, uint32_t number);

/* The connection ends: nothing is made for it any more. */
void wharf_model_forget(struct wharf_connection *connection);

/* Takes the results of the model maker, enters the models into sessions, and replies. */
void wharf_model_take_made(struct wharf_server *server);

/* ---- models of a session ------------------------------------------------------------------- */

/* Enters a model into a free place of a session.  0; or -ETIME: a blocked worker has a lease of the
 * session. */
int wharf_model_enter(struct wharf_core *core, struct wharf_session *session,
                      const struct wharf_model_made *made);

/* Removes a model from a session.  0, with the segment to free and the charge to return; or
 * -ENOENT, -EBUSY, -ETIME as above. */
int wharf_model_remove(struct wharf_core *core, struct wharf_session *session, uint32_t number,
                       struct wharf_segment *ret_segment, struct wharf_use *ret_use);

#endif
