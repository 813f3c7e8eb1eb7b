/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_plan.c: how one large stream is cut into parts, and what scratch they take. */
#include "kernels/inflate_parts.h"

enum {
    ALIGN = 256,
    /* Warps end at different times: so many parts each. */
    PARTS_A_WARP = 2,
    /* With up to so many parts each, blocks of warps deliver sooner than warps. */
    PARTS_A_BLOCK = 6,
    MOST_PART_NBYTES = 8 << 20,
    /* A stream of one block costs so small a part of its time more. */
    MOST_SHARE = 64,
    MOST_NBYTES = 64 << 20,
};

static uint64_t min_64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Takes n objects of nbytes from scratch that begins at *at. */
static size_t take(size_t *at, size_t n, size_t nbytes)
{
    size_t begin = *at;

    *at += (n * nbytes + ALIGN - 1) / ALIGN * ALIGN;
    return begin;
}

struct places {
    size_t control, parts, links, jumps, reached, tails, rings;
};

static size_t place(const struct wharf_inflate_job *job, struct places *ret)
{
    /* One part is the rest, and takes none of this. */
    size_t n = job->n_parts > 1 ? job->n_parts : 0, at = 0;

    ret->control = take(&at, 1, sizeof(*job->control));
    ret->parts = take(&at, n, sizeof(*job->parts));
    ret->links = take(&at, n, sizeof(*job->links));
    ret->jumps = take(&at, 2 * n, sizeof(*job->jumps));
    ret->reached = take(&at, n, sizeof(*job->reached));
    ret->tails = take(&at, n, WHARF_INFLATE_WINDOW_NUNITS * sizeof(*job->tails));
    ret->rings = take(&at, job->n_rings, WHARF_INFLATE_RING_NUNITS * sizeof(*job->rings));
    return at;
}

size_t wharf_inflate_plan(struct wharf_inflate_job *job, const struct wharf_inflate_shape *shape)
{
    uint64_t n =
        min_64(job->in_nbytes / shape->least_part_nbytes, (uint64_t)PARTS_A_WARP * shape->n_warps);
    uint64_t n_least = job->in_nbytes / MOST_PART_NBYTES + 1;
    struct places places;

    n = job->in_nbytes < shape->least_nbytes || n < n_least ? n_least : n;
    job->n_parts = (uint32_t)n;
    job->part_nbytes = job->in_nbytes / n + 1;
    job->most_nbytes = min_64(shape->least_most_nbytes + job->in_nbytes / MOST_SHARE, MOST_NBYTES);
    job->slice_nbytes = shape->slice_nbytes;
    job->n_groups = shape->n_groups;
    job->n_warps = shape->n_warps;
    job->n_blocks =
        n <= (uint64_t)PARTS_A_BLOCK * shape->n_blocks ? (uint32_t)min_64(n, shape->n_blocks) : 0;
    job->first_part = 0;
    job->end_part = job->n_found = job->n_parts;
    job->first_link = 0;
    job->end_link = UINT32_MAX;
    job->n_rings = n > 1 ? (uint32_t)min_64(n, shape->n_warps) : 0;
    return place(job, &places);
}

uint32_t wharf_inflate_parts_within(const struct wharf_inflate_job *job, uint64_t in_nbytes)
{
    if (in_nbytes >= job->in_nbytes)
        return job->n_parts;
    return in_nbytes < WHARF_INFLATE_LOOK_NBYTES
               ? 0
               : (uint32_t)((in_nbytes - WHARF_INFLATE_LOOK_NBYTES) / job->part_nbytes);
}

uint32_t wharf_inflate_parts_behind(const struct wharf_inflate_job *job, uint32_t n_found)
{
    /* A part begins within its bytes, and is measured over so many. */
    uint64_t reach = job->most_nbytes / job->part_nbytes + 2;

    if (n_found == job->n_parts)
        return n_found;
    return n_found < reach ? 0 : n_found - (uint32_t)reach;
}

uint32_t wharf_inflate_measured_slice(const struct wharf_inflate_job *job)
{
    /* A block that begins within what is measured may end behind it. */
    return (uint32_t)min_64(job->slice_nbytes, job->most_nbytes + 2 * WHARF_INFLATE_LOOK_NBYTES);
}

void wharf_inflate_lend(struct wharf_inflate_job *job, void *scratch)
{
    struct places places;
    char *memory = scratch;

    place(job, &places);
    job->control = (void *)(memory + places.control);
    job->parts = (void *)(memory + places.parts);
    job->links = (void *)(memory + places.links);
    job->jumps = (void *)(memory + places.jumps);
    job->reached = (void *)(memory + places.reached);
    job->tails = (void *)(memory + places.tails);
    job->rings = (void *)(memory + places.rings);
}
