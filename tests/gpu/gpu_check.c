/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

enum {
    /* What all memory holds before a decode; canaries are such bytes that must stay. */
    CANARY = 0xa5,
    /* Around each output: more than any one store of a warp (32 lanes of 16 bytes) reaches. */
    CANARY_NBYTES = 1024,
    INPUT_GAP_NBYTES = 64,
    MAX_THREADS = 64,
    MAX_MESSAGES = 20,
    MAX_MODELS = 64,
};
/* Jobs run at once: what they need of memory, twice, on the device and here. */
#define BATCH_NBYTES ((size_t)256 << 20)
#define BATCH_MAX_CASES 16384

/* The same memory here and on the device; grows as it is needed. */
struct mirror {
    uint8_t *here, *there;
    size_t nbytes;
};

struct gpu_checker {
    const struct gpu_check_options *options;
    const struct gpu_device_ops *device;
    struct mirror in, out, chunks, outcomes;

    /* The batch under way. */
    struct gpu_case *cases;
    size_t n_cases;
    size_t in_offsets[BATCH_MAX_CASES], out_offsets[BATCH_MAX_CASES];
    size_t in_nbytes, out_nbytes;
    struct wharf_device_chunk *h_chunks;
    struct wharf_outcome *h_outcomes;
    /* Its models, here and on the device. */
    const void *models[MAX_MODELS];
    const uint8_t *d_models[MAX_MODELS];
    unsigned n_models;
};

struct comparison {
    const struct gpu_checker *checker;
    atomic_size_t next;
    atomic_size_t n_failed;
    pthread_mutex_t output; /* one message at a time */
    unsigned n_messages;
};

static void *must_alloc(size_t nbytes)
{
    void *p = malloc(nbytes ? nbytes : 1);
    if (!p) {
        perror("gpu_check: memory");
        exit(3);
    }
    return p;
}

static void grow(const struct gpu_device_ops *device, struct mirror *mirror, size_t nbytes)
{
    if (nbytes <= mirror->nbytes)
        return;
    if (mirror->nbytes) {
        device->host_free(mirror->here);
        device->free(mirror->there);
    }
    mirror->nbytes = nbytes + nbytes / 4;
    mirror->here = device->host_alloc(mirror->nbytes);
    mirror->there = device->alloc(mirror->nbytes);
}

static void release(const struct gpu_device_ops *device, struct mirror *mirror)
{
    if (mirror->nbytes) {
        device->host_free(mirror->here);
        device->free(mirror->there);
    }
}

struct gpu_checker *gpu_checker_new(const struct gpu_check_options *options)
{
    struct gpu_checker *checker = must_alloc(sizeof(*checker));
    memset(checker, 0, sizeof(*checker));
    checker->options = options;
    checker->device = options->device;
    grow(checker->device, &checker->chunks, BATCH_MAX_CASES * sizeof(struct wharf_device_chunk));
    grow(checker->device, &checker->outcomes, BATCH_MAX_CASES * sizeof(struct wharf_outcome));
    checker->h_chunks = (struct wharf_device_chunk *)checker->chunks.here;
    checker->h_outcomes = (struct wharf_outcome *)checker->outcomes.here;
    return checker;
}

void gpu_checker_free(struct gpu_checker *checker)
{
    if (!checker)
        return;
    release(checker->device, &checker->in);
    release(checker->device, &checker->out);
    release(checker->device, &checker->chunks);
    release(checker->device, &checker->outcomes);
    free(checker);
}

/* Every job's place, at an alignment of its own. */
static void lay_out(struct gpu_checker *c)
{
    struct test_random random = {c->n_cases};
    c->in_nbytes = 0;
    c->out_nbytes = CANARY_NBYTES;
    for (size_t i = 0; i < c->n_cases; i++) {
        c->in_offsets[i] = c->in_nbytes + test_random_below(&random, 32);
        c->in_nbytes = c->in_offsets[i] + c->cases[i].in_nbytes + INPUT_GAP_NBYTES;
        c->out_offsets[i] = c->out_nbytes + test_random_below(&random, 32);
        c->out_nbytes = c->out_offsets[i] + c->cases[i].out_avail + CANARY_NBYTES;
    }
}

static uint8_t *own_copy(const struct gpu_device_ops *device, const uint8_t *from, size_t nbytes)
{
    uint8_t *p = device->alloc(nbytes);
    if (from)
        device->write(p, from, nbytes);
    else
        device->set(p, CANARY, nbytes);
    return p;
}

/* A case's model on the device; NULL if it has none. */
static const uint8_t *model_there(struct gpu_checker *c, const struct gpu_case *job)
{
    unsigned i = 0;

    if (!job->model)
        return NULL;
    while (i < c->n_models && c->models[i] != job->model)
        i++;
    if (i == MAX_MODELS) {
        fprintf(stderr, "gpu_check: more than %d models\n", MAX_MODELS);
        exit(3);
    }
    if (i == c->n_models) {
        c->models[i] = job->model;
        c->d_models[i] = c->device->add_model(job->model, job->model_nbytes);
        c->n_models++;
    }
    return c->d_models[i];
}

