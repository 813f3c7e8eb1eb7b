/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: syntax, values, tenants, what a reload takes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "tests/lib/test_config.h"

static struct wharf_config config;
static char message[4096]; /* all problems */

/* How many errors there are. */
static size_t parse(const char *text)
{
    wharf_config_deinit(&config);
    wharf_config_init(&config);
    return test_config_parse(&config, text, strlen(text), message, sizeof(message));
}

static void expect_error(const char *text, const char *expected)
{
    cr_assert_eq(parse(text), 1, "accepted: %s", text);
    cr_assert(strstr(message, expected), "%s gave: %s", text, message);
}

static void expect_warning(const char *text, const char *expected)
{
    cr_assert_eq(parse(text), 0, "%s gave: %s", text, message);
    cr_assert(strstr(message, expected), "%s gave: %s", text, message);
}

static void expect_nothing(const char *text)
{
    cr_assert_eq(parse(text), 0, "%s gave: %s", text, message);
    cr_assert_str_empty(message, "%s gave: %s", text, message);
}

/* A default that its own row's parser refuses would silently be 0. */
Test(wharfd_config, every_default_is_within_its_limits)
{
    cr_assert_eq(parse(""), 0);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        char text[512];
        const char *section = strcmp(s->section, "listen") == 0 ? "listen x" : s->section;
        snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, s->key, s->otherwise);
        cr_assert_eq(parse(text), 0, "%s: %s", s->key, message);
    }
}

Test(wharfd_config, values_with_units)
{
    cr_assert_eq(parse("[daemon]\n log_level = debug \r\nhello_timeout=250ms\nsocket = /tmp/s\n"
                       "; comment\n\n# comment\n[quota]\nmax_memory = 3 G\nmax_job=64K\n"
                       "[cpu]\nspin = 0\ncpus = 0-3\n[daemon]\nsocket_mode = 0666"),
                 0, "%s", message);
    cr_assert_eq(config.log_level, WHARF_LOG_DEBUG);
    cr_assert_eq(config.hello_timeout_ns, 250000000);
    cr_assert_str_eq(config.listen.path, "/tmp/s");
    cr_assert_eq(config.listen.mode, 0666);
    cr_assert_eq(config.quota.max_memory_nbytes, (uint64_t)3 << 30);
    cr_assert_eq(config.quota.max_job_nbytes, 65536);
    cr_assert_eq(config.spin_ns, 0);
    cr_assert_str_eq(config.cpus, "0-3");
}

static void expect_gpus(const char *text, const char *expected)
{
    struct wharf_gpu_list list;
    char names[256] = "";

    cr_assert_null(wharf_gpu_list_parse(text, &list), "%s", text);
    cr_assert_eq(list.is_all, strcmp(text, "all") == 0);
    for (uint32_t i = 0; i < list.n; i++) {
        strcat(names, i ? " " : "");
        strcat(names, list.names[i]);
    }
    cr_assert_str_eq(names, expected);
}

Test(wharfd_config, gpus_have_numbers_ranges_and_uuids)
{
    expect_gpus("all", "0");
    expect_gpus("3", "3");
    expect_gpus("0,2", "0 2");
    expect_gpus("0-2 , 7", "0 1 2 7");
    expect_gpus("GPU-8932f937-d72c, 1,MIG-1a2b", "GPU-8932f937-d72c 1 MIG-1a2b");
    expect_error("[gpu]\ndevice =\n", "must not be empty");
    expect_error("[gpu]\ndevice = 0,\n", "a GPU is a number or a UUID");
    expect_error("[gpu]\ndevice = 0,all\n", "a GPU is a number or a UUID");
    expect_error("[gpu]\ndevice = -1\n", "a GPU is a number or a UUID");
    expect_error("[gpu]\ndevice = 3-1\n", "or a range, as in 0-3");
    expect_error("[gpu]\ndevice = 1x\n", "or a range, as in 0-3");
    expect_error("[gpu]\ndevice = 99999999999999999999\n", "or a range, as in 0-3");
    expect_error("[gpu]\ndevice = 0,1,0\n", "one GPU is named twice");
    expect_error("[gpu]\ndevice = 0-16\n", "more than 16 GPUs");
    expect_error("[gpu]\ndevice = "
                 "GPU-0000000000000000000000000000000000000000000000000000000000000\n",
                 "the name of a GPU is too long");
}

