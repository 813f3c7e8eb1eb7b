/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h: doubly linked lists whose links are members of the elements.
 *
 * A list's head and the links of its elements are the same struct, in a ring.
 *
 * INVARIANT: a link that is in no list points to itself.  So removing it twice does no harm.
 */
#ifndef WHARF_DAEMON_BASE_LIST_H
#define WHARF_DAEMON_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wharf_list {
    struct wharf_list *prev;
    struct wharf_list *next;
};

static inline void wharf_list_init(struct wharf_list *list)
{
    list->prev = list;
    list->next = list;
}

static inline bool wharf_list_is_empty(const struct wharf_list *list)
{
    return list->next == list;
}

static inline void wharf_list_append(struct wharf_list *list, struct wharf_list *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static inline void wharf_list_remove(struct wharf_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    wharf_list_init(link);
}

/* Whether the link is in a list. */
static inline bool wharf_list_is_linked(const struct wharf_list *link)
{
    return link->next != link;
}

/* Moves the first element to the end, so that the next one is first. */
static inline void wharf_list_rotate(struct wharf_list *list)
{
    struct wharf_list *first = list->next;

    wharf_list_remove(first);
    wharf_list_append(list, first);
}

/* Appends all elements of a list to another one, and empties the list. */
static inline void wharf_list_splice(struct wharf_list *list, struct wharf_list *from)
{
    if (wharf_list_is_empty(from))
        return;
    from->next->prev = list->prev;
    list->prev->next = from->next;
    from->prev->next = list;
    list->prev = from->prev;
    wharf_list_init(from);
}

/* The element whose `member` is this link. */
#define WHARF_LIST_ENTRY(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* The first element, or NULL. */
#define WHARF_LIST_FIRST(list, type, member)                                                       \
    (wharf_list_is_empty(list) ? NULL : WHARF_LIST_ENTRY((list)->next, type, member))

/* Visits all links of a list.  The body may remove the link that it visits. */
#define WHARF_LIST_FOR(link, list)                                                                 \
    for (struct wharf_list *link = (list)->next, *link##_next = link->next; link != (list);        \
         link = link##_next, link##_next = link->next)

#endif
