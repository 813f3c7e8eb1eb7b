/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_random.h: pseudorandom numbers that are the same in every run.
 *
 * The generator is SplitMix64: the state is a counter and each output a hash of it, so that any
 * seed, 0 included, gives a good sequence.
 */
#ifndef WHARF_TESTS_TEST_RANDOM_H
#define WHARF_TESTS_TEST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct test_random {
    uint64_t state;
};

static inline uint64_t test_random_next(struct test_random *random)
{
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A number in 0 .. limit - 1; limit must not be 0.  The bias, below limit / 2^64, does not
 * matter. */
static inline uint64_t test_random_below(struct test_random *random, uint64_t limit)
{
    return test_random_next(random) % limit;
}

/* True with probability 1 / n. */
static inline int test_random_one_in(struct test_random *random, uint64_t n)
{
    return test_random_below(random, n) == 0;
}

void test_random_fill(struct test_random *random, uint8_t *out, size_t out_nbytes);

#endif