Test(wharfd_config, errors_say_which_line_and_what)
{
    expect_error("\n[daemon\n", "test.conf:2: ");
    expect_error("[nonsense]\n", ":1: there is no such section");
    expect_error("[daemon]\nsokcet = /x\n",
                 ":2: [daemon] has no setting `sokcet`; did you mean socket?");
    expect_error("socket = /x\n", ":1: a setting before the first [section]");
    expect_error("[daemon]\nsocket\n", ":2: expected `key = value`");
    expect_error("[daemon]\n= 1\n", ":2: there is no key");
    expect_error("[daemon]\nsocket =\n", "must not be empty");
    expect_error("[daemon x]\n", "this section has no name");
    expect_error("[listen]\n", "this section needs a name");
    expect_error("[]\n", "a section needs a name");
    expect_error("[cpu]\nshare = 101\n", "out of its limits");
    expect_error("[cpu]\nshare = -1\n", "not a number");
    expect_error("[cpu]\nshare = many\n", "not a number");
    expect_error("[cpu]\nspin = 5\n", "a time needs a number and a unit: us, ms, s or min");
    expect_error("[cpu]\nspin = 5G\n", "a time needs a number and a unit");
    expect_error("[quota]\nmax_memory = 99999999999T\n", "too large");
    expect_error("[quota]\nmax_memory = 99999999999999999999\n", "too large");
    expect_error("[daemon]\nio = threads\n", "not one of the words");
    expect_error("[daemon]\nsocket_mode = 0888\n", "not a number");
    expect_error("[tenant bob]\n", "a tenant is");
    expect_warning("[tenant user:no-such-user-here]\nweight = 5\n", "no such user");
    expect_error("[tenant uid:1]\n[tenant uid:1]\n", "has a section already");
}

/* They had been taken, and the start refused them. */
Test(wharfd_config, processors_are_a_list)
{
    expect_error("[cpu]\ncpus = 5-3\n", "cpus = 5-3: processors are numbers");
    expect_error("[cpu]\ncpus = abc\n", "cpus = abc: processors are numbers");
    expect_error("[cpu]\ncpus = 0,\n", "processors are numbers");
    expect_error("[cpu]\ncpus = 99999\n", "processors are numbers");
    expect_nothing("[cpu]\ncpus =\n");
    expect_nothing("[cpu]\ncpus = 0-3 , 5\n");
}

Test(wharfd_config, all_errors_are_found_at_once)
{
    static const char *text = "x = 1\n[cpu]\nshare = 0\nnice = 0\nspin = 5\n[nonsense]\nshare = 0\n"
                              "[broken\nshare = 0\n[quota]\nweight = 0\n[tenant bob]\nweight = y\n";

    cr_assert_eq(parse(text), 8, "%s", message);
    for (const char *at = ":1: :3: :5: :6: :8: :11: :12: :13: "; *at; at = strchr(at, ' ') + 1) {
        char line[8] = "";
        memcpy(line, at, (size_t)(strchr(at, ' ') - at));
        cr_assert(strstr(message, line), "no error in %s of: %s", line, message);
    }
}

Test(wharfd_config, misplaced_and_misspelt_settings_are_told_where_they_belong)
{
    expect_error("[daemon]\nmax_arena = 1G\n",
                 "[daemon] has no setting `max_arena`: it is one of [quota]");
    expect_error("[cpu]\nmax_jobs = 1\n", "it is one of [quota] or [total]");
    expect_error("[quota]\nmax_memroy = 1\n", "did you mean max_memory?");
    expect_error("[group x]\nwieght = 1\n", "did you mean weight?");
    expect_error("[daemon]\nmax_memroy = 1\n", "did you mean max_memory of [quota] or [total]");
    expect_error("[deamon]\n", "did you mean [daemon]?");
    expect_error("[tennant uid:1]\n", "did you mean [tenant]?");
    expect_error("[daemon]\nio = io-uring\n", "did you mean io_uring?");
    expect_error("[daemon]\nqqqqqqqq = 1\n", "has no setting `qqqqqqqq`\n");
}

