/* SPDX-License-Identifier: Apache-2.0 */
/* crc32_join.h: the CRC-32 of bytes whose parts' CRC-32 are known. */
#ifndef WHARF_ENCODERS_CRC32_JOIN_H
#define WHARF_ENCODERS_CRC32_JOIN_H

#include <stdint.h>

/* The CRC-32 (of RFC 1952, as wharf_crc32's) of bytes with that of `first`, and behind them
 * second_nbytes with that of `second`. */
uint32_t wharf_crc32_join(uint32_t first, uint32_t second, uint64_t second_nbytes);

#endif
