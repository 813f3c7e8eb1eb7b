/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_cases.h"

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simt/simt_batch.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rans.h"

static void die(const char *what)
{
    perror(what);
    exit(3);
}

static void *grown(void *p, size_t n, size_t *capacity, size_t each_nbytes)
{
    if (n < *capacity)
        return p;
    *capacity = *capacity ? 2 * *capacity : 64;
    p = realloc(p, *capacity * each_nbytes);
    if (!p)
        die("cases: memory");
    return p;
}

void gpu_case_list_deinit(struct gpu_case_list *list)
{
    for (size_t i = 0; i < list->n_owned; i++)
        free(list->owned[i]);
    free(list->owned);
    free(list->cases);
    *list = (struct gpu_case_list){0};
}

void gpu_case_list_add(struct gpu_case_list *list, const struct gpu_case *c)
{
    list->cases = grown(list->cases, list->n_cases, &list->capacity, sizeof(*c));
    list->cases[list->n_cases++] = *c;
}

void *gpu_case_list_own(struct gpu_case_list *list, void *p)
{
    if (!p)
        die("cases: memory");
    list->owned = grown(list->owned, list->n_owned, &list->owned_capacity, sizeof(p));
    list->owned[list->n_owned++] = p;
    return p;
}

/* ---- vectors -------------------------------------------------------------------------------- */

void gpu_cases_add_vectors(struct gpu_case_list *list, const struct test_vector_list *vectors,
                           uint32_t serial)
{
    for (size_t i = 0; i < vectors->n_vectors; i++) {
        const struct test_vector *vector = &vectors->vectors[i];
        size_t nbytes;
        if (!wharf_simt_can_decode(serial | vector->codec))
            continue;
        uint8_t *in = test_file_read(vector->path, &nbytes);
        if (!in)
            die(vector->path);
        struct gpu_case c = {
            .name = vector->path,
            .codec = vector->codec,
            .parameter = vector->parameter,
            .in = gpu_case_list_own(list, in),
            .in_nbytes = nbytes,
            .out_avail = vector->out_avail,
        };
        gpu_case_list_add(list, &c);
        if (vector->result == WHARF_OK && vector->out_nbytes > 0) {
            /* boolrle leaves out up to seven values at the end. */
            c.out_avail = vector->out_nbytes - (vector->codec == WHARF_CODEC_BOOLRLE ? 8 : 1);
            c.number = 1;
            gpu_case_list_add(list, &c);
        }
    }
}

/* ---- good streams --------------------------------------------------------------------------- */

static const size_t stream_sizes[] = {0, 1, 31, 300, 4096, 20000, 65536};
enum { N_STREAM_SIZES = sizeof(stream_sizes) / sizeof(stream_sizes[0]) };

static char *stream_name(const char *codec, const char *kind, const char *encoder, int level)
{
    char *name;
    if (asprintf(&name, "%s-%s-%s-%d", codec, kind, encoder, level) < 0)
        die("cases: memory");
    return name;
}

static void add_stream(struct gpu_case_list *list, uint32_t codec, uint32_t parameter,
                       const struct test_data_kind *kind, size_t nbytes,
                       const struct wharf_encoder_row *row, int level)
{
    const struct wharf_codec_row *codec_row = wharf_codec_find(codec);
    struct wharf_encoder_options options = {
        .name = row->name, .level = level, .parameter = parameter};
    size_t in_nbytes;
    uint8_t *plain = test_data_new(kind, nbytes, nbytes);
    nbytes = test_data_fit(codec, parameter, plain, nbytes);
    uint8_t *in = gpu_case_list_own(list, test_pack(codec, &options, plain, nbytes, &in_nbytes));
    free(plain);
    char *name = stream_name(codec_row->name, kind->name, row->name, level);
    struct gpu_case c = {
        .name = gpu_case_list_own(list, name),
        .number = nbytes,
        .codec = codec,
        .parameter = parameter,
        .in = in,
        .in_nbytes = in_nbytes,
        .out_avail = nbytes,
    };
    gpu_case_list_add(list, &c);
}

