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

/* Returns 0, or -EINVAL having said why on standard error. */
int wharf_options_parse(int argc, char **argv, struct wharf_options_line *ret_options);

void wharf_options_print_help(void);

/* Loads the configuration and puts the command line over it.  If the report is bad then `config` is
 * only good for deinit. */
void wharf_options_load(const struct wharf_options_line *options, struct wharf_config *config,
                        struct wharf_config_report *report);

#endif