Test(wharfd_config, contradictions_are_warned_of)
{
    expect_warning("[quota]\nmax_arena = 8G\nmax_memory = 2G\n",
                   "test.conf:2: [quota] max_arena is 8G, but max_memory is 2G");
    expect_warning("[quota]\nmax_arena = 1G\n[tenant uid:5]\nmax_memory = 512M\n",
                   "test.conf:4: [tenant uid:5] max_arena is 1G, but max_memory is 512M");
    expect_warning("[group staff]\nmax_arena = 16G\n", "[group staff] max_arena is 16G");
    expect_warning("[quota]\nmax_entries = 512\nmax_jobs = 256\n", "max_jobs is 256");
    expect_warning("[tenant socket:pods]\n", "there is no section [listen pods]");
    expect_warning("[tenant socket:pods]\n[listen pods]\n", "without tenant = socket");
    expect_warning("[tenant block:7]\n", "no block of uids begins there");
    expect_warning("[owners]\nblocks = 100000-299999\n[tenant block:100001]\n", "no block of uids");
    /* Defaults give way. */
    expect_nothing("[quota]\nmax_memory = 64M\n");
    expect_nothing("[tenant socket:pods]\n[listen pods]\ntenant = socket\n");
    expect_nothing("[owners]\nblocks = 100000-299999\n[tenant block:165536]\n");
}

Test(wharfd_config, hostile_text_is_refused)
{
    char text[8192];

    memset(text, 'a', sizeof(text));
    cr_assert_gt(test_config_parse(&config, text, sizeof(text), message, sizeof(message)), 0);
    cr_assert(strstr(message, "too long"));
    cr_assert_gt(test_config_parse(&config, "[cpu\0]\n", 7, message, sizeof(message)), 0);
    cr_assert(strstr(message, "zero byte"));
    /* A name as long as a line may be. */
    memset(text, 'a', 4000);
    memcpy(text, "[tenant socket:", 15);
    memcpy(text + 3998, "]\n", 2);
    cr_assert_gt(test_config_parse(&config, text, 4000, message, sizeof(message)), 0);
    cr_assert(strstr(message, "too long"));
    /* A setting as long, and more errors than are kept. */
    memset(text, 'a', 4000);
    memcpy(text, "[cpu]\n", 6);
    memcpy(text + 3996, "= 1\n", 4);
    cr_assert_gt(test_config_parse(&config, text, 4000, message, sizeof(message)), 0);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "x\n"[i % 2];
    cr_assert_eq(test_config_parse(&config, text, sizeof(text), message, sizeof(message)),
                 sizeof(text) / 2);
}

Test(wharfd_config, tenant_goes_before_quota_only_where_it_says_so)
{
    cr_assert_eq(parse("[tenant uid:1000]\nweight = 7\n[quota]\nweight = 50\nmax_jobs = 99\n"
                       "[tenant user:root]\nmax_jobs = 5\n[tenant socket:pods]\nmax_regions=1\n"),
                 0, "%s", message);
    struct wharf_quota quota = wharf_config_quota_of(&config, "uid:1000", "");
    cr_assert_eq(quota.weight, 7);
    cr_assert_eq(quota.max_jobs, 99);
    quota = wharf_config_quota_of(&config, "uid:0", "");
    cr_assert_eq(quota.weight, 50);
    cr_assert_eq(quota.max_jobs, 5);
    cr_assert_eq(wharf_config_quota_of(&config, "socket:pods", "").max_regions, 1);
    cr_assert_eq(wharf_config_quota_of(&config, "uid:1", "").max_jobs, 99);
}

static char kept[256];

static void note_kept(const char *section, const char *key)
{
    size_t n = strlen(kept);

    snprintf(kept + n, sizeof(kept) - n, "%s.%s ", section, key);
}

