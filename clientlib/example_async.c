/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_async.c: a complete program that has many chunks in flight.  It checks files, each a
 * stream of its own, and prints what they decode to:
 *
 *     cc example_async.c $(pkg-config --cflags --libs wharf) -o example_async
 *     ./example_async gzip *.gz
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wharf.h>

/* Sources and destinations for so many files at a time, each of at most so many bytes. */
enum { N_SLOTS = 16, IN_NBYTES = 1 << 18, OUT_NBYTES = 1 << 20 };

struct slot {
    const char *path; /* NULL: free */
    void *in;
    void *out;
};

static struct slot slots[N_SLOTS];

/* Memory that the daemon reaches: nothing is copied on the way. */
static int alloc_slots(struct wharf *wharf)
{
    for (unsigned i = 0; i < N_SLOTS; i++) {
        int err = wharf_alloc(wharf, IN_NBYTES, &slots[i].in);

        if (err == 0)
            err = wharf_alloc(wharf, OUT_NBYTES, &slots[i].out);
        if (err < 0)
            return err;
    }
    return 0;
}

static struct slot *find_free_slot(void)
{
    for (unsigned i = 0; i < N_SLOTS; i++)
        if (!slots[i].path)
            return &slots[i];
    return NULL;
}

/* Reads all of a file into a slot.  Returns whether it could, and it fits. */
static int read_file(const char *path, struct slot *slot, size_t *ret_nbytes)
{
    FILE *file = fopen(path, "rb");
    int is_good = 0;

    if (!file) {
        perror(path);
        return 0;
    }
    *ret_nbytes = fread(slot->in, 1, IN_NBYTES, file);
    if (ferror(file))
        perror(path);
    else if (*ret_nbytes == IN_NBYTES && getc(file) != EOF)
        fprintf(stderr, "%s: is larger than %d bytes\n", path, IN_NBYTES);
    else
        is_good = 1;
    fclose(file);
    return is_good;
}

/* Reads a file into a slot and hands it in.  Returns 1, or 0 when that cannot be. */
static int submit_file(struct wharf *wharf, uint32_t codec, const char *path, struct slot *slot)
{
    struct wharf_job job = WHARF_JOB_INIT;
    int err;

    if (!read_file(path, slot, &job.in_nbytes))
        return 0;
    job.codec = codec;
    job.in = slot->in;
    job.out = slot->out;
    job.out_avail = OUT_NBYTES;
    job.user_data = (uint64_t)(slot - slots);
    err = wharf_submit(wharf, &job, 1);
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", path, wharf_error_message());
        return 0;
    }
    slot->path = path;
    return 1;
}

/* Waits for at least one completion and prints all that are there.  Returns how many there were. */
static int print_some(struct wharf *wharf, int *all_good)
{
    struct wharf_completion completions[N_SLOTS];
    int n = wharf_wait(wharf, completions, N_SLOTS, 1, -1);

    if (n < 0)
        fprintf(stderr, "%s\n", wharf_error_message());
    for (int i = 0; i < n; i++) {
        const struct wharf_completion *c = &completions[i];
        struct slot *slot = &slots[c->user_data];

        if (c->result == WHARF_OK)
            printf("%s: %" PRIu64 " bytes, by %s in %.3f ms\n", slot->path, c->out_nbytes,
                   wharf_engine_name(c->engine), (double)c->run_ns / 1e6);
        else
            printf("%s: %s: %s, at byte %" PRIu64 "\n", slot->path, wharf_result_string(c->result),
                   wharf_reason_string(c->reason), c->bit_offset / 8);
        *all_good &= c->result == WHARF_OK;
        slot->path = NULL; /* its memory is ours again */
    }
    return n;
}

static int check_files(struct wharf *wharf, uint32_t codec, char **paths)
{
    int n_in_flight = 0;
    int all_good = 1;

    while (*paths || n_in_flight > 0) {
        struct slot *slot = find_free_slot();

        if (*paths && slot) {
            int submitted = submit_file(wharf, codec, *paths++, slot);
            n_in_flight += submitted;
            all_good &= submitted;
        } else {
            int n = print_some(wharf, &all_good);
            if (n < 0)
                return 0;
            n_in_flight -= n;
        }
    }
    return all_good;
}

int main(int argc, char **argv)
{
    int codec = argc > 2 ? wharf_codec_from_name(argv[1]) : -1;
    struct wharf *wharf;
    int is_good = 0;

    if (codec < 0) {
        fprintf(stderr, "usage: example_async CODEC FILE...\n");
        return EXIT_FAILURE;
    }
    if (wharf_open(NULL, &wharf) < 0) {
        fprintf(stderr, "%s\n", wharf_error_message());
        return EXIT_FAILURE;
    }
    if (alloc_slots(wharf) < 0)
        fprintf(stderr, "%s\n", wharf_error_message());
    else
        is_good = check_files(wharf, (uint32_t)codec, argv + 2);
    wharf_close(wharf);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
