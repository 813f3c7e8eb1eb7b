/* SPDX-License-Identifier: Apache-2.0 */
/* test_vector.c: reads test vectors and their expectations. */
#include "tests/lib/test_vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "encoders/codec.h"
#include "tests/lib/test_file.h"

/* If a bad stream's expectation gives no capacity: enough for what precedes the error. */
enum { DEFAULT_OUT_AVAIL = 2 << 20 };

static const char suffix[] = ".expect";

static _Noreturn void fail(const char *path, const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s %s\n", path, what, detail);
    exit(2);
}

static void *check_memory(void *memory)
{
    if (!memory)
        fail("vectors", "out of memory", "");
    return memory;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

/* Finds the value with this name by trying all.  The enumerations have gaps, but end below 256. */
static uint32_t find_name(const char *(*name_of)(uint32_t), const char *name, const char *path)
{
    for (uint32_t value = 0; value < 256; value++)
        if (strcmp(name_of(value), name) == 0)
            return value;
    fail(path, "unknown name", name);
}

static uint64_t parse_number(const char *text, int base, const char *path)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, base);
    if (errno != 0 || end == text || *end != 0)
        fail(path, "not a number:", text);
    return number;
}

/* Parses `name` or `name|name`. */
static void parse_reasons(struct test_vector *vector, char *text)
{
    char *rest = text;
    for (char *name; (name = strtok_r(rest, "|", &rest));) {
        if (vector->n_reasons == TEST_VECTOR_MAX_REASONS)
            fail(vector->path, "too many reasons before", name);
        vector->reasons[vector->n_reasons++] = find_name(wharf_reason_name, name, vector->path);
    }
}

static void parse_codec(struct test_vector *vector, const char *name)
{
    int codec = wharf_codec_from_name(name);
    if (codec < 0)
        fail(vector->path, "unknown codec", name);
    vector->codec = (uint32_t)codec;
}

static void parse_line(struct test_vector *vector, const char *key, char *value)
{
    if (strcmp(key, "codec") == 0) {
        parse_codec(vector, value);
    } else if (strcmp(key, "parameter") == 0) {
        vector->parameter = (uint32_t)parse_number(value, 10, vector->path);
    } else if (strcmp(key, "result") == 0) {
        vector->result = find_name(wharf_result_name, value, vector->path);
    } else if (strcmp(key, "reason") == 0) {
        parse_reasons(vector, value);
    } else if (strcmp(key, "bit_offset") == 0) {
        vector->has_bit_offset = true;
        vector->bit_offset = parse_number(value, 10, vector->path);
    } else if (strcmp(key, "in_nbytes") == 0) {
        vector->has_in_nbytes = true;
        vector->in_nbytes = parse_number(value, 10, vector->path);
    } else if (strcmp(key, "out_nbytes") == 0) {
        vector->has_out_nbytes = true;
        vector->out_nbytes = parse_number(value, 10, vector->path);
    } else if (strcmp(key, "crc32") == 0) {
        vector->has_crc32 = true;
        vector->crc32 = (uint32_t)parse_number(value, 16, vector->path);
    } else if (strcmp(key, "sha256") == 0 && strlen(value) == sizeof(vector->sha256) - 1) {
        memcpy(vector->sha256, value, sizeof(vector->sha256));
    } else if (strcmp(key, "out_avail") == 0) {
        vector->out_avail = parse_number(value, 10, vector->path);
    } else {
        fail(vector->path, "unknown or bad line:", key);
    }
}

static struct test_vector *add_vector(struct test_vector_list *list, char *path)
{
    list->vectors =
        check_memory(realloc(list->vectors, (list->n_vectors + 1) * sizeof(*list->vectors)));
    struct test_vector *vector = &list->vectors[list->n_vectors++];
    /* A result that no vector has, to notice vectors without one. */
    *vector = (struct test_vector){.path = path, .result = UINT32_MAX, .out_avail = UINT64_MAX};
    return vector;
}

