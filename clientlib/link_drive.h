/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_drive.h: drives the link towards UP: connects, and goes through the handshake.  Guarded by
 * the handle's lock; nothing here sleeps.
 */
#ifndef WHARF_CLIENT_LINK_DRIVE_H
#define WHARF_CLIENT_LINK_DRIVE_H

struct wharf;

/* wharf_client_link_step: drives the link towards UP as far as possible without sleeping. */
void wharf_client_link_step(struct wharf *wharf);

#endif
