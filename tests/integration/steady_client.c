/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady_client.c: a program that must not notice what happens to the daemon.
 *
 *     steady_client [SOCKET]
 *
 * It keeps 64 jobs in flight, each with data of its own, and compares every byte, until SIGTERM.
 * Sources are in memory of its own that it registers, destinations in the arena.
 * Then it prints what it saw, on one line,
 *
 *     jobs=41234 reconnects=2 resubmitted=77 longest_ms=310 daemon=0.1.0
 *
 * (longest_ms: the longest time without a completion) and exits with 0.  At the first job that is
 * wrong in any way it says so and exits with 1.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"

enum { N_SLOTS = 64, CHUNK_NBYTES = 65536, ROOM_NBYTES = 2 * CHUNK_NBYTES };

static struct slot {
    struct wharf_job job;
    uint8_t expected[CHUNK_NBYTES];
    uint64_t n_submitted;
} slots[N_SLOTS];

static volatile sig_atomic_t stops;

static void on_term(int signal)
{
    (void)signal;
    stops = 1;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "steady_client: %s: %s\n", what, wharf_error_message());
    exit(1);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Text that compresses to about half, other for each slot. */
static void fill(uint8_t *bytes, uint64_t seed)
{
    for (size_t i = 0; i < CHUNK_NBYTES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)('a' + (seed >> 60));
    }
}

static uint8_t *make_sources(struct wharf *wharf)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    memory.fd = memfd_create("sources", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    memory.nbytes = (size_t)N_SLOTS * ROOM_NBYTES;
    if (memory.fd < 0 || ftruncate(memory.fd, (off_t)memory.nbytes) < 0 ||
        fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        fail("memfd_create");
    memory.address = mmap(NULL, memory.nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    if (memory.address == MAP_FAILED || wharf_register(wharf, &memory) < 0)
        fail("wharf_register");
    close(memory.fd);
    return memory.address;
}

static void prepare(struct wharf *wharf, struct slot *slot, uint8_t *in)
{
    static const struct wharf_job init = WHARF_JOB_INIT;
    uLongf nbytes = ROOM_NBYTES;
    void *out;

    fill(slot->expected, (uint64_t)(slot - slots) + 1);
    if (wharf_alloc(wharf, CHUNK_NBYTES, &out) < 0)
        fail("wharf_alloc");
    if (compress(in, &nbytes, slot->expected, CHUNK_NBYTES) != Z_OK)
        fail("compress");
    slot->job = init;
    slot->job.codec = WHARF_CODEC_ZLIB;
    slot->job.flags = WHARF_JOB_EXACT_OUTPUT | WHARF_JOB_EXACT_INPUT;
    slot->job.in = in;
    slot->job.in_nbytes = nbytes;
    slot->job.out = out;
    slot->job.out_avail = CHUNK_NBYTES;
}

/* The number of the submission comes back, so that none is answered twice. */
static void submit(struct wharf *wharf, struct slot *slot)
{
    memset(slot->job.out, 0, CHUNK_NBYTES);
    slot->job.user_data = ++slot->n_submitted * N_SLOTS + (uint64_t)(slot - slots);
    if (wharf_submit(wharf, &slot->job, 1) != 1)
        fail("wharf_submit");
}

static struct slot *check(const struct wharf_completion *completion)
{
    struct slot *slot = &slots[completion->user_data % N_SLOTS];

    if (completion->user_data != slot->job.user_data || completion->result != WHARF_OK ||
        memcmp(slot->job.out, slot->expected, CHUNK_NBYTES) != 0) {
        fprintf(stderr, "steady_client: wrong: job %" PRIu64 ", result %s\n", completion->user_data,
                wharf_result_name(completion->result));
        exit(1);
    }
    /* The same completion again would be wrong. */
    slot->job.user_data = 0;
    return slot;
}

static void run(struct wharf *wharf)
{
    struct wharf_completion completions[N_SLOTS];
    uint64_t n_jobs = 0, longest_ms = 0, last_ms = now_ms();
    unsigned n_in_flight = N_SLOTS;

    while (n_in_flight > 0) {
        int n = wharf_wait(wharf, completions, N_SLOTS, 1, -1);
        uint64_t now = now_ms();
        if (n <= 0)
            fail("wharf_wait");
        if (now - last_ms > longest_ms)
            longest_ms = now - last_ms;
        last_ms = now;
        for (int i = 0; i < n; i++) {
            struct slot *slot = check(&completions[i]);
            n_jobs++;
            if (stops)
                n_in_flight--;
            else
                submit(wharf, slot);
        }
    }
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    if (wharf_get_info(wharf, &info) < 0)
        fail("wharf_get_info");
    printf("jobs=%" PRIu64 " reconnects=%" PRIu64 " resubmitted=%" PRIu64 " longest_ms=%" PRIu64
           " daemon=%s\n",
           n_jobs, info.n_reconnects, info.n_resubmitted, longest_ms, info.daemon_version);
}

int main(int argc, char **argv)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    signal(SIGTERM, on_term);
    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = argc > 1 ? argv[1] : NULL;
    if (wharf_open(&options, &wharf) < 0)
        fail("wharf_open");
    uint8_t *sources = make_sources(wharf);
    for (unsigned i = 0; i < N_SLOTS; i++)
        prepare(wharf, &slots[i], sources + (size_t)i * ROOM_NBYTES);
    for (unsigned i = 0; i < N_SLOTS; i++)
        submit(wharf, &slots[i]);
    run(wharf);
    wharf_close(wharf);
    return EXIT_SUCCESS;
}
