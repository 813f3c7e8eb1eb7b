/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the staging area of files, and the patience with reads to them. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "tests/lib/test_random.h"

#define UNIT WHARF_FILE_UNIT_NBYTES
#define LARGEST ((uint32_t)(WHARF_FILE_STAGING_MOST_NBYTES / UNIT))

static struct wharf_file_slot heads[WHARF_FILE_MOST_UNITS];

static struct wharf_file_staging *new_area(void)
{
    struct wharf_file_staging *staging = wharf_file_staging_new(NULL);

    cr_assert(staging);
    staging->heads = heads;
    return staging;
}

/* Takes a place whose read ends at once. */
static bool take(struct wharf_file_staging *staging, uint64_t nbytes, uint32_t *ret_place)
{
    if (!wharf_file_staging_take(staging, nbytes, ret_place))
        return false;
    cr_assert_eq(heads[*ret_place].is_done, 0, "the head says what the last read did");
    heads[*ret_place].is_done = 1;
    wharf_file_staging_answered(staging);
    return true;
}

static void give_back(struct wharf_file_staging *staging, uint32_t place)
{
    wharf_file_staging_give_back(staging, place);
}

Test(wharfd_staging, places_never_overlap_and_all_come_back)
{
    enum { N_ROUNDS = 20000, MOST = 512 };
    static uint8_t owners[WHARF_FILE_MOST_UNITS];
    static struct {
        uint32_t place, n_units;
    } taken[MOST];
    struct wharf_file_staging *staging = new_area();
    struct test_random random = {1};
    uint32_t n_taken = 0, n_refused = 0;

    for (unsigned round = 0; round < N_ROUNDS; round++) {
        uint32_t n = 1 + test_random_below(&random, round % 100 ? 16 : LARGEST);
        uint32_t place, i;
        if (n_taken < MOST && test_random_below(&random, 2) &&
            take(staging, n * UNIT - test_random_below(&random, UNIT), &place)) {
            cr_assert_leq(place + n, WHARF_FILE_MOST_UNITS);
            for (uint32_t unit = place; unit < place + n; unit++)
                cr_assert_eq(owners[unit]++, 0, "unit %u has two owners", unit);
            taken[n_taken].place = place;
            taken[n_taken++].n_units = n;
            continue;
        }
        n_refused++;
        if (n_taken == 0)
            continue;
        i = test_random_below(&random, n_taken);
        for (uint32_t unit = 0; unit < taken[i].n_units; unit++)
            owners[taken[i].place + unit]--;
        give_back(staging, taken[i].place);
        taken[i] = taken[--n_taken];
    }
    cr_assert_gt(n_refused, 0);
    while (n_taken > 0)
        give_back(staging, taken[--n_taken].place);
    cr_assert_eq(staging->n_free, WHARF_FILE_MOST_UNITS);
    cr_assert(take(staging, LARGEST * UNIT, &(uint32_t){0}));
    wharf_file_staging_free(staging);
}

/* All that was free in small pieces was looked at, bit by bit, under the core lock, for each chunk
 * that waited for a place. */
Test(wharfd_staging, searches_are_short_however_fragmented_it_is)
{
    enum { N = WHARF_FILE_MOST_UNITS, N_WORDS = N / 64 };
    struct wharf_file_staging *staging = new_area();
    static uint32_t places[N];
    uint32_t place;

    for (uint32_t i = 0; i < N; i++)
        cr_assert(take(staging, UNIT, &places[i]));
    for (uint32_t i = 0; i < N; i += 2)
        give_back(staging, places[i]);
    uint64_t before = staging->n_looks;
    cr_assert_not(wharf_file_staging_take(staging, 2 * UNIT, &place));
    cr_assert_leq(staging->n_looks - before, 2 * N_WORDS);
    before = staging->n_looks;
    for (unsigned i = 0; i < 1000; i++)
        cr_assert_not(wharf_file_staging_take(staging, (2 + i % 9) * UNIT, &place));
    cr_assert_eq(staging->n_looks, before, "it is searched again");
    cr_assert(take(staging, UNIT, &place));
    give_back(staging, place);
    give_back(staging, places[777]);
    cr_assert(take(staging, 3 * UNIT, &place));
    cr_assert_eq(place, places[776]);
    wharf_file_staging_free(staging);
}

/* Of all sizes, at all places, beside what is taken. */
Test(wharfd_staging, the_only_place_is_found)
{
    enum { N = WHARF_FILE_MOST_UNITS };
    struct wharf_file_staging *staging = new_area();

    for (uint32_t n = 1; n <= LARGEST; n = n < 70 ? n + 1 : 2 * n) {
        for (uint32_t first = 0; first < 130 && first + n <= N; first++) {
            uint32_t place;
            memset(staging->taken, 0xff, sizeof(staging->taken));
            for (uint32_t unit = first; unit < first + n; unit++)
                staging->taken[unit / 64] &= ~((uint64_t)1 << unit % 64);
            staging->n_free = n;
            staging->next = (first * 7919 + n) % N;
            staging->n_in_vain = N + 1;
            cr_assert_not(wharf_file_staging_take(staging, (n + 1) * UNIT, &place));
            cr_assert(take(staging, n * UNIT, &place), "%u units at %u", n, first);
            cr_assert_eq(place, first);
        }
    }
    wharf_file_staging_free(staging);
}

