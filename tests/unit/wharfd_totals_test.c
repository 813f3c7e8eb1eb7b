/* SPDX-License-Identifier: Apache-2.0 */
/* What all tenants have together, and what of it is kept for each of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/config.h"
#include "daemon/base/machine.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "tests/lib/test_config.h"
#include "tests/lib/test_random.h"

static const struct wharf_machine machine = {
    .n_files = 524288, .n_mappings = 65530, .memory_nbytes = (uint64_t)64 << 30, .n_tasks = 49152};

static struct wharf_config config;
static char message[256];

static void parse(const char *text)
{
    wharf_config_init(&config);
    cr_assert_eq(test_config_parse(&config, text, strlen(text), message, sizeof(message)), 0, "%s",
                 message);
}

static int init(struct wharf_totals *totals, const char *text, const struct wharf_machine *on)
{
    parse(text);
    int r = wharf_totals_init(totals, &config, on, message, sizeof(message));
    wharf_config_deinit(&config);
    return r;
}

/* ---- where they come from ------------------------------------------------------------------ */

Test(wharfd_totals, are_what_the_machine_allows)
{
    struct wharf_totals totals;

    cr_assert_eq(init(&totals, "", &machine), 0);
    cr_assert_lt(totals.of[WHARF_TOTAL_DESCRIPTORS].total, machine.n_files);
    cr_assert_gt(totals.of[WHARF_TOTAL_DESCRIPTORS].total, machine.n_files / 2);
    cr_assert_lt(totals.of[WHARF_TOTAL_MAPPINGS].total, machine.n_mappings);
    cr_assert_gt(totals.of[WHARF_TOTAL_MAPPINGS].total, machine.n_mappings / 2);
    cr_assert_eq(totals.of[WHARF_TOTAL_MEMORY].total, (uint64_t)48 << 30, "three quarters");
    cr_assert_leq(totals.of[WHARF_TOTAL_CONNECTIONS].total, 65536);
    cr_assert_eq(totals.of[WHARF_TOTAL_TASKS].total, 36864, "three quarters");
    cr_assert_eq(totals.n_reservations, 256);
    cr_assert_geq(totals.of[WHARF_TOTAL_TASKS].minimum, 33, "a session's files");
}

/* However little there is, something is left for the first who comes. */
Test(wharfd_totals, small_machines_have_fewer_reservations)
{
    for (uint64_t n_files = 1; n_files < 5000; n_files++) {
        struct wharf_machine small = {.n_files = n_files,
                                      .n_mappings = 4 * n_files,
                                      .memory_nbytes = n_files << 20,
                                      .n_tasks = n_files};
        struct wharf_totals totals;
        cr_assert_eq(init(&totals, "", &small), 0);
        cr_assert_leq(totals.n_reservations, 256);
        for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
            const struct wharf_total *total = &totals.of[i];
            cr_assert_leq(totals.n_reservations * total->minimum, total->total / 2 + 1);
        }
        cr_assert_gt(totals.of[WHARF_TOTAL_CONNECTIONS].total, 0);
    }
}

Test(wharfd_totals, a_setting_that_does_not_fit_is_named)
{
    static const char *const settings[] = {"max_connections = 65536", "max_descriptors = 524288",
                                           "max_jobs = 1000000000",   "max_mappings = 65530",
                                           "max_memory = 65G",        "owners = 100000",
                                           "max_tasks = 49152"};
    struct wharf_machine small = machine;
    struct wharf_totals totals;

    small.n_files = 65536;
    for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        char text[128], name[64];
        snprintf(text, sizeof(text), "[total]\n%s\n", settings[i]);
        cr_assert_eq(init(&totals, text, i == 0 ? &small : &machine), -EINVAL, "%s", text);
        snprintf(name, sizeof(name), "[total] %s", settings[i]);
        *strchr(name, '=') = 0;
        cr_assert(strstr(message, name), "%s", message);
    }
    cr_assert_eq(init(&totals, "[total]\nmax_descriptors = 4000\nmax_memory = 1G\n", &machine), 0);
    cr_assert_eq(totals.of[WHARF_TOTAL_DESCRIPTORS].total, 4000);
    cr_assert_lt(totals.n_reservations, 256);
}

