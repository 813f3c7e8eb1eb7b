/* SPDX-License-Identifier: Apache-2.0 */
/* test_session.c: memory and rings of one session of the test daemon. */
#include "tests/lib/test_session.h"
#include "daemon/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/control.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_run.h"

static _Noreturn void die(const char *what)
{
    perror(what);
    _exit(1);
}

/* ---- memory -------------------------------------------------------------------------------- */

static int make_memfd(uint64_t nbytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)nbytes) < 0 || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0))
        die("memfd");
    return fd;
}

static void *map(int fd, uint64_t nbytes, int protection)
{
    void *address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);

    if (address == MAP_FAILED)
        die("mmap");
    return address;
}

/* Makes one of the three segments, with its misdeed. */
static int make_piece(const struct test_daemon *daemon, uint64_t nbytes,
                      enum test_misdeed is_unsealed, enum test_misdeed is_short)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;

    if (test_daemon_does(daemon, is_unsealed))
        seals = F_SEAL_GROW;
    if (test_daemon_does(daemon, is_short))
        nbytes -= 4096;
    if (is_short == TEST_MISDEED_QUEUE_SHORT_C &&
        test_daemon_does(daemon, TEST_MISDEED_QUEUE_READ_ONLY_C))
        seals |= F_SEAL_WRITE;
    return make_memfd(nbytes, seals);
}

/* Makes other descriptors in place of the three segments. */
static void make_others(int *fds, int are_files)
{
    int pipes[2];

    for (int i = 0; i < 3; i++) {
        close(fds[i]);
        if (are_files)
            fds[i] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        else if (pipe2(pipes, O_CLOEXEC) == 0) {
            fds[i] = pipes[0];
            close(pipes[1]);
        }
    }
}

