/* SPDX-License-Identifier: Apache-2.0 */
/* simt_blosc.h: Blosc's phases (blosc/blosc_batch.cuh) on the SIMT layer; for simt_batch.cc. */
#ifndef WHARF_KERNELS_SIMT_SIMT_BLOSC_H
#define WHARF_KERNELS_SIMT_SIMT_BLOSC_H

#include "kernels/device_batch.h"
#include "kernels/simt/simt.h"

namespace wharf
{
namespace simt
{

/* As wharf_simt_decode_batch, for a batch of Blosc's chunks. */
int decode_blosc(const wharf_device_batch &batch, const options &opt, uint64_t *ret_n_steps);

} // namespace simt
} // namespace wharf

#endif
