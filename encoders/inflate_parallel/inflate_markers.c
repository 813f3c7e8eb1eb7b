/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units are replaced in groups.  A group without markers is packed as a whole.  In other groups
 * every unit goes through the table, byte or marker: a branch between the two would be
 * mispredicted too often.
 */
#include "encoders/inflate_parallel/inflate_markers.h"

#include <string.h>

enum { GROUP = 32, HALF = 16 };

typedef uint16_t units_vector __attribute__((vector_size(2 * HALF)));
typedef uint8_t bytes_vector __attribute__((vector_size(HALF)));

void wharf_markers_init(uint16_t window[WHARF_DEFLATE_WINDOW_NBYTES])
{
    for (unsigned i = 0; i < WHARF_DEFLATE_WINDOW_NBYTES; i++)
        window[i] = (uint16_t)(WHARF_MARKER_FIRST + i);
}

void wharf_marker_bytes_init(struct wharf_marker_bytes *bytes)
{
    for (unsigned i = 0; i < sizeof(bytes->literals); i++)
        bytes->literals[i] = (uint8_t)i;
    memset(bytes->unused, 0, sizeof(bytes->unused));
}

static bool group_has_any(const uint16_t *units)
{
    uint64_t words[GROUP / 4];
    uint64_t all = 0;

    memcpy(words, units, sizeof(words));
    for (unsigned i = 0; i < GROUP / 4; i++)
        all |= words[i];
    return all & WHARF_MARKER_FIRST * 0x0001000100010001u;
}

bool wharf_markers_any(const uint16_t *units, size_t n_units)
{
    /* Backwards: markers become rarer towards the end of a guess. */
    for (; n_units >= GROUP; n_units -= GROUP)
        if (group_has_any(units + n_units - GROUP))
            return true;
    for (; n_units; n_units--)
        if (units[n_units - 1] & WHARF_MARKER_FIRST)
            return true;
    return false;
}

static void pack(const uint16_t *units, uint8_t *out)
{
    units_vector halves[2];

    memcpy(halves, units, sizeof(halves));
    for (unsigned i = 0; i < 2; i++) {
        bytes_vector bytes = __builtin_convertvector(halves[i], bytes_vector);
        memcpy(out + i * HALF, &bytes, sizeof(bytes));
    }
}

/* Eight units at a time, so that each store is one 64-bit word. */
static void look_up(const uint16_t *units, const uint8_t *byte_of, uint8_t *out)
{
    for (unsigned i = 0; i < GROUP; i += 8) {
        uint8_t bytes[8];
        for (unsigned k = 0; k < 8; k++)
            bytes[k] = byte_of[units[i + k]];
        memcpy(out + i, bytes, sizeof(bytes));
    }
}

void wharf_markers_replace(const uint16_t *units, size_t n_units,
                           const struct wharf_marker_bytes *bytes, uint8_t *out)
{
    const uint8_t *byte_of = (const uint8_t *)bytes;
    size_t at = 0;

    for (; at + GROUP <= n_units; at += GROUP)
        if (group_has_any(units + at))
            look_up(units + at, byte_of, out + at);
        else
            pack(units + at, out + at);
    for (; at < n_units; at++)
        out[at] = byte_of[units[at]];
}
