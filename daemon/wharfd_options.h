/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_options.h: wharfd's command line. */
#ifndef WHARF_DAEMON_WHARFD_OPTIONS_H
#define WHARF_DAEMON_WHARFD_OPTIONS_H

#include <stdbool.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"

struct wharf_options_line {
    const char *config_path; /* NULL: the default one, which need not exist */
    const char *socket;      /* NULL: as the configuration says */
    const char *engine;      /* auto, cpu, cuda, simt; NULL: as the configuration says */
    bool prints_config;
    bool shows_config;
    bool checks_config;
    bool prints_version;
    bool prints_help;
};

#define WHARF_CONFIG_PATH "/etc/wharf/wharfd.conf"

/* Returns 0; or -EINVAL, having printed the reason on standard error. */
int wharf_options_parse(int argc, char **argv, struct wharf_options_line *ret_options);

void wharf_options_print_help(void);

/* Loads the configuration; the command line overrides it.  If the report is bad, `config` is good
 * for deinit only. */
void wharf_options_load(const struct wharf_options_line *options, struct wharf_config *config,
                        struct wharf_config_report *report);

#endif
