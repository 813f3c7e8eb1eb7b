/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_main.c: runs a fuzz target without a fuzzing engine.
 *
 *     NAME [--mutations N [--seed N]] PATH...
 *
 * Each PATH is a file or a folder.  Every file goes through the target as it is, one test each;
 * then N changed copies of them, the same ones for each seed (1), as one more test.  A target that
 * finds something wrong ends the program: the line before names the input, and the changed copy
 * that did it lies in `replay-failure` in the current folder.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test_file.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

struct input {
    char *path;
    uint8_t *data;
    size_t nbytes;
};

struct input_list {
    struct input *inputs;
    size_t n_inputs;
};

/* Longer files are not mutated: the time goes into their good parts. */
enum { MAX_MUTATED_NBYTES = 1 << 15 };

static const uint8_t *running_data;
static size_t running_nbytes;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* Keeps the input for whoever looks into the failure; only calls that signal handlers may make. */
static void keep_running_input(int signal_number)
{
    int fd = open("replay-failure", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, running_data, running_nbytes) >= 0)
        close(fd);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The input is followed by a page that cannot be touched. */
static void run_target(const uint8_t *data, size_t nbytes)
{
    struct test_guard guard = test_guard_copy(data, nbytes, TEST_GUARD_END);
    running_data = guard.data;
    running_nbytes = nbytes;
    LLVMFuzzerTestOneInput(guard.data, nbytes);
    test_guard_free(&guard);
}

static void add_file(struct input_list *list, const char *path)
{
    struct input input = {.path = strdup(path)};
    input.data = test_file_read(path, &input.nbytes);
    if (!input.path || !input.data)
        die(path);
    list->inputs = realloc(list->inputs, (list->n_inputs + 1) * sizeof(input));
    if (!list->inputs)
        die("realloc");
    list->inputs[list->n_inputs++] = input;
}

/* Vectors are good inputs; what is said of them beside them is none. */
static int is_expectation(const char *path)
{
    static const char suffix[] = ".expect";
    size_t n = strlen(path);
    return n >= sizeof(suffix) && strcmp(path + n - (sizeof(suffix) - 1), suffix) == 0;
}

static void add_path(struct input_list *list, const char *path)
{
    struct stat status;
    struct test_file_list files;
    if (stat(path, &status) != 0)
        die(path);
    if (!S_ISDIR(status.st_mode)) {
        add_file(list, path);
        return;
    }
    if (test_file_list_init(&files, path) != 0)
        die(path);
    for (size_t i = 0; i < files.n_paths; i++)
        if (!is_expectation(files.paths[i]))
            add_file(list, files.paths[i]);
    test_file_list_deinit(&files);
}

static void free_list(struct input_list *list)
{
    for (size_t i = 0; i < list->n_inputs; i++) {
        free(list->inputs[i].path);
        free(list->inputs[i].data);
    }
    free(list->inputs);
}

/* Changes one thing in *nbytes bytes at data, which has room for MAX_MUTATED_NBYTES. */
static void mutate_once(struct test_random *random, uint8_t *data, size_t *nbytes)
{
    size_t at = *nbytes ? test_random_below(random, *nbytes) : 0;
    size_t n = 1 + test_random_below(random, 8);

    switch (*nbytes ? test_random_below(random, 6) : 5) {
    case 0: /* flip a bit */
        data[at] ^= (uint8_t)(1 << test_random_below(random, 8));
        break;
    case 1: /* another byte, often an extreme one */
        data[at] = (uint8_t)(test_random_one_in(random, 2)
                                 ? test_random_next(random)
                                 : (uint8_t) "\x00\xff\x7f\x80"[test_random_below(random, 4)]);
        break;
    case 2: /* cut off the end */
        *nbytes = at;
        break;
    case 3: /* take a few bytes out */
        n = n < *nbytes - at ? n : *nbytes - at;
        memmove(data + at, data + at + n, *nbytes - at - n);
        *nbytes -= n;
        break;
    case 4: /* repeat a stretch somewhere else */
        n = n < *nbytes - at ? n : *nbytes - at;
        memmove(data + test_random_below(random, *nbytes - n + 1), data + at, n);
        break;
    case 5: /* put a few bytes in */
        n = n < MAX_MUTATED_NBYTES - *nbytes ? n : MAX_MUTATED_NBYTES - *nbytes;
        memmove(data + at + n, data + at, *nbytes - at);
        test_random_fill(random, data + at, n);
        *nbytes += n;
        break;
    }
}

static void run_mutations(const struct input_list *list, uint64_t n_mutations, uint64_t seed)
{
    static uint8_t data[MAX_MUTATED_NBYTES];
    struct test_random random = {seed};

    for (uint64_t i = 0; i < n_mutations; i++) {
        const struct input *input = &list->inputs[i % list->n_inputs];
        size_t nbytes = input->nbytes < sizeof(data) ? input->nbytes : sizeof(data);
        memcpy(data, input->data, nbytes);
        for (size_t n = 1 + test_random_below(&random, 4); n > 0; n--)
            mutate_once(&random, data, &nbytes);
        run_target(data, nbytes);
    }
}

int main(int argc, char **argv)
{
    struct input_list list = {0};
    uint64_t n_mutations = 0, seed = 1;
    int first_path = 1;

    for (; first_path + 1 < argc; first_path += 2) {
        if (strcmp(argv[first_path], "--mutations") == 0)
            n_mutations = strtoull(argv[first_path + 1], NULL, 10);
        else if (strcmp(argv[first_path], "--seed") == 0)
            seed = strtoull(argv[first_path + 1], NULL, 10);
        else
            break;
    }
    for (int i = first_path; i < argc; i++)
        add_path(&list, argv[i]);
    if (list.n_inputs == 0) {
        fprintf(stderr, "%s: no input\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, keep_running_input);
    signal(SIGSEGV, keep_running_input);
    printf("1..%zu\n", list.n_inputs + (n_mutations > 0));
    for (size_t i = 0; i < list.n_inputs; i++) {
        printf("# %s\n", list.inputs[i].path);
        run_target(list.inputs[i].data, list.inputs[i].nbytes);
        printf("ok %zu - %s\n", i + 1, list.inputs[i].path);
    }
    if (n_mutations > 0) {
        printf("# %llu mutations\n", (unsigned long long)n_mutations);
        run_mutations(&list, n_mutations, seed);
        printf("ok %zu - %llu mutations\n", list.n_inputs + 1, (unsigned long long)n_mutations);
    }
    free_list(&list);
    return 0;
}
