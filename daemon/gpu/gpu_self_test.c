/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_self_test.c: a new worker decodes samples of every codec before it gets clients' jobs.  Every
 * byte of output must be right.  The measured times are the initial estimates of placement.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/core.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/gpu/worker_message.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "proto/wharf_job.h"

/* The usual size of chunks; less for a simulated GPU, which is some thousand times slower. */
#define SAMPLE_NBYTES ((size_t)16384)
#define SIMT_SAMPLE_NBYTES ((size_t)1024)
/* Room for a sample's source, which may be a little larger than what it decodes to. */
#define ROOM_NBYTES (2 * SAMPLE_NBYTES)
/* Samples are also timed on the CPU: the fastest of so many runs, if it is long enough to tell. */
#define N_CPU_RUNS 5
#define LEAST_TIMED_NBYTES 4096u
/* Empty items, one after the other: the fastest one gives the latency. */
#define N_ROUND_TRIPS 16
/* Parameters that are tried for codecs that have some. */
#define MOST_PARAMETERS 256u

/* The layout of the samples' memory. */
static size_t plain_at(void)
{
    return 0;
}

static size_t packed_at(uint32_t codec)
{
    return SAMPLE_NBYTES + codec * ROOM_NBYTES;
}

static size_t output_at(uint32_t codec)
{
    return packed_at(WHARF_N_CODECS) + codec * SAMPLE_NBYTES;
}

/* ---- samples ------------------------------------------------------------------------------- */

/* Lines of words and numbers: neither random nor all the same. */
static void fill_plain(uint8_t *out, size_t nbytes)
{
    static const char *const words[] = {"chunk",  "batch", "lane",    "warp",
                                        "symbol", "run",   "literal", "match"};
    uint32_t random = 1;
    size_t n = 0;

    while (n < nbytes) {
        char line[64];
        random = random * 1664525u + 1013904223u;
        int length = snprintf(line, sizeof(line), "%s %s %u\n", words[random >> 29],
                              words[random >> 26 & 7], random >> 12 & 0xfff);
        size_t fits = nbytes - n < (size_t)length ? nbytes - n : (size_t)length;
        memcpy(out + n, line, fits);
        n += fits;
    }
}

static uint32_t first_parameter(const struct wharf_codec_ops *ops)
{
    uint32_t parameter = 0;

    while (parameter < MOST_PARAMETERS && !wharf_codec_unit_nbytes(ops, parameter))
        parameter++;
    return parameter;
}

/* Returns 0, or -errno if the codec cannot encode this data. */
static int pack(struct wharf_gpu_sample *sample, uint32_t codec, uint8_t *memory, size_t nbytes)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    struct wharf_encoder_options options = {
        .level = WHARF_LEVEL_DEFAULT,
        .parameter = first_parameter(ops),
    };
    struct wharf_encoder *encoder;
    size_t packed_nbytes;

    if (!ops->encoder)
        return -EOPNOTSUPP;
    int r = ops->encoder->new (&options, &encoder);
    if (r < 0)
        return r;
    r = ops->encoder->encode(encoder, memory + plain_at(), nbytes, memory + packed_at(codec),
                             ROOM_NBYTES, &packed_nbytes);
    ops->encoder->free(encoder);
    if (r < 0)
        return r;
    sample->parameter = options.parameter;
    sample->nbytes = (uint32_t)nbytes;
    sample->packed_nbytes = (uint32_t)packed_nbytes;
    return 0;
}