Test(wharfd_totals, pinned_memory_is_less_than_there_is)
{
    struct wharf_machine small = machine;
    struct wharf_totals totals;

    cr_assert_eq(init(&totals, "", &machine), 0);
    cr_assert_eq(totals.pinned_nbytes, (uint64_t)8 << 30);
    small.memory_nbytes = (uint64_t)4 << 30;
    cr_assert_eq(init(&totals, "", &small), 0);
    cr_assert_eq(totals.pinned_nbytes, (uint64_t)2 << 30);
    cr_assert_eq(init(&totals, "[gpu]\nmemory = 3G\n", &small), 0);
    cr_assert_eq(totals.pinned_nbytes, (uint64_t)3 << 30);
    cr_assert_eq(init(&totals, "[gpu]\nmemory = 5G\n", &small), -EINVAL);
    cr_assert(strstr(message, "[gpu] memory"), "%s", message);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void write_file(const char *root, const char *path, const char *text)
{
    char whole[PATH_MAX];

    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static uint64_t memory_of(const char *root)
{
    struct wharf_machine found;

    wharf_machine_read_files(root, &found);
    return found.memory_nbytes;
}

static void remove_all(const char *root)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -r '%s'", root);
    cr_assert_eq(system(command), 0);
}

Test(wharfd_totals, control_groups_limit_memory)
{
    char root[] = "/tmp/wharf-test.XXXXXX";
    struct wharf_machine found;

    cr_assert_not_null(mkdtemp(root));
    cr_assert_eq(memory_of(root), UINT64_MAX);
    write_file(root, "/proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n");
    cr_assert_eq(memory_of(root), (uint64_t)8 << 30);
    write_file(root, "/proc/self/cgroup", "0::/system.slice/wharfd.service\n");
    cr_assert_eq(memory_of(root), (uint64_t)8 << 30);
    write_file(root, "/sys/fs/cgroup/system.slice/wharfd.service/memory.max", "max\n");
    cr_assert_eq(memory_of(root), (uint64_t)8 << 30);
    /* The group's, and those that it is in. */
    write_file(root, "/sys/fs/cgroup/system.slice/memory.max", "2147483648\n");
    cr_assert_eq(memory_of(root), (uint64_t)2 << 30);
    write_file(root, "/sys/fs/cgroup/system.slice/wharfd.service/memory.max", "1073741824\n");
    cr_assert_eq(memory_of(root), (uint64_t)1 << 30);
    /* Version 1. */
    write_file(root, "/proc/self/cgroup", "4:cpu,cpuacct:/x\n3:memory:/docker/abc\n");
    write_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    cr_assert_eq(memory_of(root), (uint64_t)512 << 20);
    write_file(root, "/proc/sys/vm/max_map_count", "65530\n");
    wharf_machine_read_files(root, &found);
    cr_assert_eq(found.n_mappings, 65530);
    cr_assert_gt(found.n_tasks, 1 << 30, "unknown");
    write_file(root, "/proc/sys/kernel/pid_max", "32768\n");
    wharf_machine_read_files(root, &found);
    cr_assert_eq(found.n_tasks, 16384);
    write_file(root, "/proc/self/cgroup", "8:pids:/docker/abc\n3:memory:/docker/abc\n");
    write_file(root, "/sys/fs/cgroup/pids/pids.max", "2048\n");
    wharf_machine_read_files(root, &found);
    cr_assert_eq(found.n_tasks, 2048);
    write_file(root, "/proc/self/cgroup", "0::/system.slice/wharfd.service\n");
    write_file(root, "/sys/fs/cgroup/system.slice/wharfd.service/pids.max", "3072\n");
    wharf_machine_read_files(root, &found);
    cr_assert_eq(found.n_tasks, 3072);
    remove_all(root);
}

/* ---- charging -------------------------------------------------------------------------------- */

enum { N_TENANTS = 12 };

static uint64_t number_of(const struct wharf_use *use, unsigned kind)
{
    const uint64_t numbers[] = {use->n_connections, use->n_descriptors, use->n_jobs,
                                use->n_mappings,    use->memory_nbytes, use->gpu_nbytes,
                                use->n_tasks};

    return numbers[kind];
}

static struct wharf_use random_use(struct test_random *random)
{
    return (struct wharf_use){
        .n_connections = test_random_below(random, 3),
        .n_descriptors = test_random_below(random, 40),
        .n_jobs = test_random_below(random, 500),
        .n_mappings = test_random_below(random, 20),
        .memory_nbytes = test_random_below(random, (uint64_t)100 << 20),
        .gpu_nbytes = test_random_one_in(random, 3) ? test_random_below(random, 1000) : 0,
        .n_tasks = test_random_below(random, 3),
    };
}

/* What the totals say of a charge, by the definition: all sums are made anew. */
static bool model_fits(const struct wharf_totals *totals, const struct wharf_use used[],
                       const bool has_reservation[], unsigned who, const struct wharf_use *more)
{
    for (unsigned kind = 0; kind < WHARF_N_TOTALS; kind++) {
        const struct wharf_total *total = &totals->of[kind];
        uint64_t beyond = 0, own_before = 0, own = 0;
        for (unsigned i = 0; i < N_TENANTS; i++) {
            uint64_t minimum = has_reservation[i] ? total->minimum : 0,
                     n = number_of(&used[i], kind);
            uint64_t after = n + (i == who ? number_of(more, kind) : 0);
            beyond += after > minimum ? after - minimum : 0;
            if (i == who) {
                own_before = n > minimum ? n - minimum : 0;
                own = after > minimum ? after - minimum : 0;
            }
        }
        if (own > own_before && beyond > total->total - totals->n_reservations * total->minimum)
            return false;
    }
    return true;
}

static bool is_within_minimum(const struct wharf_totals *totals, const struct wharf_use *used,
                              const struct wharf_use *more)
{
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        if (number_of(used, i) + number_of(more, i) > totals->of[i].minimum)
            return false;
    return true;
}

static void check_sums(const struct wharf_totals *totals, const struct wharf_use used[])
{
    for (unsigned kind = 0; kind < WHARF_N_TOTALS; kind++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < N_TENANTS; i++)
            sum += number_of(&used[i], kind);
        cr_assert_leq(sum, totals->of[kind].total);
    }
}