static void add_streams(struct gpu_case_list *list, uint32_t codec, uint32_t parameter)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    for (const struct wharf_encoder_row *row = ops->encoder_rows; row->name; row++)
        for (size_t k = 0; k < test_data_n_kinds; k++)
            for (int s = 0; s < N_STREAM_SIZES; s++) {
                const struct test_data_kind *kind = &test_data_kinds[k];
                add_stream(list, codec, parameter, kind, stream_sizes[s], row, row->level_min);
                if (row->level_default > row->level_min)
                    add_stream(list, codec, parameter, kind, stream_sizes[s], row,
                               row->level_default);
                if (row->level_max > row->level_default)
                    add_stream(list, codec, parameter, kind, stream_sizes[s], row, row->level_max);
            }
}

/* Few symbols mostly, so that blocks end and begin again; and now and then more than a region. */
void gpu_cases_add_forged(struct gpu_case_list *list, uint64_t first, uint64_t n)
{
    for (uint64_t number = first; number < first + n; number++) {
        struct test_forge forge;
        test_forge_init(&forge, number);
        test_forge_stream(&forge, 1 + (unsigned)(number % 5), number % 7 ? 300 : 6000);
        struct gpu_case c = {
            .name = "forged",
            .number = number,
            .codec = WHARF_CODEC_DEFLATE,
            .in = gpu_case_list_own(list, forge.data),
            .in_nbytes = test_forge_nbytes(&forge),
            .out_avail = forge.out_nbytes,
        };
        gpu_case_list_add(list, &c);
    }
}

/* Of rans, what its encoder of chunks does not make: several distributions, registered models. */
static void add_rans(struct gpu_case_list *list, const struct test_rans_plan *plan, uint32_t n_free)
{
    struct test_rans rans = test_rans_new_with_free_slots(plan, n_free);
    struct gpu_case c = {
        .name = "rans-registered",
        .number = plan->seed,
        .codec = WHARF_CODEC_RANS,
        .parameter = plan->symbol_nbytes - 1,
        .in = gpu_case_list_own(list, rans.stream),
        .in_nbytes = rans.stream_nbytes,
        .out_avail = rans.plain_nbytes,
        .model = gpu_case_list_own(list, rans.image),
        .model_nbytes = rans.image_nbytes,
    };

    rans.stream = NULL;
    rans.image = NULL;
    test_rans_free(&rans);
    gpu_case_list_add(list, &c);
    if (n_free > 0 || plan->n_distributions << plan->n_bits > WHARF_RANS_INLINE_NSLOTS)
        return;
    rans = test_rans_new(plan);
    c.name = "rans-indexed";
    c.in = gpu_case_list_own(list, rans.stream);
    c.in_nbytes = rans.stream_nbytes;
    c.model = NULL;
    rans.stream = NULL;
    test_rans_free(&rans);
    gpu_case_list_add(list, &c);
}

/* Few and many symbols, windows, slots that are nobody's; chains and none. */
static void add_all_rans(struct gpu_case_list *list)
{
    static const struct test_rans_plan plans[] = {
        {11, 1, 1, 30000, 4, 200, 1},  {16, 1, 1, 30000, 4, 250, 2},
        {12, 2, 1, 30000, 4, 900, 3},  {16, 2, 1, 30001, 5, 40000, 4},
        {12, 2, 16, 30002, 4, 300, 5}, {16, 2, 64, 30003, 9, 900, 6},
        {8, 1, 256, 30004, 6, 200, 7}, {9, 2, 100, 30005, 4, 300, 8},
        {16, 2, 3, 30006, 1, 9000, 9}, {16, 2, 32, 3000, 4, 40000, 10},
        {14, 2, 4, 100, 1, 900, 11},   {12, 2, 16, 200000, 16, 2000, 12},
    };

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        add_rans(list, &plans[i], 0);
        add_rans(list, &plans[i], 77);
    }
}

