/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brotli_stream.h: Brotli, RFC 7932, as a stream decoder of encoders/stream.h, by libbrotlidec.
 *
 * A file is one stream, and bytes behind it are an error [INPUT_LEFT]: Brotli has no checksum, so
 * that nothing else tells of a stream that ends too early.  For the same reason no output counts as
 * verified before its end.  Windows are of at most 16 MiB: those of Large Window Brotli are
 * refused.
 *
 * libbrotlidec does not say at which bit an error stands: the place of a bad stream is the byte up
 * to which it had read.
 */
#ifndef WHARF_CLI_BROTLI_STREAM_H
#define WHARF_CLI_BROTLI_STREAM_H

#include "encoders/stream.h"

/* NULL without memory. */
struct wharf_stream *wharf_cli_brotli_stream_new(void);

#endif
