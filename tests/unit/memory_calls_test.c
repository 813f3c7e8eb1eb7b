/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for jobs: the arena, registered memory, and what a forked child has of them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_handle.h"

/* "wharf", as zlib -9 packs it, and a byte behind it. */
static const uint8_t zlib_wharf[] = {0x78, 0xda, 0x2b, 0xcf, 0x48, 0x2c, 0x4a,
                                     0x03, 0x00, 0x06, 0x65, 0x02, 0x19, 0xaa};
enum { IN_NBYTES = sizeof(zlib_wharf) - 1, OUT_NBYTES = 5, PAGE = 4096 };

#define LONG_NS INT64_C(60000000000)

static uint64_t taken_nbytes(struct wharf *wharf)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    return info.arena_taken_nbytes;
}

Test(memory_calls, arena_gives_what_it_has_and_takes_it_back)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.arena_nbytes = 1000 * 1000;
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, &options);
        void *memory[3], *more = &more;

        for (unsigned i = 0; i < 3; i++) {
            cr_assert_eq(wharf_alloc(handle.wharf, 300000, &memory[i]), 0);
            cr_expect_eq((uintptr_t)memory[i] % 64, 0);
            memset(memory[i], (int)i, 300000);
        }
        cr_expect_eq(wharf_alloc(handle.wharf, 300000, &more), -ENOBUFS);
        cr_expect_eq(more, &more, "untouched");
        cr_expect(strstr(wharf_error_message(), "900"), "%s", wharf_error_message());
        cr_expect_eq(wharf_alloc(handle.wharf, SIZE_MAX, &more), -ENOBUFS);
        cr_expect_eq(wharf_free(handle.wharf, (char *)memory[1] + 64), -EINVAL);
        cr_expect_eq(wharf_free(handle.wharf, &more), -EINVAL);
        cr_expect_eq(wharf_free(handle.wharf, memory[1]), 0);
        cr_expect_eq(wharf_free(handle.wharf, memory[1]), -EINVAL, "twice");
        cr_expect_eq(wharf_free(handle.wharf, NULL), 0);
        cr_expect_eq(wharf_alloc(handle.wharf, 300000, &more), 0);
        for (unsigned i = 0; i < 300000; i += 1000)
            cr_expect(((char *)memory[0])[i] == 0 && ((char *)memory[2])[i] == 2);
        test_handle_close(&handle);
    }
}

/* ---- registration -------------------------------------------------------------------------- */

static int memfd_of(size_t nbytes, int seals)
{
    int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0);
    cr_assert(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

/* Maps it first, since sealing against writing wants no writable mapping. */
static struct wharf_memory memory_of(int fd, size_t nbytes, int protection)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    memory.fd = fd;
    memory.nbytes = nbytes;
    memory.address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);
    if (memory.address == MAP_FAILED)
        memory.address = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory;
}

static void drop_memory(struct wharf_memory *memory)
{
    munmap(memory->address, memory->nbytes);
    close(memory->fd);
}

enum { SEALED = F_SEAL_SHRINK | F_SEAL_GROW };

