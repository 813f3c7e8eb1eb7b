/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c: checks and decodes jobs in the test daemon. */
#include "tests/lib/test_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encoders/decode_job.h"

static int is_range(const struct test_session *session, uint16_t region, uint64_t offset,
                    uint64_t nbytes, int is_output)
{
    const struct test_region *r = &session->regions[region];

    return region < TEST_N_REGIONS && r->data && !(is_output && r->is_read_only) &&
           wharf_range_good(offset, nbytes, r->nbytes);
}

/* The first error of a job's request, or WHARF_REASON_NONE. */
static uint32_t check_request(const struct test_session *session, const struct wharf_submission *s)
{
    if (s->opcode != WHARF_OP_NOOP && s->opcode != WHARF_OP_DECODE && s->opcode != WHARF_OP_BATCH)
        return WHARF_REASON_REQUEST_OPCODE;
    if (s->opcode == WHARF_OP_NOOP)
        return WHARF_REASON_NONE;
    if (!wharf_codec_find(s->codec))
        return WHARF_REASON_REQUEST_CODEC;
    if (s->flags & ~WHARF_JOB_KNOWN_FLAGS)
        return WHARF_REASON_REQUEST_FLAGS;
    if (s->job_class > WHARF_CLASS_BACKGROUND)
        return WHARF_REASON_REQUEST_CLASS;
    if (!wharf_codec_unit_nbytes(wharf_codec_find(s->codec)->ops, s->parameter))
        return WHARF_REASON_REQUEST_PARAMETER;
    if (s->encoder || s->level)
        return WHARF_REASON_REQUEST_RESERVED;
    if (!is_range(session, s->src_region, s->src_offset, s->src_nbytes, 0) ||
        !is_range(session, s->dst_region, s->dst_offset, s->dst_nbytes, 1))
        return WHARF_REASON_REQUEST_RANGE;
    if (s->src_region == s->dst_region && s->src_nbytes && s->dst_nbytes &&
        s->src_offset < s->dst_offset + s->dst_nbytes &&
        s->dst_offset < s->src_offset + s->src_nbytes)
        return WHARF_REASON_REQUEST_OVERLAP;
    if (s->src_nbytes + s->dst_nbytes > session->daemon->max_job_nbytes)
        return WHARF_REASON_REQUEST_SIZE;
    return WHARF_REASON_NONE;
}

/* Decodes a private copy of the source. */
static void decode(struct test_session *session, const struct wharf_submission *s,
                   struct wharf_outcome *outcome)
{
    uint8_t *copy = malloc(s->src_nbytes + 1);
    struct wharf_decode_job job = {
        .codec = s->codec,
        .flags = s->flags,
        .checksum = s->checksum,
        .setting.parameter = s->parameter,
        .in = copy,
        .in_nbytes = s->src_nbytes,
        .out = session->regions[s->dst_region].data + s->dst_offset,
        .out_avail = s->dst_nbytes,
    };
    uint32_t deadly = __atomic_load_n(&session->daemon->dies_of_job, __ATOMIC_RELAXED);

    if (!copy)
        _exit(1);
    wharf_ring_copy_in(copy, session->regions[s->src_region].data + s->src_offset, s->src_nbytes);
    if (deadly && s->src_nbytes && copy[0] == deadly)
        raise(SIGKILL);
    wharf_decode_job_run(&job, 0, outcome);
    free(copy);
    __atomic_add_fetch(&session->daemon->n_run, 1, __ATOMIC_RELAXED);
}

static void set_outcome(struct wharf_completion *completion, const struct wharf_outcome *outcome)
{
    completion->result = (uint16_t)outcome->result;
    completion->reason = (uint16_t)outcome->reason;
    completion->bit_offset = outcome->bit_offset;
    completion->in_nbytes = outcome->in_nbytes;
    completion->out_nbytes = outcome->out_nbytes;
    completion->engine = WHARF_ENGINE_CPU;
}

