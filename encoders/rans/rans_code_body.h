/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_code_body.h: what is the same in all forms of the tuned coder.  A form's file defines
 * code_groups, inlined, and CODE_NAME, and then includes this file.
 */

/* The kinds of sources, each with code of its own. */
TARGET void CODE_NAME(struct wharf_rans_coder *coder, uint32_t begin, uint32_t end)
{
    const struct wharf_rans_source *source = coder->source;
    bool is_indexed = source->indexes != NULL;

    if (source->shape.symbol_nbytes == 1 && !is_indexed)
        code_groups(coder, (struct lookup){.symbol_nbytes = 1}, begin, end);
    else if (source->shape.symbol_nbytes == 1)
        code_groups(coder, (struct lookup){.is_indexed = true, .symbol_nbytes = 1}, begin, end);
    else if (!is_indexed)
        code_groups(coder, (struct lookup){.symbol_nbytes = 2}, begin, end);
    else
        code_groups(coder, (struct lookup){.is_indexed = true, .symbol_nbytes = 2}, begin, end);
}
