/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape.h: the socket at which Prometheus' collectors read all statistics as text.
 *
 * It is the daemon's own and there only while the daemon runs, so that asking a daemon that was
 * stopped does not start it.  A client sends a GET request of HTTP and gets the text; root, the
 * daemon's own user and the members of observer_group may.  The statistics maker makes the text.
 * What is done here is little, in turns as one party's, and few are served at a time, who have to
 * be quick; so nobody else notices them.  Each user has a share of the places, so that nobody keeps
 * others from reading.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_SCRAPE_H
#define WHARF_DAEMON_CONTROL_SCRAPE_H

#include "daemon/base/list.h"

struct wharf_scraper;
struct wharf_server;
struct wharf_stats_text;

/* Makes the socket, if there is to be one.  0, also where it cannot be made, which is logged; or
 * -ENOMEM. */
int wharf_scraper_new(struct wharf_server *server, struct wharf_scraper **ret_scraper);
void wharf_scraper_free(struct wharf_scraper *scraper);

/* Accepts no more, and removes the path if it is still this daemon's; NULL is allowed. */
void wharf_scraper_close(struct wharf_scraper *scraper);

#endif
