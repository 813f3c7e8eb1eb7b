/* SPDX-License-Identifier: Apache-2.0 */
/* Files by libwharf's calls. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_wharfd.h"

enum { PLAIN_NBYTES = 300000, N_CHUNKS = 40, PART = PLAIN_NBYTES / N_CHUNKS };

static struct test_wharfd wharfd;
static unsigned char plain[PLAIN_NBYTES];

/* An open file without a name, with some bytes; on a disk, as the daemon writes none in memory. */
static int new_file(const void *data, size_t nbytes)
{
    char path[] = "/var/tmp/wharf-file-test.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    cr_assert_geq(fd, 0);
    unlink(path);
    cr_assert_eq(pwrite(fd, data, nbytes, 0), (ssize_t)nbytes);
    return fd;
}

static void fill(void)
{
    for (size_t i = 0; i < PLAIN_NBYTES; i++)
        plain[i] = (unsigned char)(i * i >> 7);
}

/* A file with zlib's stream of the plain bytes. */
static int packed_file(const unsigned char *from, size_t from_nbytes, uLongf *ret_nbytes)
{
    uLongf nbytes = compressBound(from_nbytes);
    unsigned char *packed = malloc(nbytes);

    cr_assert(packed && compress(packed, &nbytes, from, from_nbytes) == Z_OK);
    int fd = new_file(packed, nbytes);
    free(packed);
    *ret_nbytes = nbytes;
    return fd;
}

static void expect_bytes(int fd, const unsigned char *bytes, size_t nbytes, off_t at)
{
    unsigned char *got = malloc(nbytes);

    cr_assert(got && pread(fd, got, nbytes, at) == (ssize_t)nbytes);
    cr_assert_eq(memcmp(got, bytes, nbytes), 0);
    free(got);
}

static void *registered(struct wharf *wharf, int fd, uint32_t flags)
{
    void *address;

    cr_assert_eq(wharf_register_file(wharf, fd, flags, &address), 0, "%s", wharf_error_message());
    return address;
}

static struct wharf_outcome run(struct wharf *wharf, const struct wharf_job *job)
{
    struct wharf_outcome outcome;

    cr_assert_eq(wharf_decompress(wharf, job, &outcome), 0, "%s", wharf_error_message());
    return outcome;
}

static struct wharf_job zlib_job(const void *in, size_t in_nbytes, void *out, size_t out_avail)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = in, job.in_nbytes = in_nbytes;
    job.out = out, job.out_avail = out_avail;
    return job;
}

