/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_loop.c: which form of the quick loop runs on this machine. */
#include "encoders/deflate/inflate_loop.h"

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
    wharf_inflate_loop_fn *loop;
    wharf_inflate_loop_fn *wide_loop;
} forms[] = {
#define X(form) {#form, has_##form, wharf_inflate_loop_##form, wharf_inflate_wide_loop_##form},
    WHARF_INFLATE_LOOP_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* The last form of the list that the machine has: the list is in rising order of demands. */
static unsigned best_form(void)
{
    unsigned i = N_FORMS;

    do
        i--;
    while (!forms[i].has());
    return i;
}

/* Whichever thread comes first puts the same value here, so relaxed order is enough. */
static atomic_uint chosen = N_FORMS;

void wharf_inflate_loop(struct wharf_inflate *inflate)
{
    unsigned form = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (form == N_FORMS) {
        form = best_form();
        atomic_store_explicit(&chosen, form, memory_order_relaxed);
    }
    if (inflate->is_wide)
        forms[form].wide_loop(inflate);
    else
        forms[form].loop(inflate);
}

int wharf_inflate_loop_force(const char *name)
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
        atomic_store_explicit(&chosen, i, memory_order_relaxed);
        return 0;
    }
    return -ENOENT;
}
