/* SPDX-License-Identifier: Apache-2.0 */
/* test_rans.c: makes rANS streams, and decodes them by all forms. */
#include "tests/lib/test_rans.h"
#include "tests/lib/test_outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_mark.h"
#include "encoders/rans/rans_stream.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"

static void *check_memory(void *memory)
{
    if (!memory) {
        fprintf(stderr, "test_rans: out of memory\n");
        exit(2);
    }
    return memory;
}

/* Draws a symbol; each is about half as frequent as the one before. */
static uint32_t falling_symbol(struct test_random *random, uint32_t alphabet)
{
    uint64_t bits = test_random_next(random);
    uint32_t high = (uint32_t)(__builtin_ctzll(bits | (uint64_t)1 << 40) / 2);

    return (uint32_t)(test_random_below(random, 1 + ((uint64_t)alphabet - 1) * (high + 1) / 21));
}

static void fill_symbols(const struct test_rans_plan *plan, uint8_t *symbols, uint8_t *indexes)
{
    struct test_random random = {plan->seed};

    for (uint64_t i = 0; i < plan->n_symbols; i++) {
        uint32_t symbol = falling_symbol(&random, plan->alphabet);

        symbols[i * plan->symbol_nbytes] = (uint8_t)symbol;
        if (plan->symbol_nbytes == 2)
            symbols[2 * i + 1] = (uint8_t)(symbol >> 8);
        indexes[i] = (uint8_t)test_random_below(&random, plan->n_distributions);
    }
}

/* Leaves n slots unused, at the cost of the most frequent symbol, which keeps at least one. */
static void free_slots(uint32_t *frequencies, uint32_t alphabet, uint32_t n)
{
    uint32_t *most = frequencies;

    for (uint32_t s = 0; s < alphabet; s++)
        if (frequencies[s] > *most)
            most = &frequencies[s];
    *most -= n < *most ? n : *most - 1;
}

/* Each distribution's statistics.  One that no symbol uses consists of symbol 0. */
static uint32_t *make_frequencies(const struct test_rans_plan *plan, const uint8_t *symbols,
                                  const uint8_t *indexes, uint32_t n_free)
{
    size_t n = (size_t)plan->alphabet * plan->n_distributions;
    uint64_t *counts = check_memory(calloc(n, sizeof(*counts)));
    uint32_t *frequencies = check_memory(calloc(n, sizeof(*frequencies)));

    for (uint64_t i = 0; i < plan->n_symbols; i++) {
        uint32_t symbol = plan->symbol_nbytes == 1
                              ? symbols[i]
                              : (uint32_t)symbols[2 * i] | (uint32_t)symbols[2 * i + 1] << 8;
        counts[indexes[i] * plan->alphabet + symbol]++;
    }
    for (size_t d = 0; d < plan->n_distributions; d++) {
        if (wharf_rans_normalise(counts + d * plan->alphabet, plan->alphabet, plan->n_bits,
                                 frequencies + d * plan->alphabet) < 0)
            frequencies[d * plan->alphabet] = 1u << plan->n_bits;
        free_slots(frequencies + d * plan->alphabet, plan->alphabet, n_free);
    }
    free(counts);
    return frequencies;
}

void *test_rans_image(const uint8_t *model, size_t model_nbytes, size_t *ret_nbytes)
{
    size_t nbytes = 0;
    void *image = NULL;

    if (wharf_rans_image_nbytes(model, model_nbytes, &nbytes) == WHARF_REASON_NONE)
        image = check_memory(calloc(1, nbytes));
    if (!image || wharf_rans_image_make(model, model_nbytes, image) != WHARF_REASON_NONE) {
        fprintf(stderr, "test_rans: is no model\n");
        exit(2);
    }
    if (ret_nbytes)
        *ret_nbytes = nbytes;
    return image;
}

