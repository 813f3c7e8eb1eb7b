/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_close.h: the end of a batch.
 */
#ifndef WHARF_DAEMON_CORE_BATCH_CLOSE_H
#define WHARF_DAEMON_CORE_BATCH_CLOSE_H

struct wharf_batch;
struct wharf_session;

/* Releases what wharf_batch_open took.  Under the core lock; NULL is allowed. */
void wharf_batch_close(struct wharf_batch *batch, struct wharf_session *session);

#endif
