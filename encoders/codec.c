/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c: the table of codecs. */
#include "encoders/codec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const struct wharf_codec_row codec_rows[] = {
#define X(ID, name, number, summary) [number] = {#name, summary, &wharf_##name##_codec},
    WHARF_CODEC_LIST(X)
#undef X
};
#define X(ID, name, number, summary)                                                               \
    static_assert(WHARF_CODEC_##ID == (number), "the enumeration is stale: make generate");
WHARF_CODEC_LIST(X)
#undef X
enum { N_CODEC_ROWS = sizeof(codec_rows) / sizeof(codec_rows[0]) };

const struct wharf_codec_row *wharf_codec_find(uint32_t codec)
{
    if (codec >= N_CODEC_ROWS || !codec_rows[codec].name)
        return NULL;
    return &codec_rows[codec];
}

uint32_t wharf_codec_unit_nbytes(const struct wharf_codec_ops *ops, uint32_t parameter)
{
    if (ops->unit_nbytes)
        return ops->unit_nbytes(parameter);
    return parameter == 0;
}

/* Each codec that has types has the second one. */
bool wharf_codec_has_types(const struct wharf_codec_ops *ops)
{
    return wharf_codec_unit_nbytes(ops, WHARF_RLE_U16) > 0;
}

int wharf_encoder_choose(const struct wharf_codec_ops *ops,
                         const struct wharf_encoder_options *options,
                         const struct wharf_encoder_row **ret_row, int *ret_level)
{
    const struct wharf_encoder_row *row = ops->encoder_rows;
    int level = options ? options->level : WHARF_LEVEL_DEFAULT;

    if (options && !wharf_codec_unit_nbytes(ops, options->parameter))
        return -EINVAL;
    if (options && options->name)
        while (row->name && strcmp(row->name, options->name) != 0)
            row++;
    if (!row->name)
        return -EINVAL;
    if (level == WHARF_LEVEL_DEFAULT)
        level = row->level_default;
    if (level < row->level_min || level > row->level_max)
        return -EINVAL;
    *ret_row = row;
    *ret_level = level;
    return 0;
}

uint32_t wharf_encoder_number(const struct wharf_codec_ops *ops,
                              const struct wharf_encoder_row *row)
{
    return row->number ? row->number : (uint32_t)(row - ops->encoder_rows) + 1;
}

int wharf_codec_may_yield(const struct wharf_codec_ops *ops, uint64_t in_nbytes,
                          uint64_t out_nbytes)
{
    if (in_nbytes > (UINT64_MAX - ops->max_constant) / ops->max_ratio)
        return 1;
    return out_nbytes <= in_nbytes * ops->max_ratio + ops->max_constant;
}
