/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_card.h: this machine's first GPU by libwharf-cuda, for measurements.
 *
 * The library and CUDA's driver are loaded when they are asked for: the command needs neither.
 */
#ifndef WHARF_CLI_GPU_CARD_H
#define WHARF_CLI_GPU_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/bench_clients.h"
#include "proto/wharf_result.h"

struct wharf_cli_card;

/*
 * 0 with *ret_card, or -errno with why in `message`: there is no library, no driver or no GPU, or
 * it cannot be used.
 */
int wharf_cli_card_open(struct wharf_cli_card **ret_card, char *message, size_t message_nbytes);

/* Takes NULL. */
void wharf_cli_card_close(struct wharf_cli_card *card);

/* Of the GPU, and of libwharf-cuda. */
const char *wharf_cli_card_name(const struct wharf_cli_card *card);
const char *wharf_cli_card_version(const struct wharf_cli_card *card);

/* Whether the library decodes the codec. */
int wharf_cli_card_can_decode(const struct wharf_cli_card *card, uint32_t codec);

/* How many copies of the chunks to put into GPU memory to keep a GPU busy: about wanted_nbytes of
 * output, as far as sources and outputs have room. */
size_t wharf_cli_card_copies(const struct wharf_cli_card *card, uint64_t in_nbytes,
                             uint64_t out_nbytes, uint64_t wanted_nbytes);

/* Chunks of one codec, parameter and flags, without checksums, in GPU memory, each n_copies times,
 * sources too. */
struct wharf_cli_card_batch;

/* 0, or -errno with why in `message`.  The chunks must stay. */
int wharf_cli_card_batch_new(struct wharf_cli_card *card,
                             const struct wharf_cli_bench_chunk *chunks, size_t n_chunks,
                             size_t n_copies, struct wharf_cli_card_batch **ret_batch,
                             char *message, size_t message_nbytes);

/* Takes NULL. */
void wharf_cli_card_batch_free(struct wharf_cli_card_batch *batch);

/* Decodes the batch once, within GPU memory; *ret_ns is by the GPU's clock.  0 or -errno. */
int wharf_cli_card_batch_decode(struct wharf_cli_card_batch *batch, uint64_t *ret_ns);

/* Calls `each` with the last outcome and output of every chunk of every copy, until it returns
 * other than 0.  Returns its last value, or -errno. */
int wharf_cli_card_batch_each(struct wharf_cli_card_batch *batch,
                              int (*each)(void *context, size_t chunk,
                                          const struct wharf_outcome *outcome, const uint8_t *out),
                              void *context);

/* Compares the last outputs: 0, -EBADMSG or another -errno. */
int wharf_cli_card_batch_compare(struct wharf_cli_card_batch *batch);

#endif
