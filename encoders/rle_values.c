/* SPDX-License-Identifier: Apache-2.0 */
/* rle_values.c: names and sizes of the run-length codecs' types. */
#include "encoders/rle_values.h"

#include <errno.h>

static const char *const type_names[] = {
    [WHARF_RLE_U8] = "u8",   [WHARF_RLE_U16] = "u16", [WHARF_RLE_U32] = "u32",
    [WHARF_RLE_U64] = "u64", [WHARF_RLE_I8] = "i8",   [WHARF_RLE_I16] = "i16",
    [WHARF_RLE_I32] = "i32", [WHARF_RLE_I64] = "i64",
};

int wharf_rle_type_from_name(const char *name)
{
    for (int type = 0; type <= WHARF_RLE_I64; type++)
        if (strcmp(type_names[type], name) == 0)
            return type;
    return -ENOENT;
}

const char *wharf_rle_type_name(uint32_t type)
{
    return type <= WHARF_RLE_I64 ? type_names[type] : NULL;
}

uint32_t wharf_rle_unit_nbytes(uint32_t parameter)
{
    return parameter <= WHARF_RLE_I64 ? wharf_rle_type_nbytes(parameter) : 0;
}