Test(wharfd_config, reload_takes_what_can_change_and_names_the_rest)
{
    static const char *text = "[daemon]\nlog_level = error\nio = epoll\nsocket = /x\n"
                              "[quota]\nmax_jobs = 77\n[tenant uid:5]\nmax_jobs = 3\n";
    struct wharf_config next;

    cr_assert_eq(parse(""), 0);
    wharf_config_init(&next);
    cr_assert_eq(test_config_parse(&next, text, strlen(text), message, sizeof(message)), 0);
    wharf_config_reload(&config, &next, note_kept);
    wharf_config_deinit(&next);
    cr_assert_str_eq(kept, "daemon.socket daemon.io ");
    cr_assert_eq(config.log_level, WHARF_LOG_ERROR);
    cr_assert_eq(config.io, WHARF_IO_AUTO);
    cr_assert_eq(wharf_config_quota_of(&config, "uid:6", "").max_jobs, 77);
    cr_assert_eq(wharf_config_quota_of(&config, "uid:5", "").max_jobs, 3);
    wharf_config_deinit(&config);
}

/* What --print-config prints is a configuration file: with its comment signs taken away it sets
 * every setting to its default. */
Test(wharfd_config, printed_defaults_can_be_read_back)
{
    WHARF_CLEANUP_FREE char *printed = NULL;
    size_t nbytes;
    FILE *out = open_memstream(&printed, &nbytes);
    unsigned n_settings = 0, n_seen = 0;

    wharf_config_print(out);
    fclose(out);
    for (char *line = printed; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line[0] == '#' && line[1] != ' ')
            *line = ' ';
        n_seen += line[0] == ' ' && line[1] != '[' && line[1] != '\n';
    }
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        n_settings++;
    cr_assert_eq(parse(printed), 0, "%s in\n%s", message, printed);
    cr_assert_eq(n_seen, n_settings);
    cr_assert_str_eq(config.listens[0].name, "NAME");
    wharf_config_deinit(&config);
}

Test(wharfd_config, tenant_goes_before_group_and_group_before_quota)
{
    cr_assert_eq(parse("[quota]\nweight = 1\nmax_jobs = 10\nmax_regions = 3\n"
                       "[group staff]\nweight = 2\nmax_jobs = 20\n[tenant uid:5]\nweight = 3\n"),
                 0, "%s", message);
    struct wharf_quota quota = wharf_config_quota_of(&config, "uid:5", "staff");
    cr_assert_eq(quota.weight, 3);
    cr_assert_eq(quota.max_jobs, 20);
    cr_assert_eq(quota.max_regions, 3);
    quota = wharf_config_quota_of(&config, "uid:6", "staff");
    cr_assert_eq(quota.weight, 2);
    /* A group that has settings no more. */
    quota = wharf_config_quota_of(&config, "uid:6", "gone");
    cr_assert_eq(quota.weight, 1);
    wharf_config_deinit(&config);
}

/* The process that looks up members is told of all of them at once. */
Test(wharfd_config, groups_have_a_number_that_fits)
{
    char text[8192] = "";

    for (unsigned i = 0; i < WHARF_CONFIG_MOST_GROUPS; i++)
        sprintf(text + strlen(text), "[group g%u]\nweight = %u\n", i, i + 1);
    cr_assert_eq(parse(text), 0, "%s", message);
    cr_assert_eq(wharf_config_quota_of(&config, "uid:1", "g63").weight, 64);
    strcat(text, "[group one-more]\nweight = 1\n");
    expect_error(text, "[group one-more]: more than 64 groups");
    wharf_config_deinit(&config);
}

static void load(const char *path, struct wharf_config_report *report)
{
    wharf_config_init(&config);
    wharf_config_report_init(report);
    wharf_config_load(&config, path, true, report);
}

Test(wharfd_config, missing_file_and_folder_are_errors)
{
    struct wharf_config_report report;

    load("/no/such/file", &report);
    cr_assert_eq(report.n_errors, 1);
    cr_assert_str_eq(report.problems[0].text, "/no/such/file: No such file or directory");
    wharf_config_report_deinit(&report);
    load("/tmp", &report);
    cr_assert_eq(report.n_errors, 1);
    cr_assert_str_eq(report.problems[0].text, "/tmp: this is no regular file");
    wharf_config_report_deinit(&report);
}
