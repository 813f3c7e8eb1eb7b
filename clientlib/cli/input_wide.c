/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/input_wide.h"

#include "clientlib/cli/crew.h"

/* Threads read pieces in turn, and each is to have some. */
enum { PIECE_NBYTES = 2 << 20, PIECES_A_THREAD = 2 };
/* More gain nothing: what they wait for is memory. */
enum { MOST_THREADS = 8 };

struct reading {
    struct wharf_cli_input *input;
    uint64_t offset;
    uint8_t *buf;
    size_t nbytes;
    size_t end; /* of what is there: where the first piece ended that was short */
};

/* The file has become shorter.  Of such pieces the first counts. */
static void end_at(struct reading *reading, size_t end)
{
    size_t known = __atomic_load_n(&reading->end, __ATOMIC_RELAXED);

    while (end < known && !__atomic_compare_exchange_n(&reading->end, &known, end, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static int read_piece(void *context, size_t item, unsigned hand)
{
    struct reading *reading = context;
    size_t at = item * PIECE_NBYTES;
    size_t n = reading->nbytes - at < PIECE_NBYTES ? reading->nbytes - at : PIECE_NBYTES;
    int64_t got =
        wharf_cli_input_read_bare(reading->input, reading->offset + at, reading->buf + at, n);

    (void)hand;
    if (got < 0)
        return (int)got;
    if ((size_t)got < n)
        end_at(reading, at + (size_t)got);
    return 0;
}

int64_t wharf_cli_input_read_wide(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes, unsigned n_threads)
{
    struct reading reading = {input, offset, buf, nbytes, nbytes};
    size_t n_pieces = (nbytes + PIECE_NBYTES - 1) / PIECE_NBYTES;
    size_t n =
        n_pieces / PIECES_A_THREAD < MOST_THREADS ? n_pieces / PIECES_A_THREAD : MOST_THREADS;
    struct wharf_cli_crew *crew;
    uint64_t took_ns;
    int r;

    n = n < n_threads ? n : n_threads;
    if (n < 2 || wharf_cli_crew_new((unsigned)n, &crew) < 0)
        return wharf_cli_input_read_bare(input, offset, buf, nbytes);
    r = wharf_cli_crew_run(crew, read_piece, &reading, n_pieces, &took_ns);
    wharf_cli_crew_free(crew);
    return r < 0 ? r : (int64_t)reading.end;
}
