/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_index.h: arithmetic of free-running indices, for any width.
 *
 * A template, without an include guard: whoever includes it defines WHARF_INDEX, an unsigned
 * type, and WHARF_INDEX_NAME(verb), the functions' names.  ring_ops.h takes it for uint32_t;
 * the unit test for uint8_t, where it can try every value there is.
 *
 * An index stands for a counter that never wraps, of which it shows the low bits.  Of two
 * indices that are at most WHARF_INDEX's greatest value apart, the span is the true distance.
 */

/* How far `to` is ahead of `from`. */
static inline WHARF_INDEX WHARF_INDEX_NAME(span)(WHARF_INDEX from, WHARF_INDEX to)
{
    return (WHARF_INDEX)(to - from);
}

/*
 * Whether a counter seen at `old` may now be at `new_value`, if it never goes back and may not
 * pass `limit`.  The same as old <= new_value <= limit for counters that do not wrap.
 */
static inline int WHARF_INDEX_NAME(may_advance)(WHARF_INDEX old, WHARF_INDEX new_value,
                                                WHARF_INDEX limit)
{
    return WHARF_INDEX_NAME(span)(old, new_value) <= WHARF_INDEX_NAME(span)(old, limit);
}

/*
 * Whether the entry of index `at` was published when a tail moved from `from` to `to`.  The same
 * as from <= at < to for counters that do not wrap.
 */
static inline int WHARF_INDEX_NAME(crossed)(WHARF_INDEX from, WHARF_INDEX to, WHARF_INDEX at)
{
    return WHARF_INDEX_NAME(span)(from, at) < WHARF_INDEX_NAME(span)(from, to);
}