static void describe_chunks(struct gpu_checker *c)
{
    for (size_t i = 0; i < c->n_cases; i++) {
        const struct gpu_case *job = &c->cases[i];
        struct wharf_device_chunk *chunk = &c->h_chunks[i];
        *chunk = (struct wharf_device_chunk){
            .in_nbytes = job->in_nbytes,
            .out_avail = job->out_avail,
            .codec = job->codec,
            .flags = job->flags,
            .checksum = job->checksum,
            .parameter = job->parameter,
            .model = model_there(c, job),
        };
        if (c->options->own_memory) {
            chunk->in = own_copy(c->device, job->in, job->in_nbytes);
            chunk->out = own_copy(c->device, NULL, job->out_avail);
        } else {
            chunk->in = c->in.there + c->in_offsets[i];
            chunk->out = c->out.there + c->out_offsets[i];
        }
    }
}

static void prepare(struct gpu_checker *c)
{
    lay_out(c);
    grow(c->device, &c->in, c->in_nbytes);
    grow(c->device, &c->out, c->out_nbytes);
    if (!c->options->own_memory) {
        memset(c->in.here, CANARY, c->in_nbytes);
        for (size_t i = 0; i < c->n_cases; i++)
            if (c->cases[i].in_nbytes)
                memcpy(c->in.here + c->in_offsets[i], c->cases[i].in, c->cases[i].in_nbytes);
        c->device->write(c->in.there, c->in.here, c->in_nbytes);
        c->device->set(c->out.there, CANARY, c->out_nbytes);
    }
    describe_chunks(c);
    c->device->write(c->chunks.there, c->chunks.here, c->n_cases * sizeof(*c->h_chunks));
    c->device->set(c->outcomes.there, CANARY, c->n_cases * sizeof(*c->h_outcomes));
}

/* Brings everything back; out.here then looks alike in both layouts. */
static void bring_back(struct gpu_checker *c)
{
    c->device->read(c->outcomes.here, c->outcomes.there, c->n_cases * sizeof(*c->h_outcomes));
    while (c->n_models > 0)
        c->device->remove_model(c->d_models[--c->n_models]);
    if (!c->options->own_memory) {
        c->device->read(c->out.here, c->out.there, c->out_nbytes);
        return;
    }
    memset(c->out.here, CANARY, c->out_nbytes);
    for (size_t i = 0; i < c->n_cases; i++) {
        struct wharf_device_chunk *chunk = &c->h_chunks[i];
        c->device->read(c->out.here + c->out_offsets[i], chunk->out, c->cases[i].out_avail);
        c->device->free((void *)chunk->in);
        c->device->free(chunk->out);
    }
}

static void save_input(const struct gpu_check_options *options, const struct gpu_case *c)
{
    char path[4096];
    const char *base = strrchr(c->name, '/') ? strrchr(c->name, '/') + 1 : c->name;
    snprintf(path, sizeof(path), "%s/%s-%" PRIu64, options->save_folder, base, c->number);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(c->in, 1, c->in_nbytes, file) != c->in_nbytes || fclose(file) != 0)
        perror(path);
    else
        printf("#   its input is in %s\n", path);
}

static void report(struct comparison *comparison, const struct gpu_case *c,
                   const struct wharf_outcome *want, const struct wharf_outcome *got,
                   const char *problem, size_t at)
{
    pthread_mutex_lock(&comparison->output);
    if (comparison->n_messages++ < MAX_MESSAGES) {
        printf("# %s, case %" PRIu64 " (codec %u, %zu bytes, room for %zu, flags %u): %s", c->name,
               c->number, c->codec, c->in_nbytes, c->out_avail, c->flags, problem);
        if (at != SIZE_MAX)
            printf(" at byte %zu", at);
        printf("\n#   CPU:    %s\n", test_outcome_text(want).text);
        printf("#   device: %s\n", test_outcome_text(got).text);
        if (comparison->checker->options->save_folder)
            save_input(comparison->checker->options, c);
    }
    pthread_mutex_unlock(&comparison->output);
}

static size_t first_other_byte(const uint8_t *p, size_t nbytes, uint8_t byte)
{
    for (size_t i = 0; i < nbytes; i++)
        if (p[i] != byte)
            return i;
    return SIZE_MAX;
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t nbytes)
{
    if (nbytes == 0 || memcmp(a, b, nbytes) == 0)
        return SIZE_MAX;
    size_t i = 0;
    while (a[i] == b[i])
        i++;
    return i;
}

