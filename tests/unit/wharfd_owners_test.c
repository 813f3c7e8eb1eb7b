/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tenant clients are charged to: subordinate uids are their owner's.  Needs root, to be
 * others.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

/* Alice and Bob have a hundred thousand subordinate uids each. */
enum { ALICE = 65001, BOB = 65002, OF_ALICE = 3000000, OF_BOB = 3100000, OVERFLOW = 65534 };

static struct test_wharfd wharfd;
static char subuid[128], passwd[128];
static unsigned n_reloads;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void write_config(const char *more)
{
    char config[2048];

    snprintf(config, sizeof(config),
             "[daemon]\nsocket_mode = 0666\nhello_timeout = 100s\ngate_timeout = 100s\n"
             "[gpu]\nengine = cpu\n[owners]\nsubuid = %s\npasswd = %s\n%s",
             subuid, passwd, more);
    write_file(wharfd.config, config);
}

/* A daemon that others than root can reach, with a map of its own. */
static void start(const char *more)
{
    if (geteuid() != 0)
        cr_skip_test("needs other users: run as root");
    test_wharfd_prepare(&wharfd, "");
    snprintf(subuid, sizeof(subuid), "%s/subuid", wharfd.folder);
    snprintf(passwd, sizeof(passwd), "%s/passwd", wharfd.folder);
    write_file(subuid, "alice:3000000:100000\n65002:3100000:100000\n");
    write_file(passwd, "alice:x:65001:65001::/:/bin/sh\nbob:x:65002:65002::/:/bin/sh\n");
    write_config(more);
    cr_assert_eq(chmod(wharfd.folder, 0755), 0);
    test_wharfd_restart(&wharfd);
    cr_assert_eq(chmod(wharfd.socket, 0666), 0);
}

static void reload(const char *more)
{
    write_config(more);
    kill(wharfd.pid, SIGHUP);
    cr_assert(test_wharfd_says_times(&wharfd, "read the configuration again", ++n_reloads));
}

/* Connections that are made are the user's: what the process is later does not matter. */
static struct test_client *connected_as(uid_t uid)
{
    cr_assert_eq(seteuid(uid), 0);
    struct test_client *client = test_client_connected(wharfd.socket);
    cr_assert_eq(seteuid(0), 0);
    return client;
}

/* One that is refused may be before it has said anything: it has to listen, then. */
static int hello(struct test_client *client)
{
    const Wharf__Reply *reply;
    int r = test_client_hello(client);

    return r == -EPIPE ? test_client_receive(client, &reply) : r;
}

static struct test_client *greeted_as(uid_t uid)
{
    struct test_client *client = connected_as(uid);
    int r = hello(client);

    cr_assert_eq(r, 0, "uid %u: %d, %s", (unsigned)uid, r, client->error);
    return client;
}

/* As soon as the daemon has forgotten those who came to see whether it serves. */
static struct test_client *greeted_in_time_as(uid_t uid)
{
    struct test_client *client = connected_as(uid);
    int r;

    while ((r = hello(client)) == -EDQUOT) {
        test_client_ended(client);
        usleep(1000);
        client = connected_as(uid);
    }
    cr_assert_eq(r, 0, "uid %u: %d, %s", (unsigned)uid, r, client->error);
    return client;
}

static void expect_refusal(uid_t uid, const char *text)
{
    struct test_client *client = connected_as(uid);
    int r = hello(client);

    cr_assert_eq(r, -EDQUOT, "uid %u: %d", (unsigned)uid, r);
    cr_assert(strstr(client->error, text), "%s", client->error);
    test_client_ended(client);
}

/* Whether the client's tenant is that one, by what statistics it is shown. */
static void expect_tenant(uid_t uid, const char *name)
{
    struct test_client *client = greeted_as(uid);

    cr_assert_gt(test_client_metric(client, "wharf_connections", "", name), 0, "uid %u is not %s",
                 (unsigned)uid, name);
    test_client_free(client);
}

/* ---- owners -------------------------------------------------------------------------------- */

