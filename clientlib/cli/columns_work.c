/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_work.c: reads the footers of all stripes, each once, then decodes in rounds of some
 * columns and some stripes.
 *
 * An item is one column of one stripe.  Where its rows come to stand in the output is known
 * beforehand, so each item writes its own.  Threads for which no item is left decode blocks of the
 * others' streams (orc_team.h): a file of one column and one stripe has all threads too.  Items of
 * a column are begun in the order of the stripes, and after a failure none behind it are: the
 * failure that is told is the first one in the file, however many threads there are.
 */
#include "clientlib/cli/columns_work.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "clientlib/cli/columns_error.h"
#include "clientlib/cli/crew.h"
#include "clientlib/cli/npy.h"
#include "encoders/orc/orc_team.h"

enum {
    /* Each has two outputs. */
    ROUND_COLUMNS = WHARF_CLI_MAX_OUTPUTS / 2,
    ROUND_STRIPES = 64,
    /* Of the streams' places in all stripes; 100 columns of 50,000 stripes. */
    MOST_PLACES_NBYTES = 256 << 20,
};

/* A column of the round. */
struct part {
    const struct wharf_cli_column *of;
    struct wharf_cli_output values;
    struct wharf_cli_output nulls;
    uint64_t n_nulls;

    bool has_failed;
    uint32_t failed_stripe; /* the first one */
    struct wharf_orc_error error;
    int write_error; /* -errno: it was an output that failed, */
    bool in_nulls;   /* this one */
};

struct hand {
    struct wharf_orc_reader reader;
    uint64_t values[WHARF_ORC_MOST_ROWS];
    uint8_t nulls[WHARF_ORC_MOST_ROWS];
};

struct work {
    const struct wharf_cli_columns *columns;
    struct wharf_orc_file file; /* that one, with the team */
    struct wharf_cli_crew *crew;
    struct hand *hands;
    unsigned n_hands;
    uint64_t head_nbytes; /* of an output */

    struct wharf_orc_wanted wanted;
    struct wharf_orc_place *places; /* by stripe, then place */
    struct part footers;            /* has_failed: a stripe's footer, the first bad one */
    bool is_footer_told;

    struct part *parts;
    size_t n_parts;
    uint32_t first_stripe;
    uint32_t n_stripes;

    pthread_mutex_t lock; /* for the counts and failures of the parts */
};

