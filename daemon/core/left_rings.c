/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/left_rings.h"

#include "daemon/base/cleanup.h"
#include "daemon/core/session.h"

static void take(struct wharf_segment *ret_ring, struct wharf_segment *segment)
{
    bool is_held = segment->fd >= 0 && wharf_segment_is_held(segment->fd);

    *ret_ring = (struct wharf_segment){
        .nbytes = segment->nbytes,
        .fd = is_held ? wharf_steal_fd(&segment->fd) : -1,
    };
}

void wharf_left_rings_take(struct wharf_left_rings *left, struct wharf_session *session)
{
    take(&left->rings[0], &session->c);
    take(&left->rings[1], &session->d);
}

struct wharf_use wharf_left_rings_use(const struct wharf_left_rings *left)
{
    struct wharf_use use = {.n_descriptors = 0};

    for (unsigned i = 0; i < 2; i++) {
        if (left->rings[i].fd < 0)
            continue;
        /* With D the arena's may be in flight. */
        use.n_descriptors += 1 + i;
        use.memory_nbytes += left->rings[i].nbytes;
    }
    return use;
}

struct wharf_use wharf_left_rings_let_go(struct wharf_left_rings *left, bool even_if_held)
{
    struct wharf_use use = wharf_left_rings_use(left);

    for (unsigned i = 0; i < 2; i++)
        if (left->rings[i].fd >= 0 && (even_if_held || !wharf_segment_is_held(left->rings[i].fd)))
            left->rings[i].fd = wharf_close_fd(left->rings[i].fd);
    struct wharf_use rest = wharf_left_rings_use(left);
    wharf_use_subtract(&use, &rest);
    return use;
}
