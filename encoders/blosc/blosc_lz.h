/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_lz.h: blosclz, the codec that only Blosc uses (blosc_format.h). */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_LZ_H
#define WHARF_ENCODERS_BLOSC_BLOSC_LZ_H

#include "encoders/codec.h"

/* The stream is the whole source, of at least one byte. */
wharf_decode_fn wharf_blosc_lz_decode;

#endif