Test(wharfd_staging, nothing_is_a_place_too)
{
    struct wharf_file_staging *staging = new_area();
    uint32_t a, b;

    cr_assert(take(staging, 0, &a) && take(staging, 0, &b));
    cr_assert_neq(a, b);
    give_back(staging, a);
    give_back(staging, b);
    cr_assert_eq(staging->n_free, WHARF_FILE_MOST_UNITS);
    wharf_file_staging_free(staging);
}

Test(wharfd_staging, unanswered_reads_are_bounded)
{
    struct wharf_file_staging *staging = new_area();
    uint32_t place;

    for (uint32_t i = 0; i < WHARF_FILE_STAGING_MOST_READS; i++)
        cr_assert(wharf_file_staging_take(staging, 1, &place));
    cr_assert_not(wharf_file_staging_take(staging, 1, &place));
    wharf_file_staging_answered(staging);
    cr_assert(wharf_file_staging_take(staging, 1, &place));
    wharf_file_staging_free(staging);
}

/* Jobs that found it full are placed anew when much of it is free, and once. */
Test(wharfd_staging, room_is_told_once_and_when_there_is_enough)
{
    enum { N = WHARF_FILE_MOST_UNITS / 64 };
    struct wharf_file_staging *staging = new_area();
    uint32_t places[N];

    for (uint32_t i = 0; i < N; i++)
        cr_assert(take(staging, 64 * UNIT, &places[i]));
    cr_assert_not(wharf_file_staging_take(staging, 1, &places[0]));
    cr_assert_not(wharf_file_staging_has_room_again(staging), "nobody found it full");
    staging->is_full = true;
    for (uint32_t i = 0; i < N; i++) {
        cr_assert_not(wharf_file_staging_has_room_again(staging) && i < N / 4, "place %u", i);
        give_back(staging, places[i]);
        if (i + 1 == N / 4)
            cr_assert(wharf_file_staging_has_room_again(staging));
    }
    cr_assert_not(wharf_file_staging_has_room_again(staging));
    wharf_file_staging_free(staging);
}

/* ---- patience ------------------------------------------------------------------------------ */

enum { LIMIT = 1000 };

/* A process's end of the socket, which it does not read. */
static int process;

static struct wharf_file_io *new_io(void)
{
    static const bool is_short;
    const struct wharf_file_io_options options = {
        .n_slots = 2, .timeout_ns = LIMIT, .is_short = &is_short};
    struct wharf_file_io *io;
    int sockets[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    process = sockets[1];
    cr_assert_eq(wharf_file_io_new(sockets[0], &options, wharf_file_staging_new(NULL), &io), 0);
    return io;
}

static void free_io(struct wharf_file_io *io)
{
    wharf_file_io_free(io);
    close(process);
}

struct read {
    uint32_t place;
    struct wharf_file_patience patience;
};

static struct read begin(struct wharf_file_io *io, uint64_t now_ns)
{
    struct read read = {.patience = {.since_ns = now_ns}};

    cr_assert(wharf_file_staging_take(io->staging, 1 << 20, &read.place));
    wharf_file_io_stage(io, 7, 0, 1 << 20, read.place, false);
    return read;
}

static bool has_ended(struct wharf_file_io *io, struct read *read, uint64_t now_ns,
                      struct wharf_file_end *ret_end)
{
    return wharf_file_io_is_staged(io, read->place, &read->patience, now_ns, 1 << 20, ret_end);
}

/* The limit stood for all of it, and for the time that it waited for others: a file system with
 * less than 3 MB/s ended a session whose jobs were only slow. */
Test(wharfd_staging, a_read_is_late_when_one_step_is)
{
    struct wharf_file_io *io = new_io();
    struct wharf_file_end end;
    struct read read = begin(io, 0);
    uint64_t now_ns = 0;

    for (unsigned step = 1; step < 10; step++) {
        now_ns += LIMIT - 1;
        cr_assert_not(has_ended(io, &read, now_ns, &end));
        io->staging->heads[read.place].n_steps = step;
        cr_assert_not(has_ended(io, &read, now_ns, &end), "step %u", step);
    }
    cr_assert_not(has_ended(io, &read, now_ns + LIMIT - 1, &end));
    cr_assert(has_ended(io, &read, now_ns + LIMIT, &end));
    cr_assert_eq(end.how, WHARF_FILE_LATE);
    cr_assert(io->is_hung);
    free_io(io);
}

Test(wharfd_staging, reads_that_wait_are_late_when_all_are)
{
    struct wharf_file_io *io = new_io();
    struct wharf_file_end end;
    struct read slow = begin(io, 0), waiting = begin(io, 0);
    uint64_t now_ns = 0;

    for (unsigned step = 1; step < 10; step++) {
        now_ns += LIMIT - 1;
        io->staging->heads[slow.place].n_steps = step;
        cr_assert_not(has_ended(io, &slow, now_ns, &end));
        cr_assert_not(has_ended(io, &waiting, now_ns, &end), "step %u", step);
    }
    io->staging->heads[slow.place].is_done = 1;
    cr_assert(has_ended(io, &slow, ++now_ns, &end));
    cr_assert_eq(end.how, WHARF_FILE_DONE);
    cr_assert_not(has_ended(io, &waiting, now_ns + LIMIT - 1, &end));
    cr_assert(has_ended(io, &waiting, now_ns + LIMIT, &end));
    cr_assert_eq(end.how, WHARF_FILE_LATE);
    free_io(io);
}
