/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_check.h: what of a configuration cannot be had on this machine. */
#ifndef WHARF_DAEMON_WHARFD_CHECK_H
#define WHARF_DAEMON_WHARFD_CHECK_H

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"

/*
 * Reports as errors what would keep a daemon with the rights and limits of this process from
 * starting, and as warnings what names something that is not there.  Looks users, groups and files
 * up: not for a thread that serves.
 */
void wharf_check_machine(const struct wharf_config *config, struct wharf_config_report *report);

#endif