static void finish_vector(struct test_vector *vector)
{
    if (vector->result == UINT32_MAX)
        fail(vector->path, "no result", "");
    if (vector->result == WHARF_OK && !vector->has_out_nbytes)
        fail(vector->path, "good, but no out_nbytes", "");
    if (vector->out_avail == UINT64_MAX)
        vector->out_avail = vector->result == WHARF_OK ? vector->out_nbytes : DEFAULT_OUT_AVAIL;
}

/* Splits a line into key and value; false for an empty one. */
static bool split_line(char *line, char **ret_key, char **ret_value)
{
    line[strcspn(line, "\n")] = 0;
    *ret_key = line;
    *ret_value = line + strcspn(line, " ");
    if (**ret_value)
        *(*ret_value)++ = 0;
    return *line != 0;
}

static char *join_path(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        path = NULL;
    return check_memory(path);
}

void test_vector_list_read_table(struct test_vector_list *list, const char *table,
                                 const char *folder)
{
    char line[4096], *key, *value;
    struct test_vector *vector = NULL;
    size_t n_before = list->n_vectors;
    uint64_t count = 0;
    FILE *file = fopen(table, "re");
    if (!file)
        fail(table, "cannot be read:", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        if (!split_line(line, &key, &value))
            continue;
        if (strcmp(key, "count") == 0) {
            count = parse_number(value, 10, table);
        } else if (strcmp(key, "vector") == 0) {
            if (vector)
                finish_vector(vector);
            vector = add_vector(list, join_path(folder, value));
        } else if (vector) {
            parse_line(vector, key, value);
        } else {
            fail(table, "does not begin with a vector:", key);
        }
    }
    if (!vector)
        fail(table, "holds no vector", "");
    if (count != list->n_vectors - n_before)
        fail(table, "holds another number of vectors than it says at its end", "");
    finish_vector(vector);
    fclose(file);
}

/* Reads PATH.expect for a vector.  Its codec is the folder two levels above. */
static void read_expectation(struct test_vector_list *list, const char *path)
{
    char line[4096], *key, *value;
    char *name, *expectation;
    const char *end = path + strlen(path);
    for (int n_slashes = 0; end > path && n_slashes < 2; n_slashes += *end == '/')
        end--;
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    if (asprintf(&expectation, "%s%s", path, suffix) < 0 ||
        !(name = strndup(start, (size_t)(end - start))))
        fail(path, "out of memory", "");
    struct test_vector *vector = add_vector(list, check_memory(strdup(path)));
    parse_codec(vector, name);
    FILE *file = fopen(expectation, "re");
    if (!file)
        fail(expectation, "cannot be read:", strerror(errno));
    while (fgets(line, sizeof(line), file))
        if (split_line(line, &key, &value))
            parse_line(vector, key, value);
    finish_vector(vector);
    fclose(file);
    free(expectation);
    free(name);
}

void test_vector_list_read_folder(struct test_vector_list *list, const char *folder)
{
    struct test_file_list files;
    size_t n_expectations = 0;
    size_t n_before = list->n_vectors;
    if (test_file_list_init(&files, folder) != 0)
        fail(folder, "cannot be read:", strerror(errno));
    for (size_t i = 0; i < files.n_paths; i++) {
        if (ends_with(files.paths[i], suffix))
            n_expectations++;
        else
            read_expectation(list, files.paths[i]);
    }
    if (n_expectations == 0 || n_expectations != list->n_vectors - n_before)
        fail(folder, "no vectors, or expectations without their vectors", "");
    test_file_list_deinit(&files);
}

void test_vector_list_deinit(struct test_vector_list *list)
{
    for (size_t i = 0; i < list->n_vectors; i++)
        free(list->vectors[i].path);
    free(list->vectors);
    *list = (struct test_vector_list){0};
}
