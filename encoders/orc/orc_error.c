/* SPDX-License-Identifier: Apache-2.0 */
/* orc_error.c: fills in what is wrong with an ORC file. */
#include "encoders/orc/orc_error.h"

int wharf_orc_fail(enum wharf_orc_trouble trouble, const char *what, uint64_t offset,
                   struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){
        .trouble = trouble,
        .what = what,
        .offset = offset,
        .stripe = WHARF_ORC_NOWHERE,
        .column = WHARF_ORC_NOWHERE,
    };
    return -1;
}

int wharf_orc_fail_system(int error, uint64_t offset, struct wharf_orc_error *ret_error)
{
    wharf_orc_fail(WHARF_ORC_SYSTEM, "cannot be read", offset, ret_error);
    ret_error->error = error;
    return -1;
}
