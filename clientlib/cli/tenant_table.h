/* SPDX-License-Identifier: Apache-2.0 */
/* tenant_table.h: what `wharf status` and `wharf top` show of each tenant. */
#ifndef WHARF_CLI_TENANT_TABLE_H
#define WHARF_CLI_TENANT_TABLE_H

#include "clientlib/cli/metrics.h"

/*
 * Prints a table with a line for each tenant: totals; or, with a copy of the statistics from
 * `seconds` before, what was done in each second since then.  It has at most most_lines lines; 0:
 * as many as there are tenants.
 */
void wharf_cli_tenant_table_print(const struct wharf_cli_metrics *metrics,
                                  const struct wharf_cli_metrics *before, double seconds,
                                  unsigned most_lines);

/* Prints the daemon's first lines: what it is, and what it is doing.  Returns how many they are. */
unsigned wharf_cli_daemon_summary_print(const struct wharf_cli_metrics *metrics,
                                        const struct wharf_info *info, const char *path);

#endif
