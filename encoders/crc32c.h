/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h: the checksum of framed Snappy, CRC-32C (polynomial 0x82f63b78, RFC 3720 section 12.1).
 */
#ifndef WHARF_ENCODERS_CRC32C_H
#define WHARF_ENCODERS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* That of nbytes at `data`, which may be NULL when there are none. */
uint32_t wharf_crc32c(const uint8_t *data, size_t nbytes);

/* The same by tables alone, which is what processors without SSE 4.2 have: for tests. */
uint32_t wharf_crc32c_plain(const uint8_t *data, size_t nbytes);

#endif