/* One side in a file, the other one in memory that the library copies; and both in files. */
Test(wharfd_file, one_call_decodes_from_and_to_files, .timeout = 600)
{
    static unsigned char out[PLAIN_NBYTES], packed[PLAIN_NBYTES];
    uLongf nbytes;

    fill();
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 4 << 20);
    int in = packed_file(plain, PLAIN_NBYTES, &nbytes), to = new_file("", 0);
    char *from = registered(wharf, in, WHARF_MEMORY_READ_ONLY), *at = registered(wharf, to, 0);

    struct wharf_job job = zlib_job(from, nbytes, out, PLAIN_NBYTES);
    cr_assert_eq(run(wharf, &job).out_nbytes, PLAIN_NBYTES);
    cr_assert_eq(memcmp(out, plain, PLAIN_NBYTES), 0);
    cr_assert_eq(pread(in, packed, nbytes, 0), (ssize_t)nbytes);
    job.in = packed, job.out = at + 1000;
    cr_assert_eq(run(wharf, &job).in_nbytes, nbytes);
    expect_bytes(to, plain, PLAIN_NBYTES, 1000);
    job.in = from, job.out = at + 5000000;
    cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    expect_bytes(to, plain, PLAIN_NBYTES, 5000000);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_file, outcomes_tell_errno_and_place, .timeout = 600)
{
    static unsigned char out[100];
    struct rlimit limit = {4000, 4000};

    fill();
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 1 << 20);
    int fd = new_file(plain, 1000);
    char *at = registered(wharf, fd, 0);
    struct wharf_job job = zlib_job(at + 990, 100, out, 100);

    job.codec = WHARF_CODEC_STORED;
    struct wharf_outcome outcome = run(wharf, &job);
    cr_assert_eq(outcome.result, WHARF_FILE_ERROR);
    cr_assert_eq(outcome.reason, WHARF_REASON_FILE_SHORT);
    cr_assert_eq(outcome.bit_offset, 80);
    cr_assert_eq(wharf_reason_errno(outcome.reason), 0);
    cr_assert_eq(wharf_reason_errno(WHARF_REASON_FILE_READ + EIO), EIO);
    cr_assert_eq(wharf_reason_errno(WHARF_REASON_FILE_WRITE + ENOSPC), ENOSPC);
    cr_assert_eq(wharf_reason_errno(WHARF_REASON_FILE_WRITE + WHARF_REASON_N_ERRNO), 0);
    cr_assert_str_eq(wharf_reason_name(WHARF_REASON_FILE_READ + EIO), "file_read");
    cr_assert_str_eq(wharf_reason_string(WHARF_REASON_FILE_WRITE + ENOSPC),
                     "the file cannot be written");
    /* The daemon's limit is another one. */
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    job.in = plain, job.in_nbytes = 100;
    job.out = at + 3950;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), -EFBIG);
    job.out = at + 3900;
    cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_file, what_cannot_be_registered_is_told, .timeout = 600)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *embedded;
    void *address = &address;

    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 4096);
    int fd = new_file("abc", 3), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &embedded), 0);
    cr_assert_eq(wharf_register_file(embedded, fd, 0, &address), -EOPNOTSUPP);
    cr_assert_eq(wharf_register_file(wharf, -1, 0, &address), -EBADF);
    cr_assert_eq(wharf_register_file(wharf, null, 0, &address), -EBADF);
    cr_assert_eq(wharf_register_file(wharf, proc, 0, &address), -EOPNOTSUPP);
    cr_assert_eq(wharf_register_file(wharf, fd, 2, &address), -EINVAL);
    cr_assert_eq(wharf_register_file(wharf, fd, 0, NULL), -EINVAL);
    cr_assert_eq(address, &address, "an output of a call that failed");
    fcntl(fd, F_SETFL, O_APPEND);
    cr_assert_eq(wharf_register_file(wharf, fd, 0, &address), -EINVAL);
    cr_assert_eq(wharf_register_file(wharf, fd, WHARF_MEMORY_READ_ONLY, &address), 0);
    cr_assert_eq(wharf_unregister(wharf, address), 0);
    cr_assert_eq(wharf_unregister(wharf, address), -ENOENT);
    wharf_close(embedded);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

/* The kernel charges what is written there to the daemon, for as long as its owner likes: one user
 * could fill the daemon's control group, which ended it. */
Test(wharfd_file, files_in_memory_are_sources_alone, .timeout = 600)
{
    static unsigned char out[100];
    void *address = &address;

    fill();
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 1 << 20);
    int fd = memfd_create("file", MFD_CLOEXEC), huge = memfd_create("huge", MFD_HUGETLB);
    cr_assert_eq(pwrite(fd, plain, 1000, 0), 1000);

    cr_assert_eq(wharf_register_file(wharf, fd, 0, &address), -EROFS);
    cr_assert(strstr(wharf_error_message(), "tmpfs") && strstr(wharf_error_message(), "yourself"),
              "%s", wharf_error_message());
    cr_assert_eq(address, &address, "an output of a call that failed");
    if (huge >= 0)
        cr_assert_eq(wharf_register_file(wharf, huge, 0, &address), -EROFS);
    char *at = registered(wharf, fd, WHARF_MEMORY_READ_ONLY);
    struct wharf_job job = zlib_job(at + 300, 100, out, 100);
    job.codec = WHARF_CODEC_STORED;
    cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    cr_assert_eq(memcmp(out, plain + 300, 100), 0);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

/* ---- many jobs ----------------------------------------------------------------------------- */

struct many {
    struct wharf *wharf;
    int in[N_CHUNKS], to;
    uLongf nbytes[N_CHUNKS];
    char *from[N_CHUNKS], *at;
};

