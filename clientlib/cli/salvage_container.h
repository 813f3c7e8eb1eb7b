/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_container.h: salvages a container, chunk by chunk.
 */
#ifndef WHARF_CLI_SALVAGE_CONTAINER_H
#define WHARF_CLI_SALVAGE_CONTAINER_H

#include "clientlib/cli/salvage_note.h"
#include "encoders/container_resume.h"

/* Decodes a container, from its beginning or, if that is lost, from a frame on that was found.
 * Returns the exit status. */
int wharf_cli_salvage_container(struct wharf_cli_salvage *salvage,
                                const struct wharf_container_frame *first);

#endif
