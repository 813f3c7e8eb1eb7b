/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation, release, and the consumer's side, which verifies checksums in stream order.
 *
 * Each thread sums the bytes that it has just written, run by run, and the consumer joins these
 * sums without reading a byte.  So verifying costs one thread next to nothing, and it happens where
 * the order is known: a trailer is compared when all output before it has been joined.
 */
#include "encoders/inflate_parallel/parallel_inflate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/crc32_join.h"
#include "encoders/inflate_parallel/parallel_parts.h"
#include "encoders/outcome.h"
#include "encoders/zlib/zlib_header.h"

/* ---- beginning and end -------------------------------------------------------------------- */

/* One for the proven decoder, one guess for each worker, one being read, and one whose output
 * waits.  With fewer, some worker would have nothing to guess while the others work. */
static unsigned slots_for(unsigned n_workers)
{
    return n_workers + 3;
}

static atomic_size_t forced_part_nbytes;
static atomic_uint forced_max_queued;

void wharf_parallel_inflate_force(size_t part_nbytes, unsigned max_queued)
{
    atomic_store(&forced_part_nbytes, part_nbytes);
    atomic_store(&forced_max_queued, max_queued);
}

static void init_sizes(struct wharf_parallel_inflate *stream)
{
    size_t part_nbytes = atomic_load(&forced_part_nbytes);
    unsigned max_queued = atomic_load(&forced_max_queued);

    stream->min_part_nbytes = part_nbytes ? part_nbytes : WHARF_PART_MIN_NBYTES;
    stream->max_part_nbytes = part_nbytes ? part_nbytes : WHARF_PART_MAX_NBYTES;
    stream->max_units = WHARF_GUESS_MAX_RATIO * stream->max_part_nbytes;
    stream->max_queued = max_queued ? max_queued : WHARF_CHUNKS_MAX_QUEUED;
}

/* Parts, their sources and decoders are made once and used in turn; `wide` memory is larger, and is
 * made when a guess first needs it. */
static bool init_part(struct wharf_part *part)
{
    part->state = WHARF_PART_OVER;
    wharf_marker_bytes_init(&part->bytes);
    part->in = malloc(WHARF_PART_HEAD_NBYTES + WHARF_PART_MAX_NBYTES);
    part->decoder = malloc(sizeof(*part->decoder));
    if (part->decoder)
        part->decoder->chunk = NULL;
    return part->in && part->decoder;
}

static bool init_memory(struct wharf_parallel_inflate *stream)
{
    bool good = true;

    stream->proven = malloc(sizeof(*stream->proven));
    stream->parts = calloc(stream->n_slots, sizeof(*stream->parts));
    for (unsigned i = 0; stream->parts && i < stream->n_slots; i++)
        good = init_part(&stream->parts[i]) && good;
    stream->free_wides = calloc(stream->n_slots, sizeof(*stream->free_wides));
    return good && stream->parts && stream->proven && stream->free_wides;
}

int wharf_parallel_inflate_new(enum wharf_inflate_format format, unsigned n_workers,
                               const struct wharf_parallel_source *source,
                               struct wharf_parallel_inflate **ret_stream)
{
    struct wharf_parallel_inflate *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return -ENOMEM;
    stream->format = format;
    stream->source = *source;
    stream->n_workers = n_workers;
    stream->n_slots = slots_for(n_workers);
    init_sizes(stream);
    stream->step = format == WHARF_INFLATE_RAW ? WHARF_PROVEN_DATA : WHARF_PROVEN_HEADER;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->has_work, NULL);
    pthread_cond_init(&stream->has_output, NULL);
    stream->proven_want = WHARF_WANTS_SOURCE;
    if (!init_memory(stream)) {
        wharf_parallel_inflate_free(stream);
        return -ENOMEM;
    }
    stream->proven->source = NULL;
    stream->proven->chunk = NULL;
    wharf_inflate_init(&stream->proven->inflate, NULL, 0, 0, NULL, 0);
    wharf_gzip_header_init(&stream->gzip_header);
    stream->checksum = wharf_parallel_checksum(stream, 0, NULL, 0);
    wharf_outcome_ok(&stream->outcome, 0, 0);
    *ret_stream = stream;
    return 0;
}

/* That of a guess with markers is a member of its part. */
static void free_chunk(struct wharf_chunk *chunk)
{
    if (chunk && !chunk->part) {
        free(chunk->bytes);
        free(chunk);
    }
}

static void free_chunk_list(struct wharf_chunk *chunk)
{
    struct wharf_chunk *next;

    for (; chunk; chunk = next) {
        next = chunk->next;
        free_chunk(chunk);
    }
}

static void free_decoder(struct wharf_decoder *decoder)
{
    if (decoder)
        free_chunk(decoder->chunk);
    free(decoder);
}

