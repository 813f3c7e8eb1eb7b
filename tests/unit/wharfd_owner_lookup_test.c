/* SPDX-License-Identifier: Apache-2.0 */
/* Whose subordinate uid a uid is, as files say; and what is remembered of that. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/uid_ranges.h"
#include "daemon/control/owner_cache.h"
#include "daemon/disposable/owner_lookup.h"
#include "tests/lib/test_random.h"

/* ---- files --------------------------------------------------------------------------------- */

static struct wharf_owner_files files;
static char folder[] = "/tmp/wharf-test.XXXXXX";

static void write_files(const char *subuid, const char *passwd)
{
    if (!files.subuid[0]) {
        cr_assert_not_null(mkdtemp(folder));
        snprintf(files.subuid, sizeof(files.subuid), "%s/subuid", folder);
        snprintf(files.passwd, sizeof(files.passwd), "%s/passwd", folder);
    }
    FILE *file = fopen(files.subuid, "we");
    fputs(subuid, file);
    cr_assert_eq(fclose(file), 0);
    file = fopen(files.passwd, "we");
    fputs(passwd, file);
    cr_assert_eq(fclose(file), 0);
}

static void remove_files(void)
{
    unlink(files.subuid);
    unlink(files.passwd);
    rmdir(folder);
}

static void expect(uid_t uid, uid_t owner, uid_t first, uid_t last)
{
    struct wharf_owner_answer answer;

    wharf_owner_look_up(&files, uid, &answer);
    cr_assert_eq(answer.error, 0);
    cr_assert_eq(answer.owner, owner, "uid %u: %u", uid, answer.owner);
    cr_assert_eq(answer.first, first, "uid %u: from %u", uid, answer.first);
    cr_assert_eq(answer.last, last, "uid %u: to %u", uid, answer.last);
}

static const char two_users[] = "root:x:0:0:root:/root:/bin/sh\n"
                                "alice:x:1000:1000::/home/alice:/bin/sh\n"
                                "bob:x:1001:1001::/home/bob:/bin/sh\n";

Test(wharfd_owner_lookup, finds_owners_by_name_and_by_number)
{
    write_files("# two users\nalice:100000:65536\n1001:165536:65536\nalice:400000:10\n", two_users);
    expect(100000, 1000, 100000, 165535);
    expect(165535, 1000, 100000, 165535);
    expect(165536, 1001, 165536, 231071);
    expect(400009, 1000, 400000, 400009);
    /* Nobody's. */
    expect(99999, 99999, 99999, 99999);
    expect(231072, 231072, 231072, 231072);
    expect(1000, 1000, 1000, 1000);
    expect(400010, 400010, 400010, 400010);
    remove_files();
}

/* The first line counts, and only for as far as nothing else is said. */
Test(wharfd_owner_lookup, ranges_that_overlap_are_told_apart)
{
    write_files("alice:100000:1000\nbob:100500:1000\n", two_users);
    expect(100000, 1000, 100000, 100499);
    expect(100500, 1000, 100500, 100999);
    expect(100999, 1000, 100500, 100999);
    expect(101000, 1001, 101000, 101499);
    remove_files();
}

/* One that is not there has a range all the same: who has it must not be as many as uids. */
Test(wharfd_owner_lookup, a_range_of_an_unknown_user_is_one_owners)
{
    write_files("carol:100000:65536\nalice:100000:10\n", two_users);
    expect(100020, 100000, 100010, 165535);
    expect(100005, 1000, 100000, 100009);
    remove_files();
}

/* As LXD's manual has it, for a folder of the host's. */
Test(wharfd_owner_lookup, a_user_whom_root_may_map_is_none_of_roots)
{
    write_files("root:1000:1\nroot:100000:65536\n", two_users);
    expect(1000, 1000, 1000, 1000);
    expect(100000, 0, 100000, 165535);
    remove_files();
}

Test(wharfd_owner_lookup, lines_that_are_none_are_passed_by)
{
    write_files("\n:::\nalice\nalice:\nalice:1\nalice:2:\nalice:3:x\nalice:-4:5\n"
                "alice:4294967295:1\nalice:5:0\nalice:99999999999999999999:1\n"
                "alice:4294967000:4294967000\nbob:200000:18446744073709551615\n"
                "alice:300000:1:1\nalice:600:10",
                two_users);
    expect(1, 1, 1, 1);
    expect(5, 5, 5, 5);
    expect(605, 1000, 600, 609);
    expect(4294967100u, 1000, 4294967000u, UINT32_MAX - 1);
    expect(250000, 1001, 200000, 4294966999u);
    remove_files();
}

Test(wharfd_owner_lookup, a_file_that_is_not_there_has_nobody)
{
    write_files("", two_users);
    unlink(files.subuid);
    expect(100000, 100000, 100000, 100000);
    /* One that cannot be read says nothing: a folder. */
    struct wharf_owner_answer answer;
    snprintf(files.subuid, sizeof(files.subuid), "%s", folder);
    wharf_owner_look_up(&files, 100000, &answer);
    cr_assert_lt(answer.error, 0);
    unlink(files.passwd);
    rmdir(folder);
}

