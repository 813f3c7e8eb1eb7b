/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many clients at once, which sleep in all ways: no wake-up may be lost.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"

#define MiB ((uint64_t)1 << 20)

struct stress {
    struct test_core_client client;
    pthread_t thread;
    const uint8_t *plain;
    size_t nbytes; /* compressed */
    uint64_t seed;
    unsigned n_bad;
};

enum { STRESS_CHUNK = 2000, STRESS_ROUNDS = 400, NO_SLOT = 99 };

static void wait_for_packet(struct test_core_client *client)
{
    struct timeval limit = {.tv_sec = 100};
    char byte[8];

    setsockopt(client->sockets[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    int r = wharf_ring_client_arm(&client->ring, WHARF_WAIT_PACKET, 1);
    /* With a limit it is interrupted when the process is stopped for a while. */
    while (r == 0 && (r = (int)recv(client->sockets[1], byte, sizeof(byte), 0)) < 0 &&
           errno == EINTR)
        r = 0;
    if (r < 0)
        abort(); /* a wake-up was lost */
    wharf_ring_client_disarm(&client->ring);
}

/* Submits up to a ring full, then waits in one of three ways for some of it. */
static void *stress_client(void *data)
{
    struct stress *stress = data;
    struct test_core_client *client = &stress->client;
    struct test_random random = {stress->seed};
    struct wharf_completion completion;
    uint32_t n_outstanding = 0;
    uint32_t busy = 0; /* bit i: destination i belongs to a job in flight */

    for (unsigned round = 0; round < STRESS_ROUNDS || n_outstanding; round++) {
        uint32_t n = round < STRESS_ROUNDS
                         ? (uint32_t)test_random_below(&random, wharf_ring_room(&client->ring) + 1)
                         : 0;
        for (uint32_t i = 0; i < n; i++) {
            struct wharf_submission s = {.opcode = WHARF_OP_NOOP, .user_data = NO_SLOT};
            if (!test_random_one_in(&random, 3)) {
                uint32_t slot = (uint32_t)__builtin_ctz(~busy);
                busy |= 1u << slot;
                s = test_core_decode_of(slot, 0, stress->nbytes,
                                        TEST_CORE_CHUNK * (1 + (uint64_t)slot), STRESS_CHUNK);
            }
            wharf_ring_submit(&client->ring, &s);
        }
        n_outstanding += n;
        test_core_publish(client);
        if (n_outstanding == 0)
            continue;
        if (test_random_one_in(&random, 3))
            wait_for_packet(client);
        else if (test_random_one_in(&random, 2))
            test_core_sleep(client, 1 + (uint32_t)test_random_below(&random, n_outstanding));
        while (wharf_ring_reap(&client->ring, &completion) == 1) {
            n_outstanding--;
            stress->n_bad += completion.result != WHARF_OK;
            if (completion.user_data == NO_SLOT)
                continue;
            busy &= ~(1u << completion.user_data);
            stress->n_bad += memcmp(client->arena + TEST_CORE_CHUNK * (1 + completion.user_data),
                                    stress->plain, STRESS_CHUNK) != 0;
        }
    }
    return NULL;
}

static void run_stress(uint32_t n_workers, uint64_t spin_ns)
{
    enum { N = 4 };
    static struct stress stress[N];
    uint8_t *plain = test_data_new(test_data_find("text"), 1, STRESS_CHUNK);
    char tenant[16];

    wharf_config_init(&test_core_config);
    test_core_config.spin_ns = spin_ns;
    test_core_start(n_workers);
    for (unsigned i = 0; i < N; i++) {
        snprintf(tenant, sizeof(tenant), "uid:%u", i / 2);
        stress[i] = (struct stress){.plain = plain, .seed = 100 * i + n_workers};
        test_core_client_init(&stress[i].client, i, tenant, 16, 2 * MiB);
        stress[i].nbytes = test_core_put_chunk(&stress[i].client, 0, plain, STRESS_CHUNK);
        pthread_create(&stress[i].thread, NULL, stress_client, &stress[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        pthread_join(stress[i].thread, NULL);
        cr_assert_eq(stress[i].n_bad, 0);
        test_core_client_deinit(&stress[i].client);
    }
    test_core_stop();
    free(plain);
}

Test(wharfd_wakeup, no_wake_up_is_lost_with_one_worker)
{
    run_stress(1, 50000);
}

Test(wharfd_wakeup, no_wake_up_is_lost_with_several_workers)
{
    run_stress(3, 50000);
}

Test(wharfd_wakeup, no_wake_up_is_lost_without_spinning)
{
    run_stress(2, 0);
}
