/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_bench.c: rans on the CPU, each form of the tuned decoder and coder beside the plain one.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_thin.h"
#include "tests/bench/bench_crew.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: rans_bench [--only decode|encode|stream] [--repetitions N] [--threads N] [--least N]\n"
    "                  [--most N] [FILE]...\n"
    "\n"
    "Times rans on the CPU, each form of the tuned decoder and coder beside the plain one, N\n"
    "times each (11).\n"
    "\n"
    "Files are bytes.  Symbols of 16 bits it makes itself, 4 MiB each: `samples`, a wave with\n"
    "noise, of which most of 2^16 occur somewhere, and `few`, of which 41 do; without a FILE,\n"
    "these alone are measured.\n"
    "\n"
    "DECODING: chunks of 128 KiB and 1 MiB (what is left over at a file's end is not used)\n"
    "are coded one by one with models of their own, for each n from --least to --most (11 and\n"
    "16 alone, if that is not said), and decoded by one thread, and by as many as there are\n"
    "cores, or by --threads.  Forms take turns.  A run decodes all chunks as often as it\n"
    "takes to be long beside what threads need to begin together; what is printed is of all\n"
    "chunks once.  Every output is compared before the clock starts.  With one thread alone\n"
    "(--threads 1) all is measured by its processor time.\n"
    "\n"
    "ENCODING: by the codec's encoder, which makes the model and chooses n, from 11 or 16\n"
    "downwards, in chunks of several sizes.\n"
    "\n"
    "A whole file as one stream of 2176 splits, as the paper has them, is encoded as well,\n"
    "and thinned to 16 splits beside memcpy of as many bytes, with a copy of its words and\n"
    "without: GB/s count symbols' bytes, and the stream's.\n";

enum { DEFAULT_REPETITIONS = 11, MAX_FORMS = 8 };
enum { MADE_NBYTES = 4 << 20 };

/* What starting together and waiting for the last one costs is some 50 us. */
static const double MIN_RUN_S = 0.01;

static const size_t decode_chunks_nbytes[] = {128 << 10, 1 << 20};
static const size_t encode_chunks_nbytes[] = {16 << 10, 64 << 10, 128 << 10, 1 << 20};

/* What all measurements are made with. */
static struct {
    unsigned repetitions;
    unsigned n_threads;
    uint32_t n_bits[WHARF_RANS_MAX_NBITS];
    unsigned n_n_bits;
    const char *only; /* "decode", "encode" or "stream"; NULL: all three */
} plan = {.repetitions = DEFAULT_REPETITIONS};

/* Symbols to code. */
struct data {
    const char *name;
    const uint8_t *raw;
    size_t nbytes;
    uint32_t symbol_nbytes;
};

static uint32_t parameter_of(const struct data *data)
{
    return data->symbol_nbytes == 1 ? WHARF_RANS_PARAMETER_BYTES : WHARF_RANS_PARAMETER_U16;
}

/* ---- data that is made ----------------------------------------------------------------------- */

static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / (double)(1ull << 53);
}

/* A slow swing of a quicker one, and what is near to normal noise. */
static uint32_t make_sample(uint64_t i, uint64_t *random)
{
    double noise = -6;

    for (unsigned k = 0; k < 12; k++)
        noise += next_random(random);
    return (uint32_t)(32768 + 9000 * sin((double)i * 0.01) * sin((double)i * 0.00013) +
                      1500 * noise);
}

/* One of 41, exponentially distributed. */
static uint32_t make_one_of_few(uint64_t i, uint64_t *random)
{
    double value = -log(1 - next_random(random)) / 0.15;
    (void)i;

    return value < 40 ? 37 * (uint32_t)value : 37 * 40;
}

static void make_words(uint8_t *out, uint32_t (*make)(uint64_t i, uint64_t *random))
{
    uint64_t random = 1;

    for (uint64_t i = 0; i < MADE_NBYTES / 2; i++) {
        uint32_t value = make(i, &random);

        out[2 * i] = (uint8_t)value;
        out[2 * i + 1] = (uint8_t)(value >> 8);
    }
}

/* ---- chunks ---------------------------------------------------------------------------------- */

struct chunk {
    const uint8_t *raw;
    uint8_t *packed;
    size_t packed_nbytes;
};

/* Data in chunks, with n of the coder. */
struct work {
    const struct data *data;
    struct chunk *chunks;
    size_t n_chunks;
    size_t chunk_nbytes;
    uint64_t packed_nbytes;
    uint32_t n_bits;
};

