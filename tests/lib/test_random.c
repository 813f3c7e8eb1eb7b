/* SPDX-License-Identifier: Apache-2.0 */
/* test_random.c: the generator of test_random.h. */
#include "tests/lib/test_random.h"

#include <string.h>

void test_random_fill(struct test_random *random, uint8_t *out, size_t out_nbytes)
{
    while (out_nbytes > 0) {
        uint64_t word = test_random_next(random);
        size_t n = out_nbytes < sizeof(word) ? out_nbytes : sizeof(word);
        memcpy(out, &word, n);
        out += n;
        out_nbytes -= n;
    }
}
