/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rle_values.h"

uint32_t wharf_rle_unit_nbytes(uint32_t parameter)
{
    return parameter <= WHARF_RLE_I64 ? wharf_rle_type_nbytes(parameter) : 0;
}
