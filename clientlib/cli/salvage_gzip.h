/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_gzip.h: salvages gzip, member by member.
 */
#ifndef WHARF_CLI_SALVAGE_GZIP_H
#define WHARF_CLI_SALVAGE_GZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/salvage_note.h"

/* Decodes gzip, from `offset` to the input's end.  Returns the exit status. */
int wharf_cli_salvage_gzip(struct wharf_cli_salvage *salvage, uint64_t offset, bool is_bgzf);

#endif
