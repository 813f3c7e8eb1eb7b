/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_order.c: chooses the form of unshuffling that suits the machine. */
#include "encoders/blosc/blosc_order.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static bool has_plain(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

static const struct {
    const char *name;
    bool (*has)(void);
    const struct wharf_blosc_order *order;
} forms[] = {
#define X(form) {#form, has_##form, &wharf_blosc_order_##form},
    WHARF_BLOSC_ORDER_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* The last form of the list that the machine can run; later ones are faster and demand more. */
static const struct wharf_blosc_order *best_form(void)
{
    unsigned i = N_FORMS;

    do
        i--;
    while (!forms[i].has());
    return forms[i].order;
}

/* Relaxed order is enough: all threads compute the same value. */
static _Atomic(const struct wharf_blosc_order *) chosen;

const struct wharf_blosc_order *wharf_blosc_best_order(void)
{
    const struct wharf_blosc_order *order = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (!order) {
        order = best_form();
        atomic_store_explicit(&chosen, order, memory_order_relaxed);
    }
    return order;
}

int wharf_blosc_order_force(const char *name)
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
        atomic_store_explicit(&chosen, forms[i].order, memory_order_relaxed);
        return 0;
    }
    return -ENOENT;
}
