/* SPDX-License-Identifier: Apache-2.0 */
/* storm_kinds.h: clients that ask for as much of one thing as they can. */
#ifndef WHARF_TESTS_HOSTILE_STORM_KINDS_H
#define WHARF_TESTS_HOSTILE_STORM_KINDS_H

struct storm_kind {
    const char *name;
    /* Never returns: storms until its process is killed. */
    void (*run)(const char *path);
};

/* The last one has no name. */
extern const struct storm_kind storm_kinds[];

#endif
