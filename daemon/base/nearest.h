/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h: which name was probably meant by a mistyped word. */
#ifndef WHARF_DAEMON_BASE_NEAREST_H
#define WHARF_DAEMON_BASE_NEAREST_H

#include <stddef.h>

/* The best so far of the names that were offered for a word. */
struct wharf_nearest {
    const char *word;
    const char *name; /* NULL: none is near enough */
    size_t distance;
};

void wharf_nearest_begin(struct wharf_nearest *nearest, const char *word);

/* A name is near if at most a third of the word's letters, and one more, have to be inserted,
 * removed, replaced or swapped with their neighbours.  `name` has to outlive `nearest`. */
void wharf_nearest_offer(struct wharf_nearest *nearest, const char *name);

#endif