void wharf_parallel_inflate_free(struct wharf_parallel_inflate *stream)
{
    if (!stream)
        return;
    free_chunk_list(stream->free_chunks);
    free_chunk_list(stream->first_chunk);
    free_chunk(stream->taken);
    for (unsigned i = 0; stream->parts && i < stream->n_slots; i++) {
        free_chunk_list(stream->parts[i].first_chunk);
        free_decoder(stream->parts[i].decoder);
        free(stream->parts[i].in);
        free(stream->parts[i].wide);
    }
    for (unsigned i = 0; i < stream->n_free_wides; i++)
        free(stream->free_wides[i]);
    free(stream->free_wides);
    free_decoder(stream->proven);
    free(stream->parts);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->has_work);
    pthread_cond_destroy(&stream->has_output);
    free(stream);
}

static void stop(struct wharf_parallel_inflate *stream)
{
    stream->is_stopped = true;
    pthread_cond_broadcast(&stream->has_work);
    pthread_cond_broadcast(&stream->has_output);
}

void wharf_parallel_inflate_stop(struct wharf_parallel_inflate *stream)
{
    pthread_mutex_lock(&stream->lock);
    stop(stream);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- verifying ----------------------------------------------------------------------------- */

/* RFC 1950: both sums are modulo 65521, and each byte of the first part counts in the second sum
 * once for each byte of the second part too.  The second part began with a sum of 1, which is taken
 * off again: hence `modulus - 1`. */
static uint32_t adler32_join(uint32_t first, uint32_t second, uint64_t second_nbytes)
{
    const uint64_t modulus = 65521;
    uint64_t first_a = first & 0xffff;
    uint64_t a = first_a + (second & 0xffff) + modulus - 1;
    uint64_t b = (first >> 16) + (second >> 16) +
                 second_nbytes % modulus * (first_a + modulus - 1) % modulus;

    return (uint32_t)(b % modulus << 16 | a % modulus);
}

static void join_checksum(struct wharf_parallel_inflate *stream, const struct wharf_run *run)
{
    if (run->nbytes == 0)
        return;
    if (stream->format == WHARF_INFLATE_GZIP)
        stream->checksum = wharf_crc32_join(stream->checksum, run->checksum, run->nbytes);
    else if (stream->format == WHARF_INFLATE_ZLIB)
        stream->checksum = adler32_join(stream->checksum, run->checksum, run->nbytes);
}

static void fail(struct wharf_parallel_inflate *stream, uint32_t result, uint32_t reason,
                 uint64_t bit_offset)
{
    wharf_outcome_fail(&stream->outcome, result, reason, bit_offset);
    stream->outcome.in_nbytes = bit_offset / 8;
    stream->outcome.out_nbytes = stream->out_nbytes;
    stream->is_ended = true;
}

static void verify_trailer(struct wharf_parallel_inflate *stream, const struct wharf_run *run)
{
    bool is_gzip = stream->format == WHARF_INFLATE_GZIP;
    uint32_t reason = is_gzip
                          ? wharf_gzip_trailer(run->trailer, run->trailer_nbytes, stream->checksum,
                                               (uint32_t)stream->out_of_member)
                          : wharf_zlib_trailer(run->trailer, run->trailer_nbytes, stream->checksum);

    if (reason != WHARF_REASON_NONE) {
        fail(stream, is_gzip ? wharf_gzip_result(reason) : wharf_zlib_result(reason), reason,
             run->bit_pos);
        return;
    }
    /* From here on all output so far is vouched for; the next member has sums of its own. */
    stream->verified = stream->out_nbytes;
    stream->out_of_member = 0;
    stream->checksum = wharf_parallel_checksum(stream, 0, NULL, 0);
}

static void verify_run(struct wharf_parallel_inflate *stream, const struct wharf_run *run)
{
    join_checksum(stream, run);
    stream->out_nbytes += run->nbytes;
    stream->out_of_member += run->nbytes;
    if (run->end == WHARF_RUN_OPEN)
        return;
    stream->told_member_start = run->member_start;
    if (run->end == WHARF_RUN_TRAILER) {
        verify_trailer(stream, run);
    } else if (run->end == WHARF_RUN_FAIL) {
        fail(stream, run->result, run->reason, run->bit_pos);
    } else {
        stream->verified = stream->out_nbytes;
        wharf_outcome_ok(&stream->outcome, run->bit_pos / 8, stream->out_nbytes);
        stream->is_ended = true;
    }
}

/* Verifies a chunk's checksums.  Returns how many of its bytes are output: none behind a failure,
 * whatever the decoder made of what follows. */
static size_t verify(struct wharf_parallel_inflate *stream, const struct wharf_chunk *chunk)
{
    size_t nbytes = 0;

    for (unsigned i = 0; i < chunk->n_runs && !stream->is_ended; i++) {
        nbytes += chunk->runs[i].nbytes;
        verify_run(stream, &chunk->runs[i]);
    }
    return nbytes;
}

/* ---- the consumer, with the lock ---------------------------------------------------------- */

/* The consumer is done with its span, so the memory behind it may be written again.  A queue that
 * was full has room now, for which the proven decoder may wait. */
static void give_back(struct wharf_parallel_inflate *stream)
{
    struct wharf_chunk *chunk = stream->taken;

    stream->taken = NULL;
    if (!chunk)
        return;
    if (chunk->part) {
        chunk->part->is_queued = false;
        wharf_parallel_free_wide(stream, chunk->part);
        wharf_parallel_free_parts(stream);
        return;
    }
    if (chunk->is_counted && stream->n_queued-- == stream->max_queued)
        pthread_cond_broadcast(&stream->has_work);
    wharf_parallel_free_chunk(stream, chunk);
}

/* Waits for the queue's next chunk and takes it.  False at the end. */
static bool take(struct wharf_parallel_inflate *stream)
{
    while (!stream->is_stopped) {
        struct wharf_chunk *chunk = stream->first_chunk;

        /* Only the first: a later one may be ready before it, but order is what is asked for. */
        if (chunk && chunk->is_ready) {
            stream->first_chunk = chunk->next;
            if (!stream->first_chunk)
                stream->last_chunk = NULL;
            stream->taken = chunk;
            return true;
        }
        if (!chunk && stream->is_over)
            break;
        pthread_cond_wait(&stream->has_output, &stream->lock);
    }
    return false;
}

int wharf_parallel_inflate_next(struct wharf_parallel_inflate *stream, const uint8_t **ret_span,
                                size_t *ret_nbytes)
{
    size_t nbytes = 0;
    int r = 0;

    pthread_mutex_lock(&stream->lock);
    give_back(stream);
    /* A chunk may have no output, only the end of a run. */
    while (!stream->is_ended && nbytes == 0 && take(stream)) {
        stream->point = (struct wharf_parallel_point){
            stream->taken->has_point ? stream->taken->point_bit : UINT64_MAX,
            stream->out_of_member,
        };
        nbytes = verify(stream, stream->taken);
        *ret_span = stream->taken->out;
        if (nbytes == 0)
            give_back(stream);
    }
    /* An error of the source or of memory comes behind all output, and only where the data has not
     * ended before it. */
    if (stream->is_ended)
        stop(stream);
    else if (nbytes == 0)
        r = stream->error;
    pthread_mutex_unlock(&stream->lock);
    *ret_nbytes = nbytes;
    return nbytes ? 1 : r;
}

void wharf_parallel_inflate_want_points(struct wharf_parallel_inflate *stream)
{
    stream->wants_points = true;
}

bool wharf_parallel_inflate_point(const struct wharf_parallel_inflate *stream,
                                  struct wharf_parallel_point *ret_point)
{
    *ret_point = stream->point;
    return stream->point.bit_offset != UINT64_MAX;
}

/* ---- afterwards --------------------------------------------------------------------------- */

void wharf_parallel_inflate_outcome(const struct wharf_parallel_inflate *stream,
                                    struct wharf_outcome *ret_outcome)
{
    *ret_outcome = stream->outcome;
}

uint64_t wharf_parallel_inflate_verified(const struct wharf_parallel_inflate *stream)
{
    return stream->verified;
}

uint64_t wharf_parallel_inflate_member_start(const struct wharf_parallel_inflate *stream)
{
    return stream->told_member_start;
}

uint64_t wharf_parallel_inflate_n_read(struct wharf_parallel_inflate *stream)
{
    uint64_t n_read;

    pthread_mutex_lock(&stream->lock);
    n_read = stream->n_read;
    pthread_mutex_unlock(&stream->lock);
    return n_read;
}

size_t wharf_parallel_inflate_rest_nbytes(const struct wharf_parallel_inflate *stream)
{
    return (size_t)(stream->n_read - stream->outcome.in_nbytes);
}

void wharf_parallel_inflate_copy_rest(const struct wharf_parallel_inflate *stream, uint8_t *rest)
{
    uint64_t at = stream->outcome.in_nbytes;

    /* What was read behind the stream's end stands in parts that are still there: a part is freed
     * only when the proven decoder is in a later one. */
    for (uint64_t i = stream->n_freed; i < stream->n_begun; i++) {
        const struct wharf_part *part = wharf_part_at(stream, i);
        uint64_t end = part->offset + part->nbytes;

        if (end <= at)
            continue;
        memcpy(rest, part->in + WHARF_PART_HEAD_NBYTES + (at - part->offset), (size_t)(end - at));
        rest += end - at;
        at = end;
    }
}

struct wharf_parallel_inflate_counts
wharf_parallel_inflate_counts(const struct wharf_parallel_inflate *stream)
{
    return stream->counts;
}
