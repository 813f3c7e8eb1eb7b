/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_loops.c: chooses the form of the fast loops that suits the machine. */
#include "encoders/zstd/zstd_loops.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static bool has_plain(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_bmi2(void)
{
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif

static const struct {
    const char *name;
    bool (*has)(void);
    const struct wharf_zstd_loops *loops;
} forms[] = {
#define X(form) {#form, has_##form, &wharf_zstd_loops_##form},
    WHARF_ZSTD_LOOPS_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* The last form of the list that the machine has: the list is in rising order of demands. */
static const struct wharf_zstd_loops *best_form(void)
{
    unsigned i = N_FORMS;

    do
        i--;
    while (!forms[i].has());
    return forms[i].loops;
}

/* Whichever thread comes first puts the same value here, so relaxed order is enough. */
static _Atomic(const struct wharf_zstd_loops *) chosen;

const struct wharf_zstd_loops *wharf_zstd_best_loops(void)
{
    const struct wharf_zstd_loops *loops = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (!loops) {
        loops = best_form();
        atomic_store_explicit(&chosen, loops, memory_order_relaxed);
    }
    return loops;
}

int wharf_zstd_loops_force(const char *name)
{
    if (!name) {
        atomic_store_explicit(&chosen, best_form(), memory_order_relaxed);
        return 0;
    }
    for (unsigned i = 0; i < N_FORMS; i++) {
        if (strcmp(forms[i].name, name) != 0)
            continue;
        if (!forms[i].has())
            return -ENOTSUP;
        atomic_store_explicit(&chosen, forms[i].loops, memory_order_relaxed);
        return 0;
    }
    return -ENOENT;
}