Test(memory_calls, only_sealed_memory_is_registered)
{
    static const struct {
        int seals;
        uint32_t flags;
        int expected;
        const char *word; /* of the message */
    } cases[] = {
        {SEALED, 0, 0, ""},
        {SEALED | F_SEAL_SEAL, WHARF_MEMORY_READ_ONLY, 0, ""},
        {SEALED | F_SEAL_WRITE, WHARF_MEMORY_READ_ONLY, 0, ""},
        {SEALED | F_SEAL_WRITE, 0, -EPERM, "READ_ONLY"},
        {SEALED | F_SEAL_FUTURE_WRITE, 0, -EPERM, "READ_ONLY"},
        {0, 0, -EPERM, "SHRINK"},
        {F_SEAL_GROW, 0, -EPERM, "SHRINK"},
        {F_SEAL_SHRINK, 0, -EPERM, "GROW"},
        {SEALED, 2, -EINVAL, ""},
    };

    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            int fd = memfd_of(PAGE, cases[i].seals);
            struct wharf_memory memory = memory_of(fd, PAGE, PROT_READ);
            memory.flags = cases[i].flags;
            int r = wharf_register(handle.wharf, &memory);
            cr_expect_eq(r, cases[i].expected, "%s, case %u: %d, %s", handle.name, i, r,
                         wharf_error_message());
            if (r < 0)
                cr_expect(strstr(wharf_error_message(), cases[i].word), "%s",
                          wharf_error_message());
            else
                cr_expect_eq(wharf_unregister(handle.wharf, memory.address), 0);
            drop_memory(&memory);
        }
        test_handle_close(&handle);
    }
}

/* With words of ours: what the system said did not help ("is not a memfd: Invalid argument"). */
static void expect_refused(struct wharf *wharf, const struct wharf_memory *memory, int expected,
                           const char *words)
{
    cr_expect_eq(wharf_register(wharf, memory), expected);
    cr_expect(strstr(wharf_error_message(), words), "`%s` is not in: %s", words,
              wharf_error_message());
    cr_expect_null(strstr(wharf_error_message(), "Invalid argument"), "%s", wharf_error_message());
}

Test(memory_calls, other_descriptors_and_wrong_sizes_are_refused)
{
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        struct wharf_memory memory = memory_of(memfd_of(PAGE, SEALED), PAGE, PROT_READ), wrong;
        int pipes[2];

        cr_assert_eq(pipe(pipes), 0);
        wrong = memory;
        wrong.fd = pipes[0];
        expect_refused(handle.wharf, &wrong, -EBADF, "not a memfd: make it with memfd_create");
        wrong.fd = -1;
        expect_refused(handle.wharf, &wrong, -EBADF, "no open descriptor");
        wrong = memory;
        wrong.nbytes = PAGE + 1;
        expect_refused(handle.wharf, &wrong, -EINVAL, "shorter than its");
        wrong.nbytes = 0;
        expect_refused(handle.wharf, &wrong, -EINVAL, "no address, no size");
        wrong = memory;
        wrong.address = NULL;
        expect_refused(handle.wharf, &wrong, -EINVAL, "no address, no size");
        wrong.address = (void *)(UINTPTR_MAX - 100);
        expect_refused(handle.wharf, &wrong, -EINVAL, "around the end of the address space");
        wrong = memory;
        wrong.kind = 3;
        cr_expect_eq(wharf_register(handle.wharf, &wrong), -EINVAL);
        wrong.kind = WHARF_MEMORY_GPU;
        cr_expect_eq(wharf_register(handle.wharf, &wrong), -EOPNOTSUPP);
        wrong = memory;
        wrong.struct_nbytes = 8;
        cr_expect_eq(wharf_register(handle.wharf, &wrong), -EINVAL);
        cr_expect_eq(wharf_register(handle.wharf, NULL), -EINVAL);
        cr_expect_eq(wharf_unregister(handle.wharf, memory.address), -ENOENT);
        test_handle_close(&handle);
        close(pipes[0]);
        close(pipes[1]);
        drop_memory(&memory);
    }
}

Test(memory_calls, pages_of_2_mib_are_refused)
{
    struct test_handle handle = test_handle_open(TEST_HANDLE_EMBEDDED, NULL);
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    /* Made without a page of that size: nothing is reserved before it is mapped. */
    memory.fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (memory.fd < 0)
        cr_skip_test("this kernel has no huge pages");
    cr_assert_eq(ftruncate(memory.fd, 2 << 20), 0);
    cr_assert_eq(fcntl(memory.fd, F_ADD_SEALS, SEALED), 0);
    memory.address = &memory;
    memory.nbytes = 64;
    cr_expect_eq(wharf_register(handle.wharf, &memory), -EBADF, "%s", wharf_error_message());
    close(memory.fd);
    test_handle_close(&handle);
}