void test_session_open(struct test_session *session, uint32_t n_entries, uint64_t arena_nbytes,
                       int arena_fd, int *ret_fds)
{
    const struct test_daemon *daemon = session->daemon;
    size_t nbytes = wharf_ring_c_nbytes(n_entries, session->has_words);
    size_t d_nbytes = wharf_ring_d_nbytes(n_entries, session->has_marks);
    /* Bad descriptors must not keep the daemon itself from having rings. */
    int c = make_memfd(nbytes, 0), d = make_memfd(d_nbytes, 0);

    session->n_entries = n_entries;
    session->arena_fd = -1;
    ret_fds[0] =
        make_piece(daemon, nbytes, TEST_MISDEED_QUEUE_UNSEALED_C, TEST_MISDEED_QUEUE_SHORT_C);
    ret_fds[1] =
        make_piece(daemon, d_nbytes, TEST_MISDEED_QUEUE_UNSEALED_D, TEST_MISDEED_QUEUE_SHORT_D);
    session->c = map(test_daemon_does(daemon, TEST_MISDEED_QUEUE_SHORT_C) ? c : ret_fds[0], nbytes,
                     PROT_READ);
    session->d = map(test_daemon_does(daemon, TEST_MISDEED_QUEUE_SHORT_D) ? d : ret_fds[1],
                     d_nbytes, PROT_READ | PROT_WRITE);
    close(c);
    close(d);
    if (!test_daemon_does(daemon, TEST_MISDEED_QUEUE_UNSEALED_D))
        fcntl(ret_fds[1], F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
    if (arena_fd < 0)
        ret_fds[2] = session->arena_fd =
            make_piece(daemon, arena_nbytes, TEST_MISDEED_QUEUE_UNSEALED_ARENA,
                       TEST_MISDEED_QUEUE_SHORT_ARENA);
    test_session_map(session, 0, arena_fd < 0 ? ret_fds[2] : arena_fd, arena_nbytes, 0);
    if (test_daemon_does(daemon, TEST_MISDEED_QUEUE_PIPES) ||
        test_daemon_does(daemon, TEST_MISDEED_QUEUE_FILES))
        make_others(ret_fds, test_daemon_does(daemon, TEST_MISDEED_QUEUE_FILES));
    wharf_ring_daemon_init(&session->ring, session->c, session->d, n_entries);
    session->taken = calloc(n_entries, sizeof(*session->taken));
    session->taken_ns = calloc(n_entries, sizeof(*session->taken_ns));
    session->taken_index = calloc(n_entries, sizeof(*session->taken_index));
    session->taken_words = calloc(n_entries, sizeof(*session->taken_words));
    if (session->has_words)
        wharf_ring_daemon_use_words(&session->ring);
    if (session->has_marks)
        wharf_ring_daemon_use_marks(&session->ring);
    if (!session->taken || !session->taken_ns || !session->taken_index || !session->taken_words)
        die("calloc");
}

int test_session_map(struct test_session *session, uint32_t region, int fd, uint64_t nbytes,
                     int is_read_only)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat file;

    if (region >= TEST_N_REGIONS || nbytes == 0)
        return -EINVAL;
    if (session->regions[region].data)
        return -EEXIST;
    if (seals < 0 || fstat(fd, &file) < 0)
        return -EBADF;
    if (region && (!(seals & F_SEAL_SHRINK) || !(seals & F_SEAL_GROW)))
        return -EPERM;
    if (!is_read_only && (seals & F_SEAL_WRITE))
        return -EPERM;
    void *data =
        mmap(NULL, nbytes, is_read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    session->regions[region] = (struct test_region){data, nbytes, is_read_only};
    return 0;
}

void test_session_close(struct test_session *session)
{
    size_t nbytes =
        session->n_entries ? wharf_ring_c_nbytes(session->n_entries, session->has_words) : 0;

    if (session->arena_fd >= 0) {
        fallocate(session->arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (off_t)session->regions[0].nbytes);
        close(session->arena_fd);
    }
    for (unsigned i = 0; i < TEST_N_REGIONS; i++)
        if (session->regions[i].data)
            munmap(session->regions[i].data, session->regions[i].nbytes);
    if (nbytes) {
        munmap(session->c, nbytes);
        munmap(session->d, wharf_ring_d_nbytes(session->n_entries, session->has_marks));
    }
    free(session->taken);
    free(session->taken_ns);
    free(session->taken_index);
    free(session->taken_words);
    memset(session, 0, sizeof(*session));
    session->arena_fd = -1;
}

/* ---- rings --------------------------------------------------------------------------------- */

static void publish(struct test_session *session)
{
    struct wharf_ring_d *d = session->d;
    uint64_t kinds = wharf_ring_publish_completions(&session->ring);

    test_daemon_step(session->daemon);
    if (session->n_completed && test_daemon_does(session->daemon, TEST_MISDEED_TAIL_JUMPS))
        wharf_ring_store_cq_tail(&d->cq_tail,
                                 session->ring.sq_head + session->n_entries +
                                     (uint32_t)test_daemon_chance(session->daemon, 1u << 30));
    if (session->n_completed && test_daemon_does(session->daemon, TEST_MISDEED_TAIL_GOES_BACK))
        wharf_ring_store_cq_tail(&d->cq_tail, session->ring.cq_head - 1);
    if (kinds & WHARF_WAIT_FUTEX)
        syscall(SYS_futex, &d->cq_tail, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    if (kinds & WHARF_WAIT_PACKET)
        wharf_control_wake(session->socket);
}

/* Writes words that no daemon may write, at the first completion. */
static void misbehave_in_ring(struct test_session *session, struct wharf_completion *completion)
{
    struct wharf_completion again = *completion;

    if (test_daemon_does(session->daemon, TEST_MISDEED_UNKNOWN_JOB))
        completion->user_data ^= (uint64_t)1 << (32 + test_daemon_chance(session->daemon, 32));
    if (test_daemon_does(session->daemon, TEST_MISDEED_CANCEL_WITHOUT_CANCEL))
        completion->user_data = UINT64_MAX;
    if (test_daemon_does(session->daemon, TEST_MISDEED_OUTPUT_TOO_LONG))
        completion->out_nbytes = UINT64_MAX - test_daemon_chance(session->daemon, 64);
    if (test_daemon_does(session->daemon, TEST_MISDEED_INPUT_TOO_LONG))
        completion->in_nbytes += (uint64_t)1 << (20 + test_daemon_chance(session->daemon, 43));
    if (test_daemon_does(session->daemon, TEST_MISDEED_CHUNK_INDEX)) {
        completion->result = WHARF_BAD_DATA;
        completion->first_bad_chunk = UINT32_MAX;
    }
    wharf_ring_complete(&session->ring, completion);
    if (test_daemon_does(session->daemon, TEST_MISDEED_SAME_JOB_TWICE))
        wharf_ring_complete(&session->ring, &again);
}

static void complete(struct test_session *session, struct wharf_completion *completion)
{
    test_daemon_step(session->daemon);
    if (__atomic_load_n(&session->daemon->misdeed, __ATOMIC_RELAXED))
        misbehave_in_ring(session, completion);
    else
        wharf_ring_complete(&session->ring, completion);
    session->n_completed++;
    test_daemon_step(session->daemon);
}

/* The words of the submission that was taken last; NULL without any. */
static void take_words(const struct test_session *session, struct wharf_submission *submission,
                       struct wharf_submission_words *ret_words)
{
    if (session->has_words && submission->flags & WHARF_SUBMISSION_DONE_WORD)
        wharf_ring_take_words(&session->ring, ret_words);
    else
        *ret_words = (struct wharf_submission_words){.done_offset = UINT64_MAX};
    submission->flags &= (uint16_t)~WHARF_SUBMISSION_DONE_WORD;
}

/* Completes a job: writes its done word first, if it has one. */
static void complete_job(struct test_session *session, const struct wharf_submission_words *words,
                         struct wharf_completion *completion)
{
    const struct test_region *region = &session->regions[words->done_region % TEST_N_REGIONS];

    test_daemon_step(session->daemon);
    if (region->data && !region->is_read_only &&
        wharf_range_good(words->done_offset, sizeof(struct wharf_done), region->nbytes))
        wharf_ring_write_done((struct wharf_done *)(region->data + words->done_offset),
                              words->done_serial, completion);
    complete(session, completion);
}

static struct wharf_submission remove_taken(struct test_session *session, uint32_t at,
                                            struct wharf_submission_words *ret_words)
{
    struct wharf_submission submission = session->taken[at];

    *ret_words = session->taken_words[at];

    session->n_taken--;
    session->taken[at] = session->taken[session->n_taken];
    session->taken_ns[at] = session->taken_ns[session->n_taken];
    session->taken_index[at] = session->taken_index[session->n_taken];
    session->taken_words[at] = session->taken_words[session->n_taken];
    return submission;
}

static void cancel(struct test_session *session, const struct wharf_submission *submission)
{
    struct wharf_completion done = {.user_data = submission->user_data};
    struct wharf_completion gone = {.user_data = submission->src_offset, .result = WHARF_CANCELLED};
    int is_first = (int)test_daemon_chance(session->daemon, 2);
    struct wharf_submission_words words;
    uint32_t at = 0;

    while (at < session->n_taken && session->taken[at].user_data != submission->src_offset)
        at++;
    if (at == session->n_taken) {
        done.result = WHARF_BAD_REQUEST;
        done.reason = WHARF_REASON_REQUEST_NO_JOB;
        complete(session, &done);
        return;
    }
    remove_taken(session, at, &words);
    session->daemon->n_cancelled++;
    if (is_first)
        complete(session, &done);
    complete_job(session, &words, &gone);
    if (!is_first)
        complete(session, &done);
}

/* Dies if more lives must end here. */
static void die_if_told(uint32_t *n_deaths)
{
    if (__atomic_load_n(n_deaths, __ATOMIC_RELAXED) == 0)
        return;
    __atomic_sub_fetch(n_deaths, 1, __ATOMIC_RELAXED);
    raise(SIGKILL);
}

/* Dies if the submission is one that kills the daemon when it is read. */
static void look_at(const struct test_session *session, const struct wharf_submission *submission)
{
    uint32_t deadly = __atomic_load_n(&session->daemon->dies_at_look, __ATOMIC_RELAXED);
    const uint8_t *source = session->regions[0].data;

    if (deadly && submission->opcode == WHARF_OP_DECODE &&
        wharf_range_good(submission->src_offset, 1, session->regions[0].nbytes) &&
        source[submission->src_offset] == deadly)
        raise(SIGKILL);
}

/* Returns the number of submissions taken, or -EPROTO. */
static int take_some(struct test_session *session)
{
    struct wharf_submission submission;
    int n = 0, r = 0;

    while (!session->is_draining && (uint32_t)n < session->daemon->takes_at_once &&
           (r = wharf_ring_take(&session->ring, &submission)) == 1) {
        test_daemon_step(session->daemon);
        look_at(session, &submission);
        n++;
        if (submission.opcode == WHARF_OP_CANCEL) {
            cancel(session, &submission);
            continue;
        }
        session->taken_ns[session->n_taken] = wharf_now_ns();
        session->taken_index[session->n_taken] = session->ring.sq_head - 1;
        take_words(session, &submission, &session->taken_words[session->n_taken]);
        session->taken[session->n_taken++] = submission;
    }
    if (n)
        wharf_ring_publish_taken(&session->ring);
    return r < 0 ? r : n;
}

static uint64_t job_ns(const struct test_session *session)
{
    return __atomic_load_n(&session->daemon->job_us, __ATOMIC_RELAXED) * UINT64_C(1000);
}

static void run_one(struct test_session *session)
{
    uint32_t at = (uint32_t)test_daemon_chance(session->daemon, session->n_taken);
    uint64_t taken_ns = session->taken_ns[at];
    uint32_t index = session->taken_index[at];
    struct wharf_submission_words words;
    struct wharf_submission submission = remove_taken(session, at, &words);
    struct wharf_completion completion = {.user_data = submission.user_data};
    uint64_t start_ns = wharf_now_ns();

    /* One at a time, since there is only one mark. */
    wharf_ring_mark_begun(&session->ring, 0, index);
    test_daemon_step(session->daemon);
    completion.queue_ns = start_ns - taken_ns;
    if (submission.timeout_us && start_ns - taken_ns > submission.timeout_us * UINT64_C(1000))
        completion.result = WHARF_DEADLINE;
    else
        test_run(session, &submission, &completion);
    while (wharf_now_ns() < start_ns + job_ns(session)) {
    }
    completion.run_ns = wharf_now_ns() - start_ns;
    complete_job(session, &words, &completion);
}

static void scribble(struct test_session *session)
{
    wharf_ring_word *words = session->d;
    size_t n = wharf_ring_segment_nbytes(session->n_entries) / 8;
    struct test_random random = {test_daemon_chance(session->daemon, UINT64_MAX)};

    for (int i = 0; i < 64; i++) {
        size_t at = test_random_one_in(&random, 2) ? 256 / 8 : test_random_below(&random, n);
        uint64_t value = test_random_next(&random);
        if (test_random_one_in(&random, 2))
            value = test_random_below(&random, session->n_entries);
        __atomic_store_n(&words[at], value, __ATOMIC_RELAXED);
        at = test_random_below(&random, session->regions[0].nbytes / 8);
        ((uint64_t *)session->regions[0].data)[at] = value;
    }
}

void test_session_drain(struct test_session *session)
{
    struct wharf_ring_d *d = session->d;

    session->is_draining = 1;
    if (session->n_entries)
        wharf_ring_store_flags(&d->flags, WHARF_RING_DRAINING);
}

static int may_run(const struct test_session *session)
{
    const struct test_daemon *daemon = session->daemon;

    return daemon->n_cancelled >= __atomic_load_n(&daemon->cancels_first, __ATOMIC_RELAXED);
}

int test_session_work(struct test_session *session)
{
    int n;

    if (!session->n_entries)
        return 0;
    if (wharf_ring_look_submissions(&session->ring) == 0 &&
        session->ring.sq_head != session->ring.sq_tail)
        die_if_told(&session->daemon->blind_deaths);
    n = take_some(session);
    if (n < 0)
        return n;
    if (test_daemon_does(session->daemon, TEST_MISDEED_SCRIBBLE))
        scribble(session);
    if (session->n_taken)
        die_if_told(&session->daemon->idle_deaths);
    while (session->n_taken && may_run(session)) {
        n = 1;
        run_one(session);
        if (test_daemon_chance(session->daemon, 3) == 0)
            break;
    }
    publish(session);
    return n > 0;
}
