/* SPDX-License-Identifier: Apache-2.0 */
/* test_life.c: the steps of the test daemon's life. */
#include "tests/lib/test_life.h"

#include <signal.h>

#include "tests/lib/test_random.h"

const char *test_misdeed_name(enum test_misdeed misdeed)
{
    static const char *const names[] = {"NONE",
#define X(name) #name,
                                        TEST_MISDEED_LIST(X)
#undef X
    };

    return names[misdeed];
}

uint64_t test_daemon_chance(struct test_daemon *daemon, uint64_t limit)
{
    struct test_random random = {daemon->seed};
    uint64_t value = test_random_below(&random, limit);

    daemon->seed = random.state;
    return value;
}

void test_daemon_step(struct test_daemon *daemon)
{
    uint64_t step = ++daemon->n_steps;
    uint32_t at = __atomic_load_n(&daemon->die_at_step, __ATOMIC_RELAXED);
    uint32_t one_in = __atomic_load_n(&daemon->die_one_in, __ATOMIC_RELAXED);

    if (at && step >= at) {
        __atomic_store_n(&daemon->die_at_step, 0, __ATOMIC_RELAXED);
        raise(SIGKILL);
    }
    if (one_in && test_daemon_chance(daemon, one_in) == 0)
        raise(SIGKILL);
}