Test(memory_calls, registered_memory_does_not_overlap)
{
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        struct wharf_memory memory =
            memory_of(memfd_of(4 * PAGE, SEALED), 4 * PAGE, PROT_READ | PROT_WRITE);
        struct wharf_memory other = memory;
        void *arena;

        memory.address = (char *)memory.address + PAGE;
        memory.nbytes = 2 * PAGE;
        cr_assert_eq(wharf_register(handle.wharf, &memory), 0);
        other.nbytes = PAGE + 1;
        cr_expect_eq(wharf_register(handle.wharf, &other), -EEXIST);
        other.nbytes = PAGE;
        cr_expect_eq(wharf_register(handle.wharf, &other), 0, "it ends where the other begins");
        other.address = (char *)memory.address + 2 * PAGE - 1;
        cr_expect_eq(wharf_register(handle.wharf, &other), -EEXIST);
        cr_assert_eq(wharf_alloc(handle.wharf, 100, &arena), 0);
        other.address = arena;
        cr_expect_eq(wharf_register(handle.wharf, &other), -EEXIST);
        cr_expect_eq(wharf_unregister(handle.wharf, arena), -ENOENT);
        test_handle_close(&handle);
        munmap((char *)memory.address - PAGE, 4 * PAGE);
        close(memory.fd);
    }
}

/* A job from read-only memory into other registered memory. */
static struct wharf_job registered_job(const struct wharf_memory *source,
                                       const struct wharf_memory *destination)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = (char *)source->address + 100;
    job.in_nbytes = IN_NBYTES;
    job.out = (char *)destination->address + PAGE - OUT_NBYTES;
    job.out_avail = OUT_NBYTES;
    return job;
}

static struct wharf_memory source_memory(void)
{
    int fd = memfd_of(PAGE, 0);
    struct wharf_memory memory;

    cr_assert_eq(pwrite(fd, zlib_wharf, IN_NBYTES, 100), IN_NBYTES);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALED | F_SEAL_WRITE), 0);
    memory = memory_of(fd, PAGE, PROT_READ);
    memory.flags = WHARF_MEMORY_READ_ONLY;
    return memory;
}

static void expect_good(struct wharf *wharf, const struct wharf_job *job)
{
    struct wharf_completion completion;
    struct wharf_outcome outcome;

    memset(job->out, 0, OUT_NBYTES);
    cr_assert_eq(wharf_submit(wharf, job, 1), 1, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, LONG_NS), 1, "%s", wharf_error_message());
    cr_expect_eq(completion.result, WHARF_OK);
    cr_expect_arr_eq(job->out, "wharf", OUT_NBYTES);
    memset(job->out, 0, OUT_NBYTES);
    cr_assert_eq(wharf_decompress(wharf, job, &outcome), 0);
    cr_expect_eq(outcome.result, WHARF_OK);
    cr_expect_arr_eq(job->out, "wharf", OUT_NBYTES);
}

Test(memory_calls, jobs_run_in_registered_memory_and_with_the_next_daemon_too)
{
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        struct wharf_memory source = source_memory();
        struct wharf_memory destination =
            memory_of(memfd_of(PAGE, SEALED), PAGE, PROT_READ | PROT_WRITE);
        struct wharf_job job = registered_job(&source, &destination), wrong = job;

        cr_assert_eq(wharf_register(handle.wharf, &source), 0, "%s", wharf_error_message());
        cr_assert_eq(wharf_register(handle.wharf, &destination), 0);
        close(destination.fd);
        expect_good(handle.wharf, &job);
        for (int life = 0; handle.daemon && life < 3; life++) {
            test_daemon_kill(handle.daemon);
            expect_good(handle.wharf, &job);
        }
        wrong.out = source.address;
        cr_expect_eq(wharf_submit(handle.wharf, &wrong, 1), -EFAULT, "it is read-only");
        wrong.out = (char *)job.out + 1;
        cr_expect_eq(wharf_submit(handle.wharf, &wrong, 1), -EFAULT, "past the end");
        cr_expect_eq(wharf_unregister(handle.wharf, (char *)source.address + 1), -ENOENT);
        cr_expect_eq(wharf_unregister(handle.wharf, source.address), 0);
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        cr_expect_eq(wharf_unregister(handle.wharf, destination.address), 0);
        if (handle.daemon)
            cr_expect_eq(wharf_ping(handle.wharf), 0);
        test_handle_close(&handle);
        drop_memory(&source);
        munmap(destination.address, PAGE);
    }
}

