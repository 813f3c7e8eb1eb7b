/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings.c: maps, arms and watches a session's rings.
 *
 * A hold keeps the mapping while a thread spins or sleeps on it without the handle's lock, even if
 * the connection is lost meanwhile.
 */
#include "clientlib/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/now.h"
#include "clientlib/sealed_memory.h"
#include "proto/relax.h"

static int map_segment(int fd, size_t nbytes, int protection, const char *name, void **ret_address)
{
    int seals;
    int r = wharf_client_memfd_check(fd, nbytes, 0, name, &seals);

    if (r < 0)
        return r;
    r = wharf_client_map(fd, nbytes, protection, ret_address);
    return r < 0 ? wharf_client_fail(r, "cannot map %s: %s", name, strerror(-r)) : 0;
}

/* Of all marks: one for each entry, and the one that is looked at. */
static uint32_t n_marks(const struct wharf_client_rings *rings)
{
    return rings->ring.n_entries + 1;
}

int wharf_client_rings_new(int c_fd, int d_fd, uint32_t n_entries, int has_marks, int has_words,
                           struct wharf_client_rings **ret_rings)
{
    size_t c_nbytes = wharf_ring_c_nbytes(n_entries, has_words);
    size_t d_nbytes = wharf_ring_d_nbytes(n_entries, has_marks);
    size_t found_nbytes = has_marks ? (n_entries + (size_t)1) * sizeof(uint32_t) : 0;
    struct wharf_client_rings *rings;
    void *c, *d;

    int r = map_segment(c_fd, c_nbytes, PROT_READ | PROT_WRITE, "the daemon's ring segment C", &c);
    if (r < 0)
        return r;
    /* Against holes punched into it, of which the daemon has to be sure.  One that is older does
     * not allow it, and does not ask for it. */
    fcntl(c_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
    r = map_segment(d_fd, d_nbytes, PROT_READ, "the daemon's ring segment D", &d);
    if (r < 0) {
        munmap(c, c_nbytes);
        return r;
    }
    rings = calloc(1, sizeof(*rings) + found_nbytes);
    if (!rings) {
        munmap(c, c_nbytes);
        munmap(d, d_nbytes);
        return wharf_client_fail(-ENOMEM, "out of memory");
    }
    wharf_ring_client_init(&rings->ring, c, d, n_entries);
    rings->c_nbytes = c_nbytes;
    rings->d_nbytes = d_nbytes;
    if (has_marks)
        rings->marks = (const uint32_t *)((const char *)d + wharf_ring_marks_offset(n_entries));
    if (has_words)
        wharf_ring_client_use_words(&rings->ring);
    rings->n_holders = 1;
    *ret_rings = rings;
    return 0;
}

void wharf_client_rings_hold(struct wharf_client_rings *rings)
{
    rings->n_holders++;
}

void wharf_client_rings_drop(struct wharf_client_rings *rings)
{
    if (!rings || --rings->n_holders)
        return;
    munmap(rings->ring.c, rings->c_nbytes);
    munmap((void *)rings->ring.d, rings->d_nbytes);
    free(rings);
}

void wharf_client_rings_free_forked(struct wharf_client_rings *rings)
{
    free(rings);
}

static int compare_marks(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void wharf_client_rings_find_marks(struct wharf_client_rings *rings)
{
    uint32_t n = rings->ring.n_entries;

    if (!rings->marks)
        return;
    for (uint32_t i = 0; i < n; i++)
        rings->found[i] = wharf_ring_load_mark(&rings->marks[i]);
    rings->found[n] = wharf_ring_load_mark(&rings->ring.d->sq_looked);
    qsort(rings->found, n_marks(rings), sizeof(*rings->found), compare_marks);
}

int wharf_client_rings_were_begun(const struct wharf_client_rings *rings, uint32_t index)
{
    uint32_t mark = wharf_ring_mark_of(index);

    return !rings->marks || bsearch(&mark, rings->found, n_marks(rings), sizeof(*rings->found),
                                    compare_marks) != NULL;
}

/* Whether the entry of index `at` is among those that are outstanding and not seen yet. */
static int is_to_come(const struct wharf_ring_client *ring, uint32_t at)
{
    return wharf_index_crossed(ring->cq_tail, ring->sq_woken, at);
}

int wharf_client_rings_is_armed(const struct wharf_client_rings *rings, uint64_t kind)
{
    return (rings->armed_kinds & kind) && is_to_come(&rings->ring, rings->armed_index);
}

void wharf_client_rings_had_packet(struct wharf_client_rings *rings)
{
    /* What it told of may have been published since the tail was looked at. */
    rings->armed_kinds &= ~(uint64_t)WHARF_WAIT_PACKET;
}

int wharf_client_rings_arm(struct wharf_client_rings *rings, uint64_t kinds, uint32_t n_wanted)
{
    struct wharf_ring_client *ring = &rings->ring;

    /* One word for all threads: the earliest entry that any of them waits for. */
    if (rings->armed_kinds && is_to_come(ring, rings->armed_index)) {
        uint32_t n_before = wharf_index_span(ring->cq_head, rings->armed_index) + 1;
        n_wanted = n_before < n_wanted ? n_before : n_wanted;
        kinds |= rings->armed_kinds;
    }
    rings->armed_index = ring->cq_head + n_wanted - 1;
    rings->armed_kinds = kinds;
    return wharf_ring_client_arm(ring, kinds, n_wanted);
}

int wharf_client_rings_spin(const struct wharf_client_rings *rings, uint32_t from, uint32_t n,
                            uint64_t deadline_ns)
{
    const uint32_t *cq_tail = &rings->ring.d->cq_tail;

    do {
        /* The time takes 20 ns or more to ask for: not at every look. */
        for (int i = 0; i < 32; i++) {
            if (wharf_index_span(from, wharf_ring_load_cq_tail(cq_tail)) >= n)
                return 1;
            wharf_relax();
        }
    } while (wharf_client_now_ns() < deadline_ns);
    return 0;
}

static long futex(const uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void wharf_client_rings_sleep(const struct wharf_client_rings *rings, uint32_t value,
                              uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000u),
                               (long)(timeout_ns % 1000000000u)};

    futex(&rings->ring.d->cq_tail, FUTEX_WAIT, value, &timeout);
}

void wharf_client_rings_wake_own(const struct wharf_client_rings *rings)
{
    futex(&rings->ring.d->cq_tail, FUTEX_WAKE, INT32_MAX, NULL);
}