/* Some of what is used. */
static struct wharf_use part_of(struct test_random *random, const struct wharf_use *used)
{
    struct wharf_use part = *used;
    uint64_t *numbers = (uint64_t *)&part;

    if (test_random_one_in(random, 3))
        return part;
    for (unsigned i = 0; i < sizeof(part) / sizeof(uint64_t); i++)
        numbers[i] = test_random_below(random, numbers[i] + 1);
    return part;
}

static struct wharf_totals totals_of_few(void)
{
    struct wharf_totals totals;

    cr_assert_eq(init(&totals,
                      "[total]\nowners = 5\nmax_connections = 40\nmax_descriptors = 320\n"
                      "max_jobs = 5000\nmax_mappings = 200\nmax_memory = 1G\n"
                      "max_gpu_memory = 8000\nmax_tasks = 40\n",
                      &machine),
                 0);
    return totals;
}

/* Twelve tenants and five reservations, in random order: no total is passed, nobody with one who
 * stays within the minimum is refused, and each answer is what the definition says. */
Test(wharfd_totals, random_charges_keep_their_rules)
{
    struct test_random random = {1};
    unsigned n_refused = 0, n_taken = 0, n_waits = 0;

    for (unsigned round = 0; round < 50; round++) {
        struct wharf_totals totals = totals_of_few();
        struct wharf_use used[N_TENANTS] = {{0}};
        bool has_reservation[N_TENANTS] = {false};
        for (unsigned step = 0; step < 2000; step++) {
            unsigned who = (unsigned)test_random_below(&random, N_TENANTS);
            enum wharf_total_kind kind = WHARF_N_TOTALS;
            if (test_random_one_in(&random, 2)) {
                struct wharf_use less = part_of(&random, &used[who]);
                wharf_totals_give_back(&totals, &used[who], &has_reservation[who], &less);
                wharf_use_subtract(&used[who], &less);
                cr_assert(!has_reservation[who] || !wharf_use_is_nothing(&used[who]));
                continue;
            }
            struct wharf_use more = random_use(&random);
            bool had_reservation = has_reservation[who], before = had_reservation;
            if (!had_reservation && totals.n_taken < totals.n_reservations &&
                !wharf_use_is_nothing(&more))
                has_reservation[who] = true;
            bool expected = model_fits(&totals, used, has_reservation, who, &more);
            bool is_safe = has_reservation[who] && is_within_minimum(&totals, &used[who], &more);
            has_reservation[who] = before;
            int r = wharf_totals_charge(&totals, &used[who], &has_reservation[who], &more, &kind);
            cr_assert_eq(r, expected ? 0 : -EDQUOT);
            cr_assert(r == 0 || !is_safe);
            cr_assert_eq(kind < WHARF_N_TOTALS, r < 0);
            if (r == 0)
                wharf_use_add(&used[who], &more);
            n_taken += r == 0;
            n_refused += r < 0;
            n_waits += !has_reservation[who];
            check_sums(&totals, used);
        }
        for (unsigned i = 0; i < N_TENANTS; i++)
            wharf_totals_give_back(&totals, &used[i], &has_reservation[i], &used[i]);
        cr_assert_eq(totals.n_taken, 0);
        for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
            cr_assert_eq(totals.of[i].beyond, 0);
    }
    /* All of it was tried. */
    cr_assert_gt(n_refused, 1000);
    cr_assert_gt(n_taken, 1000);
    cr_assert_gt(n_waits, 1000);
}