static struct work work_new(const struct data *data, size_t chunk_nbytes, uint32_t n_bits)
{
    struct work work = {.data = data,
                        .n_chunks = data->nbytes / chunk_nbytes,
                        .chunk_nbytes = chunk_nbytes,
                        .n_bits = n_bits};

    work.chunks = bench_check(calloc(work.n_chunks + 1, sizeof(*work.chunks)));
    for (size_t i = 0; i < work.n_chunks; i++)
        work.chunks[i].raw = data->raw + i * chunk_nbytes;
    return work;
}

static void work_free(struct work *work)
{
    for (size_t i = 0; i < work->n_chunks; i++)
        free(work->chunks[i].packed);
    free(work->chunks);
}

/* The frequencies of symbols, and the alphabet, which ends with the last one that occurs; false if
 * there are not enough slots for all that occur. */
static bool make_frequencies(const uint8_t *raw, size_t nbytes, struct wharf_rans_shape *shape,
                             uint32_t *frequencies)
{
    uint32_t symbol_nbytes = shape->symbol_nbytes;
    uint64_t *counts = bench_check(calloc(WHARF_RANS_MAX_ALPHABET, sizeof(*counts)));
    int rc;

    for (size_t i = 0; i < nbytes; i += symbol_nbytes)
        counts[symbol_nbytes == 1 ? raw[i] : raw[i] | raw[i + 1] << 8]++;
    shape->alphabet = symbol_nbytes == 1 ? 256 : WHARF_RANS_MAX_ALPHABET;
    while (shape->alphabet > 1 && counts[shape->alphabet - 1] == 0)
        shape->alphabet--;
    rc = wharf_rans_normalise(counts, shape->alphabet, shape->n_bits, frequencies);
    free(counts);
    return rc == 0;
}

/* One split for 32 Ki symbols, but four at least, as the codec's encoder has them. */
static uint32_t count_splits(size_t n_symbols)
{
    return n_symbols < 4 << 15 ? 4 : (uint32_t)(n_symbols >> 15);
}

/* Chunks with n as it is said, which the codec's encoder would choose itself; false if it is too
 * small for one. */
static bool code_chunks(struct work *work)
{
    uint32_t *frequencies = bench_check(malloc(WHARF_RANS_MAX_ALPHABET * sizeof(*frequencies)));
    uint32_t symbol_nbytes = work->data->symbol_nbytes;
    bool all = true;

    for (size_t i = 0; i < work->n_chunks && all; i++) {
        struct chunk *chunk = &work->chunks[i];
        struct wharf_rans_job job = {
            .shape = {.n_bits = work->n_bits,
                      .symbol_nbytes = symbol_nbytes,
                      .alphabet = 1,
                      .n_distributions = 1},
            .frequencies = frequencies,
            .symbols = chunk->raw,
            .n_symbols = (uint32_t)(work->chunk_nbytes / symbol_nbytes),
            .max_splits = count_splits(work->chunk_nbytes / symbol_nbytes),
        };
        size_t bound;

        all = make_frequencies(chunk->raw, work->chunk_nbytes, &job.shape, frequencies);
        bound = wharf_rans_encode_bound(&job);
        chunk->packed = bench_check(malloc(bound));
        if (all && wharf_rans_encode(&job, chunk->packed, bound, &chunk->packed_nbytes) < 0)
            bench_die("cannot encode");
        work->packed_nbytes += chunk->packed_nbytes;
    }
    free(frequencies);
    return all;
}

static void print(const char *what, const char *form, const struct work *work, unsigned n_threads,
                  const char *peer, const struct bench_times *times,
                  const struct bench_times *peer_times)
{
    char named[64];
    struct bench_row row = {.what = named,
                            .codec = "rans",
                            .data = work->data->name,
                            .level = (int)work->n_bits,
                            .threads = n_threads,
                            .repetitions = plan.repetitions,
                            .chunk_nbytes = work->chunk_nbytes,
                            .in_nbytes = work->packed_nbytes,
                            .out_nbytes = work->n_chunks * work->chunk_nbytes,
                            .peer = peer,
                            .times = *times,
                            .peer_times = *peer_times};

    snprintf(named, sizeof(named), "%s%s, %s", what, work->data->symbol_nbytes == 2 ? " u16" : "",
             form);
    bench_print_row(stdout, &row);
}

