/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_scrape.h: reads a daemon's metrics from its socket for that, which is there only while it
 * runs.
 */
#ifndef WHARF_CLI_METRICS_SCRAPE_H
#define WHARF_CLI_METRICS_SCRAPE_H

#define WHARF_CLI_METRICS_SOCKET "/run/wharfd/metrics.sock"

/*
 * Prints the metrics, whole, on standard output; or, where no daemon answers within a second or its
 * answer breaks off, `wharf_up 0` alone.  Returns the exit status, which is good in both cases.
 */
int wharf_cli_scrape(const char *path);

#endif
