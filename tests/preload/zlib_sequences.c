/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_sequences.c: random sequences of zlib's calls, to a genuine zlib and to libwharf-preload,
 * must give the same: returns, output, and every member of the stream, after each call.
 *
 * Sequences run over streams of all kinds, some of them damaged, in pieces of all sizes, with odd
 * calls in between.  At the end it counts the calls by the state of inflate() that they met.  A
 * failure names its seed: --seed with --count 1 runs that sequence again.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/preload/genuine_state.h"

enum {
    FIRST_MODE = 16180,
    N_MODES = 32,
    MODE_MEM = 30,
    MAX_RAW = 400 * 1024,
    MAX_STREAM = MAX_RAW + 4096
};

/* Making samples takes as long as some 1000 sequences. */
enum { SEQUENCES_PER_SAMPLES = 16384 };

#define CALLS(X)                                                                                   \
    X(int, inflateInit2_, (z_streamp, int, const char *, int))                                     \
    X(int, inflate, (z_streamp, int))                                                              \
    X(int, inflateEnd, (z_streamp))                                                                \
    X(int, inflateReset, (z_streamp))                                                              \
    X(int, inflateReset2, (z_streamp, int))                                                        \
    X(int, inflateResetKeep, (z_streamp))                                                          \
    X(int, inflateSetDictionary, (z_streamp, const Bytef *, uInt))                                 \
    X(int, inflateGetDictionary, (z_streamp, Bytef *, uInt *))                                     \
    X(int, inflateSync, (z_streamp))                                                               \
    X(int, inflateSyncPoint, (z_streamp))                                                          \
    X(int, inflatePrime, (z_streamp, int, int))                                                    \
    X(long, inflateMark, (z_streamp))                                                              \
    X(int, inflateCopy, (z_streamp, z_streamp))                                                    \
    X(int, inflateGetHeader, (z_streamp, gz_headerp))                                              \
    X(int, inflateUndermine, (z_streamp, int))                                                     \
    X(int, inflateValidate, (z_streamp, int))                                                      \
    X(unsigned long, inflateCodesUsed, (z_streamp))

struct functions {
#define X(type, name, parameters) type(*name) parameters;
    CALLS(X)
#undef X
};

enum call {
#define X(type, name, parameters) CALL_##name,
    CALLS(X)
#undef X
        N_CALLS,
};

static const char *const call_names[N_CALLS] = {
#define X(type, name, parameters) #name,
    CALLS(X)
#undef X
};

static struct functions genuine, ours;
static int (*deflate_init)(z_streamp, int, int, int, int, int, const char *, int);
static int (*deflate_run)(z_streamp, int);
static int (*deflate_end)(z_streamp);
static int (*deflate_dictionary)(z_streamp, const Bytef *, uInt);
static int (*deflate_header)(z_streamp, gz_headerp);

static uint64_t met[N_CALLS][N_MODES];
static uint64_t sequence_seed, random_state;
static enum call last_call;
static z_stream strm_of[2]; /* the genuine one and ours */

static void fail(const char *what)
{
    for (int i = 0; i < 2; i++) {
        z_stream *s = &strm_of[i];
        printf("# %s: mode %d, avail_in %u, avail_out %u, data_type %d, adler %lx, msg %s\n",
               i ? "preload" : "zlib", wharf_genuine_state(s)->mode, s->avail_in, s->avail_out,
               s->data_type, s->adler, s->msg ? s->msg : "none");
    }
    printf("Bail out! seed %" PRIu64 ": %s differs after %s\n", sequence_seed, what,
           call_names[last_call]);
    exit(1);
}

static uint32_t next_random(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)((uint64_t)next_random() * n >> 32);
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }
    return found;
}

static void load(struct functions *functions, void *library)
{
    void *found;
#define X(type, name, parameters)                                                                  \
    found = symbol(library, #name);                                                                \
    memcpy(&functions->name, &found, sizeof(found));
    CALLS(X)
#undef X
}

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }
    return library;
}

/* ---- streams ---- */

struct sample {
    uint8_t *data;
    uint32_t nbytes;
    int bits; /* of the stream: windowBits that fit */
};

enum { N_SAMPLES = 24, DICTIONARY_NBYTES = 300 };
static struct sample samples[N_SAMPLES];
static uint8_t raw[MAX_RAW];
static uint8_t dictionary[DICTIONARY_NBYTES];

static void fill_raw(uint32_t nbytes)
{
    const uint32_t kind = below(5);
    const uint32_t letters = 1 + below(kind == 0 ? 256 : 40);
    uint32_t at = 0;

    while (at < nbytes) {
        if (kind >= 2 && at > 4 && below(3)) {
            uint32_t distance = 1 + below(kind == 2 ? (at < 40 ? at : 40) : at);
            uint32_t length = 3 + below(below(8) ? 20 : 600);
            if (distance > 32768)
                distance = 32768;
            for (; length && at < nbytes; length--, at++)
                raw[at] = raw[at - distance];
        } else {
            raw[at] = (uint8_t)(kind == 1 ? at * 7 : below(letters));
            at++;
        }
    }
}