/* What is there beyond the totals comes from nobody's minimum. */
Test(wharfd_totals, what_is_there_already_takes_no_minimum)
{
    struct wharf_totals totals = totals_of_few();
    struct wharf_use used = {0}, much = {.n_connections = 1000}, one = {.n_connections = 1};
    struct wharf_use nothing = {0};
    bool has_reservation = false, others = false;

    wharf_totals_charge_anyway(&totals, &used, &has_reservation, &much);
    used = much;
    cr_assert_eq(wharf_totals_charge(&totals, &used, &has_reservation, &one, NULL), -EDQUOT);
    cr_assert_eq(wharf_totals_charge(&totals, &nothing, &others, &one, NULL), 0);
    cr_assert(others);
    wharf_totals_give_back(&totals, &used, &has_reservation, &much);
    cr_assert_eq(wharf_totals_charge(&totals, &nothing, &has_reservation, &one, NULL), 0);
}

Test(wharfd_totals, who_is_refused_is_told_the_total_and_its_setting)
{
    struct wharf_totals totals = totals_of_few();
    struct wharf_use one = {.n_connections = 1}, much = {.n_connections = 41};
    struct wharf_use nothing = {0};
    bool has_reservation = false;
    enum wharf_total_kind kind;

    cr_assert_eq(wharf_totals_charge(&totals, &nothing, &has_reservation, &much, &kind), -EDQUOT);
    const char *text = totals.of[kind].text;
    cr_assert(strstr(text, "[total] max_connections, 40,"), "%s", text);
    cr_assert(strstr(text, "first 5 of them ([total] owners)"), "%s", text);
    cr_assert_not(has_reservation);
    cr_assert_eq(wharf_totals_charge(&totals, &nothing, &has_reservation, &one, &kind), 0);
}

/* A reload changes totals under what is used. */
Test(wharfd_totals, changed_totals_count_what_is_there)
{
    struct wharf_tenants tenants;
    struct wharf_totals totals = totals_of_few();
    struct wharf_use thirty = {.n_connections = 30}, one = {.n_connections = 1};

    parse("");
    wharf_tenants_init(&tenants);
    struct wharf_tenant *first = wharf_tenants_get(&tenants, "uid:1", &config),
                        *second = wharf_tenants_get(&tenants, "uid:2", &config);
    cr_assert_eq(wharf_tenant_charge(first, &thirty, NULL), 0);
    wharf_tenants_set_totals(&tenants, &totals);
    cr_assert_eq(tenants.totals.n_taken, 1);
    cr_assert_eq(wharf_tenant_charge(first, &thirty, NULL), -EDQUOT);
    cr_assert_eq(wharf_tenant_charge(second, &one, NULL), 0);
    wharf_tenant_give_back(second, &one);
    wharf_tenant_give_back(first, &thirty);
    cr_assert_eq(tenants.totals.n_taken, 0);
    cr_assert_eq(tenants.totals.of[WHARF_TOTAL_CONNECTIONS].beyond, 0);
    wharf_tenants_deinit(&tenants);
    wharf_config_deinit(&config);
}
