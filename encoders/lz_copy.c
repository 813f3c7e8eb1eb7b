/* SPDX-License-Identifier: Apache-2.0 */
/* lz_copy.c: long copies of LZ4 and Snappy, with polls. */
#include "encoders/lz_copy.h"

uint32_t wharf_lz_copy_long_match(struct wharf_lz *lz, uint8_t *op, size_t distance, size_t length)
{
    for (; length > WHARF_POLL_OUT_NBYTES; length -= WHARF_POLL_OUT_NBYTES) {
        wharf_lz_copy_match(op, distance, WHARF_POLL_OUT_NBYTES, lz->out_end);
        op += WHARF_POLL_OUT_NBYTES;
        uint32_t stopped = wharf_lz_poll(lz, lz->asked_in, op);
        if (stopped)
            return stopped;
    }
    wharf_lz_copy_match(op, distance, length, lz->out_end);
    return WHARF_OK;
}

uint32_t wharf_lz_copy_literals(struct wharf_lz *lz, uint8_t *op, const uint8_t *ip, size_t length)
{
    for (; length > WHARF_POLL_OUT_NBYTES; length -= WHARF_POLL_OUT_NBYTES) {
        memcpy(op, ip, WHARF_POLL_OUT_NBYTES);
        ip += WHARF_POLL_OUT_NBYTES;
        op += WHARF_POLL_OUT_NBYTES;
        uint32_t stopped = wharf_lz_poll(lz, ip, op);
        if (stopped)
            return stopped;
    }
    memcpy(op, ip, length);
    return WHARF_OK;
}
