/* SPDX-License-Identifier: Apache-2.0 */
/* status_json.h: `wharf status --json`, as wharf(1) describes it: one object, on one line. */
#ifndef WHARF_CLI_STATUS_JSON_H
#define WHARF_CLI_STATUS_JSON_H

#include "clientlib/cli/metrics.h"

void wharf_cli_status_print_json(FILE *to, const struct wharf_cli_metrics *metrics,
                                 const struct wharf_info *info, const char *path);

#endif
