/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_forge_simt_test: the device decoder of Deflate on streams that no packer writes: codes of
 * any shape, blocks of any size down to nothing.  It must say what the CPU engine says.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "encoders/deflate/deflate.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_forge.h"
#include "tests/unit/device_compare.h"

static const uint32_t kernels[] = {
    WHARF_CODEC_DEFLATE,
    WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_SERIAL | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_SERIAL_REGISTERS | WHARF_CODEC_DEFLATE,
    WHARF_DEVICE_BLOCK | WHARF_CODEC_DEFLATE,
};
enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static void compare(const uint8_t *in, size_t in_nbytes, size_t out_avail, uint64_t number,
                    struct wharf_outcome *ret_want)
{
    const struct wharf_device_chunk chunk = {
        .in = in, .in_nbytes = in_nbytes, .out_avail = out_avail, .codec = WHARF_CODEC_DEFLATE};

    *ret_want =
        compare_on_device(kernels[number / 3 % N_KERNELS], chunk, 0, number, "a forged stream");
}

Test(deflate_forge_simt, decodes_codes_of_any_shape)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct test_forge forge;
        struct wharf_outcome want;
        test_forge_init(&forge, seed);
        test_forge_stream(&forge, 1 + (unsigned)seed % 4, seed % 5 ? 200 : 1500);
        compare(forge.data, test_forge_nbytes(&forge), forge.out_nbytes, seed, &want);
        cr_assert_eq(want.result, WHARF_OK);
        cr_assert_eq(want.out_nbytes, forge.out_nbytes);
        test_forge_deinit(&forge);
    }
}

Test(deflate_forge_simt, verifies_codes_of_any_shape_alike)
{
    unsigned n_bad = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct test_forge forge;
        struct wharf_outcome want;
        test_forge_init(&forge, seed);
        test_forge_stream(&forge, 1 + (unsigned)seed % 3, 150);
        size_t nbytes = test_forge_nbytes(&forge);
        size_t avail = forge.out_nbytes;
        switch (seed % 4) {
        case 0: /* cut off */
            nbytes = test_random_below(&forge.random, nbytes);
            break;
        case 1: /* too little room */
            avail = avail ? test_random_below(&forge.random, avail) : 0;
            break;
        default: { /* a wrong bit */
            uint64_t bit = test_random_below(&forge.random, 8 * nbytes);
            forge.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            break;
        }
        }
        compare(forge.data, nbytes, avail, seed, &want);
        n_bad += want.result != WHARF_OK;
        test_forge_deinit(&forge);
    }
    cr_assert_gt(n_bad, 250);
}
