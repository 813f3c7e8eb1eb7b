/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_loop_types.h: put_palette of put_values(group, content, n_escapes, n, out, type, width), for
 * each type and width as constants.  TARGET_INLINE is defined before.
 */
#define PUT_VALUES(type, width) put_values(group, content, n_escapes, n, out, type, width)
TARGET_INLINE bool put_palette(const struct wharf_line_group *group, const uint8_t *content,
                               uint32_t n_escapes, uint32_t n, uint8_t *out)
{
    switch (2 * group->type + (group->width == 4)) {
    case 2 * WHARF_LINE_BF16:
        return PUT_VALUES(WHARF_LINE_BF16, 3);
    case 2 * WHARF_LINE_BF16 + 1:
        return PUT_VALUES(WHARF_LINE_BF16, 4);
    case 2 * WHARF_LINE_F16:
        return PUT_VALUES(WHARF_LINE_F16, 3);
    case 2 * WHARF_LINE_F16 + 1:
        return PUT_VALUES(WHARF_LINE_F16, 4);
    case 2 * WHARF_LINE_E5M2:
        return PUT_VALUES(WHARF_LINE_E5M2, 3);
    case 2 * WHARF_LINE_E5M2 + 1:
        return PUT_VALUES(WHARF_LINE_E5M2, 4);
    default:
        return PUT_VALUES(WHARF_LINE_E4M3, 3);
    }
}
#undef PUT_VALUES