static void add_model(struct test_rans *rans, const uint32_t *frequencies)
{
    rans->model_nbytes = wharf_rans_model_write(&rans->shape, frequencies, NULL, 0);
    rans->model = check_memory(malloc(rans->model_nbytes));
    wharf_rans_model_write(&rans->shape, frequencies, rans->model, rans->model_nbytes);
    rans->image = test_rans_image(rans->model, rans->model_nbytes, &rans->image_nbytes);
}

static struct test_rans make(const struct test_rans_plan *plan, bool is_registered, uint32_t n_free)
{
    struct test_rans rans = {
        .shape = {plan->n_bits, plan->symbol_nbytes, plan->alphabet, plan->n_distributions},
        .plain_nbytes = (size_t)plan->n_symbols * plan->symbol_nbytes,
    };
    uint8_t *indexes = check_memory(malloc((size_t)plan->n_symbols + 1));
    uint32_t *frequencies;
    size_t bound;

    rans.plain = check_memory(malloc(rans.plain_nbytes + 1));
    fill_symbols(plan, rans.plain, indexes);
    frequencies = make_frequencies(plan, rans.plain, indexes, n_free);
    struct wharf_rans_job job = {
        .shape = rans.shape,
        .frequencies = frequencies,
        .symbols = rans.plain,
        .indexes = plan->n_distributions > 1 ? indexes : NULL,
        .n_symbols = plan->n_symbols,
        .leaves_model_out = is_registered,
        .max_splits = plan->max_splits,
    };
    bound = wharf_rans_encode_bound(&job);
    rans.stream = check_memory(malloc(bound));
    if (wharf_rans_encode(&job, rans.stream, bound, &rans.stream_nbytes) < 0) {
        fprintf(stderr, "test_rans: cannot be encoded\n");
        exit(2);
    }
    if (is_registered)
        add_model(&rans, frequencies);
    free(frequencies);
    free(indexes);
    return rans;
}

struct test_rans test_rans_new(const struct test_rans_plan *plan)
{
    return make(plan, false, 0);
}

struct test_rans test_rans_new_registered(const struct test_rans_plan *plan)
{
    return make(plan, true, 0);
}

struct test_rans test_rans_new_with_free_slots(const struct test_rans_plan *plan, uint32_t n_free)
{
    return make(plan, true, n_free);
}

uint8_t *test_rans_encode(const uint8_t *bytes, uint32_t n, uint32_t n_bits, uint32_t max_splits,
                          size_t *ret_nbytes)
{
    return test_rans_encode_with_free_slots(bytes, n, n_bits, max_splits, 0, ret_nbytes);
}

uint8_t *test_rans_encode_with_free_slots(const uint8_t *bytes, uint32_t n, uint32_t n_bits,
                                          uint32_t max_splits, uint32_t n_free, size_t *ret_nbytes)
{
    uint64_t counts[256] = {0};
    uint32_t frequencies[256];
    const struct wharf_rans_job job = {
        .shape = {n_bits, 1, 256, 1},
        .frequencies = frequencies,
        .symbols = bytes,
        .n_symbols = n,
        .max_splits = max_splits,
    };
    size_t bound = wharf_rans_encode_bound(&job);
    uint8_t *out = check_memory(malloc(bound));

    for (uint32_t i = 0; i < n; i++)
        counts[bytes[i]]++;
    if (wharf_rans_normalise(counts, 256, n_bits, frequencies) < 0) {
        fprintf(stderr, "test_rans: has no model\n");
        exit(2);
    }
    free_slots(frequencies, 256, n_free);
    if (wharf_rans_encode(&job, out, bound, ret_nbytes) < 0) {
        fprintf(stderr, "test_rans: cannot be encoded\n");
        exit(2);
    }
    return out;
}

void test_rans_free(struct test_rans *rans)
{
    free(rans->plain);
    free(rans->stream);
    free(rans->model);
    free(rans->image);
    *rans = (struct test_rans){0};
}

