/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pywharf_size.h: how much a chunk will decode to, where its format says so.
 *
 * It is a first guess and nothing is believed: what needs more gets more, and the guess is bounded
 * by the chunk's own size, so that forged sizes take no memory.
 */
#ifndef WHARF_PYWHARF_SIZE_H
#define WHARF_PYWHARF_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes to make room for at first.  Needs no GIL. */
size_t pywharf_stated_size(uint32_t codec, uint32_t parameter, const void *in, size_t in_nbytes);

#endif
