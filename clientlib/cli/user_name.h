/* SPDX-License-Identifier: Apache-2.0 */
/* user_name.h: the names of users, for people to read beside uids. */
#ifndef WHARF_CLI_USER_NAME_H
#define WHARF_CLI_USER_NAME_H

#include <stddef.h>

#define WHARF_CLI_USER_NAME_NBYTES 64

/*
 * The name of the user that a tenant is; "" where it is none, or the user has no name.  Puts '?'
 * for what would disturb a terminal.  A directory service that does not answer within a second is
 * not waited for, now or later: who asks in an emergency gets uids.
 */
void wharf_cli_user_name(const char *tenant, char name[WHARF_CLI_USER_NAME_NBYTES]);

#endif
