/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c: parses a configuration, and collects its problems. */
#include "tests/lib/test_config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"

size_t test_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                         char problems[], size_t problems_nbytes)
{
    struct wharf_config_report report;
    size_t n = 0;

    wharf_config_report_init(&report);
    wharf_config_report_begin_file(&report, "test.conf");
    wharf_config_parse(config, text, text_nbytes, &report);
    if (!wharf_config_report_is_bad(&report))
        wharf_config_check(config, &report);
    problems[0] = 0;
    for (size_t i = 0; i < report.n_problems && n < problems_nbytes; i++)
        n += (size_t)snprintf(problems + n, problems_nbytes - n, "%s\n", report.problems[i].text);
    size_t n_errors = report.n_errors;
    wharf_config_report_deinit(&report);
    return n_errors;
}