void gpu_cases_add_streams(struct gpu_case_list *list, uint32_t codec)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    for (uint32_t p = 0; wharf_codec_unit_nbytes(ops, p); p++)
        add_streams(list, codec, p);
    if (codec == WHARF_CODEC_RANS)
        add_all_rans(list);
}

/* ---- what else may be asked of them --------------------------------------------------------- */

static uint8_t *copy_of(struct gpu_case_list *list, const struct gpu_case *c, size_t nbytes)
{
    uint8_t *in = gpu_case_list_own(list, malloc(nbytes ? nbytes : 1));
    size_t n = nbytes < c->in_nbytes ? nbytes : c->in_nbytes;
    if (n)
        memcpy(in, c->in, n);
    return in;
}

static void vary_input(struct gpu_case_list *list, struct gpu_case *c, struct test_random *random)
{
    size_t nbytes = c->in_nbytes;
    switch (test_random_below(random, 4)) {
    case 0:
        nbytes = test_random_below(random, c->in_nbytes + 1);
        c->in = copy_of(list, c, nbytes);
        break;
    case 1: {
        nbytes += 1 + test_random_below(random, 40);
        uint8_t *in = copy_of(list, c, nbytes);
        test_random_fill(random, in + c->in_nbytes, nbytes - c->in_nbytes);
        c->in = in;
        break;
    }
    default:
        break;
    }
    c->in_nbytes = nbytes;
}

static void vary_room(struct gpu_case *c, struct test_random *random)
{
    switch (test_random_below(random, 4)) {
    case 0:
        c->out_avail = test_random_below(random, c->out_avail + 1);
        break;
    case 1:
        c->out_avail += 1 + test_random_below(random, 200);
        break;
    default:
        break;
    }
}

/* The CRC-32 of what the case decodes to, by the CPU engine. */
static uint32_t checksum_of(const struct gpu_case *c)
{
    uint8_t *out = malloc(c->out_avail ? c->out_avail : 1);
    struct wharf_outcome outcome;
    struct wharf_decode_job job = {
        .codec = c->codec,
        .setting = {.parameter = c->parameter, .model = c->model},
        .in = c->in,
        .in_nbytes = c->in_nbytes,
        .out = out,
        .out_avail = c->out_avail,
    };
    if (!out)
        die("cases: memory");
    wharf_decode_job_run(&job, 0, &outcome);
    uint32_t crc = libdeflate_crc32(0, out, outcome.out_nbytes);
    free(out);
    return crc;
}

void gpu_cases_add_variants(struct gpu_case_list *list, const struct gpu_case *stream,
                            struct test_random *random, unsigned n_variants)
{
    for (unsigned i = 0; i < n_variants; i++) {
        struct gpu_case c = *stream;
        c.number = i;
        vary_input(list, &c, random);
        vary_room(&c, random);
        c.flags = (uint32_t)test_random_below(random, WHARF_JOB_KNOWN_FLAGS + 1);
        if (c.flags & WHARF_JOB_CHECKSUM)
            c.checksum = checksum_of(&c) ^ (uint32_t)test_random_one_in(random, 3);
        gpu_case_list_add(list, &c);
    }
}

void gpu_cases_add_damaged(struct gpu_case_list *list, const struct gpu_case *stream,
                           struct test_random *random, uint64_t number)
{
    struct gpu_case c = *stream;
    uint8_t *in = copy_of(list, &c, c.in_nbytes);
    uint64_t n_flips = 1 + test_random_below(random, 4);
    c.in = in;
    c.number = number;
    while (n_flips-- && c.in_nbytes) {
        uint64_t limit = test_random_one_in(random, 2) && c.in_nbytes > 64 ? 64 : c.in_nbytes;
        in[test_random_below(random, limit)] ^= (uint8_t)(1 << test_random_below(random, 8));
    }
    gpu_case_list_add(list, &c);
}
