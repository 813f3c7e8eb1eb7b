/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop.c: which tuned form runs on this machine, and the tables that forms look up in.
 *
 * Packed slots have symbol, frequency and place of a slot in one word, for a model of bytes with
 * few slots.  Buckets are for more slots: the slot's upper bits give a symbol near to it, and
 * comparisons with the ranges the right one.
 */
#include "encoders/rans/rans_loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx2_gather(void)
{
    return has_avx2();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_vbmi(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2");
}

/* Intel's processors that gather quickly, and need no cure for leaks in it, which makes it slow:
 * all that have AVX-VNNI are so. */
static bool is_recent_intel(void)
{
    unsigned eax, ebx, ecx, edx;

    return __builtin_cpu_is("intel") && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) &&
           (eax >> 4 & 1) != 0;
}
#endif

static bool is_all(void)
{
    return true;
}

static const struct {
    const char *name;
    bool (*has)(void);
    bool (*is_better[2])(void); /* for all else, and in buckets */
    wharf_rans_loop_fn *loop;
    wharf_rans_code_fn *code;
} forms[] = {{"none", is_all, {is_all, is_all}, NULL, NULL},
#define X(form, coder, where, where_in_buckets)                                                    \
    {#form,                                                                                        \
     has_##form,                                                                                   \
     {is_##where, is_##where_in_buckets},                                                          \
     wharf_rans_loop_##form,                                                                       \
     wharf_rans_code_##coder},
             WHARF_RANS_LOOP_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* One more than the number of the form in use for all else, and in buckets; 0 before anybody asked.
 * Whichever thread asks first puts the same value here, so relaxed order is enough. */
static atomic_uint chosen[2];

/* The last form of the list that the machine has and that is better there. */
static unsigned best_form(bool in_buckets)
{
    unsigned i = N_FORMS;

    do
        i--;
    while (!forms[i].has() || !forms[i].is_better[in_buckets]());
    return i;
}

static unsigned form_in_use(bool in_buckets)
{
    unsigned form = atomic_load_explicit(&chosen[in_buckets], memory_order_relaxed);

    if (form == 0) {
        form = best_form(in_buckets) + 1;
        atomic_store_explicit(&chosen[in_buckets], form, memory_order_relaxed);
    }
    return form - 1;
}

wharf_rans_loop_fn *wharf_rans_loop(bool in_buckets)
{
    return forms[form_in_use(in_buckets)].loop;
}

wharf_rans_code_fn *wharf_rans_code_form(void)
{
    return forms[form_in_use(false)].code;
}

static void choose(unsigned form)
{
    for (unsigned in_buckets = 0; in_buckets <= 1; in_buckets++)
        atomic_store_explicit(&chosen[in_buckets], form, memory_order_relaxed);
}

int wharf_rans_loop_force(const char *name)
{
    if (!name) {
        choose(0);
        return 0;
    }
    for (unsigned i = 0; i < N_FORMS; i++) {
        if (strcmp(forms[i].name, name) != 0)
            continue;
        if (!forms[i].has())
            return -ENOTSUP;
        choose(i + 1);
        return 0;
    }
    return -ENOENT;
}

bool wharf_rans_pack_slots(const struct wharf_rans_model *model, uint32_t *packed)
{
    uint32_t n_slots = 1u << model->shape.n_bits;
    bool has_most_bits = model->shape.n_bits == WHARF_RANS_PACKED_MAX_NBITS;
    uint32_t f;

    if (has_most_bits && !model->is_full)
        return false;
    for (uint32_t first = 0; first < model->totals[0]; first += f) {
        uint32_t symbol = model->slot_symbols[first];

        f = model->ranges[symbol].frequency_less_1 + 1u;
        if (has_most_bits && f == n_slots)
            return false;
        for (uint32_t place = 0; place < f; place++)
            packed[first + place] = symbol | place << 8 | f << 20;
    }
    for (uint32_t slot = model->totals[0]; slot < n_slots; slot++)
        packed[slot] = WHARF_RANS_PACKED_NOBODYS;
    return true;
}

/* How many bits of a slot tell slots of a bucket apart. */
static uint32_t choose_buckets(const struct wharf_rans_model *model)
{
    uint32_t n_bits = WHARF_RANS_BUCKETS_MIN_NBITS;
    uint32_t n_symbols = 0;

    for (uint32_t first = 0; first < model->totals[0]; n_symbols++)
        first += model->ranges[model->slot_symbols[first]].frequency_less_1 + 1u;
    while (1u << n_bits < WHARF_RANS_SYMBOL_NBUCKETS * n_symbols)
        n_bits++;
    return n_bits < model->shape.n_bits ? model->shape.n_bits - n_bits : 0;
}

void wharf_rans_fill_buckets(const struct wharf_rans_model *model,
                             struct wharf_rans_buckets *buckets)
{
    uint32_t slot_nbits = choose_buckets(model);
    uint32_t n = 1u << (model->shape.n_bits - slot_nbits);
    uint32_t before_middle = (1u << slot_nbits) / 2;
    uint32_t bucket = 0;
    uint32_t first = 0;

    buckets->slot_nbits = slot_nbits;
    while (bucket < n) {
        struct wharf_rans_bucket of = {.symbol = model->slot_symbols[first]};
        uint32_t end = n;

        of.range = model->ranges[of.symbol];
        first += of.range.frequency_less_1 + 1u;
        /* Those whose middle is below `first`; all that are left if what follows is nobody's. */
        if (first < model->totals[0])
            end = (first + (1u << slot_nbits) - before_middle - 1) >> slot_nbits;
        while (bucket < end)
            buckets->of[bucket++] = of;
    }
}
