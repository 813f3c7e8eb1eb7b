/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uid_ranges.h: sets of uids as in the configuration: 100000-165535, 200000.
 */
#ifndef WHARF_DAEMON_BASE_UID_RANGES_H
#define WHARF_DAEMON_BASE_UID_RANGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WHARF_MOST_UID_RANGES 32

struct wharf_uid_range {
    uid_t first;
    uid_t last;
};

struct wharf_uid_ranges {
    size_t n;
    struct wharf_uid_range ranges[WHARF_MOST_UID_RANGES];
};

/* Returns NULL or an error message; *ret_ranges is then undefined. */
const char *wharf_uid_ranges_parse(const char *text, struct wharf_uid_ranges *ret_ranges);

/* The range that contains a uid, or NULL. */
const struct wharf_uid_range *wharf_uid_ranges_find(const struct wharf_uid_ranges *ranges,
                                                    uid_t uid);

#endif
