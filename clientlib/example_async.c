/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_async.c: a complete program that has many chunks in flight.  It checks files of any size,
 * each a stream of its own, and prints what they decode to:
 *
 *     cc example_async.c $(pkg-config --cflags --libs wharf) -o example_async
 *     ./example_async gzip *.gz
 *
 * Sources and destinations lie in the handle's arena, which the daemon reaches, so nothing is
 * copied.  Nobody says how large an output is: the first guess is four times the source, and a job
 * that ends with WHARF_OUTPUT_TOO_SMALL is submitted again with more.  What the arena has no room
 * for is decoded by wharf_decompress, from and to memory of the program's own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <wharf.h>

/* So many files at a time. */
enum { N_SLOTS = 16 };

/* A file in flight. */
struct slot {
    const char *path; /* NULL: free */
    void *out;        /* memory of wharf_alloc */
    struct wharf_job job;
};

static struct slot slots[N_SLOTS];

static struct slot *find_free_slot(void)
{
    for (unsigned i = 0; i < N_SLOTS; i++)
        if (!slots[i].path)
            return &slots[i];
    return NULL;
}

static size_t first_guess(size_t in_nbytes)
{
    return 4 * in_nbytes + 4096;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Opens a file and finds its size.  NULL, after a message, if there is none. */
static FILE *open_file(const char *path, size_t *ret_nbytes)
{
    FILE *file = fopen(path, "rb");
    long nbytes;

    if (!file || fseek(file, 0, SEEK_END) < 0 || (nbytes = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) < 0) {
        perror(path);
        if (file)
            fclose(file);
        return NULL;
    }
    *ret_nbytes = (size_t)nbytes;
    return file;
}

/* Returns 0, or -EIO after a message. */
static int read_file(FILE *file, const char *path, void *bytes, size_t nbytes)
{
    if (fread(bytes, 1, nbytes, file) == nbytes)
        return 0;
    fprintf(stderr, "%s: cannot be read, or has become shorter\n", path);
    return -EIO;
}

/* ---- what became of a file ----------------------------------------------------------------- */

static int print_good(const char *path, uint64_t out_nbytes, const char *by)
{
    printf("%s: %" PRIu64 " bytes, by %s\n", path, out_nbytes, by);
    return 1;
}

static int print_bad(const char *path, uint32_t result, uint32_t reason, uint64_t bit_offset)
{
    printf("%s: %s: %s, at byte %" PRIu64 "\n", path, wharf_result_string(result),
           wharf_reason_string(reason), bit_offset / 8);
    return 0;
}

/* ---- one that is larger than the arena ----------------------------------------------------- */

/* With more and more room.  Returns whether the file is good. */
static int decode_growing(struct wharf *wharf, const char *path, struct wharf_job *job)
{
    struct wharf_outcome outcome;

    for (job->out_avail = first_guess(job->in_nbytes);; job->out_avail *= 4) {
        free(job->out);
        job->out = malloc(job->out_avail);
        if (!job->out) {
            fprintf(stderr, "%s: no memory for %zu bytes\n", path, job->out_avail);
            return 0;
        }
        if (wharf_decompress(wharf, job, &outcome) < 0) {
            fprintf(stderr, "%s: %s\n", path, wharf_error_message());
            return 0;
        }
        if (outcome.result != WHARF_OUTPUT_TOO_SMALL)
            break;
    }
    if (outcome.result == WHARF_OK)
        return print_good(path, outcome.out_nbytes, "one call");
    return print_bad(path, outcome.result, outcome.reason, outcome.bit_offset);
}

static int decode_alone(struct wharf *wharf, uint32_t codec, const char *path)
{
    struct wharf_job job = WHARF_JOB_INIT;
    FILE *file = open_file(path, &job.in_nbytes);
    void *in = file ? malloc(job.in_nbytes + 1) : NULL;
    int is_good = 0;

    job.codec = codec;
    job.in = in;
    if (file && !in)
        fprintf(stderr, "%s: no memory for %zu bytes\n", path, job.in_nbytes);
    else if (in && read_file(file, path, in, job.in_nbytes) == 0)
        is_good = decode_growing(wharf, path, &job);
    if (file)
        fclose(file);
    free(in);
    free(job.out);
    return is_good;
}

/* ---- many in flight ------------------------------------------------------------------------ */

static void free_slot(struct wharf *wharf, struct slot *slot)
{
    wharf_free(wharf, (void *)slot->job.in);
    wharf_free(wharf, slot->out);
    *slot = (struct slot){NULL, NULL, WHARF_JOB_INIT};
}

/* Gives the slot's job a destination of that size and hands it in.  Returns 0 or -errno. */
static int submit(struct wharf *wharf, struct slot *slot, size_t out_avail)
{
    int r;

    wharf_free(wharf, slot->out);
    slot->out = NULL;
    r = wharf_alloc(wharf, out_avail, &slot->out);
    if (r < 0)
        return r;
    slot->job.out = slot->out;
    slot->job.out_avail = out_avail;
    slot->job.user_data = (uint64_t)(slot - slots);
    r = wharf_submit(wharf, &slot->job, 1);
    return r < 0 ? r : 0;
}

/* Reads a file into the arena and hands it in.  Returns 0; -ENOBUFS if the arena has no room for it
 * now; or, after a message, another -errno. */
static int begin_file(struct wharf *wharf, uint32_t codec, const char *path, struct slot *slot)
{
    struct wharf_job job = WHARF_JOB_INIT;
    FILE *file = open_file(path, &job.in_nbytes);
    void *in = NULL;
    int r;

    if (!file)
        return -EIO;
    job.codec = codec;
    *slot = (struct slot){path, NULL, job};
    r = wharf_alloc(wharf, job.in_nbytes, &in);
    slot->job.in = in;
    if (r == 0)
        r = read_file(file, path, in, job.in_nbytes);
    if (r == 0) {
        r = submit(wharf, slot, first_guess(job.in_nbytes));
        if (r < 0 && r != -ENOBUFS)
            fprintf(stderr, "%s: %s\n", path, wharf_error_message());
    }
    fclose(file);
    if (r < 0)
        free_slot(wharf, slot);
    return r;
}

/* Handles a completion.  Returns 1 if its file is done, 0 if its job was submitted again. */
static int end_file(struct wharf *wharf, const struct wharf_completion *c, int *all_good)
{
    struct slot *slot = &slots[c->user_data];
    const char *path = slot->path;
    uint32_t codec = slot->job.codec;

    if (c->result == WHARF_OUTPUT_TOO_SMALL) {
        if (submit(wharf, slot, 4 * slot->job.out_avail) == 0)
            return 0;
        free_slot(wharf, slot);
        *all_good &= decode_alone(wharf, codec, path);
        return 1;
    }
    free_slot(wharf, slot); /* its memory is ours again */
    *all_good &= c->result == WHARF_OK
                     ? print_good(path, c->out_nbytes, wharf_engine_name(c->engine))
                     : print_bad(path, c->result, c->reason, c->bit_offset);
    return 1;
}

/* Waits for at least one completion.  Returns how many files are done, or -errno. */
static int end_some(struct wharf *wharf, int *all_good)
{
    struct wharf_completion completions[N_SLOTS];
    int n = wharf_wait(wharf, completions, N_SLOTS, 1, -1);
    int n_done = 0;

    if (n < 0)
        fprintf(stderr, "%s\n", wharf_error_message());
    for (int i = 0; i < n; i++)
        n_done += end_file(wharf, &completions[i], all_good);
    return n < 0 ? n : n_done;
}

static int check_files(struct wharf *wharf, uint32_t codec, char **paths)
{
    int n_in_flight = 0;
    int all_good = 1;

    while (*paths || n_in_flight > 0) {
        struct slot *slot = find_free_slot();
        int r = *paths && slot ? begin_file(wharf, codec, *paths, slot) : -ENOBUFS;

        if (r == 0) {
            n_in_flight++;
            paths++;
        } else if (r != -ENOBUFS) {
            all_good = 0;
            paths++;
        } else if (n_in_flight > 0) {
            int n_done = end_some(wharf, &all_good);
            if (n_done < 0)
                return 0;
            n_in_flight -= n_done;
        } else {
            all_good &= decode_alone(wharf, codec, *paths++);
        }
    }
    return all_good;
}

int main(int argc, char **argv)
{
    int codec = argc > 2 ? wharf_codec_from_name(argv[1]) : -1;
    struct wharf *wharf;
    int is_good;

    if (argc <= 2 || codec < 0) {
        fprintf(stderr, "usage: example_async CODEC FILE...\n");
        if (argc > 2)
            fprintf(stderr, "%s\n", wharf_error_message());
        return EXIT_FAILURE;
    }
    if (wharf_open(NULL, &wharf) < 0) {
        fprintf(stderr, "%s\n", wharf_error_message());
        return EXIT_FAILURE;
    }
    is_good = check_files(wharf, (uint32_t)codec, argv + 2);
    wharf_close(wharf);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