/* Compares job i; want_out has room for its output. */
static bool compare(struct comparison *comparison, size_t i, uint8_t *want_out)
{
    const struct gpu_checker *m = comparison->checker;
    const struct gpu_case *c = &m->cases[i];
    const struct wharf_outcome *got = &m->h_outcomes[i];
    const uint8_t *out = m->out.here + m->out_offsets[i];
    const uint8_t *next =
        i + 1 < m->n_cases ? m->out.here + m->out_offsets[i + 1] : m->out.here + m->out_nbytes;
    struct wharf_outcome want;
    struct wharf_decode_job job = {
        .codec = c->codec,
        .flags = c->flags,
        .checksum = c->checksum,
        .setting = {.parameter = c->parameter, .model = c->model},
        .in = c->in,
        .in_nbytes = c->in_nbytes,
        .out = want_out,
        .out_avail = c->out_avail,
    };
    size_t at;

    wharf_decode_job_run(&job, 0, &want);
    if (!test_outcome_same(&want, got)) {
        report(comparison, c, &want, got, "another outcome", SIZE_MAX);
        return false;
    }
    if (want.result == WHARF_OK &&
        (at = first_difference(want_out, out, want.out_nbytes)) != SIZE_MAX) {
        report(comparison, c, &want, got, "another output", at);
        return false;
    }
    /* The canaries behind this output, and for the first one those before it. */
    const uint8_t *end = out + c->out_avail;
    at = first_other_byte(end, (size_t)(next - end), CANARY);
    if (at != SIZE_MAX) {
        report(comparison, c, &want, got, "a write behind the output or before the next", at);
        return false;
    }
    if (i == 0 && first_other_byte(m->out.here, m->out_offsets[0], CANARY) != SIZE_MAX) {
        report(comparison, c, &want, got, "a write before the output", SIZE_MAX);
        return false;
    }
    return true;
}

static void *compare_some(void *argument)
{
    struct comparison *comparison = argument;
    const struct gpu_checker *m = comparison->checker;
    uint8_t *want_out = NULL;
    size_t want_avail = 0;
    size_t i;
    while ((i = atomic_fetch_add(&comparison->next, 1)) < m->n_cases) {
        if (!want_out || m->cases[i].out_avail > want_avail) {
            free(want_out);
            want_avail = m->cases[i].out_avail;
            want_out = must_alloc(want_avail);
        }
        m->cases[i].failed = !compare(comparison, i, want_out);
        if (m->cases[i].failed)
            atomic_fetch_add(&comparison->n_failed, 1);
    }
    free(want_out);
    return NULL;
}

/* The CPU engine and the comparison, on all cores. */
static size_t compare_all(const struct gpu_checker *checker)
{
    struct comparison comparison = {.checker = checker};
    pthread_t threads[MAX_THREADS];
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int n_threads = n_cpus < 1 ? 1 : n_cpus > MAX_THREADS ? MAX_THREADS : (int)n_cpus;
    pthread_mutex_init(&comparison.output, NULL);
    for (int t = 0; t < n_threads; t++)
        if (pthread_create(&threads[t], NULL, compare_some, &comparison) != 0) {
            perror("gpu_check: pthread_create");
            exit(3);
        }
    for (int t = 0; t < n_threads; t++)
        pthread_join(threads[t], NULL);
    pthread_mutex_destroy(&comparison.output);
    if (comparison.n_messages > MAX_MESSAGES)
        printf("# and %u more\n", comparison.n_messages - MAX_MESSAGES);
    return atomic_load(&comparison.n_failed);
}

/* How many of the first jobs are a batch: of one codec unless any_codec, and not too much. */
static size_t batch_length(const struct gpu_check_options *options, const struct gpu_case *cases,
                           size_t n_cases)
{
    size_t nbytes = 0;
    size_t n = 0;
    while (n < n_cases && n < BATCH_MAX_CASES) {
        nbytes += cases[n].in_nbytes + cases[n].out_avail + CANARY_NBYTES;
        if (n > 0 &&
            (nbytes > BATCH_NBYTES || (!options->any_codec && cases[n].codec != cases[0].codec)))
            break;
        n++;
    }
    return n;
}

size_t gpu_checker_run(struct gpu_checker *checker, struct gpu_case *cases, size_t n_cases)
{
    const struct gpu_check_options *options = checker->options;
    size_t n_failed = 0;
    for (size_t done = 0; done < n_cases; done += checker->n_cases) {
        checker->cases = cases + done;
        checker->n_cases = batch_length(options, checker->cases, n_cases - done);
        prepare(checker);
        struct wharf_device_batch batch = {
            .chunks = (struct wharf_device_chunk *)checker->chunks.there,
            .outcomes = (struct wharf_outcome *)checker->outcomes.there,
            .n_chunks = (uint32_t)checker->n_cases,
            .codec =
                options->any_codec ? WHARF_DEVICE_ANY_CODEC : options->serial | cases[done].codec,
        };
        checker->device->decode(&batch);
        bring_back(checker);
        n_failed += compare_all(checker);
    }
    return n_failed;
}
