/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h: finds the name that a mistyped word probably means. */
#ifndef WHARF_DAEMON_BASE_NEAREST_H
#define WHARF_DAEMON_BASE_NEAREST_H

#include <stddef.h>

/* The best of the names offered so far. */
struct wharf_nearest {
    const char *word;
    const char *name; /* NULL: none is near enough */
    size_t distance;
};

void wharf_nearest_begin(struct wharf_nearest *nearest, const char *word);

/* A name is near if the number of letters to insert, remove, replace or swap with their neighbours
 * is at most a third of the word's letters, plus one.  `name` must outlive `nearest`. */
void wharf_nearest_offer(struct wharf_nearest *nearest, const char *name);

#endif
