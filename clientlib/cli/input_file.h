/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_file.h: what a command reads, a file or a pipe, by offset.
 *
 * Offsets count from where the input stood when it was opened.  Files can be read anywhere; of
 * pipes, terminals and the like only what lies ahead, or still in the window of the bytes read
 * last, so a format can be recognised before its reader begins.
 */
#ifndef WHARF_CLI_INPUT_FILE_H
#define WHARF_CLI_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define WHARF_CLI_INPUT_SIZE_UNKNOWN UINT64_MAX

struct wharf_cli_input {
    const char *name; /* for messages */
    int fd;
    int stop_fd;      /* an eventfd; readable once wharf_cli_input_stop was called */
    bool is_seekable; /* a file whose size is known */
    bool is_at_end;   /* of what is not seekable: there is no more to read */
    bool was_read;    /* standard input, which this process has read before: `cat - -` */
    uint64_t nbytes;  /* from `base` to the end, or WHARF_CLI_INPUT_SIZE_UNKNOWN */
    uint64_t base;    /* where a seekable file stood when it was opened */
    struct stat status;

    uint8_t *window;        /* a buffer, so that small reads are cheap */
    uint64_t window_offset; /* where its bytes stand in the input */
    size_t window_nbytes;
    size_t window_avail;
    size_t keep_nbytes; /* of what cannot seek: how much of what was read can be read again */
};

/*
 * Opens `path`, or standard input for "-".  Returns 0 or -errno after saying what is wrong;
 * *ret_input is to be given to _close only on success.  `path` is kept.
 */
int wharf_cli_input_open(struct wharf_cli_input *ret_input, const char *path);

void wharf_cli_input_close(struct wharf_cli_input *input);

/*
 * Reads nbytes at `offset` into buf.  Returns how many: fewer only at the end of the input; or
 * -errno, of which -ECANCELED means that _stop was called.  By one thread at a time.
 */
int64_t wharf_cli_input_read_at(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                size_t nbytes);

/*
 * The same, but returns as soon as there is anything, so that what comes slowly through a pipe is
 * passed on as it comes.  0 only at the end.
 */
int64_t wharf_cli_input_read_some(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes);

/* Like _read_at, for files that can seek, by any thread; reads no byte ahead. */
int64_t wharf_cli_input_read_bare(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes);

/*
 * Gives back bytes that were read from `offset` on and are the last that were read: they can be
 * read again, even from a pipe.  0 or -ENOMEM.
 */
int wharf_cli_input_unread(struct wharf_cli_input *input, uint64_t offset, const void *bytes,
                           size_t nbytes);

/*
 * From now on the last nbytes that were read can be read again, from a pipe too, until bytes are
 * given back.  0 or -ENOMEM.
 */
int wharf_cli_input_remember(struct wharf_cli_input *input, size_t nbytes);

/* Ends a read that waits for a pipe, and all later ones until _resume.  _stop from any thread. */
void wharf_cli_input_stop(struct wharf_cli_input *input);
void wharf_cli_input_resume(struct wharf_cli_input *input);

/* Whether somebody would have to type it. */
bool wharf_cli_input_is_terminal(const struct wharf_cli_input *input);

/* Says that the input could not be read, and why (-errno). */
void wharf_cli_input_say_error(const struct wharf_cli_input *input, int error);

#endif
