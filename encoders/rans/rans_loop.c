/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_none(void)
{
    return true;
}

static const struct {
    const char *name;
    bool (*has)(void);
    wharf_rans_loop_fn *loop;
    wharf_rans_code_fn *code;
} forms[] = {{"none", has_none, NULL, NULL},
#define X(form) {#form, has_##form, wharf_rans_loop_##form, wharf_rans_code_##form},
             WHARF_RANS_LOOP_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* One more than the number of the form in use; 0 before anybody asked.  Whichever thread asks first
 * puts the same value here, so relaxed order is enough. */
static atomic_uint chosen;

/* The last form of the list that the machine has: the list is in rising order of demands. */
static unsigned best_form(void)
{
    unsigned i = N_FORMS;

    do
        i--;
    while (!forms[i].has());
    return i;
}

static unsigned form_in_use(void)
{
    unsigned form = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (form == 0) {
        form = best_form() + 1;
        atomic_store_explicit(&chosen, form, memory_order_relaxed);
    }
    return form - 1;
}

wharf_rans_loop_fn *wharf_rans_loop(void)
{
    return forms[form_in_use()].loop;
}

wharf_rans_code_fn *wharf_rans_code_form(void)
{
    return forms[form_in_use()].code;
}

int wharf_rans_loop_force(const char *name)
{
    if (!name) {
        atomic_store_explicit(&chosen, 0, memory_order_relaxed);
        return 0;
    }
    for (unsigned i = 0; i < N_FORMS; i++) {
        if (strcmp(forms[i].name, name) != 0)
            continue;
        if (!forms[i].has())
            return -ENOTSUP;
        atomic_store_explicit(&chosen, i + 1, memory_order_relaxed);
        return 0;
    }
    return -ENOENT;
}

void wharf_rans_pack_slots(const struct wharf_rans_model *model, uint32_t *packed)
{
    for (uint32_t slot = 0; slot < 1u << model->shape.n_bits; slot++) {
        uint32_t symbol = model->slot_symbols[slot];
        struct wharf_rans_range range = model->ranges[symbol];

        /* Nobody's slots say that they are the second of one. */
        if (slot >= model->totals[0])
            packed[slot] = 1u << 20;
        else
            packed[slot] =
                symbol | (uint32_t)range.frequency_less_1 << 8 | (slot - range.first) << 20;
    }
}