static void set_bad_request(struct wharf_completion *completion, uint32_t reason)
{
    completion->result = WHARF_BAD_REQUEST;
    completion->reason = (uint16_t)reason;
}

/* ---- batches ------------------------------------------------------------------------------- */

static struct wharf_submission chunk_job(const struct wharf_submission *s,
                                         const struct wharf_chunk *chunk)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .flags = s->flags,
        .codec = s->codec,
        .parameter = s->parameter,
        .src_offset = chunk->src_offset,
        .src_nbytes = chunk->src_nbytes,
        .dst_offset = chunk->dst_offset,
        .dst_nbytes = chunk->dst_nbytes,
        .src_region = chunk->src_region,
        .dst_region = chunk->dst_region,
        .checksum = chunk->checksum,
    };
}

static void run_chunks(struct test_session *session, const struct wharf_submission *s,
                       const struct wharf_chunk *chunks, size_t n, struct wharf_completion *done)
{
    uint8_t *results = s->dst_nbytes ? session->regions[s->dst_region].data + s->dst_offset : NULL;
    struct wharf_outcome outcome;

    for (size_t i = 0; i < n; i++) {
        struct wharf_submission job = chunk_job(s, &chunks[i]);
        decode(session, &job, &outcome);
        struct wharf_chunk_result result = {outcome.bit_offset,
                                            (uint32_t)outcome.in_nbytes,
                                            (uint32_t)outcome.out_nbytes,
                                            (uint16_t)outcome.result,
                                            (uint16_t)outcome.reason,
                                            WHARF_ENGINE_CPU,
                                            0,
                                            0};
        if (test_daemon_does(session->daemon, TEST_MISDEED_CHUNK_TOO_LONG))
            result.out_nbytes = UINT32_MAX;
        if (results)
            memcpy(results + i * sizeof(result), &result, sizeof(result));
        if (done->result == WHARF_OK && outcome.result == WHARF_OK) {
            done->in_nbytes += outcome.in_nbytes;
            done->out_nbytes += outcome.out_nbytes;
        } else if (done->result == WHARF_OK) {
            set_outcome(done, &outcome);
            done->first_bad_chunk = (uint32_t)i;
        }
    }
    done->engine = WHARF_ENGINE_CPU;
    done->flags = results ? WHARF_COMPLETION_RESULTS : 0;
}

static void run_batch(struct test_session *session, const struct wharf_submission *s,
                      struct wharf_completion *done)
{
    size_t n = s->src_nbytes / sizeof(struct wharf_chunk);
    struct wharf_chunk *chunks = malloc(s->src_nbytes + 1);

    if (!chunks)
        _exit(1);
    if (n == 0 || s->src_nbytes % sizeof(*chunks) ||
        (s->dst_nbytes && s->dst_nbytes != n * sizeof(struct wharf_chunk_result)))
        set_bad_request(done, WHARF_REASON_REQUEST_BATCH);
    wharf_ring_copy_in(chunks, session->regions[s->src_region].data + s->src_offset, s->src_nbytes);
    for (size_t i = 0; i < n && done->result == WHARF_OK; i++) {
        struct wharf_submission job = chunk_job(s, &chunks[i]);
        uint32_t reason = check_request(session, &job);
        if (reason) {
            set_bad_request(done, reason);
            done->first_bad_chunk = (uint32_t)i;
        }
    }
    if (done->result == WHARF_OK)
        run_chunks(session, s, chunks, n, done);
    free(chunks);
}

void test_run(struct test_session *session, const struct wharf_submission *submission,
              struct wharf_completion *completion)
{
    uint32_t reason = check_request(session, submission);
    struct wharf_outcome outcome;

    if (reason) {
        set_bad_request(completion, reason);
    } else if (submission->opcode == WHARF_OP_BATCH) {
        run_batch(session, submission, completion);
    } else if (submission->opcode == WHARF_OP_DECODE) {
        decode(session, submission, &outcome);
        set_outcome(completion, &outcome);
    }
}