Test(memory_calls, memory_that_a_job_uses_stays_registered)
{
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        struct wharf_memory source = source_memory();
        struct wharf_memory destination =
            memory_of(memfd_of(PAGE, SEALED), PAGE, PROT_READ | PROT_WRITE);
        struct wharf_job job = registered_job(&source, &destination);
        struct wharf_batch_chunk chunk = {job.in, job.out, IN_NBYTES, OUT_NBYTES, 0, 0};
        struct wharf_batch batch = WHARF_BATCH_INIT;
        struct wharf_completion completions[2];

        batch.codec = WHARF_CODEC_ZLIB;
        batch.chunks = &chunk;
        batch.n_chunks = 1;
        cr_assert_eq(wharf_register(handle.wharf, &source), 0);
        cr_assert_eq(wharf_register(handle.wharf, &destination), 0);
        if (handle.daemon)
            handle.daemon->job_us = 20000;
        cr_assert_eq(wharf_submit(handle.wharf, &job, 1), 1);
        cr_expect_eq(wharf_unregister(handle.wharf, source.address), -EBUSY);
        cr_assert_eq(wharf_wait(handle.wharf, completions, 1, 1, LONG_NS), 1);
        cr_assert_eq(wharf_submit_batch(handle.wharf, &batch), 0);
        cr_expect_eq(wharf_unregister(handle.wharf, destination.address), -EBUSY);
        cr_assert_eq(wharf_wait(handle.wharf, completions, 1, 1, LONG_NS), 1);
        cr_expect_eq(wharf_unregister(handle.wharf, source.address), 0);
        cr_expect_eq(wharf_unregister(handle.wharf, destination.address), 0);
        test_handle_close(&handle);
        drop_memory(&source);
        drop_memory(&destination);
    }
}

/* A daemon from before sources could be there: nothing that it would refuse is sent. */
static void expect_no_sources(struct wharf *wharf, struct wharf_memory *memory)
{
    struct wharf_job job = WHARF_JOB_INIT;
    void *out;

    cr_assert_eq(wharf_alloc(wharf, 10, &out), 0);
    job.in = memory->address;
    job.in_nbytes = job.out_avail = 10;
    job.out = out;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    cr_expect_eq(wharf_unregister(wharf, memory->address), 0);
    memory->flags = WHARF_MEMORY_READ_ONLY;
    cr_expect_eq(wharf_register(wharf, memory), -EOPNOTSUPP, "%s", wharf_error_message());
    wharf_free(wharf, out);
}

/* The test daemon's GPU memory is a memfd; what counts is that the library asks for it. */
Test(memory_calls, gpu_memory_is_registered_where_there_is_a_gpu)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_memory memory = memory_of(memfd_of(PAGE, SEALED), PAGE, PROT_READ);
    struct wharf *wharf;

    daemon->has_gpu = 1;
    test_daemon_start(daemon);
    options.socket_path = daemon->path;
    options.flags = WHARF_OPEN_DAEMON;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    memory.kind = WHARF_MEMORY_GPU;
    cr_expect_eq(wharf_register(wharf, &memory), 0, "%s", wharf_error_message());
    cr_expect_eq(daemon->n_regions, 1);
    expect_no_sources(wharf, &memory);
    cr_expect_eq(daemon->n_regions, 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
    drop_memory(&memory);
}

