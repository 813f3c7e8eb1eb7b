/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream.c: feeds a decoder of encoders/stream.h in pieces. */
#include "tests/lib/test_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_random.h"

struct feeder {
    const uint8_t *in;
    size_t in_left;
    size_t max_piece_nbytes;
    struct test_random random;
    int is_random;
    int says_last_late;
};

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "stream: %s\n", what);
        abort();
    }
}

static void feed(struct feeder *feeder, struct wharf_stream *stream)
{
    size_t room;
    uint8_t *space = wharf_stream_space(stream, &room);
    size_t nbytes = feeder->max_piece_nbytes;

    check(room > 0, "no room for input");
    if (feeder->is_random)
        nbytes = 1 + test_random_below(&feeder->random, nbytes);
    if (nbytes > room)
        nbytes = room;
    if (nbytes > feeder->in_left)
        nbytes = feeder->in_left;
    if (nbytes)
        memcpy(space, feeder->in, nbytes);
    feeder->in += nbytes;
    feeder->in_left -= nbytes;
    wharf_stream_fill(stream, nbytes,
                      feeder->in_left == 0 && (nbytes == 0 || !feeder->says_last_late));
}

static void keep(struct test_stream *kept, size_t *capacity, const uint8_t *span, size_t nbytes)
{
    check(nbytes > 0, "an empty span");
    if (nbytes > *capacity - kept->out_nbytes) {
        *capacity = 2 * (*capacity + nbytes);
        kept->out = realloc(kept->out, *capacity);
        check(kept->out != NULL, "out of memory");
    }
    memcpy(kept->out + kept->out_nbytes, span, nbytes);
    kept->out_nbytes += nbytes;
}

struct test_stream test_stream_decode(struct wharf_stream *stream, const uint8_t *in,
                                      size_t in_nbytes, size_t max_piece_nbytes, uint64_t seed)
{
    struct feeder feeder = {in, in_nbytes, max_piece_nbytes, {seed}, seed != 0, seed & 1};
    struct test_stream kept = {0};
    enum wharf_stream_event event;
    size_t capacity = 0;
    const uint8_t *span;
    size_t nbytes;

    check(stream != NULL, "out of memory");
    while ((event = wharf_stream_next(stream, &span, &nbytes)) != WHARF_STREAM_END) {
        if (event == WHARF_STREAM_INPUT)
            feed(&feeder, stream);
        else
            keep(&kept, &capacity, span, nbytes);
    }
    check(wharf_stream_next(stream, &span, &nbytes) == WHARF_STREAM_END, "goes on after its end");
    wharf_stream_outcome(stream, &kept.outcome);
    kept.verified = wharf_stream_verified(stream);
    wharf_stream_rest(stream, &kept.n_rest);
    check(kept.out_nbytes == kept.outcome.out_nbytes, "counts other output than it gave");
    wharf_stream_free(stream);
    return kept;
}

void test_stream_free(struct test_stream *stream)
{
    free(stream->out);
    stream->out = NULL;
}
