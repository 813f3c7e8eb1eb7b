/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_check.h: checks a configuration against this machine. */
#ifndef WHARF_DAEMON_WHARFD_CHECK_H
#define WHARF_DAEMON_WHARFD_CHECK_H

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"

/*
 * Reports as errors what would prevent a daemon with this process's rights and limits from
 * starting, and as warnings names of things that do not exist.  Looks up users, groups and files,
 * so it is not for a thread that serves.
 */
void wharf_check_machine(const struct wharf_config *config, struct wharf_config_report *report);

#endif