static uint32_t group_of(uid_t uid)
{
    struct wharf_owner_answer answer;

    wharf_owner_find_group(&files, uid, &answer);
    cr_assert_eq(answer.error, 0, "uid %u: %d", uid, answer.error);
    return answer.owner;
}

Test(wharfd_owner_lookup, finds_the_first_group_of_a_user)
{
    struct wharf_owner_answer answer;

    write_files("", two_users);
    snprintf(files.group, sizeof(files.group), "%s/group", folder);
    strcpy(files.groups[0], "wheel");
    strcpy(files.groups[1], "staff");
    files.n_groups = 2;
    FILE *file = fopen(files.group, "we");
    fputs("staff:x:1000:bob\nbroken\nwheel:x:7:carol,bob\nother:x:8:root\n", file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(group_of(1000), 1);
    cr_assert_eq(group_of(1001), 0);
    cr_assert_eq(group_of(0), WHARF_OWNER_NO_GROUP);
    cr_assert_eq(group_of(1002), WHARF_OWNER_NO_GROUP);
    unlink(files.group);
    cr_assert_eq(group_of(1001), WHARF_OWNER_NO_GROUP);
    snprintf(files.group, sizeof(files.group), "%s", folder);
    wharf_owner_find_group(&files, 1001, &answer);
    cr_assert_lt(answer.error, 0);
    remove_files();
}

/* As the machine has it: root is in root. */
Test(wharfd_owner_lookup, finds_groups_of_the_machine)
{
    strcpy(files.groups[0], "no-such-group-here");
    strcpy(files.groups[1], "root");
    files.n_groups = 2;
    cr_assert_eq(group_of(0), 1);
    cr_assert_eq(group_of(3999999), WHARF_OWNER_NO_GROUP);
}

/* ---- what is remembered -------------------------------------------------------------------- */

static void add(struct wharf_owner_cache *cache, uid_t first, uid_t last, uid_t owner)
{
    wharf_owner_cache_add(
        cache, &(struct wharf_owner_range){.first = first, .last = last, .owner = owner});
}

/* Against a plain array of a small world of uids. */
Test(wharfd_owner_lookup, the_latest_that_was_said_of_a_uid_holds)
{
    enum { N = 300 };
    struct wharf_owner_cache cache;
    struct test_random random = {7};

    for (unsigned round = 0; round < 200; round++) {
        cr_assert_eq(wharf_owner_cache_init(&cache), 0);
        for (unsigned step = 1; step <= 40; step++) {
            uid_t first = (uid_t)test_random_below(&random, N);
            uid_t last = first + (uid_t)test_random_below(&random, N - first);
            add(&cache, first, last, step);
            for (uid_t uid = 0; uid < N; uid++) {
                const struct wharf_owner_range *found = wharf_owner_cache_find(&cache, uid);
                if (uid >= first && uid <= last)
                    cr_assert(found && found->owner == step);
                if (found)
                    cr_assert(found->first <= uid && found->last >= uid);
            }
            for (size_t i = 1; i < cache.n; i++)
                cr_assert_lt(cache.ranges[i - 1].last, cache.ranges[i].first);
        }
        wharf_owner_cache_deinit(&cache);
    }
}

Test(wharfd_owner_lookup, no_more_is_remembered_than_there_is_room_for)
{
    struct wharf_owner_cache cache;

    cr_assert_eq(wharf_owner_cache_init(&cache), 0);
    for (uid_t uid = 0; uid < 3 * WHARF_OWNER_CACHE_N_ENTRIES; uid++) {
        add(&cache, 2 * uid, 2 * uid, uid);
        /* This one is used all the time. */
        cr_assert_not_null(wharf_owner_cache_find(&cache, 0));
        cr_assert_not_null(wharf_owner_cache_find(&cache, 2 * uid));
    }
    cr_assert_eq(cache.n, WHARF_OWNER_CACHE_N_ENTRIES);
    cr_assert_null(wharf_owner_cache_find(&cache, 2));
    wharf_owner_cache_deinit(&cache);
}

/* ---- ranges of uids ------------------------------------------------------------------------- */

Test(wharfd_owner_lookup, ranges_of_uids_are_read_strictly)
{
    static const char *const wrong[] = {
        "x",     "1-",         "-1",  "2-1",     "1,",  ",1", "1;2",  "1 2",
        "1-2-3", "4294967295", "1,1", "1-5,5-7", "0x1", "+1", "1,,2", "1-99999999999999999999"};
    struct wharf_uid_ranges ranges;

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_not_null(wharf_uid_ranges_parse(wrong[i], &ranges), "%s", wrong[i]);
    cr_assert_null(wharf_uid_ranges_parse("", &ranges));
    cr_assert_eq(ranges.n, 0);
    cr_assert_null(wharf_uid_ranges_find(&ranges, 0));
    cr_assert_null(wharf_uid_ranges_parse(" 100000 - 165535 , 7,4294967294", &ranges));
    cr_assert_eq(ranges.n, 3);
    cr_assert_eq(wharf_uid_ranges_find(&ranges, 165535)->first, 100000);
    cr_assert_null(wharf_uid_ranges_find(&ranges, 165536));
    cr_assert_not_null(wharf_uid_ranges_find(&ranges, 7));
}
