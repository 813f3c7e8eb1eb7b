/* SPDX-License-Identifier: Apache-2.0 */
/* test_slow.c: makes the daemon wait in a client's memory. */
#include "tests/lib/test_slow.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic(uint8_t *) slow; /* in the daemon's own mapping */
static _Atomic size_t slow_nbytes;
static _Atomic uint32_t n_reached, is_released;

static void on_fault(int number)
{
    (void)number;
    n_reached++;
    while (!is_released)
        usleep(1000);
    if (mprotect(slow, slow_nbytes, PROT_READ | PROT_WRITE) < 0)
        abort();
}

void test_slow_begin(const struct test_core_client *client, uint64_t offset, size_t nbytes)
{
    struct sigaction action = {.sa_handler = on_fault};

    sigaction(SIGSEGV, &action, NULL);
    slow = (uint8_t *)client->session->regions[0].segment.address + offset;
    slow_nbytes = nbytes;
    n_reached = is_released = 0;
    if (mprotect(slow, nbytes, PROT_NONE) < 0)
        abort();
}

uint32_t test_slow_n_reached(void)
{
    return n_reached;
}

void test_slow_release(void)
{
    is_released = 1;
}
