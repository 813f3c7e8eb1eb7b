/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.h: processes of other users that do something to a daemon, until they are killed. */
#ifndef WHARF_TESTS_HOSTILE_CROWD_H
#define WHARF_TESTS_HOSTILE_CROWD_H

#include <stdbool.h>
#include <sys/types.h>

enum { CROWD_MOST_PROCESSES = 300 };

/* Who has which processors: the daemon half of them, the crowd one, and the neighbour the rest,
 * where there are enough. */
enum crowd_role { CROWD_DAEMON, CROWD_NEIGHBOUR, CROWD_ITSELF };

/* Reads which processors there are.  Call it first, as root: other users must be possible. */
void crowd_init(void);

void crowd_take_processors(enum crowd_role role);

/* Starts n processes of this uid, or of this and the following ones; returns when each of them has
 * called crowd_say_ready(ready).  They never return from `run`. */
void crowd_begin(unsigned n, uid_t uid, bool has_many_uids, void (*run)(int ready));
void crowd_say_ready(int ready);

/* Kills them.  Ends the program if one of them has ended by itself. */
void crowd_end(void);

#endif
