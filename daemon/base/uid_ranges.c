/* SPDX-License-Identifier: Apache-2.0 */
/* uid_ranges.c: parses lists of uids and ranges of uids. */
#include "daemon/base/uid_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* Returns the text after the number, or NULL if it is no uid. */
static const char *parse_uid(const char *text, uid_t *ret_uid)
{
    char *end;

    if (*text < '0' || *text > '9')
        return NULL;
    errno = 0;
    unsigned long uid = strtoul(text, &end, 10);
    /* The last uid means `none`. */
    if (errno || uid >= UINT32_MAX)
        return NULL;
    *ret_uid = (uid_t)uid;
    return skip_blanks(end);
}

static const char *parse_range(const char *text, struct wharf_uid_range *ret_range)
{
    const char *end = parse_uid(text, &ret_range->first);

    ret_range->last = ret_range->first;
    if (end && *end == '-')
        end = parse_uid(skip_blanks(end + 1), &ret_range->last);
    return end && ret_range->first <= ret_range->last ? end : NULL;
}

static const char *add(struct wharf_uid_ranges *ranges, const struct wharf_uid_range *range)
{
    if (ranges->n == WHARF_MOST_UID_RANGES)
        return "more than 32 ranges of uids";
    for (size_t i = 0; i < ranges->n; i++)
        if (range->first <= ranges->ranges[i].last && ranges->ranges[i].first <= range->last)
            return "two ranges of uids overlap";
    ranges->ranges[ranges->n++] = *range;
    return NULL;
}

const char *wharf_uid_ranges_parse(const char *text, struct wharf_uid_ranges *ret_ranges)
{
    const char *wrong = NULL;

    ret_ranges->n = 0;
    text = skip_blanks(text);
    while (*text && !wrong) {
        struct wharf_uid_range range;
        text = parse_range(text, &range);
        if (!text || (*text && *text != ','))
            return "uids are numbers, as in 200000, or ranges, as in 100000-165535, with commas "
                   "between them";
        wrong = add(ret_ranges, &range);
        if (*text == ',') {
            text = skip_blanks(text + 1);
            if (!*text)
                return "a comma is the last that the list of uids has";
        }
    }
    return wrong;
}

const struct wharf_uid_range *wharf_uid_ranges_find(const struct wharf_uid_ranges *ranges,
                                                    uid_t uid)
{
    for (size_t i = 0; i < ranges->n; i++)
        if (uid >= ranges->ranges[i].first && uid <= ranges->ranges[i].last)
            return &ranges->ranges[i];
    return NULL;
}