int wharf_cli_columns_read(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct wharf_cli_input *input = context;

    for (size_t done = 0; done < nbytes;) {
        ssize_t n = pread(input->fd, (uint8_t *)buf + done, nbytes - done,
                          (off_t)(input->base + offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        done += (size_t)n;
    }
    return 0;
}

/* ---- failures ------------------------------------------------------------------------------ */

/* A failure in a stripe; the first stripe's counts. */
static void note_failure(struct work *work, struct part *part, uint32_t stripe,
                         const struct part *failure)
{
    pthread_mutex_lock(&work->lock);
    if (!part->has_failed || stripe < part->failed_stripe) {
        part->error = failure->error;
        part->write_error = failure->write_error;
        part->in_nulls = failure->in_nulls;
        part->failed_stripe = stripe;
        part->has_failed = true;
    }
    pthread_mutex_unlock(&work->lock);
}

static bool is_over(struct work *work, const struct part *part, uint32_t stripe)
{
    pthread_mutex_lock(&work->lock);
    bool over = part->has_failed && part->failed_stripe <= stripe;
    pthread_mutex_unlock(&work->lock);
    return over;
}

/* ---- footers ------------------------------------------------------------------------------- */

static int read_stripe(void *context, size_t item, unsigned hand)
{
    struct work *work = context;
    uint32_t stripe = (uint32_t)item;
    struct part failure = {0};

    (void)hand;
    if (!is_over(work, &work->footers, stripe) &&
        wharf_orc_stripe_read(&work->file, stripe, &work->wanted,
                              work->places + item * work->wanted.n_places, &failure.error) < 0)
        note_failure(work, &work->footers, stripe, &failure);
    return 0;
}

static int refuse_many(const struct work *work)
{
    const struct wharf_cli_columns *columns = work->columns;

    wharf_cli_say("%s: %zu columns of %" PRIu32 " stripes are too many at once: name fewer of them",
                  columns->task->input->name, columns->n_columns, columns->file->n_stripes);
    return wharf_cli_tally_failure(columns->task->tally, columns->task->input->name, -E2BIG,
                                   WHARF_CLI_FAILED);
}

static int read_footers(struct work *work)
{
    const struct wharf_cli_columns *columns = work->columns;
    uint32_t n_stripes = columns->file->n_stripes;
    uint64_t ns;

    if (wharf_orc_wanted_init(&work->wanted, columns->file) < 0)
        return wharf_cli_task_error(columns->task, "cannot decode", -ENOMEM);
    for (size_t i = 0; i < columns->n_columns; i++)
        wharf_orc_wanted_add(&work->wanted, &columns->columns[i].column);
    if (n_stripes > MOST_PLACES_NBYTES / sizeof(*work->places) / work->wanted.n_places)
        return refuse_many(work);
    work->places = calloc((size_t)n_stripes * work->wanted.n_places + 1, sizeof(*work->places));
    if (!work->places)
        return wharf_cli_task_error(columns->task, "cannot decode", -ENOMEM);
    wharf_cli_crew_run(work->crew, read_stripe, work, n_stripes, &ns);
    return WHARF_CLI_GOOD;
}

/* ---- a round ------------------------------------------------------------------------------- */

/* Writes n rows from `row` on.  Whether that went well. */
static bool write_rows(const struct work *work, struct part *part, const struct hand *hand,
                       uint64_t row, size_t n, struct part *failure)
{
    size_t unit_nbytes = part->of->column.unit_nbytes;

    failure->write_error = wharf_cli_output_write_at(
        &part->values, work->head_nbytes + row * unit_nbytes, hand->values, n * unit_nbytes);
    if (failure->write_error < 0)
        return false;
    failure->in_nulls = true;
    failure->write_error =
        wharf_cli_output_write_at(&part->nulls, work->head_nbytes + row, hand->nulls, n);
    return failure->write_error == 0;
}

static bool decode_rows(struct work *work, struct part *part, struct hand *hand, uint32_t stripe,
                        struct part *failure)
{
    uint64_t row = work->file.stripes[stripe].first_row;
    uint64_t n_nulls = 0;
    size_t n, n_more;

    do {
        if (wharf_orc_reader_next(&hand->reader, hand->values, hand->nulls, &n, &n_more,
                                  &failure->error) < 0 ||
            (n && !write_rows(work, part, hand, row, n, failure)))
            return false;
        row += n;
        n_nulls += n_more;
    } while (n > 0);
    pthread_mutex_lock(&work->lock);
    part->n_nulls += n_nulls;
    pthread_mutex_unlock(&work->lock);
    return true;
}

static void decode_item(struct work *work, size_t item, struct hand *hand)
{
    struct part *part = &work->parts[item % work->n_parts];
    uint32_t stripe = work->first_stripe + (uint32_t)(item / work->n_parts);
    struct wharf_orc_streams streams;
    struct part failure = {0};

    if (is_over(work, part, stripe))
        return;
    wharf_orc_streams_of(&work->wanted, work->places + (size_t)stripe * work->wanted.n_places,
                         &part->of->column, &streams);
    if (wharf_orc_reader_open(&hand->reader, &work->file, stripe, &part->of->column, &streams,
                              &failure.error) < 0) {
        note_failure(work, part, stripe, &failure);
        return;
    }
    if (!decode_rows(work, part, hand, stripe, &failure))
        note_failure(work, part, stripe, &failure);
    wharf_orc_reader_close(&hand->reader);
}

/* Behind the items of the round each thread gets one, at which it helps the others. */
static int do_item(void *context, size_t item, unsigned number)
{
    struct work *work = context;

    if (item >= work->n_stripes * work->n_parts) {
        wharf_orc_team_help(work->file.bytes.team);
        return 0;
    }
    decode_item(work, item, &work->hands[number]);
    wharf_orc_team_finish(work->file.bytes.team);
    return 0;
}

static bool have_all_failed(const struct work *work)
{
    for (size_t i = 0; i < work->n_parts; i++)
        if (!work->parts[i].has_failed)
            return false;
    return true;
}

/* Those before the first bad footer, at which all columns fail that have not before it. */
static void do_stripes(struct work *work)
{
    const struct wharf_orc_file *file = work->columns->file;
    uint32_t end = work->footers.has_failed ? work->footers.failed_stripe : file->n_stripes;
    uint64_t ns;

    for (work->first_stripe = 0; work->first_stripe < end && !have_all_failed(work);
         work->first_stripe += work->n_stripes) {
        uint32_t left = end - work->first_stripe;
        work->n_stripes = left < ROUND_STRIPES ? left : ROUND_STRIPES;
        size_t n_items = work->n_stripes * work->n_parts;
        wharf_orc_team_begin(work->file.bytes.team, n_items);
        wharf_cli_crew_run(work->crew, do_item, work, n_items + work->n_hands, &ns);
        const struct wharf_orc_stripe *last =
            &file->stripes[work->first_stripe + work->n_stripes - 1];
        wharf_cli_task_move(work->columns->task, last->offset + last->nbytes, 0);
    }
    for (size_t i = 0; i < work->n_parts && work->footers.has_failed; i++)
        note_failure(work, &work->parts[i], end, &work->footers);
}

/* ---- outputs ------------------------------------------------------------------------------- */

/* Each output is a new file: whatever else stands under its name does not get parts out of
 * order. */
static int open_output(const struct wharf_cli_columns *columns, struct wharf_cli_output *output,
                       const char *path)
{
    struct wharf_cli_task *task = columns->task;
    int r = wharf_cli_output_open(output, path, task->options->force);

    if (r == 0 && !output->is_file)
        wharf_cli_say("%s: is no regular file", path);
    if (r == 0 && (!output->is_file || wharf_cli_output_is_input(output, &task->input->status))) {
        wharf_cli_output_discard(output);
        r = -EINVAL;
    }
    return r < 0 ? wharf_cli_tally_error(task->tally, path, r) : WHARF_CLI_GOOD;
}

static int open_outputs(const struct wharf_cli_columns *columns, struct part *part)
{
    int status = open_output(columns, &part->values, part->of->values_path);

    if (status != WHARF_CLI_GOOD)
        return status;
    status = open_output(columns, &part->nulls, part->of->nulls_path);
    if (status != WHARF_CLI_GOOD)
        wharf_cli_output_discard(&part->values);
    return status;
}

static const char *npy_type(uint32_t kind)
{
    static const char *const types[] = {"|b1", "|i1", "<i2", "<i4", "<i8"};

    return types[kind];
}

/* Writes the head, and sets how large the output is.  0 or -errno. */
static int complete(const struct work *work, struct wharf_cli_output *output, const char *type,
                    unsigned unit_nbytes)
{
    uint64_t n_rows = work->columns->file->n_rows;
    uint8_t head[WHARF_CLI_NPY_NBYTES];

    wharf_cli_npy_head(head, type, n_rows);
    output->nbytes = work->head_nbytes + n_rows * unit_nbytes;
    return work->head_nbytes ? wharf_cli_output_write_at(output, 0, head, sizeof(head)) : 0;
}

/* Without nulls there is no file of them, and an older one would be wrong. */
static int finish_nulls(const struct work *work, struct part *part)
{
    const struct wharf_cli_task *task = work->columns->task;

    if (part->n_nulls)
        return wharf_cli_output_commit(&part->nulls, &task->input->status);
    wharf_cli_output_discard(&part->nulls);
    if (task->options->force && unlink(part->of->nulls_path) < 0 && errno != ENOENT) {
        wharf_cli_say("%s: cannot remove it: %s; the column has no nulls", part->of->nulls_path,
                      wharf_cli_error_text(errno));
        return -errno;
    }
    return 0;
}

static int fail_write(const struct work *work, struct part *part, int error)
{
    struct wharf_cli_output *output = part->in_nulls ? &part->nulls : &part->values;
    const char *name = output->name;

    wharf_cli_output_say_error(output, error);
    return wharf_cli_tally_error(work->columns->task->tally, name, error);
}

static int commit(const struct work *work, struct part *part)
{
    struct wharf_cli_task *task = work->columns->task;
    int r = wharf_cli_output_commit(&part->values, &task->input->status);

    if (r < 0) {
        wharf_cli_output_discard(&part->nulls);
        return wharf_cli_tally_error(task->tally, part->of->values_path, r);
    }
    r = finish_nulls(work, part);
    if (r < 0) {
        wharf_cli_output_take_back(&part->values);
        return wharf_cli_tally_error(task->tally, part->of->nulls_path, r);
    }
    task->tally->out_nbytes += part->values.nbytes + (part->n_nulls ? part->nulls.nbytes : 0);
    return WHARF_CLI_GOOD;
}

/* A bad footer, which all columns may have failed at, is told once. */
static int fail_data(struct work *work, const struct part *part)
{
    const struct wharf_cli_columns *columns = work->columns;
    bool is_footer = part->error.column == WHARF_ORC_NOWHERE;

    if (is_footer && work->is_footer_told)
        return WHARF_CLI_FAILED;
    work->is_footer_told = work->is_footer_told || is_footer;
    return wharf_cli_columns_fail(columns->task, columns->file, &part->error);
}

static int finish(struct work *work, struct part *part)
{
    int status = WHARF_CLI_GOOD;

    if (!part->has_failed) {
        part->write_error = complete(work, &part->values, npy_type(part->of->column.kind),
                                     part->of->column.unit_nbytes);
        part->in_nulls = part->write_error == 0;
        if (part->in_nulls)
            part->write_error = complete(work, &part->nulls, "|b1", 1);
    }
    if (part->write_error < 0)
        status = fail_write(work, part, part->write_error);
    else if (part->has_failed)
        status = fail_data(work, part);
    if (status == WHARF_CLI_GOOD)
        return commit(work, part);
    wharf_cli_say("%s: not written", part->of->values_path);
    wharf_cli_output_discard(&part->values);
    wharf_cli_output_discard(&part->nulls);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Columns from `first` on; those whose files cannot be made are left out. */
static void do_columns(struct work *work, size_t first)
{
    const struct wharf_cli_columns *columns = work->columns;

    work->n_parts = 0;
    for (size_t i = first; i < columns->n_columns && i < first + ROUND_COLUMNS; i++) {
        struct part *part = &work->parts[work->n_parts];
        *part = (struct part){.of = &columns->columns[i]};
        if (open_outputs(columns, part) == WHARF_CLI_GOOD)
            work->n_parts++;
    }
    if (work->n_parts == 0)
        return;
    do_stripes(work);
    for (size_t i = 0; i < work->n_parts; i++)
        finish(work, &work->parts[i]);
}

static int make_memory(struct work *work)
{
    unsigned n_threads = work->columns->task->options->n_threads;

    work->parts = calloc(ROUND_COLUMNS, sizeof(*work->parts));
    work->n_hands = n_threads;
    work->hands = malloc(n_threads * sizeof(*work->hands));
    if (!work->parts || !work->hands)
        return -ENOMEM;
    int r = wharf_orc_team_new(n_threads, &work->file.bytes.team);
    return r < 0 ? r : wharf_cli_crew_new(n_threads, &work->crew);
}

int wharf_cli_columns_decode(const struct wharf_cli_columns *columns)
{
    struct work work = {
        .columns = columns,
        .file = *columns->file,
        .head_nbytes = columns->is_raw ? 0 : WHARF_CLI_NPY_NBYTES,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    int r = make_memory(&work);

    if (r < 0)
        wharf_cli_task_error(columns->task, "cannot decode", r);
    else if (read_footers(&work) == WHARF_CLI_GOOD)
        for (size_t first = 0; first < columns->n_columns; first += ROUND_COLUMNS)
            do_columns(&work, first);
    wharf_orc_wanted_deinit(&work.wanted);
    free(work.places);
    wharf_cli_crew_free(work.crew);
    wharf_orc_team_free(work.file.bytes.team);
    free(work.hands);
    free(work.parts);
    return columns->task->tally->status;
}
