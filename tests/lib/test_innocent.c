/* SPDX-License-Identifier: Apache-2.0 */
/* test_innocent.c: a daemon and its well-behaved client. */
#include "tests/lib/test_innocent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"

enum { CHUNK = TEST_INNOCENT_CHUNK };

static void expect(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "the innocent client: %s\n", what);
    abort();
}

void test_innocent_connect(struct test_innocent *scene)
{
    uLongf nbytes = 2 * CHUNK;

    scene->client = test_client_start(scene->other_socket, 8, 4 * CHUNK);
    expect(compress2(scene->client->arena, &nbytes, scene->plain, CHUNK, 6) == Z_OK, "cannot pack");
    scene->packed_nbytes = nbytes;
    test_innocent_check(scene);
}

void test_innocent_start(struct test_innocent *scene, const char *io)
{
    char config[256], filter[64] = "";

    if (scene->gate_timeout)
        snprintf(filter, sizeof(filter), "gate_timeout = %s\n", scene->gate_timeout);
    snprintf(config, sizeof(config),
             "[daemon]\nio = %s\n%s[listen other]\npath = other\ntenant = socket\n", io, filter);
    test_wharfd_start(&scene->wharfd, config);
    snprintf(scene->other_socket, sizeof(scene->other_socket), "%s/other", scene->wharfd.folder);
    scene->plain = test_data_new(test_data_find("text"), 1, CHUNK);
    test_innocent_connect(scene);
    scene->n_fds_at_first = test_wharfd_n_fds(&scene->wharfd);
}

void test_innocent_check(struct test_innocent *scene)
{
    struct wharf_completion completion;
    struct test_client *client = scene->client;
    time_t start = time(NULL);
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_ZLIB,
        .flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT,
        .src_nbytes = scene->packed_nbytes,
        .dst_offset = 2 * CHUNK,
        .dst_nbytes = CHUNK,
    };

    memset(client->arena + 2 * CHUNK, 0, CHUNK);
    expect(test_client_submit(client, &s) == 0, "cannot submit");
    expect(test_client_reap(client, &completion) == 0, "no completion");
    expect(completion.result == WHARF_OK, "its job failed");
    expect(memcmp(client->arena + 2 * CHUNK, scene->plain, CHUNK) == 0, "wrong bytes");
    expect(test_client_ping(client) == 0, "no answer");
    expect(time(NULL) - start <= 30, "too late");
}

void test_innocent_expect_fds(struct test_innocent *scene)
{
    /* Leaves room for a descriptor filter's socket and pidfd. */
    int most = scene->n_fds_at_first + 2;

    expect(TEST_WAIT(test_wharfd_n_fds(&scene->wharfd) <= most), "descriptors leak");
}

static int try_to_register(const char *socket)
{
    struct test_client *client = test_client_start(socket, 4, 4096);
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    int r = test_client_register(client, 1, fd, 4096, false);

    close(fd);
    test_client_free(client);
    return r;
}

bool test_innocent_can_register(const char *socket)
{
    return TEST_WAIT(try_to_register(socket) == 0);
}

void test_innocent_finish(struct test_innocent *scene)
{
    test_innocent_check(scene);
    test_innocent_expect_fds(scene);
    test_client_free(scene->client);
    expect(test_wharfd_stop(&scene->wharfd) == 0, "the daemon ended badly");
    test_wharfd_remove(&scene->wharfd);
    free(scene->plain);
}

void test_innocent_both_ways(struct test_innocent *scene, void (*test)(void))
{
    static const char *const ways[] = {"io_uring", "epoll"};

    for (unsigned i = 0; i < 2; i++) {
        test_innocent_start(scene, ways[i]);
        test();
        test_innocent_finish(scene);
    }
}
