/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored_format.h: the codec that changes nothing.
 *
 * A stream is its own output, byte for byte, and takes all of its source.  It has no checksum.
 * The only way to fail: a source longer than the destination gives OUTPUT_TOO_SMALL, reason
 * OUTPUT_FULL, at the first bit of the first byte that does not fit (8 * out_avail).
 */
#ifndef WHARF_ENCODERS_STORED_STORED_FORMAT_H
#define WHARF_ENCODERS_STORED_STORED_FORMAT_H

/* Output is exactly input, so the bound that struct wharf_codec_ops asks for is 1 * n + 0. */
#define WHARF_STORED_MAX_RATIO 1
#define WHARF_STORED_MAX_CONSTANT 0

#endif
