/* SPDX-License-Identifier: Apache-2.0 */
/* boolrle_decode.c: bytes of bits by byterle's groups, each bit spread to a byte. */
#include "encoders/boolrle/boolrle.h"

#include <string.h>

#include "encoders/byterle/byterle_groups.h"

struct output {
    uint8_t *next;
    uint8_t *end;
};

/* Eight bits as eight bytes, the most significant first. */
static uint64_t spread(uint8_t bits)
{
    /* A copy of the byte for every value, of which each keeps its own bit. */
    uint64_t own = bits * 0x0101010101010101u & 0x0102040810204080u;
    /* One bit or none in a byte: to the byte's top, to its bottom. */
    return (own + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

/* The last byte of a group, which may have more values than there is room for. */
static void put_byte(struct output *output, uint8_t bits)
{
    uint64_t values = spread(bits);
    size_t room = (size_t)(output->end - output->next);
    size_t n = room < 8 ? room : 8;

    memcpy(output->next, &values, n);
    output->next += n;
}

/* The values of n bytes of bits, 1 or more, of which all but the last byte's fit. */
static size_t put_group(void *to, size_t out_at, const uint8_t *bits, size_t n, int is_run)
{
    struct output *output = to;
    const uint8_t *begin = output->next;

    (void)out_at;
    if (is_run && (*bits == 0x00 || *bits == 0xff)) {
        memset(output->next, *bits & 1, 8 * (n - 1));
        output->next += 8 * (n - 1);
    } else {
        for (size_t i = 0; i < n - 1; i++, output->next += 8) {
            uint64_t values = spread(bits[is_run ? 0 : i]);
            memcpy(output->next, &values, 8);
        }
    }
    put_byte(output, bits[is_run ? 0 : n - 1]);
    return (size_t)(output->next - begin);
}

void wharf_boolrle_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    struct output output = {out, out_avail ? out + out_avail : out};
    size_t room = out_avail / 8 + (out_avail % 8 != 0);

    wharf_byterle_take_groups(in, in_nbytes, room, setting, put_group, &output, ret_outcome);
}
