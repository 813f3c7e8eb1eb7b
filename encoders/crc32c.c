/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c: the processor's own instruction where there is one, 8 bytes each; otherwise 4 bits at a
 * time by a table of 16 entries. */
#include "encoders/crc32c.h"

#include <string.h>

/* What four bits, shifted out at the low end, leave: entry[1 << 3] is the polynomial. */
static const uint32_t of_nibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t wharf_crc32c_plain(const uint8_t *data, size_t nbytes)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < nbytes; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const uint8_t *data, size_t nbytes)
{
    uint64_t crc = ~0u;
    uint64_t word;

    for (; nbytes >= 8; nbytes -= 8, data += 8) {
        memcpy(&word, data, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; nbytes > 0; nbytes--, data++)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *data);
    return ~(uint32_t)crc;
}
#endif

uint32_t wharf_crc32c(const uint8_t *data, size_t nbytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(data, nbytes);
#endif
    return wharf_crc32c_plain(data, nbytes);
}