/* The time that one processor needs for a sample; 0: too short to measure. */
static uint32_t time_on_cpu(const struct wharf_gpu_sample *sample, uint32_t codec, uint8_t *memory)
{
    const struct wharf_decode_job job = {
        .codec = codec,
        .setting.parameter = sample->parameter,
        .in = memory + packed_at(codec),
        .in_nbytes = sample->packed_nbytes,
        .out = memory + output_at(codec),
        .out_avail = sample->nbytes,
    };
    uint64_t nbytes = (uint64_t)sample->packed_nbytes + sample->nbytes, best_ns = WHARF_NEVER;

    if (sample->nbytes < LEAST_TIMED_NBYTES)
        return 0;
    for (unsigned i = 0; i < N_CPU_RUNS; i++) {
        struct wharf_outcome outcome;
        uint64_t begun_ns = wharf_now_ns();
        wharf_decode_job_run(&job, 0, &outcome);
        uint64_t took_ns = wharf_now_ns() - begun_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return (uint32_t)(best_ns * 1024 / nbytes) + 1;
}

/* Makes the samples, once. */
static int make_samples(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_proof *proof = &backend->proof;
    size_t most = backend->config.gpu_chunk_nbytes;
    size_t wanted = backend->engine == WHARF_ENGINE_SIMT ? SIMT_SAMPLE_NBYTES : SAMPLE_NBYTES;
    size_t nbytes = wanted < most ? wanted : most;

    if (proof->memory.address)
        return 0;
    int r = wharf_segment_make(WHARF_SEGMENT_WORKER, output_at(WHARF_N_CODECS), &proof->memory);
    if (r < 0)
        return r;
    fill_plain(proof->memory.address, nbytes);
    /* Sources are at most as large as the largest chunk too. */
    for (uint32_t i = 0; i < WHARF_N_CODECS; i++) {
        if (pack(&proof->samples[i], i, proof->memory.address, nbytes - nbytes / 8) < 0)
            proof->samples[i] = (struct wharf_gpu_sample){.nbytes = 0};
        proof->cpu_ns_per_kib[i] = time_on_cpu(&proof->samples[i], i, proof->memory.address);
    }
    return 0;
}

/* ---- one item after the other -------------------------------------------------------------- */

static bool is_sampled(const struct wharf_gpu_backend *backend, uint32_t codec)
{
    return backend->codecs >> codec & 1 && backend->proof.samples[codec].nbytes > 0;
}

/* Steps 0 to N_ROUND_TRIPS - 1 are items of no size, then comes one for each codec. */
static void submit_next(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_proof *proof = &backend->proof;
    struct wharf_work_item item = {.opcode = WHARF_WORK_NOOP, .attempt = ++backend->last_attempt};

    if (proof->step >= N_ROUND_TRIPS) {
        uint32_t codec = proof->step - N_ROUND_TRIPS;
        const struct wharf_gpu_sample *sample = &proof->samples[codec];
        item.opcode = WHARF_WORK_DECODE;
        item.codec = (uint16_t)codec;
        item.parameter = (uint16_t)sample->parameter;
        item.src = proof->address + packed_at(codec);
        item.dst = proof->address + output_at(codec);
        item.src_nbytes = sample->packed_nbytes;
        item.dst_nbytes = sample->nbytes;
    }
    proof->item = item;
    proof->begun_ns = wharf_now_ns();
    proof->index = wharf_work_submit(&backend->submitter, &item);
    wharf_gpu_items_publish(backend);
}

static bool is_right(const struct wharf_gpu_backend *backend,
                     const struct wharf_work_completion *completion)
{
    const struct wharf_gpu_proof *proof = &backend->proof;
    const uint8_t *memory = proof->memory.address;
    uint32_t codec = proof->step - N_ROUND_TRIPS;

    if (!wharf_work_completion_good(completion, &proof->item, proof->index) ||
        completion->result != WHARF_OK)
        return false;
    return proof->step < N_ROUND_TRIPS ||
           (completion->out_nbytes == proof->item.dst_nbytes &&
            memcmp(memory + output_at(codec), memory + plain_at(), completion->out_nbytes) == 0);
}

static void learn(struct wharf_gpu_backend *backend, const struct wharf_work_completion *completion)
{
    struct wharf_gpu_proof *proof = &backend->proof;
    uint64_t took_ns = wharf_now_ns() - proof->begun_ns;

    if (proof->step < N_ROUND_TRIPS) {
        if (took_ns < proof->latency_ns)
            proof->latency_ns = took_ns;
        return;
    }
    uint64_t nbytes = (uint64_t)proof->item.src_nbytes + proof->item.dst_nbytes;
    uint64_t warp_ns = (uint64_t)completion->fetch_ns + completion->decode_ns + completion->move_ns;
    if (warp_ns == 0 || warp_ns > took_ns)
        warp_ns = took_ns;
    proof->ns_per_kib[proof->step - N_ROUND_TRIPS] = (uint32_t)(warp_ns * 1024 / nbytes) + 1;
}

int wharf_gpu_self_test_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTER, .number = 0};
    int r = make_samples(backend);

    if (r < 0)
        return r;
    backend->proof.step = 0;
    backend->proof.is_asked = false;
    backend->proof.latency_ns = WHARF_NEVER;
    backend->proof.address = 0;
    memset(backend->proof.ns_per_kib, 0, sizeof(backend->proof.ns_per_kib));
    memset((uint8_t *)backend->proof.memory.address + output_at(0), 0,
           backend->proof.memory.nbytes - output_at(0));
    message.nbytes = backend->proof.memory.nbytes;
    return wharf_worker_link_send(&backend->link, &message, backend->proof.memory.fd);
}

int wharf_gpu_self_test_step(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_proof *proof = &backend->proof;
    struct wharf_work_completion completion;

    if (!proof->address)
        return 0;
    if (proof->is_asked) {
        if (!wharf_work_reap(&backend->done, &completion))
            return 0;
        proof->is_asked = false;
        if (!is_right(backend, &completion))
            return -EBADMSG;
        learn(backend, &completion);
        proof->step++;
    }
    while (proof->step >= N_ROUND_TRIPS && proof->step < N_ROUND_TRIPS + WHARF_N_CODECS &&
           !is_sampled(backend, proof->step - N_ROUND_TRIPS))
        proof->step++;
    if (proof->step == N_ROUND_TRIPS + WHARF_N_CODECS)
        return 1;
    submit_next(backend);
    proof->is_asked = true;
    return 0;
}

const char *wharf_gpu_self_test_what(const struct wharf_gpu_backend *backend)
{
    uint32_t step = backend->proof.step;

    return step < N_ROUND_TRIPS ? "nothing" : wharf_codec_find(step - N_ROUND_TRIPS)->name;
}