static void make_sample(struct sample *sample)
{
    static const uint32_t sizes[] = {40, 400, 4000, 4000, 20000, 70000, MAX_RAW};
    static Bytef extra[200], name[] = "name", comment[] = "a comment";
    const uint32_t nbytes = below(1 + sizes[below(sizeof(sizes) / sizeof(sizes[0]))]);
    const int window = 9 + (int)below(7);
    const int wrap = (int)below(3);
    gz_header header = {.text = 1, .time = 77, .os = 3, .hcrc = (int)below(2)};
    z_stream strm = {0};

    fill_raw(nbytes);
    sample->bits = wrap == 0 ? -window : wrap == 1 ? window : window + 16;
    deflate_init(&strm, (int)below(10), Z_DEFLATED, sample->bits, 1 + (int)below(9), (int)below(5),
                 ZLIB_VERSION, (int)sizeof(strm));
    if (wrap == 1 && below(4) == 0)
        deflate_dictionary(&strm, dictionary, DICTIONARY_NBYTES);
    if (wrap == 2 && below(2)) {
        header.extra = below(2) ? extra : NULL;
        header.extra_len = below(sizeof(extra));
        header.name = below(2) ? name : NULL;
        header.comment = below(2) ? comment : NULL;
        deflate_header(&strm, &header);
    }
    sample->data = realloc(sample->data, MAX_STREAM + 64);
    strm.next_in = raw;
    strm.next_out = sample->data;
    strm.avail_out = MAX_STREAM;
    while (strm.total_in < nbytes) {
        static const int flushes[] = {Z_NO_FLUSH,   Z_NO_FLUSH,   Z_PARTIAL_FLUSH,
                                      Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
        const uint32_t left = nbytes - (uint32_t)strm.total_in;
        strm.avail_in = 1 + below(left < 20000 ? left : 20000);
        deflate_run(&strm, flushes[below(6)]);
        if (strm.avail_out < 1000)
            break;
    }
    deflate_run(&strm, Z_FINISH);
    sample->nbytes = (uint32_t)strm.total_out;
    deflate_end(&strm);
}

/* ---- a sequence ---- */

static uint8_t input[MAX_STREAM + 256];
static uint32_t input_nbytes;
static uint8_t out_of[2][70000];
static gz_header header_of[2];
static uint8_t name_of[2][32];

/* Which states calls meet, as the genuine stream says. */
static void count(enum call call)
{
    last_call = call;
    met[call][wharf_genuine_state(&strm_of[0])->mode - FIRST_MODE]++;
}

static void compare(void)
{
    const z_stream *a = &strm_of[0], *b = &strm_of[1];

    if (a->next_in != b->next_in || a->avail_in != b->avail_in || a->total_in != b->total_in)
        fail("input taken");
    if (a->avail_out != b->avail_out || a->total_out != b->total_out)
        fail("output given");
    if ((a->next_out ? a->next_out - out_of[0] : 0) != (b->next_out ? b->next_out - out_of[1] : 0))
        fail("next_out");
    if (!a->msg != !b->msg || (a->msg && strcmp(a->msg, b->msg) != 0))
        fail("msg");
    if (a->data_type != b->data_type)
        fail("data_type");
    if (a->adler != b->adler)
        fail("adler");
    if (a->zalloc != b->zalloc || a->zfree != b->zfree || a->opaque != b->opaque)
        fail("memory functions");
}

static int both(enum call call, int a, int b)
{
    last_call = call;
    if (a != b) {
        printf("# %d, not %d\n", b, a);
        fail("return");
    }
    compare();
    return a;
}

#define BOTH(name, ...)                                                                            \
    (count(CALL_##name), both(CALL_##name, (int)genuine.name(&strm_of[0] __VA_ARGS__),             \
                              (int)ours.name(&strm_of[1] __VA_ARGS__)))

/* Whether this sequence has pieces of a few bytes alone, so that it stops in each field. */
static bool is_slow;

static uint32_t piece(uint32_t most)
{
    static const uint32_t sizes[] = {1, 2, 8, 40, 300, 3000, 8192, 70000};
    uint32_t n = below(1 + sizes[is_slow ? below(2) : below(sizeof(sizes) / sizeof(sizes[0]))]);

    if (!is_slow && below(6) == 0)
        n = most;
    return n < most ? n : most;
}

static int call_inflate(void)
{
    static const int flushes[] = {Z_NO_FLUSH, Z_NO_FLUSH, Z_SYNC_FLUSH,   Z_FINISH,
                                  Z_BLOCK,    Z_TREES,    Z_PARTIAL_FLUSH};
    const uint32_t at = (uint32_t)(strm_of[0].next_in - input);
    const uint32_t n_in = piece(input_nbytes - at);
    const uint32_t n_out = piece(sizeof(out_of[0]) - 64);
    const int flush = flushes[below(7)];

    for (int i = 0; i < 2; i++) {
        strm_of[i].avail_in = n_in;
        strm_of[i].next_out = out_of[i];
        strm_of[i].avail_out = n_out;
        memset(out_of[i] + n_out, 0x55, 16);
    }
    int result = BOTH(inflate, , flush);
    const size_t given = n_out - strm_of[0].avail_out;
    if (memcmp(out_of[0], out_of[1], given) != 0)
        fail("output");
    return result;
}

static void call_get_dictionary(void)
{
    static uint8_t got[2][32768];
    uInt n[2] = {0, 0};

    count(CALL_inflateGetDictionary);
    both(CALL_inflateGetDictionary, genuine.inflateGetDictionary(&strm_of[0], got[0], &n[0]),
         ours.inflateGetDictionary(&strm_of[1], got[1], &n[1]));
    if (n[0] != n[1] || memcmp(got[0], got[1], n[0]) != 0)
        fail("dictionary");
}

/* Goes on with the copies. */
static void call_copy(void)
{
    z_stream copies[2];

    count(CALL_inflateCopy);
    if (both(CALL_inflateCopy, genuine.inflateCopy(&copies[0], &strm_of[0]),
             ours.inflateCopy(&copies[1], &strm_of[1])) != Z_OK)
        return;
    genuine.inflateEnd(&strm_of[0]);
    ours.inflateEnd(&strm_of[1]);
    /* Streams may not move: they are copied back. */
    genuine.inflateCopy(&strm_of[0], &copies[0]);
    ours.inflateCopy(&strm_of[1], &copies[1]);
    genuine.inflateEnd(&copies[0]);
    ours.inflateEnd(&copies[1]);
    compare();
}

static void call_get_header(void)
{
    for (int i = 0; i < 2; i++) {
        memset(&header_of[i], 0, sizeof(header_of[i]));
        header_of[i].name = name_of[i];
        header_of[i].name_max = sizeof(name_of[i]);
    }
    count(CALL_inflateGetHeader);
    both(CALL_inflateGetHeader, genuine.inflateGetHeader(&strm_of[0], &header_of[0]),
         ours.inflateGetHeader(&strm_of[1], &header_of[1]));
}

static int random_bits(const struct sample *sample)
{
    static const int others[] = {-15, 15, 31, 47, 0, 32, -8, 8, 40, 28};

    if (below(2))
        return sample->bits < 0 ? -15 : sample->bits < 16 ? 15 : 31;
    if (below(2))
        return sample->bits;
    return others[below(10)];
}

static void call_odd(const struct sample *sample)
{
    const int flag = (int)below(2);
    const int nbits = (int)below(19) - 1, value = (int)below(65536);
    const int bits = random_bits(sample);
    const uInt nbytes = below(2) ? DICTIONARY_NBYTES : below(200);

    switch (below(14)) {
    case 0:
        BOTH(inflateMark, );
        break;
    case 1:
        BOTH(inflateSyncPoint, );
        break;
    case 2:
        BOTH(inflateCodesUsed, );
        break;
    case 3:
        BOTH(inflateUndermine, , flag);
        break;
    case 4:
        BOTH(inflateValidate, , flag);
        break;
    case 5:
        BOTH(inflatePrime, , nbits, value);
        break;
    case 6:
        BOTH(inflateSync, );
        break;
    case 7:
        BOTH(inflateResetKeep, );
        break;
    case 8:
        BOTH(inflateReset, );
        break;
    case 9:
        BOTH(inflateReset2, , bits);
        break;
    case 10:
        call_get_dictionary();
        break;
    case 11:
        call_copy();
        break;
    case 12:
        call_get_header();
        break;
    default:
        BOTH(inflateSetDictionary, , dictionary, nbytes);
    }
}

static void make_input(const struct sample *sample)
{
    memcpy(input, sample->data, sample->nbytes);
    input_nbytes = sample->nbytes;
    for (uint32_t n = below(16); n && input_nbytes < sample->nbytes + 16; n--)
        input[input_nbytes++] = (uint8_t)next_random();
    if (below(2))
        return;
    if (below(4) == 0)
        input_nbytes = below(input_nbytes + 1);
    for (uint32_t n = below(4); n && input_nbytes; n--) {
        uint32_t at = below(input_nbytes);
        if (below(2))
            at = below(at < 64 ? at + 1 : 64);
        input[at] ^= (uint8_t)(1u << below(8));
    }
}

/* Mostly a small one: a large one takes as long as dozens of them. */
static const struct sample *draw_sample(void)
{
    const struct sample *sample;

    do
        sample = &samples[below(N_SAMPLES)];
    while (sample->nbytes > 4096 && below(8));
    return sample;
}

static void run_sequence(void)
{
    const struct sample *sample = draw_sample();
    const int bits = random_bits(sample);
    const uint32_t oddness = below(3) ? 0 : 2 + below(60);
    uint32_t idle = 0;

    is_slow = below(8) == 0;
    make_input(sample);
    memset(strm_of, 0, sizeof(strm_of));
    for (int i = 0; i < 2; i++)
        strm_of[i].next_in = input;
    last_call = CALL_inflateInit2_;
    if (both(CALL_inflateInit2_,
             genuine.inflateInit2_(&strm_of[0], bits, ZLIB_VERSION, (int)sizeof(z_stream)),
             ours.inflateInit2_(&strm_of[1], bits, ZLIB_VERSION, (int)sizeof(z_stream))) != Z_OK)
        return;
    for (uint32_t n = 0; n < 300 && idle < 4; n++) {
        if (oddness && below(oddness) == 0)
            call_odd(sample);
        const int result = call_inflate();
        if (result == Z_NEED_DICT && below(2))
            BOTH(inflateSetDictionary, , dictionary, DICTIONARY_NBYTES);
        idle = result == Z_OK ? 0 : idle + 1;
        if (below(250) == 0)
            break; /* programs also end streams in which more is to come */
    }
    if (below(4) == 0)
        call_odd(sample);
    count(CALL_inflateEnd);
    last_call = CALL_inflateEnd;
    if (genuine.inflateEnd(&strm_of[0]) != ours.inflateEnd(&strm_of[1]))
        fail("return");
}

/* Calls that were not made in some state.  Only a zalloc that fails leads to MEM. */
static void print_missed(void)
{
    unsigned n_missed = 0;

    printf("# not met:");
    for (int call = CALL_inflate; call < N_CALLS; call++)
        for (int mode = 0; mode < N_MODES; mode++)
            if (!met[call][mode] && mode != MODE_MEM) {
                printf(" %s:%d", call_names[call], mode);
                n_missed++;
            }
    printf("\n# met %u of %u pairs of call and state\n", (N_CALLS - 1) * (N_MODES - 1) - n_missed,
           (N_CALLS - 1) * (N_MODES - 1));
}

static void print_met(void)
{
    for (int call = 0; call < N_CALLS; call++) {
        unsigned n = 0;
        if (call == CALL_inflateInit2_)
            continue;
        printf("# %s met", call_names[call]);
        for (int mode = 0; mode < N_MODES; mode++)
            if (met[call][mode])
                n++;
        printf(" %u states:", n);
        for (int mode = 0; mode < N_MODES; mode++)
            printf(" %" PRIu64, met[call][mode]);
        printf("\n");
    }
    print_missed();
}

int main(int argc, char **argv)
{
    uint64_t n_sequences = 20000, seed = 1;
    const char *library = NULL;
    void *zlib, *found;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            n_sequences = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && !library)
            library = argv[i];
        else
            library = "", i = argc;
    }
    if (!library || !*library) {
        printf("usage: zlib_sequences [--count N] [--seed N] LIBRARY\n\n"
               "Compares LIBRARY's inflate with zlib's over N random sequences of calls.\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    zlib = open_library("libz.so.1");
    load(&genuine, zlib);
    load(&ours, open_library(library));
#define FIND(variable, name) (found = symbol(zlib, name), memcpy(&variable, &found, sizeof(found)))
    FIND(deflate_init, "deflateInit2_");
    FIND(deflate_run, "deflate");
    FIND(deflate_end, "deflateEnd");
    FIND(deflate_dictionary, "deflateSetDictionary");
    FIND(deflate_header, "deflateSetHeader");
    for (uint32_t i = 0; i < DICTIONARY_NBYTES; i++)
        dictionary[i] = (uint8_t)(i * i >> 3);
    printf("1..1\n");
    for (uint64_t i = 0; i < n_sequences; i++, seed++) {
        /* The samples of a sequence depend on its seed alone. */
        if (i == 0 || seed % SEQUENCES_PER_SAMPLES == 0) {
            random_state = seed / SEQUENCES_PER_SAMPLES * 0x632be59bd9b4e019u;
            for (int k = 0; k < N_SAMPLES; k++)
                make_sample(&samples[k]);
        }
        sequence_seed = seed;
        random_state = seed * 0xd1342543de82ef95u + 1;
        run_sequence();
    }
    for (int k = 0; k < N_SAMPLES; k++)
        free(samples[k].data);
    print_met();
    printf("ok 1 - same_as_zlib_in_%" PRIu64 "_sequences\n", n_sequences);
    return 0;
}
