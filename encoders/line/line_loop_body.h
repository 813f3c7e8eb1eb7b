/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_loop_body.h: the loop over a group's lines.  Who includes it defines
 *
 *   LOOP            the loop's name
 *   TARGET          the attribute of its instructions, or nothing
 *   put_repeat(content, n, out), put_8_1 and so on to put_2_1    a line of n bytes of bdi
 *   put_fpc(content, n_pairs, n, out), put_cpack(content, code, n, out) and
 *   put_palette(group, content, n_escapes, n, out)               the same; whether all was good
 */
static inline __attribute__((always_inline)) TARGET bool
put_line(const struct wharf_line_group *group, const struct wharf_line_code *code,
         const uint8_t *content, uint32_t n, uint8_t *out)
{
    switch (code->scheme) {
    case WHARF_LINE_IS_ZEROS:
        memset(out, 0, n);
        return true;
    case WHARF_LINE_IS_RAW:
        memcpy(out, content, n);
        return true;
    case WHARF_LINE_IS_FPC:
        return put_fpc(content, code->n_given, n, out);
    case WHARF_LINE_IS_CPACK:
        return put_cpack(content, code, n, out);
    case WHARF_LINE_IS_PALETTE:
        return put_palette(group, content, code->n_given, n, out);
    default:
        break;
    }
    switch (code->variant) {
    case WHARF_LINE_BDI_REPEAT:
        put_repeat(content, n, out);
        break;
    case WHARF_LINE_BDI_8_1:
        put_8_1(content, n, out);
        break;
    case WHARF_LINE_BDI_8_2:
        put_8_2(content, n, out);
        break;
    case WHARF_LINE_BDI_8_4:
        put_8_4(content, n, out);
        break;
    case WHARF_LINE_BDI_4_1:
        put_4_1(content, n, out);
        break;
    case WHARF_LINE_BDI_4_2:
        put_4_2(content, n, out);
        break;
    default:
        put_2_1(content, n, out);
        break;
    }
    return true;
}

static inline __attribute__((always_inline)) TARGET uint32_t
put_lines(const struct wharf_line_group *group, const uint8_t *numbers, const uint16_t *starts,
          uint32_t n_lines, const uint8_t *content, uint32_t n, uint8_t *out)
{
    for (uint32_t i = 0; i < n_lines; i++)
        if (!put_line(group, &group->codes[numbers[i]], content + starts[i], n,
                      out + (size_t)i * n))
            return i;
    return n_lines;
}

/* With the line's size as a constant. */
TARGET uint32_t LOOP(const struct wharf_line_group *group, const uint8_t *numbers,
                     const uint16_t *starts, uint32_t n, const uint8_t *content, uint8_t *out)
{
    if (group->line_nbytes == 128)
        return put_lines(group, numbers, starts, n, content, 128, out);
    if (group->line_nbytes == 64)
        return put_lines(group, numbers, starts, n, content, 64, out);
    return put_lines(group, numbers, starts, n, content, 32, out);
}
