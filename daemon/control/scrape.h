/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape.h: the socket where Prometheus collectors read all statistics as text.
 *
 * The daemon creates it and removes it at its end, so that a scrape does not start a stopped
 * daemon.  A client sends an HTTP GET request and gets the text; root, the daemon's user and the
 * members of observer_group may.  The statistics maker makes the text.  All scrapes are one party
 * in the loop, few are served at a time, and each has a time limit; so other clients do not notice
 * them.  Each user gets a part of the places.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_SCRAPE_H
#define WHARF_DAEMON_CONTROL_SCRAPE_H

#include "daemon/base/list.h"

struct wharf_scraper;
struct wharf_server;
struct wharf_stats_text;

/* Creates the socket if the configuration wants one.  Logs a failure and returns 0; or -ENOMEM. */
int wharf_scraper_new(struct wharf_server *server, struct wharf_scraper **ret_scraper);
void wharf_scraper_free(struct wharf_scraper *scraper);

/* Accepts no more, and removes the path if it is still this daemon's; NULL is allowed. */
void wharf_scraper_close(struct wharf_scraper *scraper);

#endif
