/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_show.h: prints the effective configuration, and where each value comes from. */
#ifndef WHARF_DAEMON_WHARFD_SHOW_H
#define WHARF_DAEMON_WHARFD_SHOW_H

#include <stdio.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"

/* For a configuration that was read without errors, and the machine with this process's limits. */
void wharf_show_config(FILE *out, const struct wharf_config *config,
                       const struct wharf_config_report *report);

#endif
