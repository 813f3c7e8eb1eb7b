/* SPDX-License-Identifier: Apache-2.0 */
/* line_loop.c: chooses the form of the inner loop that suits the machine. */
#include "encoders/line/line_loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "encoders/line/line.h"

static bool has_plain(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

/* From the worst to the best. */
static const struct {
    const char *name;
    bool (*has)(void);
    wharf_line_loop_fn *loop;
} forms[] = {
    {"plain", has_plain, wharf_line_loop_plain},
#if defined(__x86_64__)
    {"avx2", has_avx2, wharf_line_loop_avx2},
    {"avx512", has_avx512, wharf_line_loop_avx512},
#endif
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* One more than the number of the form in use; 0 before anybody asked.  Whichever thread asks first
 * puts the same value here, so relaxed order is enough. */
static atomic_uint chosen;

wharf_line_loop_fn *wharf_line_loop(void)
{
    unsigned form = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (form == 0) {
        for (form = N_FORMS; !forms[form - 1].has();)
            form--;
        atomic_store_explicit(&chosen, form, memory_order_relaxed);
    }
    return forms[form - 1].loop;
}

int wharf_line_force(const char *name)
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