static void open_many(struct many *many)
{
    fill();
    many->wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 1 << 20);
    many->to = new_file("", 0);
    many->at = registered(many->wharf, many->to, 0);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        many->in[i] = packed_file(plain + i * PART, PART, &many->nbytes[i]);
        many->from[i] = registered(many->wharf, many->in[i], 0);
    }
}

/* Output at four times the place of the plain bytes. */
static void submit_many(struct many *many)
{
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        struct wharf_job job =
            zlib_job(many->from[i], many->nbytes[i], many->at + 4 * i * PART, PART);
        job.user_data = i;
        cr_assert_eq(wharf_submit(many->wharf, &job, 1), 1, "%s", wharf_error_message());
    }
}

/* Returns how many were abandoned. */
static unsigned reap_many(struct many *many)
{
    struct wharf_completion completion;
    unsigned n_abandoned = 0;
    int is_done[N_CHUNKS] = {0};

    for (unsigned n = 0; n < N_CHUNKS; n++) {
        cr_assert_eq(wharf_wait(many->wharf, &completion, 1, 1, -1), 1, "%s",
                     wharf_error_message());
        unsigned i = (unsigned)completion.user_data;
        cr_assert(i < N_CHUNKS && !is_done[i]);
        is_done[i] = 1;
        if (completion.reason == WHARF_REASON_FILE_ABANDONED) {
            cr_assert_eq(completion.result, WHARF_FILE_ERROR);
            n_abandoned++;
            continue;
        }
        cr_assert_eq(completion.result, WHARF_OK, "%s: %s", wharf_result_string(completion.result),
                     wharf_reason_string(completion.reason));
        expect_bytes(many->to, plain + i * PART, PART, (off_t)(4 * i * PART));
    }
    return n_abandoned;
}

/* A begun write is not repeated; all else is, and reads are.  A worker and its spare have taken
 * eight jobs at most, and two may be looked at. */
Test(wharfd_file, killed_daemon_leaves_each_job_one_end, .timeout = 600)
{
    enum { MOST_BEGUN = 2 * 8 + 2 };
    struct many many;

    test_wharfd_start(&wharfd, "[cpu]\nworkers = 1\n");
    open_many(&many);
    for (unsigned round = 0; round < 4; round++) {
        submit_many(&many);
        test_wharfd_kill(&wharfd);
        test_wharfd_restart(&wharfd);
        cr_assert_leq(reap_many(&many), MOST_BEGUN);
        submit_many(&many);
        cr_assert_eq(reap_many(&many), 0);
    }
    wharf_close(many.wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_file, batch_decodes_from_file_to_file, .timeout = 600)
{
    struct wharf_batch_chunk chunks[N_CHUNKS] = {{0}};
    struct wharf_chunk_result results[N_CHUNKS];
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_completion completion;
    struct many many;

    test_wharfd_start(&wharfd, "");
    open_many(&many);
    for (unsigned i = 0; i < N_CHUNKS; i++)
        chunks[i] = (struct wharf_batch_chunk){
            many.from[i], many.at + i * PART, (uint32_t)many.nbytes[i], PART, 0, 0};
    chunks[3].in_nbytes -= 5;
    batch.codec = WHARF_CODEC_ZLIB;
    batch.chunks = chunks, batch.n_chunks = N_CHUNKS, batch.results = results;
    cr_assert_eq(wharf_submit_batch(many.wharf, &batch), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_unregister(many.wharf, many.at), -EBUSY);
    cr_assert_eq(wharf_wait(many.wharf, &completion, 1, 1, -1), 1);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.first_bad_chunk, 3);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        cr_assert_eq(results[i].result, i == 3 ? WHARF_BAD_DATA : WHARF_OK, "chunk %u", i);
        if (i != 3)
            expect_bytes(many.to, plain + i * PART, PART, (off_t)(i * PART));
    }
    cr_assert_eq(wharf_unregister(many.wharf, many.at), 0);
    wharf_close(many.wharf);
    test_wharfd_finish(&wharfd);
}