/* The marks of all splits except those.  Returns their number. */
static uint32_t marks_but(const struct wharf_rans_body *body, uint32_t first, uint32_t n,
                          struct wharf_rans_mark *marks)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_split split;
    uint32_t n_marks = 0;

    while (wharf_rans_next_split(body, &cursor, &split)) {
        uint32_t number = cursor.number - 1;
        if (number < first || number >= first + n)
            marks[n_marks++] = wharf_rans_mark_of(&split);
    }
    return n_marks + 1;
}

void test_rans_drop_splits(struct test_rans *rans, uint32_t first, uint32_t n)
{
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(rans->stream, rans->stream_nbytes, &stream, &outcome)) {
        fprintf(stderr, "test_rans: a stream that is bad already\n");
        exit(2);
    }
    struct wharf_rans_mark *marks = check_memory(calloc(stream.body.n_splits, sizeof(*marks)));
    uint32_t n_splits = marks_but(&stream.body, first, n, marks);
    struct wharf_rans_plan plan = wharf_rans_plan_of(&stream.body, marks, n_splits);
    size_t fields_nbytes = wharf_rans_fields_nbytes(&plan);
    size_t words_nbytes = (size_t)stream.body.n_words * WHARF_RANS_WORD_NBYTES;
    uint8_t *out = check_memory(malloc(stream.body_at + fields_nbytes + words_nbytes));
    memcpy(out, rans->stream, stream.body_at);
    wharf_rans_write_fields(&plan, out + stream.body_at);
    memcpy(out + stream.body_at + fields_nbytes, stream.body.words, words_nbytes);
    rans->stream_nbytes = stream.body_at + fields_nbytes + words_nbytes;
    free(rans->stream);
    rans->stream = out;
    free(marks);
}

static const char *decode_all(const uint8_t *in, size_t in_nbytes,
                              const struct wharf_codec_setting *setting, uint8_t *out,
                              size_t out_avail, struct wharf_outcome *ret_outcome)
{
#define X(form, coder, where, where_in_buckets) #form,
    static const char *const forms[] = {"none", WHARF_RANS_LOOP_LIST(X)};
#undef X
    struct test_guard in_copy = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    const char *wrong = NULL;

    wharf_rans_decode_reference(in_copy.data, in_nbytes, out, out_avail, setting, ret_outcome);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !wrong; i++) {
        struct test_guard buffer = test_guard_new(out_avail, TEST_GUARD_END);
        struct wharf_outcome outcome;

        if (wharf_rans_loop_force(forms[i]) < 0) {
            test_guard_free(&buffer);
            continue;
        }
        wharf_rans_decode(in_copy.data, in_nbytes, buffer.data, out_avail, setting, &outcome);
        if (!test_outcome_same(&outcome, ret_outcome) ||
            (outcome.result == WHARF_OK && outcome.out_nbytes > 0 &&
             memcmp(buffer.data, out, outcome.out_nbytes) != 0))
            wrong = forms[i];
        test_guard_free(&buffer);
    }
    wharf_rans_loop_force(NULL);
    test_guard_free(&in_copy);
    return wrong;
}

const char *test_rans_decode_all(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                 uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_setting setting = {.parameter = parameter};

    return decode_all(in, in_nbytes, &setting, out, out_avail, ret_outcome);
}

const char *test_rans_decode_registered(const uint8_t *in, size_t in_nbytes, const void *image,
                                        uint8_t *out, size_t out_avail,
                                        struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_setting setting = {.model = image};

    return decode_all(in, in_nbytes, &setting, out, out_avail, ret_outcome);
}

const char *test_rans_decode_either(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                    const void *image, uint8_t *out, size_t out_avail,
                                    struct wharf_outcome *ret_outcome)
{
    return image ? test_rans_decode_registered(in, in_nbytes, image, out, out_avail, ret_outcome)
                 : test_rans_decode_all(in, in_nbytes, parameter, out, out_avail, ret_outcome);
}