/* ---- copies -------------------------------------------------------------------------------- */

static struct wharf_job own_job(uint8_t *out, size_t out_avail)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = zlib_wharf;
    job.in_nbytes = IN_NBYTES;
    job.out = out;
    job.out_avail = out_avail;
    return job;
}

Test(memory_calls, one_call_takes_any_memory_and_leaves_none_taken)
{
    struct test_handle handle = test_handle_open(TEST_HANDLE_DAEMON, NULL);
    uint8_t out[OUT_NBYTES + 3];
    struct wharf_job job = own_job(out, sizeof(out));
    struct wharf_outcome outcome;
    void *arena;

    memset(out, 0xa5, sizeof(out));
    cr_assert_eq(wharf_decompress(handle.wharf, &job, &outcome), 0);
    cr_expect_eq(outcome.result, WHARF_OK);
    cr_expect_eq(outcome.out_nbytes, OUT_NBYTES);
    cr_expect_arr_eq(out, "wharf\xa5\xa5\xa5", sizeof(out), "more than the output was copied");
    cr_expect_eq(handle.daemon->n_run, 1);
    cr_expect_eq(taken_nbytes(handle.wharf), 0);

    cr_assert_eq(wharf_alloc(handle.wharf, OUT_NBYTES, &arena), 0);
    job.out = arena;
    job.out_avail = OUT_NBYTES;
    cr_assert_eq(wharf_decompress(handle.wharf, &job, &outcome), 0);
    cr_expect_arr_eq(arena, "wharf", OUT_NBYTES);
    cr_expect_eq(handle.daemon->n_run, 2);
    job.in_nbytes = 0;
    job.in = NULL;
    cr_assert_eq(wharf_decompress(handle.wharf, &job, &outcome), 0);
    cr_expect_eq(outcome.reason, WHARF_REASON_INPUT_TRUNCATED);
    test_handle_close(&handle);
}

Test(memory_calls, one_call_that_does_not_fit_says_so_or_runs_here)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    static uint8_t out[3 * PAGE];
    struct wharf_job job = own_job(out, sizeof(out));
    struct wharf_outcome outcome;

    daemon->max_job_nbytes = sizeof(out) + IN_NBYTES;
    test_daemon_start(daemon);
    options.socket_path = daemon->path;
    options.arena_nbytes = PAGE;
    for (int i = 0; i < 2; i++) {
        struct wharf *wharf;
        options.flags = i ? 0 : WHARF_OPEN_DAEMON;
        options.engine = WHARF_ENGINE_CPU; /* with AUTO the library chooses */
        cr_assert_eq(wharf_open(&options, &wharf), 0);
        job.out_avail = sizeof(out);
        cr_expect_eq(wharf_decompress(wharf, &job, &outcome), i ? 0 : -ENOBUFS);
        job.in_nbytes++;
        cr_expect_eq(wharf_decompress(wharf, &job, &outcome), i ? 0 : -EMSGSIZE);
        job.in_nbytes--;
        if (i)
            cr_expect_eq(outcome.result, WHARF_OK);
        cr_expect_eq(daemon->n_run, i, "by the daemon");
        job.out_avail = 100;
        cr_expect_eq(wharf_decompress(wharf, &job, &outcome), 0);
        cr_expect_eq(daemon->n_run, i + 1);
        wharf_close(wharf);
    }
    test_daemon_free(daemon);
}

