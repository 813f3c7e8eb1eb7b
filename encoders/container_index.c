/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_index.c: the index as a tree of 256 entries a node that grows from its leaves.
 *
 * Chunk number n belongs to the node n / 256 of level 1, and so on upwards: a level is 8 bits of a
 * chunk's number.  A node is due when it is full, or at the end; it then becomes an entry of the
 * level above.
 */
#include "encoders/container_index.h"

#include "encoders/checksum.h"

_Static_assert(WHARF_CONTAINER_FANOUT == 1 << 8, "a level is 8 bits of a chunk's number");
_Static_assert(WHARF_CONTAINER_OFFSET_MAX / WHARF_CONTAINER_CHUNK_MIN_FILE_NBYTES <
                   (uint64_t)1 << (8 * WHARF_CONTAINER_LEVELS),
               "one node of the last level is above all chunks that fit");

void wharf_container_index_add(struct wharf_container_index *index, uint32_t level,
                               uint64_t sequence, const struct wharf_container_index_entry *entry)
{
    struct wharf_container_level *node = &index->levels[level - 1];

    if (node->n_entries == 0) {
        node->sequence = sequence;
        node->first = *entry;
        node->crc = 0;
    }
    node->crc = wharf_crc32(node->crc, entry, sizeof(*entry));
    node->n_entries++;
}

/* The highest level that has entries, or 0. */
static uint32_t top_level(const struct wharf_container_index *index)
{
    uint32_t level = WHARF_CONTAINER_INDEX_SLOTS;

    while (level > 0 && index->levels[level - 1].n_entries == 0)
        level--;
    return level;
}

/* The lowest level that has entries and is not the root alone, or 0. */
static uint32_t lowest_open_level(const struct wharf_container_index *index)
{
    uint32_t top = top_level(index);

    for (uint32_t level = 1; level < top; level++)
        if (index->levels[level - 1].n_entries > 0)
            return level;
    return top > 0 && index->levels[top - 1].n_entries > 1 ? top : 0;
}

uint32_t wharf_container_index_due(const struct wharf_container_index *index, int is_finishing)
{
    for (uint32_t level = 1; level <= WHARF_CONTAINER_INDEX_SLOTS; level++)
        if (index->levels[level - 1].n_entries == WHARF_CONTAINER_FANOUT)
            return level;
    return is_finishing ? lowest_open_level(index) : 0;
}

struct wharf_container_index_entry
wharf_container_index_close_node(struct wharf_container_index *index, uint32_t level,
                                 uint64_t frame_offset)
{
    struct wharf_container_level *node = &index->levels[level - 1];

    node->n_entries = 0;
    return (struct wharf_container_index_entry){
        .frame_offset = frame_offset,
        .raw_offset = node->first.raw_offset,
    };
}

uint64_t wharf_container_index_root(const struct wharf_container_index *index)
{
    uint32_t top = top_level(index);

    return top > 0 ? index->levels[top - 1].first.frame_offset : 0;
}

uint64_t wharf_container_index_span(uint32_t level)
{
    return level < 8 ? (uint64_t)1 << (8 * level) : UINT64_MAX;
}