/* Each of them had a quota of its own, and so had one user 65,537 of them. */
Test(wharfd_owners, subordinate_uids_divide_their_owners_quota)
{
    struct test_client *clients[6];

    start("[quota]\nmax_connections = 3\nmax_jobs = 8\n");
    clients[0] = greeted_as(ALICE);
    clients[1] = greeted_as(OF_ALICE);
    clients[2] = greeted_as(OF_ALICE + 99999);
    expect_refusal(OF_ALICE + 1, "max_connections");
    expect_refusal(ALICE, "max_connections");
    cr_assert_eq(test_client_open_with(clients[0], 4, 0, 0, 0), 0);
    cr_assert_eq(test_client_open_with(clients[1], 8, 0, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(clients[1], 4, 0, 0, 0), 0);
    cr_assert_eq(test_client_metric(clients[2], "wharf_connections", "", "uid:65001"), 3);
    /* Which is none of the others'. */
    clients[3] = greeted_as(BOB);
    clients[4] = greeted_as(OF_BOB + 7);
    clients[5] = greeted_as(OF_BOB + 100000);
    cr_assert_eq(test_client_metric(clients[4], "wharf_connections", "", "uid:65002"), 2);
    cr_assert_eq(test_client_metric(clients[5], "wharf_connections", "", "uid:3200000"), 1);
    for (unsigned i = 0; i < 6; i++)
        test_client_free(clients[i]);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_owners, sections_and_the_overflow_uid_are_owners)
{
    start("[tenant uid:3000001]\nmax_entries = 2\n");
    /* What is shown as nobody's is not charged to whoever may say that it is his. */
    write_file(subuid, "alice:3000000:100000\nalice:65534:1\n");
    struct test_client *client = greeted_as(OF_ALICE + 1);
    cr_assert_eq(client->limits.max_entries, 2);
    test_client_free(client);
    expect_tenant(OF_ALICE + 1, "uid:3000001");
    expect_tenant(OF_ALICE + 2, "uid:65001");
    expect_tenant(OVERFLOW, "uid:65534");
    expect_tenant(0, "uid:0");
    test_wharfd_finish(&wharfd);
}

/* As hosts of containers want it: root has their uids, and each container a block of them. */
Test(wharfd_owners, excepted_uids_are_charged_in_blocks)
{
    start("[owners]\nblocks = 3000010-3099999\nblock = 1000\n[tenant block:3001010]\n"
          "max_entries = 2\n[tenant uid:3000500]\nmax_entries = 4\n");
    expect_tenant(OF_ALICE + 9, "uid:65001");
    expect_tenant(OF_ALICE + 10, "block:3000010");
    expect_tenant(OF_ALICE + 1009, "block:3000010");
    expect_tenant(OF_ALICE + 99999, "block:3099010");
    expect_tenant(OF_ALICE + 500, "uid:3000500");
    struct test_client *client = greeted_as(OF_ALICE + 1010);
    cr_assert_eq(client->limits.max_entries, 2);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_owners, owners_that_are_subordinate_themselves_are_followed)
{
    start("");
    write_file(subuid, "alice:3000000:100\n3000007:4000000:100\n4000001:5000000:100\n"
                       "6000000:6000001:1\n6000001:6000000:1\n");
    expect_tenant(4000050, "uid:65001");
    expect_tenant(5000000, "uid:65001");
    expect_tenant(6000000, "unknown");
    test_wharfd_finish(&wharfd);
}

Test(wharfd_owners, a_reload_reads_the_map_again)
{
    start("");
    expect_tenant(OF_ALICE, "uid:65001");
    write_file(subuid, "bob:3000000:100000\n");
    expect_tenant(OF_ALICE, "uid:65001");
    reload("");
    expect_tenant(OF_ALICE, "uid:65002");
    test_wharfd_finish(&wharfd);
}

Test(wharfd_owners, what_is_known_of_an_owner_expires)
{
    start("[owners]\nremember = 0\n");
    expect_tenant(OF_ALICE, "uid:65001");
    write_file(subuid, "bob:3000000:100000\n");
    expect_tenant(OF_ALICE, "uid:65002");
    test_wharfd_finish(&wharfd);
}

/* Root's rights are the uid's, and not what its use is charged to. */
Test(wharfd_owners, roots_subordinates_are_not_root)
{
    start("");
    write_file(subuid, "0:3000000:100\n");
    struct test_client *client = greeted_as(OF_ALICE);
    cr_assert_gt(test_client_metric(client, "wharf_connections", "", "uid:0"), 0);
    cr_assert_eq(test_client_drain(client), -EPERM);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Settings with a group file in which `members` are. */
static const char *with_groups(const char *members, const char *settings)
{
    static char path[128], text[1024];

    snprintf(path, sizeof(path), "%s/group", wharfd.folder);
    write_file(path, members);
    snprintf(text, sizeof(text), "group = %s\n%s", path, settings);
    return text;
}

static void expect_max_entries(uid_t uid, uint32_t max_entries)
{
    struct test_client *client = greeted_as(uid);

    cr_assert_eq(client->limits.max_entries, max_entries, "uid %u: %u", (unsigned)uid,
                 (unsigned)client->limits.max_entries);
    test_client_free(client);
}

static const char limits[] = "[group wheel]\nmax_entries = 8\n[group staff]\nmax_entries = 16\n"
                             "[tenant uid:65003]\nmax_entries = 32\n[quota]\nmax_entries = 64\n";

/* By name or as the group that passwd says; a tenant's section goes first, then the first group. */
Test(wharfd_owners, members_of_a_group_have_its_limits)
{
    start("");
    write_file(passwd, "alice:x:65001:500::/:/bin/sh\nbob:x:65002:65002::/:/bin/sh\n"
                       "carol:x:65003:500::/:/bin/sh\ndave:x:65004:9::/:/bin/sh\n");
    reload(with_groups("staff:x:500:bob\nwheel:x:501:bob,eve\n", limits));
    expect_max_entries(ALICE, 16);
    expect_max_entries(OF_ALICE + 7, 16);
    expect_max_entries(BOB, 8);
    expect_max_entries(65003, 32);
    expect_max_entries(65004, 64);
    expect_max_entries(65005, 64);
    expect_max_entries(0, 64);
    reload(with_groups("staff:x:500:\nwheel:x:501:alice\n", limits));
    expect_max_entries(ALICE, 8);
    expect_max_entries(BOB, 64);
    reload("");
    expect_max_entries(ALICE, 4096);
    test_wharfd_finish(&wharfd);
}

static bool is_over_quota(struct test_client *client, int memfd)
{
    int r = test_client_register(client, 1, memfd, 65536, false);

    if (r == 0)
        cr_assert_eq(test_client_unregister(client, 1), 0);
    return r == -EDQUOT;
}

Test(wharfd_owners, a_reload_gives_connected_tenants_the_limits_of_their_groups)
{
    start("");
    struct test_client *client = greeted_as(OF_ALICE);
    cr_assert_eq(test_client_open_with(client, 4, 65536, 0, 0), 0, "%s", client->error);
    int memfd = test_memfd(65536, F_SEAL_SHRINK | F_SEAL_GROW);
    cr_assert_not(is_over_quota(client, memfd));
    reload(with_groups("staff:x:500:alice\n", "[group staff]\nmax_memory = 64K\n"));
    cr_assert(TEST_WAIT(is_over_quota(client, memfd)));
    reload(with_groups("staff:x:500:bob\n", "[group staff]\nmax_memory = 64K\n"));
    cr_assert(TEST_WAIT(!is_over_quota(client, memfd)));
    reload(with_groups("staff:x:500:alice\n", "[group staff]\nmax_memory = 64K\n"));
    cr_assert(TEST_WAIT(is_over_quota(client, memfd)));
    reload("");
    cr_assert_not(is_over_quota(client, memfd));
    close(memfd);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Others are served meanwhile, and a group that was known stays known. */
Test(wharfd_owners, groups_that_nobody_tells_change_nothing)
{
    static char settings[1024];
    char path[128];

    start("");
    snprintf(settings, sizeof(settings), "%s",
             with_groups("staff:x:500:bob\n", "remember = 0\n[group staff]\nmax_entries = 16\n"));
    reload(settings);
    expect_max_entries(BOB, 16);
    struct test_client *bob = greeted_as(BOB);
    snprintf(path, sizeof(path), "%s/group", wharfd.folder);
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    strcat(settings, "[owners]\nlookup_timeout = 20ms\n");
    reload(settings);
    expect_max_entries(BOB, 16);
    expect_max_entries(ALICE, 4096);
    cr_assert(test_wharfd_says(&wharfd, "does not answer within lookup_timeout"));
    test_client_free(bob);
    test_wharfd_finish(&wharfd);
}

/* ---- look-ups that hang -------------------------------------------------------------------- */

/* A map that nobody ever writes: whoever opens it waits. */
static void make_map_hang(void)
{
    unlink(subuid);
    cr_assert_eq(mkfifo(subuid, 0600), 0);
}

static bool has_answer(struct test_client *client, int wait_ms)
{
    struct pollfd answer = {.fd = client->fd, .events = POLLIN};

    return poll(&answer, 1, wait_ms) == 1;
}

static void send_hello(struct test_client *client)
{
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    hello.version = hello.min_version = WHARF_CONTROL_VERSION;
    hello.client_name = (char *)"test";
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
}

/* Who is known is served meanwhile; who is not waits, and is answered when the answer is there. */
Test(wharfd_owners, a_look_up_under_way_holds_whom_it_is_for)
{
    start("[owners]\nlookup_timeout = 60min\n");
    expect_tenant(OF_ALICE, "uid:65001");
    make_map_hang();
    struct test_client *held[3], *known[8];
    for (unsigned i = 0; i < 3; i++) {
        held[i] = connected_as(OF_BOB);
        send_hello(held[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        known[i] = greeted_as(OF_ALICE + i);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_not(has_answer(held[i], 0));
    /* One that goes meanwhile is no trouble. */
    test_client_free(held[1]);
    int map = -1;
    cr_assert(TEST_WAIT((map = open(subuid, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0));
    unlink(subuid);
    write_file(subuid, "bob:3100000:100000\n");
    cr_assert_eq(dprintf(map, "bob:3100000:100000\n"), 19);
    close(map);
    const Wharf__Reply *reply;
    for (unsigned i = 0; i < 3; i += 2) {
        cr_assert_eq(test_client_receive(held[i], &reply), 0);
        cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_HELLO);
    }
    cr_assert_geq(test_client_metric(held[0], "wharf_connections", "", "uid:65002"), 2);
    test_client_free(held[0]);
    test_client_free(held[2]);
    for (unsigned i = 0; i < 8; i++)
        test_client_free(known[i]);
    test_wharfd_finish(&wharfd);
}

/* One was asked at a time: everybody new waited for who came first. */
Test(wharfd_owners, a_look_up_that_hangs_holds_up_no_other)
{
    enum { N_HANG = 3 };
    struct test_client *held[N_HANG];

    start("[owners]\nlookup_timeout = 60min\n");
    /* Who is in alice's range has her looked up. */
    unlink(passwd);
    cr_assert_eq(mkfifo(passwd, 0600), 0);
    for (unsigned i = 0; i < N_HANG; i++) {
        held[i] = connected_as(OF_ALICE + i);
        send_hello(held[i]);
    }
    expect_tenant(BOB, "uid:65002");
    expect_tenant(65003, "uid:65003");
    for (unsigned i = 0; i < N_HANG; i++) {
        cr_assert_not(has_answer(held[i], 0));
        test_client_free(held[i]);
    }
    unlink(passwd);
    test_wharfd_finish(&wharfd);
}

/* More hang than are asked at a time: those who wait for their turn are not forgotten. */
Test(wharfd_owners, many_look_ups_that_hang_are_given_up)
{
    enum { N_HANG = 12 };
    struct test_client *held[N_HANG];

    start("[owners]\nlookup_timeout = 50ms\n");
    unlink(passwd);
    cr_assert_eq(mkfifo(passwd, 0600), 0);
    for (unsigned i = 0; i < N_HANG; i++) {
        held[i] = connected_as(OF_ALICE + i);
        send_hello(held[i]);
    }
    for (unsigned i = 0; i < N_HANG; i++) {
        const Wharf__Reply *reply;
        cr_assert_eq(test_client_receive(held[i], &reply), 0);
        cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_HELLO);
    }
    cr_assert_geq(test_client_metric(held[0], "wharf_connections", "", "unknown"), N_HANG);
    for (unsigned i = 0; i < N_HANG; i++)
        test_client_free(held[i]);
    unlink(passwd);
    test_wharfd_finish(&wharfd);
}

/* Who waited for a turn behind look-ups that hang kept everybody out, also those who are known. */
Test(wharfd_owners, look_ups_that_hang_keep_out_nobody_who_is_known)
{
    enum { N_HANG = 280 };
    struct test_client *held[N_HANG];

    start("[owners]\nlookup_timeout = 60min\n[tenant unknown]\nmax_connections = 1000\n");
    expect_tenant(BOB, "uid:65002");
    unlink(passwd);
    cr_assert_eq(mkfifo(passwd, 0600), 0);
    reload("[owners]\nlookup_timeout = 20ms\n[tenant unknown]\nmax_connections = 1000\n");
    expect_tenant(OF_ALICE, "unknown");
    reload("[owners]\nlookup_timeout = 60min\n[tenant unknown]\nmax_connections = 1000\n");
    for (unsigned i = 0; i < N_HANG; i++) {
        held[i] = connected_as(OF_ALICE + 1 + i);
        send_hello(held[i]);
    }
    struct test_client *bob = connected_as(BOB);
    send_hello(bob);
    cr_assert(has_answer(bob, TEST_PATIENCE_MS));
    cr_assert(has_answer(held[N_HANG - 1], TEST_PATIENCE_MS));
    test_client_free(bob);
    expect_tenant(BOB, "uid:65002");
    for (unsigned i = 0; i < N_HANG; i++)
        test_client_free(held[i]);
    unlink(passwd);
    test_wharfd_finish(&wharfd);
}

/* The first look-up that hung kept everybody out for as long as it may take, once 256 sockets
 * waited for it, which one user could have. */
Test(wharfd_owners, sockets_that_wait_keep_out_nobody_who_is_known, .timeout = 300)
{
    /* An eighth of the files is the room. */
    enum { N_FILES = 4096, N_HANG = 530 };
    const struct rlimit limit = {N_FILES, N_FILES};
    static struct test_client *held[N_HANG];

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start("[owners]\nlookup_timeout = 60min\n[tenant unknown]\nmax_connections = 1000\n");
    expect_tenant(BOB, "uid:65002");
    make_map_hang();
    for (unsigned i = 0; i < N_HANG; i++)
        held[i] = connected_as(i % 2 ? 3200000 : 3200001 + i);
    send_hello(held[0]);
    struct test_client *bob = connected_as(BOB);
    send_hello(bob);
    cr_assert(has_answer(bob, TEST_PATIENCE_MS));
    /* Nor whoever comes then, and has no room to wait. */
    struct test_client *late = connected_as(3300000);
    send_hello(late);
    cr_assert(has_answer(late, TEST_PATIENCE_MS));
    cr_assert_not(has_answer(held[0], 0));
    test_client_free(late);
    test_client_free(bob);
    expect_tenant(BOB, "uid:65002");
    for (unsigned i = 0; i < N_HANG; i++)
        test_client_free(held[i]);
    unlink(subuid);
    test_wharfd_finish(&wharfd);
}

/* It was said that it has ended, and not how. */
Test(wharfd_owners, the_signal_that_ends_a_look_up_is_logged)
{
    start("");
    kill(test_wharfd_child(&wharfd, "wharfd-owners"), SIGABRT);
    cr_assert(test_wharfd_says(&wharfd, "the process that looks that up has ended by SIGABRT"));
    expect_tenant(OF_ALICE, "uid:65001");
    test_wharfd_finish(&wharfd);
}

/* An answer that never comes is not waited for; all that it is missing for are one owner. */
Test(wharfd_owners, an_unanswered_look_up_is_charged_to_one_common_owner)
{
    start("[owners]\nlookup_timeout = 60min\n");
    expect_tenant(OF_ALICE, "uid:65001");
    make_map_hang();
    reload("[owners]\nlookup_timeout = 20ms\n[tenant unknown]\nmax_connections = 2\n");
    struct test_client *bob = greeted_as(BOB), *his = greeted_as(OF_BOB);
    cr_assert(test_wharfd_says(&wharfd, "does not answer within lookup_timeout"));
    cr_assert_eq(test_client_metric(his, "wharf_connections", "", "unknown"), 2);
    expect_refusal(OF_BOB + 1, "max_connections");
    expect_tenant(OF_ALICE + 1, "uid:65001");
    test_client_free(bob);
    test_client_free(his);
    unlink(subuid);
    write_file(subuid, "alice:3000000:100000\n65002:3100000:100000\n");
    reload("[owners]\nlookup_timeout = 100s\n");
    expect_tenant(OF_BOB + 1, "uid:65002");
    test_wharfd_finish(&wharfd);
}

/* What was known before holds, also before a reload, if nobody says otherwise. */
Test(wharfd_owners, an_owner_who_was_known_stays_known_without_an_answer)
{
    start("[owners]\nlookup_timeout = 60min\nremember = 0\n");
    expect_tenant(OF_ALICE, "uid:65001");
    make_map_hang();
    reload("[owners]\nlookup_timeout = 20ms\nremember = 0\n");
    expect_tenant(OF_ALICE + 5, "uid:65001");
    cr_assert(test_wharfd_says(&wharfd, "does not answer within lookup_timeout"));
    test_wharfd_finish(&wharfd);
}

/* A daemon that ends does not leave anybody without an answer. */
Test(wharfd_owners, those_who_wait_are_told_when_the_daemon_ends)
{
    start("[owners]\nlookup_timeout = 60min\n");
    make_map_hang();
    struct test_client *held = connected_as(OF_BOB);
    send_hello(held);
    /* The second one is known without a look-up: the first one has been taken. */
    test_client_free(greeted_as(0));
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    const Wharf__Reply *reply;
    cr_assert_eq(test_client_receive(held, &reply), -ESHUTDOWN);
    test_client_free(held);
    test_wharfd_remove(&wharfd);
}

/* ---- totals -------------------------------------------------------------------------------- */

/* A part is kept for each of the first ones, whatever one of them asks for. */
Test(wharfd_owners, nobody_can_take_what_is_kept_for_others)
{
    enum { N = 40 };
    struct test_client *clients[N], *others[3];
    unsigned n = 0;

    start("[total]\nmax_connections = 16\nowners = 4\n");
    int r = 0;
    while (r == 0 && n < N) {
        clients[n] = connected_as(ALICE);
        r = hello(clients[n++]);
    }
    cr_assert_eq(r, -EDQUOT);
    /* A quarter of 16 is kept for four, one of whom this is. */
    cr_assert_eq(n, 14);
    cr_assert(strstr(clients[n - 1]->error, "[total] max_connections, 16,"), "%s",
              clients[n - 1]->error);
    for (unsigned i = 0; i < 3; i++)
        others[i] = greeted_in_time_as(BOB + i);
    expect_refusal(BOB + 3, "first 4 of them ([total] owners)");
    for (unsigned i = 0; i < n; i++)
        test_client_free(clients[i]);
    for (unsigned i = 0; i < 3; i++)
        test_client_free(others[i]);
    test_wharfd_finish(&wharfd);
}

/* Takes what a client can take of descriptors.  Whether there was any. */
static bool take_descriptors(struct test_client *client, int memfd)
{
    if (hello(client) < 0 || test_client_open_with(client, 4, 65536, 0, 0) < 0)
        return false;
    for (unsigned i = 1; i < 16; i++)
        if (test_client_register(client, i, memfd, 65536, false) < 0)
            break;
    return true;
}

/* With a GPU the daemon has one more descriptor of each piece of memory: all of them were not
 * enough for a single user's quota. */
Test(wharfd_owners, one_user_leaves_descriptors_for_others)
{
    enum { N = 80, LIMIT = 600 };
    const struct rlimit limit = {LIMIT, LIMIT};
    struct test_client *clients[N];
    unsigned n = 0;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start("[gpu]\nengine = simt\npin_after = 0\nspare = 0\nhang_timeout = 60min\n");
    int memfd = test_memfd(65536, F_SEAL_SHRINK | F_SEAL_GROW);
    cr_assert_geq(memfd, 0);
    do {
        clients[n] = connected_as(ALICE);
    } while (take_descriptors(clients[n++], memfd) && n < N);
    cr_assert_lt(n, N);
    cr_assert_gt(n, 5);
    cr_assert_lt(test_wharfd_n_fds(&wharfd), LIMIT - 32);
    for (unsigned i = 0; i < 4; i++) {
        struct test_client *client = greeted_in_time_as(BOB + i);
        cr_assert_eq(test_client_open_with(client, 4, 65536, 0, 0), 0, "%s", client->error);
        test_client_free(client);
    }
    for (unsigned i = 0; i < n; i++)
        test_client_free(clients[i]);
    close(memfd);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_owners, a_total_that_does_not_fit_is_refused_by_name)
{
    start("");
    write_config("[total]\nmax_descriptors = 1000000000\n");
    kill(wharfd.pid, SIGHUP);
    cr_assert(test_wharfd_says(&wharfd, "the configuration stays as it was: [total] "
                                        "max_descriptors = 1000000000 does not fit"));
    expect_tenant(OF_ALICE, "uid:65001");
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_spawn(&wharfd);
    cr_assert_eq(test_wharfd_wait(&wharfd), 1);
    test_wharfd_remove(&wharfd);
}
