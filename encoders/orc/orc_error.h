/* SPDX-License-Identifier: Apache-2.0 */
/* orc_error.h: what is wrong with an ORC file, and where. */
#ifndef WHARF_ENCODERS_ORC_ORC_ERROR_H
#define WHARF_ENCODERS_ORC_ORC_ERROR_H

#include <stdint.h>

enum wharf_orc_trouble {
    WHARF_ORC_GOOD = 0,
    WHARF_ORC_DAMAGED, /* violates the format */
    WHARF_ORC_UNKNOWN, /* may be valid, but uses what wharf does not support */
    WHARF_ORC_SYSTEM,  /* reading or memory failed: see `error` */
};

#define WHARF_ORC_NOWHERE UINT32_MAX

struct wharf_orc_error {
    enum wharf_orc_trouble trouble;
    const char *what;  /* "the footer is longer than the file"; static */
    int error;         /* of WHARF_ORC_SYSTEM: -errno */
    uint32_t reason;   /* enum wharf_reason: why a block or stream does not decode, or NONE */
    uint64_t offset;   /* in the file: the first byte of the bad part, block or stream */
    uint64_t other;    /* an offset in the file that completes the text of `what`, or 0 */
    uint32_t stripe;   /* its number from 0, or WHARF_ORC_NOWHERE */
    uint32_t column;   /* likewise */
    const char *where; /* "the footer", "stream DATA"; static, or NULL */
};

/* Both return -1.  The trouble is at `offset`, in no stripe or column that is known yet; `error` is
 * -errno. */
int wharf_orc_fail(enum wharf_orc_trouble trouble, const char *what, uint64_t offset,
                   struct wharf_orc_error *ret_error);
int wharf_orc_fail_system(int error, uint64_t offset, struct wharf_orc_error *ret_error);

#endif
