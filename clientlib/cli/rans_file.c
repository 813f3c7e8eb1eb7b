/* SPDX-License-Identifier: Apache-2.0 */
/* rans_file.c: reads files of rans, in wharf's own format and in that of the paper. */
#include "clientlib/cli/rans_file.h"

#include <errno.h>
#include <stdlib.h>

#include "encoders/little_endian.h"
#include "encoders/source_kind.h"

enum { FIRST_NBYTES = 1 << 20 };

/* Reads to the end; 0 or -errno. */
static int read_all(struct wharf_cli_input *input, struct wharf_cli_rans_bytes *bytes)
{
    size_t avail = input->is_seekable ? (size_t)input->nbytes + 1 : FIRST_NBYTES;

    for (;; avail *= 2) {
        uint8_t *data = realloc(bytes->data, avail);
        int64_t n;

        if (!data)
            return -ENOMEM;
        bytes->data = data;
        n = wharf_cli_input_read_at(input, bytes->nbytes, data + bytes->nbytes,
                                    avail - bytes->nbytes);
        if (n < 0)
            return (int)n;
        bytes->nbytes += (size_t)n;
        if (bytes->nbytes < avail)
            return 0;
    }
}

int wharf_cli_rans_read_input(struct wharf_cli_task *task, struct wharf_cli_rans_bytes *ret_bytes)
{
    int rc = read_all(task->input, ret_bytes);

    return rc < 0 ? wharf_cli_task_read_error(task, rc) : WHARF_CLI_GOOD;
}

int wharf_cli_rans_read_file(struct wharf_cli_task *task, const char *path,
                             struct wharf_cli_rans_bytes *ret_bytes)
{
    struct wharf_cli_input input;
    int rc = wharf_cli_input_open(&input, path);

    if (rc < 0)
        return wharf_cli_tally_error(task->tally, path, rc);
    if (wharf_cli_output_is_input(task->output, &input.status)) {
        wharf_cli_input_close(&input);
        return wharf_cli_tally_error(task->tally, path, -EINVAL);
    }
    rc = read_all(&input, ret_bytes);
    if (rc < 0) {
        wharf_cli_input_say_error(&input, rc);
        wharf_cli_tally_error(task->tally, path, rc);
    }
    wharf_cli_input_close(&input);
    return rc < 0 ? WHARF_CLI_FAILED : WHARF_CLI_GOOD;
}

void wharf_cli_rans_bytes_deinit(struct wharf_cli_rans_bytes *bytes)
{
    free(bytes->data);
}

static bool is_container(const struct wharf_cli_rans_bytes *bytes)
{
    return wharf_source_detect(bytes->data, bytes->nbytes, true) == WHARF_SOURCE_CONTAINER;
}

/* Whether a model, whose size the header has, is all there is. */
static bool is_model(const struct wharf_cli_rans_bytes *bytes)
{
    return bytes->nbytes > WHARF_RANS_HEADER_NBYTES && bytes->data[0] == WHARF_RANS_VERSION &&
           wharf_load_le32(bytes->data + 8) == bytes->nbytes - WHARF_RANS_HEADER_NBYTES;
}

/* After what it is, or is not, was said. */
static int not_a_stream(struct wharf_cli_task *task)
{
    return wharf_cli_tally_failure(task->tally, task->input->name, -EINVAL, WHARF_CLI_BAD_DATA);
}

int wharf_cli_rans_stream_open(struct wharf_cli_task *task,
                               const struct wharf_cli_rans_bytes *bytes,
                               struct wharf_cli_rans_stream *ret_stream)
{
    struct wharf_outcome own;
    enum wharf_reason reason;
    int rc;

    *ret_stream = (struct wharf_cli_rans_stream){.in = bytes->data, .in_nbytes = bytes->nbytes};
    if (wharf_rans_stream_parse(bytes->data, bytes->nbytes, &ret_stream->parts, &own))
        return WHARF_CLI_GOOD;
    if (own.reason == WHARF_REASON_RANS_VERSION && is_container(bytes)) {
        wharf_cli_say(
            "%s: is a wharf container, whose chunks may be streams of rans: `wharf unpack` "
            "decodes it; `wharf rans encode` makes one stream of a file",
            task->input->name);
        return not_a_stream(task);
    }
    if (is_model(bytes)) {
        wharf_cli_say(
            "%s: ends with the model: it is one that `wharf decode -c rans --model` takes, "
            "or a stream that is cut off",
            task->input->name);
        return not_a_stream(task);
    }
    ret_stream->is_recoil = true;
    rc = wharf_rans_recoil_parse(bytes->data, bytes->nbytes, &ret_stream->parts.body,
                                 &ret_stream->changed, &reason);
    if (rc == -ENOMEM)
        return wharf_cli_task_error(task, task->input->name, rc);
    /* Nothing else tells: a symbol takes one word at most. */
    if (rc == 0 && ret_stream->parts.body.n_words > ret_stream->parts.body.n_symbols) {
        wharf_cli_say("%s: is neither a stream of codec rans nor one of Recoil's program: it would "
                      "have more words than symbols",
                      task->input->name);
        return not_a_stream(task);
    }
    if (ret_stream->changed) {
        ret_stream->in = ret_stream->changed;
        ret_stream->in_nbytes = (size_t)(ret_stream->parts.body.words - ret_stream->changed) +
                                (size_t)ret_stream->parts.body.n_words * WHARF_RANS_WORD_NBYTES;
    }
    if (rc == 0)
        return WHARF_CLI_GOOD;
    if (own.reason == WHARF_REASON_RANS_VERSION)
        wharf_cli_say("%s: is no stream of codec rans, and as one of Recoil's program it is bad",
                      task->input->name);
    /* What has a header that wharf may have written is told of as wharf's. */
    if (own.reason == WHARF_REASON_RANS_VERSION || own.reason == WHARF_REASON_RANS_HEADER) {
        own.reason = reason;
        own.bit_offset = 0;
    }
    return wharf_cli_task_fault(task,
                                &(struct wharf_cli_fault){WHARF_BAD_DATA, own.reason,
                                                          own.bit_offset, WHARF_CLI_NO_CHUNK, NULL},
                                0);
}

void wharf_cli_rans_stream_close(struct wharf_cli_rans_stream *stream)
{
    free(stream->changed);
}
