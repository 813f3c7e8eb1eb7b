/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum.h: the checksums that formats carry.
 *
 * The work is libdeflate's, which has carry-less multiplication and vector forms and chooses
 * among them by the machine; at some 10 GB/s and more they are not what a decode waits for.
 */
#ifndef WHARF_ENCODERS_CHECKSUM_H
#define WHARF_ENCODERS_CHECKSUM_H

#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>

/* Of no bytes at all: where a running checksum starts. */
#define WHARF_CRC32_INIT 0u
#define WHARF_ADLER32_INIT 1u

/* CRC-32 of RFC 1952 (polynomial 0xedb88320), `crc` being that of the bytes before. */
static inline uint32_t wharf_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    /* libdeflate takes NULL to mean "start over", whatever `crc` is. */
    return nbytes ? libdeflate_crc32(crc, data, nbytes) : crc;
}

/* Adler-32 of RFC 1950, `adler` being that of the bytes before. */
static inline uint32_t wharf_adler32(uint32_t adler, const void *data, size_t nbytes)
{
    return nbytes ? libdeflate_adler32(adler, data, nbytes) : adler;
}

#endif