/* Some calls go either way, all do what they should, and each is counted once. */
Test(memory_calls, one_call_is_done_where_it_is_done_sooner)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf_outcome outcome;
    struct wharf *wharf;
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = own_job(out, sizeof(out));
    enum { N_CALLS = 200 };

    test_daemon_start(daemon);
    options.socket_path = daemon->path;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    for (unsigned i = 0; i < N_CALLS; i++) {
        memset(out, 0, sizeof(out));
        cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0);
        cr_assert_eq(outcome.result, WHARF_OK);
        cr_assert_arr_eq(out, "wharf", OUT_NBYTES);
    }
    uint64_t n_there = daemon->n_run;
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_expect(n_there > 0 && info.n_here > 0);
    cr_expect_eq(n_there + info.n_here, N_CALLS);

    /* These are the daemon's. */
    job.timeout_us = 1000000000;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), 0);
    job.timeout_us = 0;
    job.job_class = WHARF_CLASS_BACKGROUND;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), 0);
    cr_expect_eq(daemon->n_run, n_there + 2);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(memory_calls, one_call_does_not_wait_for_completions_that_nobody_takes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_handle handle;
    struct wharf_completion completions[2];
    struct wharf_outcome outcome;
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = own_job(out, sizeof(out));

    options.max_jobs = 2;
    handle = test_handle_open(TEST_HANDLE_DAEMON, &options);
    cr_assert_eq(wharf_submit_noop(handle.wharf, 1), 0);
    cr_assert_eq(wharf_submit_noop(handle.wharf, 2), 0);
    cr_expect_eq(wharf_decompress(handle.wharf, &job, &outcome), 0);
    cr_expect_eq(outcome.result, WHARF_OK);
    cr_expect_eq(wharf_wait(handle.wharf, completions, 2, 2, LONG_NS), 2);
    cr_expect_eq(taken_nbytes(handle.wharf), 0);
    test_handle_close(&handle);
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* Bits of what went wrong in the child. */
static int child_status(struct wharf *wharf, void *arena, int is_daemon)
{
    struct wharf_completion completion;
    struct wharf_outcome outcome = {.result = WHARF_INTERNAL};
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = own_job(out, sizeof(out));
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    unsigned char present;
    int bad = 0;

    bad |= wharf_poll(wharf, &completion, 1) != -ESTALE;
    bad |= wharf_submit(wharf, &job, 1) != -ESTALE;
    bad |= wharf_alloc(wharf, 1, &arena) != -ESTALE;
    bad |= wharf_fd(wharf) != -ESTALE || wharf_ping(wharf) != -ESTALE;
    bad |= wharf_get_info(wharf, &info) != -ESTALE || wharf_cancel(wharf, 1) != -ESTALE;
    bad |= strstr(wharf_error_message(), "fork") == NULL;
    if (is_daemon) {
        bad |= 2 * (wharf_decompress(wharf, &job, &outcome) != -ESTALE);
        /* Nothing is mapped where the arena was. */
        bad |= 4 * (mincore((void *)((uintptr_t)arena & ~(uintptr_t)4095), 1, &present) == 0);
    } else {
        bad |= 2 * (wharf_decompress(wharf, &job, &outcome) != 0 || outcome.result != WHARF_OK);
    }
    wharf_close(wharf);
    return bad;
}

Test(memory_calls, forked_child_is_refused_and_the_parent_goes_on)
{
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, NULL);
        struct wharf_completion completions[2];
        void *arena;
        int status;

        cr_assert_geq(wharf_fd(handle.wharf), 0);
        cr_assert_eq(wharf_alloc(handle.wharf, 64, &arena), 0);
        cr_assert_eq(wharf_submit_noop(handle.wharf, 1), 0);
        pid_t child = fork();
        if (child == 0)
            _exit(child_status(handle.wharf, arena, handle.daemon != NULL));
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect_eq(status, 0, "%s: %x", handle.name, status);
        memset(arena, 1, 64);
        cr_assert_eq(wharf_submit_noop(handle.wharf, 2), 0);
        cr_expect_eq(wharf_wait(handle.wharf, completions, 2, 2, LONG_NS), 2);
        test_handle_close(&handle);
    }
}