static struct bench_times divided(struct bench_times times, double by)
{
    return (struct bench_times){times.min_s / by, times.median_s / by, times.max_s / by};
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* Those that this machine has; the plain one first.  Of coders each once. */
static size_t list_forms(const char **forms, bool of_coders)
{
    size_t n = 0;

    forms[n++] = "none";
#define X(form, coder, where, where_in_buckets)                                                    \
    if ((!of_coders || strcmp(#form, #coder) == 0) && wharf_rans_loop_force(#form) == 0)           \
        forms[n++] = #form;
    WHARF_RANS_LOOP_LIST(X)
#undef X
    return n;
}

static void force(const char *form)
{
    if (wharf_rans_loop_force(form) < 0)
        bench_die("no such form");
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* One form with as many threads as take part; each takes the next chunk that nobody has. */
struct team {
    const char *form;
    const struct work *work;
    uint8_t **outs; /* by thread */
    bool is_crew;
    bool compares;
    size_t n_passes; /* over all chunks */
    atomic_size_t next;
};

static void decode_chunks(void *context, unsigned thread)
{
    struct team *team = context;
    const struct work *work = team->work;
    struct wharf_codec_setting setting = {.parameter = parameter_of(work->data)};
    size_t n = team->n_passes * work->n_chunks;

    for (size_t i; (i = atomic_fetch_add(&team->next, 1)) < n;) {
        const struct chunk *chunk = &work->chunks[i % work->n_chunks];
        struct wharf_outcome outcome;

        wharf_rans_decode(chunk->packed, chunk->packed_nbytes, team->outs[thread],
                          work->chunk_nbytes, &setting, &outcome);
        if (outcome.out_nbytes != work->chunk_nbytes ||
            (team->compares && memcmp(team->outs[thread], chunk->raw, work->chunk_nbytes) != 0))
            bench_die("wrong output");
    }
}

static void run_team(void *context)
{
    struct team *team = context;

    force(team->form);
    atomic_store(&team->next, 0);
    if (team->is_crew)
        bench_crew_run(decode_chunks, team);
    else
        decode_chunks(team, 0);
}

/* Compares, and finds out how many passes are long enough. */
static void prepare_team(struct team *team)
{
    double begin;

    team->n_passes = 1;
    team->compares = true;
    run_team(team);
    team->compares = false;
    begin = bench_now_us();
    run_team(team);
    team->n_passes = 1 + (size_t)(MIN_RUN_S / (1e-6 * (bench_now_us() - begin)));
}

/* Each form beside the plain one. */
static void measure_decoding(const struct work *work, uint8_t **outs, bool is_crew)
{
    const char *forms[MAX_FORMS];
    size_t n_forms = list_forms(forms, false);
    struct team teams[MAX_FORMS];
    struct bench_side sides[MAX_FORMS];
    struct bench_times times[MAX_FORMS];

    for (size_t i = 0; i < n_forms; i++) {
        teams[i] = (struct team){.form = forms[i], .work = work, .outs = outs, .is_crew = is_crew};
        prepare_team(&teams[i]);
        sides[i] = (struct bench_side){run_team, &teams[i]};
    }
    bench_compare(sides, n_forms, plan.repetitions, times);
    for (size_t i = 0; i < n_forms; i++)
        times[i] = divided(times[i], (double)teams[i].n_passes);
    for (size_t i = 1; i < n_forms; i++)
        print("decode", forms[i], work, is_crew ? plan.n_threads : 1, "plain C", &times[i],
              &times[0]);
}

static void measure_chunks(const struct data *data, size_t chunk_nbytes, uint32_t n_bits)
{
    struct work work = work_new(data, chunk_nbytes, n_bits);
    uint8_t *outs[BENCH_MAX_THREADS];

    force(NULL);
    if (work.n_chunks > 0 && code_chunks(&work)) {
        for (unsigned i = 0; i < plan.n_threads; i++)
            outs[i] = bench_check(malloc(chunk_nbytes));
        measure_decoding(&work, outs, false);
        if (plan.n_threads > 1)
            measure_decoding(&work, outs, true);
        for (unsigned i = 0; i < plan.n_threads; i++)
            free(outs[i]);
    }
    work_free(&work);
}

/* ---- encoding -------------------------------------------------------------------------------- */

struct encoding {
    const char *form;
    struct work *work;
    uint8_t *out;
    size_t out_avail;
    struct wharf_encoder *encoder;
};

static void encode_chunks(void *context)
{
    struct encoding *encoding = context;
    struct work *work = encoding->work;

    force(encoding->form);
    work->packed_nbytes = 0;
    for (size_t i = 0; i < work->n_chunks; i++) {
        size_t nbytes;

        if (wharf_rans_encoder.encode(encoding->encoder, work->chunks[i].raw, work->chunk_nbytes,
                                      encoding->out, encoding->out_avail, &nbytes) < 0)
            bench_die("cannot encode");
        work->packed_nbytes += nbytes;
    }
}

static void measure_encoding(const struct data *data, size_t chunk_nbytes, uint32_t n_bits)
{
    struct work work = work_new(data, chunk_nbytes, n_bits);
    struct wharf_encoder_options options = {.level = (int)n_bits, .parameter = parameter_of(data)};
    const char *forms[MAX_FORMS];
    size_t n_forms = list_forms(forms, true);
    struct encoding encodings[MAX_FORMS];
    struct bench_side sides[MAX_FORMS];
    struct bench_times times[MAX_FORMS];
    struct wharf_encoder *encoder;
    uint8_t *out;
    size_t bound;

    if (wharf_rans_encoder.new(&options, &encoder) < 0)
        bench_die("no encoder");
    bound = wharf_rans_encoder.bound(encoder, chunk_nbytes);
    out = bench_check(malloc(bound));
    for (size_t i = 0; i < n_forms; i++) {
        encodings[i] = (struct encoding){forms[i], &work, out, bound, encoder};
        sides[i] = (struct bench_side){encode_chunks, &encodings[i]};
    }
    if (work.n_chunks > 0) {
        bench_compare(sides, n_forms, plan.repetitions, times);
        for (size_t i = 1; i < n_forms; i++)
            print("encode", forms[i], &work, 1, "plain C", &times[i], &times[0]);
    }
    free(out);
    wharf_rans_encoder.free(encoder);
    work_free(&work);
}

/* ---- one large stream ------------------------------------------------------------------------ */

enum { LARGE_NSPLITS = 2176, SMALL_NSPLITS = 16 };

struct large {
    struct wharf_rans_job job;
    uint8_t *stream, *thinned;
    size_t bound, stream_nbytes, thinned_nbytes;
};

static void encode_large(void *context)
{
    struct large *large = context;

    if (wharf_rans_encode(&large->job, large->stream, large->bound, &large->stream_nbytes) < 0)
        bench_die("cannot encode");
}

/* Without the words, which stay where they are. */
static void thin_front(void *context)
{
    struct large *large = context;
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(large->stream, large->stream_nbytes, &stream, &outcome) ||
        wharf_rans_thin_front(&stream, large->stream, SMALL_NSPLITS, large->thinned, large->bound,
                              &large->thinned_nbytes) < 0)
        bench_die("cannot thin");
}

/* All of it, from the stream's first byte on. */
static void thin_large(void *context)
{
    struct large *large = context;
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(large->stream, large->stream_nbytes, &stream, &outcome) ||
        wharf_rans_thin(&stream, large->stream, SMALL_NSPLITS, large->thinned, large->bound,
                        &large->thinned_nbytes) < 0)
        bench_die("cannot thin");
}

static void copy_large(void *context)
{
    struct large *large = context;

    memcpy(large->thinned, large->stream, large->stream_nbytes);
}

static void print_large(const char *what, const struct data *data, const struct large *large,
                        uint64_t nbytes, const char *peer, const struct bench_times times[2])
{
    struct bench_row row = {.what = what,
                            .codec = "rans",
                            .data = data->name,
                            .level = (int)large->job.shape.n_bits,
                            .threads = 1,
                            .repetitions = plan.repetitions,
                            .in_nbytes = large->stream_nbytes,
                            .out_nbytes = nbytes,
                            .peer = peer,
                            .times = times[0],
                            .peer_times = times[1]};
    bench_print_row(stdout, &row);
}

/* Of bytes. */
static void measure_large(const struct data *data, uint32_t n_bits)
{
    uint32_t frequencies[256];
    struct large large = {.job = {.shape = {n_bits, 1, 256, 1},
                                  .frequencies = frequencies,
                                  .symbols = data->raw,
                                  .n_symbols = (uint32_t)data->nbytes,
                                  .max_splits = LARGE_NSPLITS}};
    struct bench_side sides[3] = {{encode_large, &large}};
    struct bench_times times[3];

    force(NULL);
    if (!make_frequencies(data->raw, data->nbytes, &large.job.shape, frequencies))
        bench_die("cannot make a model");
    large.bound = wharf_rans_encode_bound(&large.job);
    large.stream = bench_check(malloc(large.bound));
    large.thinned = bench_check(malloc(large.bound));
    bench_compare(sides, 1, plan.repetitions, times);
    times[1] = times[0];
    print_large("encode, 2176 splits", data, &large, data->nbytes, "itself", times);
    sides[0] = (struct bench_side){thin_large, &large};
    sides[1] = (struct bench_side){copy_large, &large};
    sides[2] = (struct bench_side){thin_front, &large};
    bench_compare(sides, 3, plan.repetitions, times);
    print_large("thin to 16 splits", data, &large, large.stream_nbytes, "memcpy", times);
    times[0] = times[2];
    print_large("thin to 16 splits, words in place", data, &large, large.stream_nbytes, "memcpy",
                times);
    free(large.stream);
    free(large.thinned);
}

/* ---- all of it ------------------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_wanted(const char *part)
{
    return !plan.only || strcmp(plan.only, part) == 0;
}

static void measure(const struct data *data)
{
    static const uint32_t most_n_bits[] = {11, 16};

    for (unsigned i = 0; i < plan.n_n_bits && is_wanted("decode"); i++)
        for (unsigned k = 0; k < COUNT(decode_chunks_nbytes); k++)
            measure_chunks(data, decode_chunks_nbytes[k], plan.n_bits[i]);
    for (unsigned i = 0; i < COUNT(most_n_bits); i++) {
        for (unsigned k = 0; k < COUNT(encode_chunks_nbytes) && is_wanted("encode"); k++)
            measure_encoding(data, encode_chunks_nbytes[k], most_n_bits[i]);
        if (data->symbol_nbytes == 1 && is_wanted("stream"))
            measure_large(data, most_n_bits[i]);
    }
    force(NULL);
}

static void measure_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct data data = {.name = slash ? slash + 1 : path, .symbol_nbytes = 1};
    uint8_t *raw = test_file_read(path, &data.nbytes);

    if (!raw || data.nbytes == 0)
        bench_die(path);
    data.raw = raw;
    measure(&data);
    free(raw);
}

static void measure_made(const char *name, uint32_t (*make)(uint64_t i, uint64_t *random))
{
    uint8_t *raw = bench_check(malloc(MADE_NBYTES));

    make_words(raw, make);
    measure(&(struct data){name, raw, MADE_NBYTES, 2});
    free(raw);
}

/* An option's value; false if it is none. */
static bool take_option(const char *option, const char *given, unsigned *least, unsigned *most)
{
    unsigned long value = strtoul(given, NULL, 10);

    if (strcmp(option, "--only") == 0)
        plan.only = given;
    else if (strcmp(option, "--repetitions") == 0)
        plan.repetitions = (unsigned)value;
    else if (strcmp(option, "--threads") == 0 && value <= BENCH_MAX_THREADS)
        plan.n_threads = (unsigned)value;
    else if (strcmp(option, "--least") == 0 && value >= WHARF_RANS_MIN_NBITS)
        *least = (unsigned)value;
    else if (strcmp(option, "--most") == 0 && value <= WHARF_RANS_MAX_NBITS)
        *most = (unsigned)value;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned least = 0, most = WHARF_RANS_MAX_NBITS;
    int first = 1;

    plan.n_threads = n_cores < 1                   ? 1
                     : n_cores > BENCH_MAX_THREADS ? BENCH_MAX_THREADS
                                                   : (unsigned)n_cores;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
        if (!take_option(argv[first], argv[first + 1], &least, &most))
            break;
    if ((first < argc && argv[first][0] == '-') || plan.repetitions < 1 || plan.n_threads < 1) {
        return test_usage(help);
    }
    if (least == 0) {
        plan.n_bits[plan.n_n_bits++] = 11;
        plan.n_bits[plan.n_n_bits++] = 16;
    }
    for (unsigned n = least; least > 0 && n <= most; n++)
        plan.n_bits[plan.n_n_bits++] = n;
    if (plan.n_threads == 1)
        bench_compare_by_processor();
    bench_crew_start(plan.n_threads);
    for (int i = first; i < argc; i++)
        measure_file(argv[i]);
    if (first == argc) {
        measure_made("samples", make_sample);
        measure_made("few", make_one_of_few);
    }
    bench_crew_stop();
    return 0;
}
