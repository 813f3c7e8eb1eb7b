/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_write.h: an output of the command, and what is written to it, or to the range of it that
 * is kept.  output_file.h opens and ends it.
 */
#ifndef WHARF_CLI_OUTPUT_WRITE_H
#define WHARF_CLI_OUTPUT_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct wharf_cli_direct;
struct wharf_cli_mapped;

struct wharf_cli_output {
    const char *name; /* for messages */
    const char *path; /* NULL for a descriptor that is open already */
    int descriptor;   /* that one */
    char *temporary;  /* path of a file that has a temporary name, or NULL */
    int fd;
    bool is_file;      /* gets its name at the end */
    bool may_replace;  /* an existing file */
    bool has_identity; /* it is a file, or a file stands under its name: the next two say which */
    dev_t device;
    ino_t inode;
    bool is_sink;    /* what is written goes nowhere, and is counted */
    bool is_watched; /* a terminal or a pipe: somebody else may draw on the terminal meanwhile */
    bool is_sparse;  /* of a file: blocks of zeros become holes */
    bool failed;     /* a write has, or the file would replace an input */
    bool is_new;     /* after _commit: a file that replaced none */
    uint64_t nbytes; /* written so far */

    /* How many threads may write; with enough of them large writes to tmpfs go through `mapped`
     * (mapped_write.h), made with the first one. */
    unsigned n_threads;
    struct wharf_cli_mapped *mapped;
    bool was_mapped; /* the file may be longer than what was written */

    /* Large files elsewhere go through this (direct_write.h), made at some size. */
    struct wharf_cli_direct *direct;
    bool has_no_direct; /* it cannot be made */

    /* The range that is kept of what is written, see wharf_cli_output_keep. */
    bool is_range;
    uint64_t n_passed;    /* given to be written, kept or not */
    uint64_t skip_nbytes; /* still to be left out before the range */
    uint64_t keep_nbytes; /* still to come in it */
    bool may_end_early;   /* the range may reach behind the output's end */
};

/*
 * From now on only nbytes of what is written are kept, those from `offset` on; UINT64_MAX: all from
 * there on.
 */
void wharf_cli_output_keep(struct wharf_cli_output *output, uint64_t offset, uint64_t nbytes);

/* Of what stands before the range nbytes are not written, but passed over. */
void wharf_cli_output_pass(struct wharf_cli_output *output, uint64_t nbytes);

/* nbytes more of a file stand there already, behind what was written: another process wrote
 * them. */
static inline void wharf_cli_output_move(struct wharf_cli_output *output, uint64_t nbytes)
{
    output->nbytes += nbytes;
}

/* How much was given to be written so far: where the next byte stands. */
static inline uint64_t wharf_cli_output_position(const struct wharf_cli_output *output)
{
    return output->is_range ? output->n_passed : output->nbytes;
}

/* Whether there is a range and all of it was written: no more is needed. */
bool wharf_cli_output_is_full(const struct wharf_cli_output *output);

/* Whether what was written ended before the range did; then *ret_passed is how much it was. */
bool wharf_cli_output_lacks(const struct wharf_cli_output *output, uint64_t *ret_passed);

/*
 * Writes all of it.  0 or -errno.  When nobody reads the pipe any more (`| head`), the process
 * ends quietly by SIGPIPE, as any filter does.
 */
int wharf_cli_output_write(struct wharf_cli_output *output, const void *buf, size_t nbytes);
int wharf_cli_output_write_parts(struct wharf_cli_output *output, const struct iovec *parts,
                                 int n_parts);

/*
 * Writes nbytes at `offset` of a file (is_file), in the place of all other functions that write, by
 * any number of threads.  0 or -errno, which _say_error says.  The caller sets output->nbytes at
 * the end.
 */
int wharf_cli_output_write_at(const struct wharf_cli_output *output, uint64_t offset,
                              const void *buf, size_t nbytes);
void wharf_cli_output_say_error(struct wharf_cli_output *output, int error);

/* Ends `mapped` and `direct`, with all that they were given on its way. */
void wharf_cli_output_end_writers(struct wharf_cli_output *output);

#endif
